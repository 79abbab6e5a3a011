"""Client certificates: known by what they are, from whom may say so, whatever name stands in them."""

from base64 import b64encode
from pathlib import Path
from urllib.parse import quote

import pytest
from cryptography.hazmat.primitives.serialization import Encoding

from dragoman.auth.callers import Caller, Callers
from dragoman.auth.certificates import CertificateScheme, forwarded_thumbprint, thumbprint_of
from dragoman.auth.scheme import Refused
from dragoman.ports import Presented
from tests.auth.authority import Authority, Issued
from tests.auth.rig import START, Clock

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Issued:
    return Authority(tmp_path_factory.mktemp("ca")).issue("client")


def scheme(clock: Clock | None = None, caller: Caller | None = None, **how: object) -> CertificateScheme:
    clock = clock or Clock()
    return CertificateScheme("c", Callers(clock, [caller] if caller else []), **how)  # pyright: ignore[reportArgumentType]


async def test_a_certificate_is_its_fingerprint(client: Issued) -> None:
    made = scheme(scopes=frozenset({"read"}), tenants=frozenset({"acme"}))
    found = await made.identify(Presented({}, certificate=client.pem))
    assert found is not None and found == made.recall(Presented({}, certificate=client.pem))
    assert found.id == f"cert:{client.fingerprint}"
    assert (found.scopes, found.tenants, found.schemes) == ({"read"}, {"acme"}, {"c"})
    assert made.holds(found)


async def test_one_that_is_listed_is_its_caller(client: Issued) -> None:
    clock = Clock()
    caller = Caller(name="ci", certificates=(bytes.fromhex(client.fingerprint),), expires=START + 1_000)
    made = scheme(clock, caller, listed=True)
    found = await made.identify(Presented({}, certificate=client.pem))
    assert found is not None and found.id == "caller:ci"
    clock.advance(1)
    assert not made.holds(found)
    with pytest.raises(Refused):
        await made.identify(Presented({}, certificate=client.pem))


async def test_one_that_is_not_listed_may_be_kept_out(client: Issued) -> None:
    made = scheme(listed=True)
    assert made.recall(Presented({}, certificate=client.pem)) is None
    with pytest.raises(Refused, match="is not listed"):
        await made.identify(Presented({}, certificate=client.pem))


def forms(client: Issued) -> list[str]:
    der = b64encode(client.certificate.public_bytes(Encoding.DER)).decode()
    return [quote(client.pem), quote(client.pem, safe=""), f":{der}:", der, client.pem.replace("\n", "\t")]


async def test_a_proxy_may_write_it_down_in_any_of_the_usual_ways(client: Issued) -> None:
    made = scheme(header="X-Client-Cert")
    for value in forms(client):
        found = await made.identify(Presented({"x-client-cert": value}, forwarded=True))
        assert found is not None and found.id == f"cert:{client.fingerprint}"
        assert made.recall(Presented({"x-client-cert": value}, forwarded=True)) == found


async def test_nobody_else_may_say_so(client: Issued) -> None:
    made = scheme(header="X-Client-Cert")
    for value in forms(client):
        assert made.recall(Presented({"x-client-cert": value})) is None
        with pytest.raises(Refused, match="no trusted proxy"):
            await made.identify(Presented({"x-client-cert": value}))


async def test_with_a_header_the_connections_own_certificate_is_the_proxys(client: Issued) -> None:
    """A proxy that logs in to us must not pass for each of its clients."""
    made = scheme(header="X-Client-Cert")
    assert await made.identify(Presented({}, certificate=client.pem, forwarded=True)) is None
    assert await scheme().identify(Presented({"x-client-cert": client.pem}, forwarded=True)) is None


@pytest.mark.parametrize(
    "value",
    [
        "x",
        "%",
        ":x:",
        "::",
        b64encode(b"x" * 200).decode(),
        "A" * 30_000,
        quote("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----"),
    ],
)
async def test_what_is_no_certificate_is_refused(value: str) -> None:
    with pytest.raises(ValueError):
        forwarded_thumbprint(value)
    made = scheme(header="X-Client-Cert")
    assert made.recall(Presented({"x-client-cert": value}, forwarded=True)) is None
    with pytest.raises(Refused):
        await made.identify(Presented({"x-client-cert": value}, forwarded=True))


async def test_two_certificates_are_none(client: Issued, tmp_path: Path) -> None:
    other = Authority(tmp_path).issue("other")
    for value in (client.pem + other.pem, quote(client.pem + other.pem), ", ".join(forms(client)[2:3] * 2)):
        with pytest.raises(ValueError):
            forwarded_thumbprint(value)


def test_how_it_is_written_down_makes_no_difference(client: Issued) -> None:
    assert thumbprint_of(client.pem) == thumbprint_of(f"\n{client.pem}\n\n") == bytes.fromhex(client.fingerprint)
