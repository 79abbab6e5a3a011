"""Tokens nobody should take, against the whole server: each is refused alike, and the agent never hears of it.

The issuer is real: it publishes its keys over HTTP, and whoever attacks has read them.
"""

import asyncio
import hashlib
import hmac
import json
import time
from base64 import urlsafe_b64encode
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

from dragoman.testing.inprocess import Response
from tests.auth.minting import AUDIENCE, Pair, b64, claims, compact, mint, pair
from tests.auth.provider import Provider, providing
from tests.protocol.speaking import Speaker, serving

pytestmark = pytest.mark.anyio

MINE = pair("k1")  # the attacker's own key, under the issuer's name for its own
RSA = pair("rsa", "RS256")
WEAK = pair("weak", "RS256", 1_024)
EXTRA = pair("enc")  # the issuer's, but for encryption
STATIC = "static-token-of-a-caller"


class Scene:
    """What an attacker has: the issuer's public documents, an own key, and a token that was somebody's once."""

    def __init__(self, provider: Provider) -> None:
        self.provider = provider
        self.issuer = provider.issuer

    @property
    def real(self) -> Pair:
        """The issuer's signing key. Only what its private half has signed before may be used of it."""
        return self.provider.keys[0]

    def good(self, **changed: Any) -> dict[str, Any]:
        return claims(None, **{"iss": self.issuer, "aud": AUDIENCE, **changed})

    def signed(self, given: Any = None, key: Pair | None = None, **header: Any) -> str:
        return mint(key or self.real, self.good() if given is None else given, **header)

    def parts(self, **changed: Any) -> list[str]:
        return self.signed(self.good(**changed)).split(".")

    def hs(self, secret: bytes, alg: str = "HS256", **header: Any) -> str:
        """A token signed with a public key as if it were a secret."""
        head = json.dumps({"alg": alg, "typ": "JWT", "kid": self.real.kid, **header}).encode()
        body = json.dumps(self.good()).encode()
        digest = {"HS256": hashlib.sha256, "HS384": hashlib.sha384, "HS512": hashlib.sha512}[alg]
        return compact(head, body, hmac.digest(secret, f"{b64(head)}.{b64(body)}".encode(), digest().name))

    def unsigned(self, alg: str) -> str:
        head = json.dumps({"alg": alg, "typ": "JWT", "kid": self.real.kid}).encode()
        return compact(head, json.dumps(self.good()).encode(), b"")

    def swapped(self, header: bytes | None = None, payload: bytes | None = None, signature: bytes | None = None) -> str:
        """A good token with one part in another's place."""
        parts = self.parts()
        for at, part in enumerate((header, payload, signature)):
            if part is not None:
                parts[at] = b64(part)
        return ".".join(parts)


