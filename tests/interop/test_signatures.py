"""Signed cards between us and the official SDKs: each believes what the other signed, and nothing that was changed."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest

import dragoman
from dragoman.app.signing import read_signer
from dragoman.auth.keys import generate
from tests.interop.parties import Client, Party, Refused, connected
from tests.serving import serving

pytestmark = pytest.mark.interop

SDKS = [Party("py10", "JSONRPC"), Party("js10", "JSONRPC"), Party("py03", "JSONRPC")]
ALGORITHMS = ["ES256", "RS256"]
NOWHERE = "http://127.0.0.1:1"  # signing and verifying call nobody

DIFFICULT: dict[str, Any] = {
    "name": "Übersetzer 🜨",
    "description": "",
    "version": "1",
    "supportedInterfaces": [
        {"url": "https://t.example/", "protocolBinding": "JSONRPC", "protocolVersion": "1.0", "tenant": ""}
    ],
    "capabilities": {
        "streaming": False,
        "pushNotifications": True,
        "extensions": [
            {"uri": "urn:x", "required": False, "params": {"b": [1, 2.5, 1e21, {}, ""], "a": {"ü": True}, "€": 0}}
        ],
    },
    "securitySchemes": {
        "key": {"apiKeySecurityScheme": {"location": "header", "name": "X-API-Key"}},
        "login": {"openIdConnectSecurityScheme": {"openIdConnectUrl": "https://login.example"}},
        "tls": {"mtlsSecurityScheme": {}},
    },
    "securityRequirements": [{"schemes": {"key": {"list": []}}}, {"schemes": {"login": {"list": ["read"]}}}],
    "defaultInputModes": ["text/plain"],
    "defaultOutputModes": [],
    "skills": [{"id": "a", "name": "A", "description": 'Turns "things"\n', "tags": [], "examples": ["</x>"]}],
    "iconUrl": "",
}
OLD: dict[str, Any] = {
    "name": "Übersetzer 🜨",
    "description": "Turns",
    "version": "1",
    "protocolVersion": "0.3.0",
    "url": "https://t.example/",
    "preferredTransport": "JSONRPC",
    "capabilities": {"streaming": False, "extensions": [{"uri": "urn:x", "params": {"b": 1.5, "a": ""}}]},
    "securitySchemes": {"key": {"type": "apiKey", "in": "header", "name": "X-API-Key"}},
    "security": [{"key": []}],
    "defaultInputModes": ["text/plain"],
    "defaultOutputModes": ["text/plain"],
    "skills": [{"id": "a", "name": "A", "description": "Turns", "tags": []}],
}


@pytest.fixture(scope="module", params=SDKS, ids=lambda party: party.name)
def sdk(request: pytest.FixtureRequest) -> Iterator[Client]:
    with connected(request.param, NOWHERE) as client:
        yield client


@pytest.fixture(scope="module", params=ALGORITHMS)
def key(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("key") / "key.jwk"
    path.write_bytes(generate(request.param))
    path.chmod(0o600)
    return path


@pytest.fixture(scope="module", params=[{}, {"A2A_AUTH_TOKEN": "s3cr3t-s3cr3t-s3cr3t"}], ids=["open", "closed"])
def base(request: pytest.FixtureRequest, key: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server that signs. The card of one that wants callers to log in has schemes, and requirements without scopes,
    which the official SDKs leave out of what they sign."""
    directory = tmp_path_factory.mktemp("signing")
    options = ("--store", "memory://", "--set", f"signing_keys={key}")
    with serving("examples/interop.py", *options, logs=directory / "server.log", env=request.param) as base:
        yield base


def fetched(url: str, version: str = "") -> Any:
    with urlopen(Request(url, headers={"A2A-Version": version} if version else {}), timeout=10) as answer:
        return json.load(answer)


def variants(sdk: Client) -> list[str]:
    """The union, and the card of its own version alone; the other one it could not even read."""
    return ["", "0.3" if sdk.party.name == "py03" else "1.0"]


@pytest.mark.proves("W-149", "W-152", "W-153", "W-155", "W-156")
def test_they_believe_the_cards_we_serve(base: str, sdk: Client) -> None:
    keys = fetched(f"{base}/.well-known/jwks.json")["keys"]
    for version in variants(sdk):
        card = fetched(f"{base}/.well-known/agent-card.json", version)
        assert sdk("verify", card=card, keys=keys)
        card["skills"][0]["description"] += " Honestly."
        with pytest.raises(Refused):
            sdk("verify", card=card, keys=keys)


def test_they_believe_whatever_we_sign(sdk: Client, key: Path) -> None:
    """Also what is empty, which the specification signs and they don't; and what is not ASCII, which 0.3 escapes."""
    keys = json.loads(read_signer(key).jwks())["keys"]
    for card in (OLD,) if sdk.party.name == "py03" else (DIFFICULT, OLD | DIFFICULT):
        signed = dragoman.sign_card(card, key)
        assert sdk("verify", card=signed, keys=keys)
        with pytest.raises(Refused):
            sdk("verify", card=signed | {"version": "2"}, keys=keys)
        with pytest.raises(Refused):
            sdk("verify", card=signed | {"signatures": []}, keys=keys)


@pytest.mark.proves("W-156")
def test_we_believe_whatever_they_sign(sdk: Client, key: Path) -> None:
    private, jwks = json.loads(key.read_bytes()), read_signer(key).jwks()
    card = OLD if sdk.party.name == "py03" else DIFFICULT
    signed = sdk("sign", card=card, key=private, jku="https://t.example/keys")
    assert len(signed["signatures"]) == 1
    found = dragoman.verify_card(json.dumps(signed), jwks)
    assert found.card["name"] == card["name"]
    assert found.keys_at == "https://t.example/keys"
    with pytest.raises(dragoman.errors.CardUntrusted, match="not what was signed"):
        dragoman.verify_card(signed | {"name": "Evil"}, jwks)


@pytest.mark.parametrize("sdk", SDKS[:2], indirect=True, ids=lambda party: party.name)
def test_a_card_both_have_signed_is_believed_by_either_key(sdk: Client, key: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.jwk"
    other.write_bytes(generate("ES256"))
    other.chmod(0o600)
    signed = dragoman.sign_card(sdk("sign", card=DIFFICULT, key=json.loads(key.read_bytes())), other)
    published = [read_signer(each).jwks() for each in (key, other)]
    for jwks in published:
        assert dragoman.verify_card(signed, jwks)
    assert sdk("verify", card=signed, keys=[each for jwks in published for each in json.loads(jwks)["keys"]])
