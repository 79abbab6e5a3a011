"""Whether somebody we trust signed a card as it is: what passes, and what an attacker may try."""

import hmac
import json
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable
from typing import Any

import pytest
from joserfc import jws
from joserfc.jwk import ECKey, OctKey, OKPKey, RSAKey
from joserfc.util import to_bytes

from dragoman.auth.keys import SigningKeys, generate, parse_keys
from dragoman.client.verifying import keys_named, verify_card
from dragoman.model.errors import CardUntrusted
from dragoman.wire.canonical import payloads, signatures

CARD: dict[str, Any] = {
    "name": "Übersetzer",
    "description": "",
    "version": "1",
    "supportedInterfaces": [{"url": "https://t.example/", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}],
    "capabilities": {"streaming": False},
    "defaultInputModes": ["text/plain"],
    "defaultOutputModes": ["text/plain"],
    "skills": [{"id": "a", "name": "A", "description": "Turns", "tags": ["x"]}],
}
OLD = {"name": "Old", "description": "x", "url": "https://t.example/", "version": "1", "protocolVersion": "0.3.0"}
KEYS = SigningKeys(parse_keys(generate("ES256")))
JWKS = json.loads(KEYS.jwks())
KID = JWKS["keys"][0]["kid"]


def signed(card: dict[str, Any], keys: SigningKeys = KEYS, jku: str = "") -> dict[str, Any]:
    return card | {"signatures": signatures(card, lambda payload: keys.seal(payload, jku))}


def encoded(content: bytes | dict[str, Any]) -> str:
    text = content if isinstance(content, bytes) else json.dumps(content).encode()
    return urlsafe_b64encode(text).rstrip(b"=").decode()


def handmade(key: Any, header: dict[str, Any], card: dict[str, Any] | None = None) -> dict[str, Any]:
    """A card with one signature made with any key under any head, however foolish."""
    card = card or CARD
    protected = encoded(header)
    content = f"{protected}.{encoded(payloads(card)[0])}".encode()
    model = jws.JWSRegistry.algorithms[header["alg"]]
    return card | {"signatures": [{"protected": protected, "signature": encoded(model.sign(content, key))}]}


def refused(card: Any, keys: Any = JWKS) -> str:
    with pytest.raises(CardUntrusted) as error:
        verify_card(card, keys)
    return str(error.value)


# --- what passes


@pytest.mark.proves("W-156")
@pytest.mark.parametrize("algorithm", ["ES256", "ES384", "RS256"])
@pytest.mark.parametrize("card", [CARD, CARD | OLD, OLD])
def test_a_card_is_verified_by_the_steps_it_was_signed_by(algorithm: str, card: dict[str, Any]) -> None:
    keys = SigningKeys(parse_keys(generate(algorithm)))
    document = signed(card, keys, "https://t.example/keys")
    for form in (document, json.dumps(document), json.dumps(document, ensure_ascii=False, indent=3).encode()):
        for trusted in (keys.jwks(), keys.jwks().decode(), json.loads(keys.jwks()), json.loads(keys.jwks())["keys"][0]):
            found = verify_card(form, trusted)
            assert found.algorithm == algorithm
            assert found.key == json.loads(keys.jwks())["keys"][0]["kid"]
            assert found.keys_at == "https://t.example/keys"


def test_only_what_the_signature_covers_is_handed_out() -> None:
    document = signed(CARD) | {"url": "https://evil.example/", "interfaces": []}
    assert verify_card(document, JWKS).card == CARD


@pytest.mark.parametrize("form", range(3))
def test_any_signature_suffices_in_whatever_form_it_was_made(form: int) -> None:
    card = OLD | CARD
    document = signed(card)
    assert len(document["signatures"]) == 3
    only = card | {"signatures": [document["signatures"][form]]}
    assert verify_card(only, JWKS).card == json.loads(payloads(card)[form])


