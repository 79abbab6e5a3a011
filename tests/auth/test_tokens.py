"""JWTs: what a good one says about its caller, and for how long it is believed."""

import json
import logging
from collections.abc import Sequence
from typing import Any

import pytest

from dragoman.auth.hashes import digest
from dragoman.auth.scheme import Refused
from dragoman.auth.tokens import JwtScheme, TokenSettings
from dragoman.auth.trusted import Trusted, read
from dragoman.model.security import SecurityScheme
from dragoman.ports import Presented
from tests.auth.authority import Authority
from tests.auth.minting import AUDIENCE, ISSUER, Pair, b64, claims, mint, pair
from tests.auth.rig import START, Clock, bearing, presented

pytestmark = pytest.mark.anyio

KEY = pair("k1")
NOW = START / 1000


class Keys:
    """`trusted.TrustedKeys` without a network: the keys it is given."""

    def __init__(self, *keys: Pair) -> None:
        self.trust(*keys)
        self.asked: list[str] = []
        self.freshened = 0

    def trust(self, *keys: Pair) -> None:
        self.known = read({"keys": [key.jwk() for key in keys]})
        self.thumbprints = frozenset(each.thumbprint for each in self.known)

    async def find(self, kid: str, algorithm: str) -> Sequence[Trusted]:
        self.asked.append(kid)
        return [each for each in self.known if algorithm in each.algorithms and (not kid or each.kid == kid)]

    def keep_fresh(self) -> None:
        self.freshened += 1


class Rig:
    def __init__(self, *keys: Pair, **settings: Any) -> None:
        self.clock = Clock()
        self.keys = Keys(*(keys or (KEY,)))
        given: dict[str, Any] = {
            "issuer": ISSUER,
            "audience": frozenset({AUDIENCE}),
            "algorithms": frozenset({"ES256", "RS256", "PS256", "ES384", "EdDSA", "Ed25519"}),
            **settings,
        }
        shown = SecurityScheme(kind="http", http="Bearer")
        self.scheme = JwtScheme("corp", shown, TokenSettings(**given), self.keys, self.clock)

    async def who(self, token: str, **more: Any) -> Any:
        return await self.scheme.identify(bearing(token, **more))

    async def refused(self, token: str, **more: Any) -> Refused:
        with pytest.raises(Refused) as caught:
            await self.who(token, **more)
        assert self.scheme.recall(bearing(token, **more)) is None
        return caught.value


def token(**changed: Any) -> str:
    return mint(KEY, claims(NOW, **changed))


async def test_a_good_token_names_its_caller_by_issuer_and_subject() -> None:
    rig = Rig()
    given = token(scope="read write", name="Alice", email="a@example")
    found = await rig.who(given)
    assert found.id == f"jwt:{ISSUER}|alice"
    assert found.scopes == {"read", "write"}
    assert found.schemes == {"corp"}
    assert found.claims["name"] == "Alice"
    assert rig.scheme.recall(bearing(given)) == found
    assert rig.scheme.holds(found)


async def test_the_edwards_curve_is_known_by_both_its_names() -> None:
    key = pair("x", "EdDSA")
    rig = Rig(key)
    rig.keys.known = read({"keys": [key.jwk(alg="Ed25519")]})
    assert await rig.who(mint(key, claims(NOW), alg="Ed25519"))


@pytest.mark.parametrize("alg", ["ES256", "ES384", "RS256", "PS256", "EdDSA"])
async def test_every_allowed_algorithm_is_checked_for_real(alg: str) -> None:
    key = pair("x", alg)
    rig = Rig(key)
    assert (await rig.who(mint(key, claims(NOW)))).id.endswith("|alice")
    header, payload, signature = mint(key, claims(NOW)).split(".")
    other = b64(json.dumps(claims(NOW, sub="root")).encode())
    assert "signature" in (await rig.refused(f"{header}.{other}.{signature}")).why
    flipped = ("B" if signature[0] == "A" else "A") + signature[1:]
    assert "signature" in (await rig.refused(f"{header}.{payload}.{flipped}")).why


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"scope": "a b"}, {"a", "b"}),
        ({"scp": ["a", "b"]}, {"a", "b"}),
        ({"scp": "a b"}, {"a", "b"}),
        ({"scope": "a", "scp": ["b"]}, {"a", "b"}),
        ({"scope": ""}, set()),
        ({"scope": None}, set()),
        ({"scope": 7, "scp": [7, None, "a"]}, {"a"}),
        ({"scope": {"a": 1}}, set()),
    ],
)
async def test_scopes_are_read_as_issuers_write_them(given: dict[str, Any], expected: set[str]) -> None:
    assert (await Rig().who(token(**given))).scopes == expected


@pytest.mark.parametrize("typ", [None, "JWT", "jwt", "at+jwt", "AT+JWT", "application/at+jwt"])
async def test_the_kinds_of_access_tokens_there_are_pass(typ: str | None) -> None:
    assert await Rig().who(mint(KEY, claims(NOW), typ=typ))


async def test_an_audience_among_others_will_do() -> None:
    assert await Rig().who(token(aud=["https://other.example", AUDIENCE]))


