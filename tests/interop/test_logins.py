"""The official Python clients find out from the card alone how to log in, and do."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from dragoman.auth.hashes import token_hash
from tests.auth.minting import AUDIENCE
from tests.auth.provider import Provider, providing
from tests.interop.parties import PARTIES, Party, Refused, connected
from tests.serving import serving

pytestmark = pytest.mark.interop

CLIENTS = [party for party in PARTIES if party.name.startswith("py") and not party.profile]
# Over HTTP+JSON the 0.3 client reads the card and adds nothing: its interceptors are still to be written.
ABLE = [party for party in CLIENTS if (party.name, party.binding) != ("py03", "HTTP+JSON")]
SETTINGS = """
[server]
trusted_proxies = ["127.0.0.1"]
[auth]
callers = "{folder}/callers.toml"
[auth.schemes.cert]
type = "mtls"
header = "X-Client-Cert"
[auth.schemes.token]
type = "bearer"
[auth.schemes.key]
type = "api-key"
name = "X-Desk-Key"
[auth.schemes.corp]
type = "jwt"
issuer = "{issuer}"
audience = ["{audience}"]
"""


class Desk(NamedTuple):
    base: str
    provider: Provider


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    folder = tmp_path_factory.mktemp("logins")
    hashes = f'token = "{token_hash(b"ada-token")}"\nkey = "{token_hash(b"ada-key")}"'
    (folder / "callers.toml").write_text(f"[ada]\n{hashes}\n")
    with providing() as provider:
        settings = folder / "dragoman.toml"
        settings.write_text(SETTINGS.format(folder=folder, issuer=provider.issuer, audience=AUDIENCE))
        options = ("--config", str(settings), "--store", f"{folder}/tasks.db")
        with serving("tests/seeds/agents/guarded.py", *options, logs=Path(folder, "server.log")) as base:
            yield Desk(base, provider)


def said(task: Any) -> str:
    return "".join(part.get("text", "") for artifact in task["artifacts"] for part in artifact["parts"])


@pytest.mark.parametrize("scheme", ["token", "key", "corp"])
@pytest.mark.parametrize("party", ABLE, ids=lambda party: party.label)
def test_a_client_presents_what_the_card_asks_for(desk: Desk, party: Party, scheme: str) -> None:
    presented = {"token": "ada-token", "key": "ada-key", "corp": desk.provider.token("eve")}[scheme]
    with connected(party, desk.base, f"{scheme} {presented}") as client:
        task = client("send", parts=[{"text": "whoami"}])
        assert said(task) == (f"jwt:{desk.provider.issuer}|eve" if scheme == "corp" else "caller:ada")
        assert client("get", task=task["task"])["state"] == "completed"


@pytest.mark.parametrize("party", CLIENTS, ids=lambda party: party.label)
def test_a_client_without_any_is_refused_with_401(desk: Desk, party: Party) -> None:
    with connected(party, desk.base) as client, pytest.raises(Refused, match=r"401|Authentication is required"):
        client("send", parts=[{"text": "whoami"}])