def test_a_good_signature_counts_beside_bad_ones() -> None:
    document = signed(CARD)
    stranger = signed(CARD, SigningKeys(parse_keys(generate("RS256"))))["signatures"]
    document["signatures"] = [{}, 3, {"protected": "!", "signature": "?"}, *stranger, *document["signatures"]]
    assert verify_card(document, JWKS).key == KID


def test_a_key_without_a_name_is_called_by_its_thumbprint() -> None:
    bare = {name: value for name, value in JWKS["keys"][0].items() if name != "kid"}
    assert verify_card(signed(CARD), {"keys": [bare]}).key == KID


@pytest.mark.parametrize(
    ("key", "alg"),
    [
        (OKPKey.generate_key("Ed25519"), "EdDSA"),
        (OKPKey.generate_key("Ed25519"), "Ed25519"),
        (RSAKey.generate_key(2048), "PS256"),
        (ECKey.generate_key("P-521"), "ES512"),
    ],
)
def test_algorithms_that_others_sign_with(key: Any, alg: str) -> None:
    document = handmade(key, {"alg": alg, "kid": "k", "jku": None, "iat": 1})
    public = key.as_dict(private=False) | {"kid": "k"}
    assert verify_card(document, {"keys": [public]}).algorithm == alg


# --- what does not


@pytest.mark.proves("W-156")
@pytest.mark.parametrize("path", ["name", "description", "version", "skills", "capabilities", "supportedInterfaces"])
def test_a_changed_member(path: str) -> None:
    document = json.loads(json.dumps(signed(CARD)))
    match document[path]:
        case str():
            document[path] += "!"
        case list():
            document[path][0] |= {"description": "Steals", "url": "https://evil.example/"}
        case _:
            document[path] = {"streaming": True}
    assert "not what was signed" in refused(document)


@pytest.mark.parametrize("path", ["name", "description", "skills", "version"])
def test_a_removed_member(path: str) -> None:
    document = signed(CARD | {"description": "Turns"})
    del document[path]
    refused(document)


def test_an_added_member() -> None:
    assert "not what was signed" in refused(signed(CARD) | {"iconUrl": "https://evil.example/i.png"})
    needed = [{"schemes": {"a": {"list": ["b"]}}}]
    assert "not what was signed" in refused(signed(CARD) | {"securityRequirements": needed})


def test_what_is_empty_may_be_added_to_a_card_signed_as_the_sdks_do_and_is_not_believed() -> None:
    """One signature covers nothing that is empty; but a requirement of nothing would mean that anybody may call."""
    found = verify_card(signed(CARD) | {"securityRequirements": [{"schemes": {}}]}, JWKS)
    assert "securityRequirements" not in found.card


@pytest.mark.proves("W-157")
@pytest.mark.parametrize("stripped", [None, [], {}, "none", 0])
def test_a_stripped_signature(stripped: Any) -> None:
    assert refused(CARD | {"signatures": stripped}) == "The card has no signature"
    assert refused(CARD) == "The card has no signature"


def test_another_key_or_none() -> None:
    stranger = SigningKeys(parse_keys(generate("ES256")))
    assert "not trusted" in refused(signed(CARD, stranger))
    # Another's signature under the name of a key that is trusted.
    assert "not what was signed" in refused(handmade(ECKey.generate_key("P-256"), {"alg": "ES256", "kid": KID}))
    assert "not trusted" in refused(signed(CARD), {"keys": []})


@pytest.mark.parametrize("kid", [None, "", 7, "other", ["k"]])
def test_a_wrong_or_missing_key_id(kid: Any) -> None:
    key = ECKey.generate_key("P-256")
    public = key.as_dict(private=False) | {"kid": "mine"}
    assert "key" in refused(handmade(key, {"alg": "ES256", "kid": kid}), {"keys": [public]})


@pytest.mark.filterwarnings("ignore::joserfc.errors.SecurityWarning")
@pytest.mark.parametrize("alg", ["none", "None", "NONE", "", None, "HS256", "RS1", ["ES256"], {"a": 1}])
def test_no_algorithm_and_algorithms_that_are_not_accepted(alg: Any) -> None:
    document = signed(CARD)
    for signature in ("", encoded(b"x"), document["signatures"][0]["signature"]):
        entry = {"protected": encoded({"alg": alg, "kid": KID}), "signature": signature}
        refused(CARD | {"signatures": [entry]})