async def test_a_token_without_a_key_id_is_tried_with_the_keys_that_fit() -> None:
    assert await Rig(pair("other"), KEY).who(mint(KEY, claims(NOW), kid=None))


async def test_a_token_counts_until_it_expires_and_a_little_longer() -> None:
    rig = Rig()
    given = token(exp=int(NOW) + 300)
    found = await rig.who(given)
    rig.clock.advance(359)
    assert rig.scheme.recall(bearing(given)) == found and rig.scheme.holds(found)
    rig.clock.advance(1)
    refused = await rig.refused(given)
    assert refused.told == "The token has expired"
    assert not rig.scheme.holds(found)


@pytest.mark.parametrize("claim", ["nbf", "iat"])
async def test_a_token_of_the_future_waits_for_its_time_give_or_take_a_clock(claim: str) -> None:
    rig = Rig()
    assert await rig.who(token(**{claim: NOW + 59}))
    assert (await rig.refused(token(**{claim: NOW + 61}))).told == "The token is not valid yet"


async def test_a_key_that_went_away_takes_its_tokens_along() -> None:
    rig = Rig()
    given = token()
    found = await rig.who(given)
    rig.keys.trust(pair("k2"))
    assert not rig.scheme.holds(found)
    assert (await rig.refused(given)).why == "the token's key is none of the issuer's"


async def test_another_key_under_the_same_name_is_another_key() -> None:
    rig = Rig()
    given = token()
    await rig.who(given)
    rig.keys.trust(pair("k1"))
    assert "signature" in (await rig.refused(given)).why


async def test_tokens_of_another_issuer_lead_to_no_fetch() -> None:
    rig = Rig()
    await rig.refused(token(iss="https://other.example"))
    assert rig.keys.asked == []


async def test_every_token_keeps_the_keys_fresh() -> None:
    rig = Rig()
    rig.scheme.recall(bearing("anything"))
    assert rig.keys.freshened == 1


async def test_which_tenants_a_caller_may_use_is_the_settings_or_the_tokens_word() -> None:
    assert (await Rig().who(token(tid="acme"))).tenants is None
    assert (await Rig(tenants=frozenset({"acme"})).who(token())).tenants == {"acme"}
    for claim, tenants in (("acme", {"acme"}), (["a", "b"], {"a", "b"}), (None, set()), (7, set()), ([7], set())):
        assert (await Rig(tenants_claim="tid").who(token(tid=claim))).tenants == tenants
    both = Rig(tenants_claim="tid", tenants=frozenset({"a", "c"}))
    assert (await both.who(token(tid=["a", "b"]))).tenants == {"a"}


async def test_another_claim_may_say_who_it_is() -> None:
    rig = Rig(subject="oid")
    assert (await rig.who(token(oid="77"))).id == f"jwt:{ISSUER}|77"
    assert "names nobody" in (await rig.refused(token())).why


async def test_a_token_bound_to_a_certificate_counts_over_that_one_only(tmp_path: Any) -> None:
    authority = Authority(tmp_path)
    mine, other = authority.issue("mine"), authority.issue("other")
    rig = Rig()
    given = token(cnf={"x5t#S256": b64(bytes.fromhex(mine.fingerprint))})
    found = await rig.who(given, certificate=mine.pem)
    assert rig.scheme.recall(bearing(given, certificate=mine.pem)) == found
    for stolen in ({}, {"certificate": other.pem}):
        assert "certificate" in (await rig.refused(given, **stolen)).why


async def test_a_token_that_asks_for_nothing_counts_over_any_connection(tmp_path: Any) -> None:
    mine = Authority(tmp_path).issue("mine")
    rig = Rig()
    given = token()
    found = await rig.who(given)
    assert rig.scheme.recall(bearing(given, certificate=mine.pem)) == found


async def test_no_more_tokens_are_remembered_than_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman.auth.tokens.REMEMBERED", 2)
    rig = Rig()
    given = [token(sub=f"u{n}") for n in range(3)]
    first, *_ = [await rig.who(each) for each in given]
    assert [rig.scheme.recall(bearing(each)) is not None for each in given] == [False, True, True]
    assert rig.scheme.holds(first), "forgetting is our affair, not the caller's"
    assert (await rig.who(given[0])).id == first.id


async def test_nothing_presented_is_no_refusal() -> None:
    rig = Rig()
    assert await rig.scheme.identify(presented()) is None
    assert await rig.scheme.identify(presented(authorization="Basic abc")) is None
    assert rig.scheme.recall(presented()) is None
    assert rig.scheme.recall(presented(authorization="Bearer a b")) is None


async def test_what_is_remembered_of_a_token_is_its_digest() -> None:
    rig = Rig()
    given = token()
    found = await rig.who(given)
    assert found.proof == digest(given.encode())
    assert given not in repr(rig.scheme._tokens._known)


async def test_nothing_of_a_token_is_logged_or_told(caplog: pytest.LogCaptureFixture) -> None:
    rig = Rig()
    given = token(aud="https://other.example", jti="sensitive-claim")
    with caplog.at_level(logging.DEBUG):
        refused = await rig.refused(given)
    for part in (*given.split("."), "sensitive-claim", "other.example"):
        assert part not in refused.why and part not in refused.told and part not in caplog.text
    assert Presented({"authorization": given}) is not None
