"""Signatures: those of our sender hold, and nothing else does."""

import base64
import hashlib
import hmac
import time
from typing import Any

import msgspec
import pytest

from dragoman import Receiver
from dragoman.auth.keys import SigningKeys, generate, parse_keys
from dragoman.push.letters import Letters
from dragoman.webhooks import keyring as module
from tests.client.receivers import Answer, receiving, with_status
from tests.client.receivers import Receiver as Server
from tests.push.deliveries import delivery
from tests.webhooks.test_receiver import BODY, Told

pytestmark = pytest.mark.anyio

ISSUER = "https://desk.example"
URL = "https://receiver.example/hook"


def keys(algorithm: str = "ES256") -> SigningKeys:
    return SigningKeys(parse_keys(generate(algorithm)))


ONE, OTHER = keys(), keys()


def published(*signing: SigningKeys) -> dict[str, Any]:
    sets = [msgspec.json.decode(each.jwks()) for each in signing]
    return {"keys": [key for each in sets for key in each["keys"]]}


def signed(
    signer: SigningKeys = ONE, body: bytes = BODY, *, ago: float = 0, url: str = URL + "?key=q"
) -> dict[str, str]:
    """The headers as our sender makes them."""
    letters = Letters(agent="a", issuer=ISSUER, signer=signer)
    now = round((time.time() - ago) * 1000)
    return dict(letters.headers(delivery(url=url), body, "application/json", now))


def token(signer: SigningKeys = ONE, **claims: Any) -> dict[str, str]:
    """The headers of a token with these claims, otherwise good ones; None leaves one out."""
    now = int(time.time())
    good = {"iss": ISSUER, "iat": now, "exp": now + 300, "payload_hash": hashlib.sha256(BODY).hexdigest()}
    given = {name: value for name, value in (good | claims).items() if value is not None}
    return {"X-A2A-Notification-Signature": signer.token(given)}


async def status(headers: dict[str, str], body: bytes = BODY, **options: Any) -> int:
    given: dict[str, Any] = {"jwks": published(ONE), "issuer": ISSUER, "url": URL, **options}
    told = Told()
    answer = await Receiver(told, **given).receive(headers, body)
    assert len(told) == (answer.status == 204)
    return answer.status


@pytest.mark.proves("W-102")
@pytest.mark.parametrize("algorithm", ["ES256", "ES384", "RS256"])
async def test_what_our_sender_signs_is_believed_and_nothing_else(algorithm: str) -> None:
    signer = keys(algorithm)
    jwks = published(signer, OTHER)
    assert await status(signed(signer), jwks=jwks) == 204
    assert await status(signed(signer), BODY + b" ", jwks=jwks) == 401
    assert await status(signed(keys(algorithm)), jwks=jwks) == 401
    assert await status({}, jwks=jwks) == 401


async def test_a_signature_in_place_of_a_bearer_token_is_believed_too() -> None:
    """As simple_a2a has it."""
    headers = signed()
    bearer = {"Authorization": f"Bearer {headers['X-A2A-Notification-Signature']}"}
    assert await status(bearer | {"Idempotency-Key": headers["Idempotency-Key"]}) == 204
    assert await status({"Authorization": "Basic bWU6eA=="}) == 401


async def test_a_receiver_may_want_a_token_and_a_signature() -> None:
    both = signed() | {"X-A2A-Notification-Token": "s3cr3t"}
    assert await status(both, token="s3cr3t") == 204
    assert await status(signed(), token="s3cr3t") == 401
    assert await status({"X-A2A-Notification-Token": "s3cr3t"}, token="s3cr3t") == 401


async def test_who_it_is_from_and_for_counts_where_it_is_known() -> None:
    assert await status(signed(), issuer="https://other.example") == 401
    assert await status(signed(url="https://somebody-else.example/hook")) == 401
    assert await status(signed(url="https://somebody-else.example/hook"), url="", issuer="") == 204


async def test_when_it_was_made_counts() -> None:
    assert await status(signed(ago=30)) == 204
    assert await status(signed(ago=-30)) == 204  # clocks differ
    assert await status(signed(ago=400)) == 401
    assert await status(signed(ago=-120)) == 401


async def test_a_signature_is_good_for_its_delivery_alone() -> None:
    assert await status(signed() | {"Idempotency-Key": "another"}) == 401


@pytest.mark.parametrize(
    "claims",
    [
        {"payload_hash": None},
        {"payload_hash": "0" * 64},
        {"payload_hash": 7},
        {"request_body_sha256": "0" * 64},
        {"iat": None},
        {"iat": "now"},
        {"iat": True, "exp": None},
        {"exp": "later"},
        {"exp": 1},
        {"iat": 1, "exp": 4_000_000_000},
        {"iss": None},
        {"iss": ["https://desk.example"]},
        {"htu": "https://receiver.example/"},
        {"jti": "another"},
    ],
)
async def test_claims_that_say_less_or_other_than_they_should_are_not_believed(claims: dict[str, Any]) -> None:
    assert await status(token()) == 204
    assert await status(token(**claims)) == 401