def test_a_public_key_used_as_a_shared_secret() -> None:
    """The attacker knows the public key, and signs with it as if it were a secret."""
    for key in (ECKey.generate_key("P-256"), RSAKey.generate_key(2048)):
        public = key.as_dict(private=False) | {"kid": "k"}
        for secret in (to_bytes(key.as_pem(private=False)), json.dumps(public).encode()):
            protected = encoded({"alg": "HS256", "kid": "k"})
            mac = hmac.digest(secret, f"{protected}.{encoded(payloads(CARD)[0])}".encode(), "sha256")
            forged = CARD | {"signatures": [{"protected": protected, "signature": encoded(mac)}]}
            assert "algorithm is not accepted" in refused(forged, {"keys": [public]})


def test_a_shared_secret_among_the_keys_checks_nothing() -> None:
    secret = OctKey.generate_key(256)
    keys = {"keys": [secret.as_dict(private=True) | {"kid": "k"}]}
    refused(handmade(secret, {"alg": "HS256", "kid": "k"}), keys)
    refused(handmade(ECKey.generate_key("P-256"), {"alg": "ES256", "kid": "k"}), keys)


@pytest.mark.parametrize(
    "extra", [{"crit": ["exp"], "exp": 1}, {"crit": []}, {"b64": False, "crit": ["b64"]}, {"b64": False}]
)
def test_what_a_signature_calls_critical_and_nobody_here_understands(extra: dict[str, Any]) -> None:
    key = ECKey.generate_key("P-256")
    keys = {"keys": [key.as_dict(private=False) | {"kid": "k"}]}
    assert verify_card(handmade(key, {"alg": "ES256", "kid": "k"}), keys)
    assert "not understood" in refused(handmade(key, {"alg": "ES256", "kid": "k", **extra}), keys)


@pytest.mark.parametrize("header", [{"alg": "ES256"}, {"kid": KID}, {"typ": "JOSE", "x": 1}])
def test_what_is_protected_is_not_said_again_unprotected(header: dict[str, Any]) -> None:
    document = signed(CARD)
    document["signatures"] = [each | {"header": header} for each in document["signatures"]]
    assert "repeats" in refused(document)


def test_what_is_unprotected_counts_for_nothing() -> None:
    document = signed(CARD)
    document["signatures"] = [each | {"header": {"x": 1}} for each in document["signatures"]]
    assert verify_card(document, JWKS)
    # Algorithm and key must be protected.
    moved = [
        {"protected": encoded({"typ": "JOSE"}), "signature": each["signature"], "header": {"alg": "ES256", "kid": KID}}
        for each in document["signatures"]
    ]
    refused(CARD | {"signatures": moved})


def test_where_keys_could_be_fetched_is_told_and_never_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    import socket

    def dial(*_: Any, **__: Any) -> Any:
        raise AssertionError("something was fetched")

    monkeypatch.setattr(socket, "create_connection", dial)
    monkeypatch.setattr(socket.socket, "connect", dial)
    attacker = SigningKeys(parse_keys(generate("ES256")))
    forged = signed(CARD, attacker, "http://127.0.0.1:1/evil.json")
    assert "not trusted" in refused(forged)
    assert keys_named(forged) == ["http://127.0.0.1:1/evil.json"]


def test_what_claims_to_name_keys_may_be_anything() -> None:
    odd = [{"protected": encoded({"jku": 3}), "signature": "aa"}, {"protected": encoded(b"[]"), "signature": "aa"}, 5]
    assert keys_named(CARD | {"signatures": odd}) == []
    assert keys_named(CARD) == []


