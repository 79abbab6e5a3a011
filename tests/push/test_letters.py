"""What a request says about itself: by which secrets a receiver knows us, and how it can check who wrote the body."""

import base64
from hashlib import sha256
from typing import Any

import msgspec
import pytest
from joserfc import jwt
from joserfc.jwk import KeySet

from dragoman.auth.keys import SigningKeys, generate, parse_keys
from dragoman.push.letters import Letters
from tests.push.deliveries import delivery

NOW = 1_800_000_000_123
LETTERS = Letters(agent="dragoman/test", issuer="https://desk.example")


def headers(letters: Letters = LETTERS, body: bytes = b"{}", **config: Any) -> dict[str, str]:
    """By name in lower case; none comes twice."""
    found = letters.headers(delivery(**config), body, "application/json", NOW)
    names = [name.lower() for name, _ in found]
    assert len(set(names)) == len(names), names
    return {name.lower(): value for name, value in found}


def secrets(**config: Any) -> dict[str, str]:
    """Without what every request has."""
    return {
        name: value
        for name, value in headers(**config).items()
        if name not in ("content-type", "user-agent", "idempotency-key")
    }


def test_every_request_says_what_it_is_and_which_delivery() -> None:
    one = delivery()
    found = dict(LETTERS.headers(one, b"{}", "application/a2a+json", NOW))
    assert found == {"Content-Type": "application/a2a+json", "User-Agent": "dragoman/test", "Idempotency-Key": one.id}


BEARER = {"scheme": "Bearer", "credentials": "s3cr3t"}


@pytest.mark.parametrize("config", [{"token": "s3cr3t"}, {"authentication": BEARER}])
def test_a_token_and_bearer_credentials_each_make_both_headers(config: dict[str, Any]) -> None:
    assert secrets(**config) == {"x-a2a-notification-token": "s3cr3t", "authorization": "Bearer s3cr3t"}


def test_where_both_are_given_each_has_its_own() -> None:
    """As the specification has it; where the top level wins (protoAgent), the reader has settled it before."""
    found = secrets(token="nonce-77", authentication=BEARER)
    assert found == {"x-a2a-notification-token": "nonce-77", "authorization": "Bearer s3cr3t"}


@pytest.mark.parametrize(
    ("scheme", "credentials", "header", "value"),
    [
        ("bearer", "s3cr3t", "authorization", "Bearer s3cr3t"),
        ("Basic", "me:s3cr3t", "authorization", f"Basic {base64.b64encode(b'me:s3cr3t').decode()}"),
        ("basic", "bWU6czNjcjN0", "authorization", "Basic bWU6czNjcjN0"),
        ("apiKey", "s3cr3t", "x-api-key", "s3cr3t"),
        ("API-KEY", "s3cr3t", "x-api-key", "s3cr3t"),
        ("token", "s3cr3t", "authorization", "Token s3cr3t"),
        ("HOBA", "result=s3cr3t", "authorization", "HOBA result=s3cr3t"),
        ("", "s3cr3t", "authorization", "s3cr3t"),
    ],
)
def test_credentials_travel_as_their_scheme_has_it(scheme: str, credentials: str, header: str, value: str) -> None:
    found = secrets(authentication={"scheme": scheme, "credentials": credentials})
    assert found[header] == value
    assert set(found) == {header} | ({"x-a2a-notification-token"} if scheme == "bearer" else set())


@pytest.mark.parametrize(
    ("scheme", "value"),
    [("bearer", "Bearer s3cr3t"), ("token", "Token s3cr3t"), ("apikey", "s3cr3t"), ("custom", "s3cr3t")],
)
def test_a_header_of_their_own_carries_them_instead(scheme: str, value: str) -> None:
    found = secrets(authentication={"scheme": scheme, "credentials": "s3cr3t"}, header_name="X-Hook-Auth")
    assert found["x-hook-auth"] == value
    assert "authorization" not in found


@pytest.mark.parametrize("name", ["Host", "content-length", "Transfer-Encoding", "Connection", "Idempotency-Key"])
@pytest.mark.parametrize("scheme", ["token", "apikey", "bearer", "custom"])
def test_no_header_that_frames_the_request_carries_them(name: str, scheme: str) -> None:
    with pytest.raises(ValueError, match="cannot carry"):
        headers(authentication={"scheme": scheme, "credentials": "s3cr3t"}, header_name=name)


def test_a_scheme_without_credentials_says_nothing() -> None:
    assert secrets(authentication={"scheme": "Bearer"}) == {}
    assert secrets(authentication={"scheme": "Basic"}) == {}


@pytest.mark.parametrize("algorithm", ["ES256", "RS256"])
def test_a_signature_binds_the_body_the_sender_the_address_and_the_delivery(algorithm: str) -> None:
    keys = SigningKeys(parse_keys(generate(algorithm)))
    letters = Letters(agent="dragoman/test", issuer="https://desk.example", signer=keys)
    one, body = delivery(), b'{"statusUpdate":{}}'
    found = dict(letters.headers(one, body, "application/json", NOW))
    token = jwt.decode(
        found["X-A2A-Notification-Signature"],
        KeySet.import_key_set(msgspec.json.decode(keys.jwks())),
        algorithms=[algorithm],
    )
    assert token.header["alg"] == algorithm and token.header["kid"]
    digest = sha256(body).hexdigest()
    assert token.claims == {
        "iss": "https://desk.example",
        "iat": 1_800_000_000,
        "exp": 1_800_000_300,
        "jti": one.id,
        "htu": "https://desk.example/hook",
        "payload_hash": digest,
        "request_body_sha256": digest,
    }
    assert "Authorization" not in found


def test_a_bearer_without_a_secret_gets_the_signature_and_never_a_made_up_literal() -> None:
    letters = Letters(agent="a", issuer="i", signer=SigningKeys(parse_keys(generate("ES256"))))
    found = headers(letters, authentication={"scheme": "bearer"})
    assert found["authorization"] == f"Bearer {found['x-a2a-notification-signature']}"
    assert "x-a2a-notification-token" not in found
    other = headers(letters, authentication={"scheme": "bearer"}, header_name="X-Hook-Auth")
    assert other["x-hook-auth"].startswith("Bearer ey") and "authorization" not in other
    with pytest.raises(ValueError, match="cannot carry"):
        headers(letters, authentication={"scheme": "bearer"}, header_name="Host")
    assert headers(letters, authentication=BEARER)["authorization"] == "Bearer s3cr3t"
    assert "authorization" not in headers(authentication={"scheme": "bearer"})