NOW = time.time()
Make = Callable[[Scene], str]
HOSTILE: dict[str, Make] = {
    # no signature
    "alg none": lambda s: s.unsigned("none"),
    "alg None": lambda s: s.unsigned("None"),
    "alg NONE": lambda s: s.unsigned("NONE"),
    "alg nOnE with a dot less": lambda s: s.unsigned("nOnE").rstrip("."),
    "alg empty": lambda s: s.unsigned(""),
    "alg none over a real signature": lambda s: s.swapped(header=b'{"alg":"none","typ":"JWT"}'),
    "no alg": lambda s: s.swapped(header=b'{"typ":"JWT"}'),
    "alg null": lambda s: s.swapped(header=b'{"alg":null}'),
    "alg a list": lambda s: s.swapped(header=b'{"alg":["ES256"]}'),
    "alg twice, the bad one last": lambda s: s.swapped(header=b'{"alg":"ES256","alg":"none"}'),
    "alg twice, the bad one first": lambda s: s.swapped(header=b'{"alg":"none","alg":"ES256"}'),
    "signature cut off": lambda s: ".".join([*s.parts()[:2], ""]),
    "two parts": lambda s: ".".join(s.parts()[:2]),
    "signature of zeros": lambda s: s.swapped(signature=bytes(64)),
    "signature of r and s zero in DER": lambda s: s.swapped(signature=bytes.fromhex("3006020100020100")),
    # a public key taken for a secret
    "HS256 with the key's PEM": lambda s: s.hs(s.real.pem),
    "HS256 with the key's PEM, stripped": lambda s: s.hs(s.real.pem.strip()),
    "HS256 with the key's JWK": lambda s: s.hs(json.dumps(s.real.jwk()).encode()),
    "HS384 with the key's PEM": lambda s: s.hs(s.real.pem, "HS384"),
    "HS512 with the key's PEM": lambda s: s.hs(s.real.pem, "HS512"),
    "HS256 with nothing": lambda s: s.hs(b""),
    "HS256 with the RSA key's PEM": lambda s: s.hs(RSA.pem, kid="rsa"),
    "RS256 header over an EC signature": lambda s: s.swapped(
        header=json.dumps({"alg": "RS256", "kid": s.real.kid}).encode()
    ),
    "RS384, which is not on the list": lambda s: mint(RSA, s.good(), alg="RS384"),
    "a weak key the issuer publishes": lambda s: mint(WEAK, s.good()),
    "a key the issuer encrypts with": lambda s: mint(EXTRA, s.good()),
    # another's key
    "signed by a key of one's own under the issuer's name": lambda s: s.signed(key=MINE),
    "without a key id, by a key of one's own": lambda s: s.signed(key=MINE, kid=None),
    "by a key of one's own that comes along": lambda s: s.signed(key=MINE, kid="mine", jwk=MINE.jwk()),
    "by a key of one's own at one's own address": lambda s: s.signed(key=MINE, jku="http://127.0.0.1:9/keys"),
    "by a certificate that comes along": lambda s: s.signed(key=MINE, x5c=[urlsafe_b64encode(MINE.pem).decode()]),
    "by a certificate at one's own address": lambda s: s.signed(key=MINE, x5u="http://127.0.0.1:9/cert"),
    "key id of a path": lambda s: s.signed(key=MINE, kid="../../../dev/null"),
    "key id of SQL": lambda s: s.signed(key=MINE, kid="k1' OR '1'='1"),
    "key id of another type": lambda s: s.signed(key=MINE, kid=["k1"]),
    "key id that never ends": lambda s: s.signed(key=MINE, kid="k" * 5_000),
    "key id with a line break": lambda s: s.signed(key=MINE, kid="k1\r\nX: y"),
    # headers that must be understood
    "crit": lambda s: s.signed(crit=["exp"]),
    "crit of nothing": lambda s: s.signed(crit=[]),
    "crit b64": lambda s: s.signed(crit=["b64"], b64=False),
    "b64 without crit": lambda s: s.signed(b64=False),
    "typ of a logout token": lambda s: s.signed(typ="logout+jwt"),
    "typ of an event": lambda s: s.signed(typ="secevent+jwt"),
    "typ of a proof": lambda s: s.signed(typ="dpop+jwt"),
    "typ of another type": lambda s: s.signed(typ=7),
    # claims
    "changed after it was signed": lambda s: s.swapped(payload=json.dumps(s.good(sub="root")).encode()),
    "of another issuer": lambda s: s.signed(s.good(iss="https://evil.example")),
    "of an issuer that begins alike": lambda s: s.signed(s.good(iss=s.issuer + ".evil.example")),
    "of the issuer with a slash": lambda s: s.signed(s.good(iss=s.issuer + "/")),
    "of no issuer": lambda s: s.signed(s.good(iss=None)),
    "of two issuers": lambda s: s.signed(s.good(iss=[s.issuer])),
    "for another audience": lambda s: s.signed(s.good(aud="https://other.example")),
    "for an audience that begins alike": lambda s: s.signed(s.good(aud=AUDIENCE + ".evil.example")),
    "for no audience": lambda s: s.signed(s.good(aud=None)),
    "for an empty list": lambda s: s.signed(s.good(aud=[])),
    "for a nested list": lambda s: s.signed(s.good(aud=[[AUDIENCE]])),
    "for an object": lambda s: s.signed(s.good(aud={AUDIENCE: True})),
    "expired": lambda s: s.signed(s.good(exp=int(NOW) - 3_600)),
    "never expiring": lambda s: s.signed(s.good(exp=None)),
    "expiring in words": lambda s: s.signed(s.good(exp="9999999999")),
    "expiring when it is true": lambda s: s.signed(s.good(exp=True)),
    "expiring at infinity": lambda s: s.signed(json.dumps(s.good()).replace(str(s.good()["exp"]), "1e999").encode()),
    "expiring at NaN": lambda s: s.signed(json.dumps(s.good(exp=float("nan"))).encode()),
    "expiring after the sun": lambda s: s.signed(s.good(exp=10**30)),
    "not valid for years": lambda s: s.signed(s.good(nbf=int(NOW) + 10**8)),
    "issued in the future": lambda s: s.signed(s.good(iat=int(NOW) + 10**8)),
    "of nobody": lambda s: s.signed(s.good(sub=None)),
    "of an empty name": lambda s: s.signed(s.good(sub="")),
    "of a number": lambda s: s.signed(s.good(sub=7)),
    "of a name that never ends": lambda s: s.signed(s.good(sub="a" * 256)),
    "of a name with a line break": lambda s: s.signed(s.good(sub="alice\r\nX-Admin: yes")),
    "of a name with a zero": lambda s: s.signed(s.good(sub="alice\x00")),
    "stolen from who holds a certificate": lambda s: s.signed(s.good(cnf={"x5t#S256": b64(bytes(32))})),
    "stolen from who holds a key": lambda s: s.signed(s.good(cnf={"jkt": "x"})),
    "bound by both": lambda s: s.signed(s.good(cnf={"jkt": "x", "x5t#S256": b64(bytes(32))})),
    "bound by nothing": lambda s: s.signed(s.good(cnf={})),
    "bound in words": lambda s: s.signed(s.good(cnf="me")),
    # no token at all
    "claims that are a list": lambda s: s.signed(b"[]"),
    "claims that are no JSON": lambda s: s.signed(b"{"),
    "claims that nest without end": lambda s: s.signed(b'{"a":' * 3_000 + b"1" + b"}" * 3_000),
    "claims that are no UTF-8": lambda s: s.signed(b'{"sub":"\xff"}'),
    "a header that is a list": lambda s: s.swapped(header=b"[]"),
    "a header that nests without end": lambda s: s.swapped(header=b'{"a":' * 3_000 + b"1" + b"}" * 3_000),
    "an encrypted token": lambda s: "a.b.c.d.e",
    "four parts": lambda s: s.signed() + ".AA",
    "empty parts": lambda s: "..",
    "only dots": lambda s: "." * 100,
    "a token within a token": lambda s: s.signed(s.signed().encode()),
    "padded": lambda s: "=.".join(s.parts()) + "=",
    "in the other alphabet": lambda s: s.signed(s.good(sub="a>?" * 20)).replace("-", "+").replace("_", "/") + "+",
    "with a space": lambda s: s.signed().replace(".", ". ", 1),
    "with a comma": lambda s: s.signed() + "," + s.signed(),
    "longer than any": lambda s: s.signed(s.good(pad="x" * 20_000)),
    "a static token's hash": lambda s: f"sha256:{hashlib.sha256(STATIC.encode()).hexdigest()}",
    "a static token, almost": lambda s: STATIC + "x",
    "a static token in capitals": lambda s: STATIC.upper(),
    "nothing": lambda s: "",
    "null": lambda s: "null",
    "undefined": lambda s: "undefined",
    "a format string": lambda s: "%s%n{0}${jndi:ldap://127.0.0.1}",
}


