"""The keys of an issuer: which of them count, when they are asked for again, and what happens while nobody answers."""

import asyncio
from typing import Any

import pytest

from dragoman.auth.fetching import Unfetchable
from dragoman.auth.trusted import BURST, TrustedKeys, parse, read
from dragoman.model.errors import Unavailable
from tests.auth.minting import Pair, pair
from tests.auth.rig import Clock

pytestmark = pytest.mark.anyio

EC, RSA = pair("ec"), pair("rsa", "RS256")


class Issuer:
    """Answers what it is told to, and counts."""

    def __init__(self, *keys: Pair) -> None:
        self.keys = list(keys)
        self.asked = 0
        self.broken = False
        self.gate = asyncio.Event()
        self.gate.set()

    async def __call__(self) -> object:
        self.asked += 1
        await self.gate.wait()
        if self.broken:
            raise Unfetchable("answered 500")
        return {"keys": [key.jwk() for key in self.keys]}


def trusting(issuer: Issuer, clock: Clock, refresh: float = 600) -> TrustedKeys:
    return TrustedKeys(issuer, clock, issuer="https://id.example", refresh_ms=round(refresh * 1000))


async def kids(keys: TrustedKeys, kid: str, alg: str = "ES256") -> list[str]:
    return [each.kid for each in await keys.find(kid, alg)]


async def settled(keys: TrustedKeys) -> None:
    fetching = keys._fetching
    assert fetching is not None
    await fetching


# --- which count ------------------------------------------------------------------------------------------


def test_every_kind_of_key_is_read_with_what_it_may_check() -> None:
    made = {alg: pair(alg, alg) for alg in ("ES256", "ES384", "ES512", "EdDSA", "RS256")}
    found = {each.kid: each.algorithms for each in read({"keys": [key.jwk() for key in made.values()]})}
    assert found == {alg: {alg} for alg in made}
    (edwards,) = read({"keys": [{k: v for k, v in made["EdDSA"].jwk().items() if k != "alg"}]})
    assert edwards.algorithms == {"EdDSA", "Ed25519"}
    bare = read({"keys": [{k: v for k, v in RSA.jwk().items() if k in ("kty", "n", "e")}]})
    assert bare[0].algorithms == {"RS256", "RS384", "RS512", "PS256", "PS384", "PS512"}
    assert bare[0].kid == ""


@pytest.mark.parametrize(
    "jwk",
    [
        {"kty": "oct", "k": "c2VjcmV0", "kid": "k", "alg": "HS256"},
        EC.jwk(use="enc"),
        EC.jwk(key_ops=["sign"]),
        EC.jwk(key_ops="verify"),
        EC.jwk(alg="HS256"),
        EC.jwk(alg="none"),
        EC.jwk(alg="ES384"),
        RSA.jwk(alg="HS256"),
        RSA.jwk(e=""),
        EC.jwk(x="AA"),
        EC.jwk(crv="P-000"),
        EC.jwk(crv=None),
        {**EC.jwk(), "kty": "RSA"},
        {"kty": "RSA"},
        pair("weak", "RS256", 1_024).jwk(),
        "no key",
        None,
    ],
)
def test_what_no_signature_may_be_checked_with_is_passed_over(jwk: Any) -> None:
    assert [each.kid for each in read({"keys": [jwk, EC.jwk(kid="good")]})] == ["good"]


@pytest.mark.parametrize("document", [None, [], {}, {"keys": None}, {"keys": {}}, "keys"])
def test_what_is_no_set_of_keys_is_refused(document: Any) -> None:
    with pytest.raises(Unfetchable):
        read(document)


def test_a_private_half_in_the_set_is_not_read() -> None:
    import msgspec

    from dragoman.auth.keys import generate

    (found,) = read({"keys": [msgspec.json.decode(generate("ES256"))]})
    assert not found.key.is_private


def test_a_file_that_is_no_json_is_told_so() -> None:
    for content in (b"{", b"\xff", b""):
        with pytest.raises(Unfetchable, match="is not JSON"):
            parse(content)


async def test_a_set_without_a_usable_key_replaces_nothing() -> None:
    issuer = Issuer(EC)
    clock = Clock()
    keys = trusting(issuer, clock)
    assert await kids(keys, "ec") == ["ec"]
    issuer.keys = []
    clock.advance(700)
    keys.keep_fresh()
    await settled(keys)
    assert await kids(keys, "ec") == ["ec"]