@pytest.mark.proves("W-159")
@pytest.mark.parametrize(
    "change",
    [
        {"exp": time.time() - 5},
        {"nbf": time.time() + 3_600},
        {"revoked": {"revoked_at": 1, "reason": "compromised"}},
        {"use": "enc"},
        {"key_ops": ["sign"]},
        {"alg": "ES384"},
        {"kty": "oct"},
    ],
)
def test_a_key_that_expired_or_was_revoked_or_is_for_something_else(change: dict[str, Any]) -> None:
    good = JWKS["keys"][0] | {"exp": time.time() + 3_600, "nbf": time.time() - 5, "key_ops": ["verify"]}
    assert verify_card(signed(CARD), {"keys": [good]})
    assert "not trusted" in refused(signed(CARD), {"keys": [good | change]})


def test_a_short_rsa_key() -> None:
    from cryptography.hazmat.primitives.asymmetric import rsa

    numbers = rsa.generate_private_key(65537, 1024)
    with pytest.warns(match="2048"):
        key = RSAKey.import_key(numbers)
    document = handmade(key, {"alg": "RS256", "kid": "k"})
    assert "not trusted" in refused(document, {"keys": [key.as_dict(private=False) | {"kid": "k"}]})


def test_a_key_on_another_curve_or_broken() -> None:
    other = ECKey.generate_key("P-384").as_dict(private=False) | {"kid": KID}
    for key in (other, {"kty": "EC", "kid": KID}, {"kty": "EC"}, {"kty": "RSA", "n": "A" * 400, "kid": KID}):
        refused(signed(CARD), {"keys": [key]})


def test_a_token_of_the_same_key_is_no_card() -> None:
    claims = {"aud": "https://t", "iss": "x"}
    head, _, signature = KEYS.token(claims).split(".")
    assert json.loads(urlsafe_b64decode(head + "=="))["kid"] == KID
    assert "no card" in refused(claims | {"signatures": [{"protected": head, "signature": signature}]})


HOSTILE: dict[str, Callable[[], Any]] = {
    "not JSON": lambda: "{",
    "not UTF-8": lambda: b'{"name":"\xff"}',
    "a lone surrogate": lambda: json.dumps(signed(CARD) | {"name": "\ud800"}),
    "a list": lambda: "[]",
    "nothing": lambda: b"",
    "deep": lambda: '{"a":' + "[" * 100_000 + "]" * 100_000 + "}",
    "deep, as Python": lambda: signed(CARD) | {"capabilities": {"extensions": [{"params": nested(3_000)}]}},
    "wide": lambda: '{"a":[' + "[]," * 100_000 + "[]]}",
    "large": lambda: b" " * 2_000_000,
    "many signatures": lambda: CARD | {"signatures": signed(CARD)["signatures"] * 20},
    "a long signature": lambda: CARD | {"signatures": [{"protected": "a" * 100_000, "signature": "b"}]},
    "padding": lambda: CARD | {"signatures": [{"protected": "a=", "signature": "b"}]},
    "one character": lambda: CARD | {"signatures": [{"protected": "a", "signature": "b"}]},
    "a huge number": lambda: '{"name":"a","url":"b","signatures":[1],"x":1' + "0" * 5_000 + "}",
    "text for a skill": lambda: signed(CARD) | {"skills": ["a"]},
    "a protected header that is no JSON": lambda: (
        CARD | {"signatures": [{"protected": encoded(b"{"), "signature": "bb"}]}
    ),
    "a header that is text": lambda: CARD | {"signatures": [signed(CARD)["signatures"][0] | {"header": "x"}]},
    "a deep header": lambda: (
        CARD
        | {"signatures": [{"protected": encoded(b'{"a":' + b"[" * 3_000 + b"]" * 3_000 + b"}"), "signature": "bb"}]}
    ),
}


def nested(depth: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for _ in range(depth):
        found = {"a": found}
    return found


@pytest.mark.parametrize("name", HOSTILE)
def test_documents_made_to_break_the_verifier(name: str) -> None:
    refused(HOSTILE[name]())


@pytest.mark.parametrize("keys", ["{", "[]", '{"keys":3}', '{"keys":["a"]}', b"\xff", "{}"])
def test_key_sets_that_are_none(keys: Any) -> None:
    refused(signed(CARD), keys)