def _b64(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode()


def forged(header: dict[str, Any], sign: Any = lambda _: b"") -> str:
    """A token of our claims under a head of our making."""
    payload = token()["X-A2A-Notification-Signature"].split(".")[1]
    head = _b64(msgspec.json.encode(header))
    return f"{head}.{payload}.{_b64(sign(f'{head}.{payload}'.encode()))}"


def _with_public_key(text: bytes) -> bytes:
    """HMAC with what everybody knows: the confusion of algorithms."""
    secret = msgspec.json.encode(published(ONE)["keys"][0])
    return hmac.new(secret, text, hashlib.sha256).digest()


KID = published(ONE)["keys"][0]["kid"]
GOOD = token()["X-A2A-Notification-Signature"]


@pytest.mark.parametrize(
    "bad",
    [
        "",
        "a",
        "a.b",
        "a.b.c",
        "....",
        "ey.ey.ey",
        GOOD[:-10],
        GOOD + "A",
        GOOD.rpartition(".")[0] + ".",
        GOOD.rpartition(".")[0],
        " ".join(GOOD),
        forged({"alg": "none", "kid": KID}),
        forged({"alg": "None", "kid": KID}),
        forged({"alg": "", "kid": KID}),
        forged({"kid": KID}),
        forged({"alg": "HS256", "kid": KID}, _with_public_key),
        forged({"alg": "ES256", "kid": KID}, _with_public_key),
        forged({"alg": "RS256", "kid": KID}),
        forged({"alg": "PS256", "kid": KID}),
        forged({"alg": "EdDSA", "kid": KID}),
        forged({"alg": "ES256", "kid": KID}, lambda _: bytes(64)),
        forged({"alg": "ES256"}, lambda _: bytes(64)),
        forged({"alg": "ES256", "kid": 7}),
        forged({"alg": "ES256", "kid": "../../etc/passwd"}),
        forged({"alg": "ES256", "kid": KID, "crit": ["b64"], "b64": False}),
        forged({"alg": "ES256", "jwk": published(OTHER)["keys"][0]}),
        forged({"alg": "ES256", "kid": KID, "jku": "http://127.0.0.1:1/keys"}),
        forged({"alg": "dir", "enc": "A128GCM", "kid": KID}),
    ],
)
async def test_a_forged_token_is_not_believed(bad: str) -> None:
    assert await status({"X-A2A-Notification-Signature": bad}) == 401
    assert await status({"Authorization": f"Bearer {bad}"}) == 401


# --- keys behind an address


def serving(*signing: SigningKeys) -> Answer:
    return with_status(200, "Content-Type: application/json", body=msgspec.json.encode(published(*signing)))


def address(server: Server) -> str:
    return server.url("/.well-known/jwks.json")


async def told(server: Server, headers: dict[str, str], receiver: Receiver | None = None) -> int:
    receiver = receiver or Receiver(Told(), jwks=address(server))
    return (await receiver.receive(headers, BODY)).status


async def test_keys_are_fetched_once_and_kept() -> None:
    async with receiving(serving(ONE)) as server:
        receiver = Receiver(Told(), jwks=address(server))
        for _ in range(3):
            assert await told(server, signed(), receiver) == 204
        assert await told(server, signed(OTHER), receiver) == 401
        assert len(server.requests) == 1


async def test_a_new_key_is_asked_for_and_an_old_one_is_gone_when_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "AGAIN_SECONDS", 0)
    async with receiving(serving(ONE)) as server:
        receiver = Receiver(Told(), jwks=address(server))
        assert await told(server, signed(), receiver) == 204
        server.answer = serving(OTHER)
        assert await told(server, signed(OTHER), receiver) == 204
        assert await told(server, signed(ONE), receiver) == 401


async def test_keys_that_were_known_serve_while_their_address_is_down(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "KEPT_SECONDS", 0)
    async with receiving(serving(ONE)) as server:
        receiver = Receiver(Told(), jwks=address(server))
        assert await told(server, signed(), receiver) == 204
        server.answer = with_status(500)
        assert await told(server, signed(), receiver) == 204
        assert len(server.requests) == 2


@pytest.mark.parametrize(
    "answer",
    [
        with_status(500),
        with_status(404),
        with_status(302, "Location: /elsewhere"),
        with_status(200, body=b"no json"),
        with_status(200, body=b"[]"),
        with_status(200, body=b'{"keys":"x"}'),
        with_status(200, body=b'{"keys":{}}'),
        with_status(200, body=b" " * 300_000 + b"{}"),
    ],
)
async def test_without_keys_the_sender_is_asked_to_come_again(answer: Answer) -> None:
    async with receiving(answer) as server:
        assert await told(server, signed()) == 503


async def test_keys_we_cannot_check_with_are_passed_over() -> None:
    short = {"kty": "RSA", "n": _b64(bytes([255]) * 64), "e": "AQAB", "kid": "s"}
    others = [{"kty": "oct", "k": "c2VjcmV0", "kid": "o"}, {"kty": "new", "kid": "n"}, {"kty": "EC", "kid": "b"}, short]
    assert await status(signed(), jwks={"keys": [*others, 7, *published(ONE)["keys"]]}) == 204
    for other in others:
        head = forged({"alg": "HS256", "kid": other["kid"]}, _with_public_key)
        assert await status({"X-A2A-Notification-Signature": head}, jwks={"keys": others}) == 401