# --- when they are asked for ------------------------------------------------------------------------------


async def test_keys_are_fetched_once_for_everybody_who_waits() -> None:
    issuer = Issuer(EC)
    issuer.gate.clear()
    keys = trusting(issuer, Clock())
    waiting = [asyncio.create_task(kids(keys, "ec")) for _ in range(5)]
    await asyncio.sleep(0)
    waiting.pop().cancel()  # one who leaves takes the answer from nobody
    issuer.gate.set()
    assert await asyncio.gather(*waiting) == [["ec"]] * 4
    assert issuer.asked == 1


async def test_a_new_key_is_fetched_when_a_token_names_it() -> None:
    issuer, new = Issuer(EC), pair("new")
    keys = trusting(issuer, Clock())
    assert await kids(keys, "ec") == ["ec"]
    issuer.keys = [new]
    assert await kids(keys, "new") == ["new"]
    assert issuer.asked == 2
    assert await kids(keys, "ec") == [], "the old one is gone"


async def test_made_up_names_lead_to_few_fetches() -> None:
    issuer, clock = Issuer(EC), Clock()
    keys = trusting(issuer, clock)
    await kids(keys, "ec")
    for n in range(100):
        assert await kids(keys, f"made-up-{n}") == []
    assert issuer.asked == 1 + BURST
    clock.advance(31)
    for n in range(100):
        assert await kids(keys, f"made-up-{n}") == []
    assert issuer.asked == 2 + BURST
    assert await kids(keys, "ec") == ["ec"], "honest tokens go on meanwhile"


async def test_keys_grow_old_and_are_fetched_again_while_tokens_go_on() -> None:
    issuer, clock = Issuer(EC), Clock()
    keys = trusting(issuer, clock)
    await kids(keys, "ec")
    clock.advance(599)
    keys.keep_fresh()
    assert issuer.asked == 1
    issuer.gate.clear()
    clock.advance(2)
    keys.keep_fresh()
    keys.keep_fresh()
    assert await kids(keys, "ec") == ["ec"], "nobody waits for the fetch"
    issuer.gate.set()
    await settled(keys)
    assert issuer.asked == 2


async def test_without_a_name_every_key_that_fits_may_be_meant() -> None:
    issuer = Issuer(EC, pair("ec2"), RSA)
    keys = trusting(issuer, Clock())
    assert await kids(keys, "") == ["ec", "ec2"]
    assert await kids(keys, "", "RS256") == ["rsa"]
    assert await kids(keys, "rsa", "ES256") == []


# --- while nobody answers ---------------------------------------------------------------------------------


async def test_without_any_keys_nobody_is_judged() -> None:
    issuer, clock = Issuer(EC), Clock()
    issuer.broken = True
    keys = trusting(issuer, clock)
    for _ in range(3):
        with pytest.raises(Unavailable):
            await keys.find("ec", "ES256")
    assert issuer.asked == 1, "asked again at once"
    issuer.broken = False
    clock.advance(6)
    assert await kids(keys, "ec") == ["ec"]


async def test_known_keys_count_for_a_day_and_no_longer() -> None:
    issuer, clock = Issuer(EC), Clock()
    keys = trusting(issuer, clock)
    await kids(keys, "ec")
    issuer.broken = True
    clock.advance(24 * 3_600)
    keys.keep_fresh()
    await settled(keys)
    assert await kids(keys, "ec") == ["ec"]
    clock.advance(700)
    with pytest.raises(Unavailable):
        await keys.find("ec", "ES256")


async def test_a_broken_issuer_is_not_asked_for_every_token() -> None:
    issuer, clock = Issuer(EC), Clock()
    keys = trusting(issuer, clock)
    await kids(keys, "ec")
    issuer.broken = True
    clock.advance(601)
    for _ in range(10):
        keys.keep_fresh()
        await settled(keys)
    assert issuer.asked == 2


async def test_reload_asks_now_and_closing_stops_asking() -> None:
    issuer = Issuer(EC)
    keys = trusting(issuer, Clock())
    await keys.close()
    await kids(keys, "ec")
    issuer.gate.clear()
    keys.reload()
    fetching = keys._fetching
    assert fetching is not None
    await asyncio.sleep(0)
    assert issuer.asked == 2
    await keys.close()
    assert fetching.cancelled()