@pytest.fixture(scope="module")
def provider() -> Iterator[Provider]:
    with providing() as provider:
        keys = [*(key.jwk() for key in (provider.keys[0], RSA, WEAK)), EXTRA.jwk(use="enc")]
        provider.answers["/keys"] = (200, {}, json.dumps({"keys": keys}).encode())
        yield provider


@pytest.fixture
async def speaker(provider: Provider, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Speaker]:
    monkeypatch.setenv("A2A_AUTH_TOKEN", STATIC)
    corp = {"type": "jwt", "issuer": provider.issuer, "audience": [AUDIENCE], "algorithms": ["ES256", "RS256"]}
    async with serving(auth_schemes={"corp": corp, "bearer": {"type": "bearer"}}) as (stage, app):
        yield Speaker("1.0", "JSONRPC", stage, app)


async def presenting(speaker: Speaker, token: str, scheme: str = "Bearer") -> Response:
    verb, path, body = speaker.spelled("send", speaker.sending("echo hi"))
    return await speaker.ask(verb, path, body, {"authorization": f"{scheme} {token}"})


def test_there_are_enough_of_them() -> None:
    assert len(HOSTILE) >= 40


@pytest.mark.proves("W-044", "W-126", "W-208")
async def test_the_good_ones_pass(speaker: Speaker, provider: Provider) -> None:
    scene = Scene(provider)
    for token in (scene.signed(), mint(RSA, scene.good()), STATIC):
        assert (await presenting(speaker, token)).status == 200
    assert speaker.stage.runs == ["echo hi"] * 3


@pytest.mark.proves("W-044", "W-045", "W-126", "W-127", "W-128")
@pytest.mark.parametrize("make", HOSTILE.values(), ids=HOSTILE)
async def test_each_is_refused_and_nothing_is_told(speaker: Speaker, provider: Provider, make: Make) -> None:
    token = make(Scene(provider))
    answer = await presenting(speaker, token)
    assert answer.status == 401
    challenge = answer.headers["www-authenticate"]
    assert challenge.startswith('Bearer realm="dragoman", error="invalid_')
    body = answer.json()
    assert set(body) == {"jsonrpc", "id", "error"} and body["id"] is None
    assert body["error"]["message"] in TOLD and set(body["error"]) == {"code", "message"}
    assert speaker.stage.runs == []
    for part in token.split("."):
        assert len(part) < 8 or (part not in answer.text and part not in challenge)


TOLD = {"The credentials are not valid", "The token has expired", "The token is not valid yet"}


async def test_refusing_them_all_leaves_the_issuer_in_peace_and_callers_in(
    speaker: Speaker, provider: Provider
) -> None:
    """However many keys are made up, few fetches follow, and who has a good token goes on."""
    scene = Scene(provider)
    before = provider.count()
    for round in range(3):
        for n, make in enumerate(HOSTILE.values()):
            await presenting(speaker, make(scene))
            await presenting(speaker, scene.signed(key=MINE, kid=f"made-up-{round}-{n}"))
    assert provider.count() - before <= 6
    assert (await presenting(speaker, scene.signed())).status == 200


async def test_a_good_token_under_another_scheme_is_none(speaker: Speaker, provider: Provider) -> None:
    for scheme in ("Basic", "Token", "JWT", "DPoP", "Negotiate", "bearerx"):
        answer = await presenting(speaker, Scene(provider).signed(), scheme)
        assert answer.status == 401
    assert speaker.stage.runs == []


@pytest.mark.parametrize("name", ["cookie", "x-api-key", "x-authorization", "proxy-authorization", "authentication"])
async def test_a_good_token_in_another_place_is_none(speaker: Speaker, provider: Provider, name: str) -> None:
    verb, path, body = speaker.spelled("send", speaker.sending("echo hi"))
    token = Scene(provider).signed()
    for value in (token, f"Bearer {token}", f"access_token={token}", STATIC):
        assert (await speaker.ask(verb, path, body, {name: value})).status == 401
    for query in (f"?access_token={token}", f"?token={STATIC}", f"?authorization=Bearer%20{token}"):
        assert (await speaker.ask(verb, path + query, body)).status == 401
    assert speaker.stage.runs == []


async def test_a_token_that_was_withdrawn_is_not_taken_from_memory(provider: Provider) -> None:
    """A key that leaked is rotated away: what it signed stops counting with the next fetch, remembered or not."""
    with providing() as other:
        scheme = {"type": "jwt", "issuer": other.issuer, "audience": [AUDIENCE], "refresh": 0}
        async with serving(auth_schemes={"corp": scheme}) as (stage, app):
            speaker = Speaker("1.0", "JSONRPC", stage, app)
            leaked = other.token()
            assert (await presenting(speaker, leaked)).status == 200
            other.rotate(keep=False)
            async with asyncio.timeout(10):
                while (await presenting(speaker, other.token("bob"))).status != 200:
                    await asyncio.sleep(0.01)
                while (await presenting(speaker, leaked)).status == 200:
                    await asyncio.sleep(0.01)
            assert (await presenting(speaker, leaked)).status == 401
