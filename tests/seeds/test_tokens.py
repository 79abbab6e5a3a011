"""A token in the environment, as protoAgent names it, guards every path of every system; cards stay public."""

from collections.abc import Iterator

import pytest

from tests.seeds.calling import JSON, ask, envelope
from tests.serving import serving

TOKEN = "s3same/open+up=="
SAID: JSON = {"message": {"role": "user", "messageId": "m", "parts": [{"kind": "text", "text": "say hello"}]}}
CALLS = (
    ("/a2a", "message/send"),
    ("/a2a", "SendMessage"),
    ("/a2a/jsonrpc", "message/send"),
    ("/api/a2a", "message/send"),
    ("/", "message/send"),
    ("/", "tasks/send"),
)


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("token")
    options = ("--store", f"{folder}/tasks.db")
    with serving(
        "tests/seeds/agents/proto.py", *options, logs=folder / "server.log", env={"A2A_AUTH_TOKEN": TOKEN}
    ) as base:
        yield base


@pytest.mark.proves("004-c13", "S-12-20")
@pytest.mark.parametrize(("path", "method"), CALLS)
def test_nobody_gets_in_without_it_and_its_holder_does(base: str, path: str, method: str) -> None:
    body = envelope(method, SAID)
    for wrong in ({}, {"Authorization": "Bearer other"}, {"Authorization": f"Basic {TOKEN}"}, {"X-API-Key": TOKEN}):
        refused = ask(base, "POST", path, body, wrong)
        assert refused.status == 401
        assert refused.headers["www-authenticate"].startswith('Bearer realm="dragoman"')
        assert TOKEN.encode() not in refused.body
    answered = ask(base, "POST", path, body, {"Authorization": f"Bearer {TOKEN}"})
    assert answered.status == 200
    assert "result" in answered.json()


@pytest.mark.proves("004-37")
def test_the_card_inside_is_for_who_has_it(base: str) -> None:
    body = envelope("agent/getAuthenticatedExtendedCard", {})
    assert ask(base, "POST", "/a2a", body).status == 401
    shown = ask(base, "POST", "/a2a", body, {"Authorization": f"bearer {TOKEN}"})
    assert shown.status == 200


@pytest.mark.proves("S-12-20")
@pytest.mark.parametrize("path", ["/.well-known/agent-card.json", "/.well-known/agent.json", "/agentCard", "/healthz"])
def test_cards_and_probes_stay_public(base: str, path: str) -> None:
    assert ask(base, "GET", path).status == 200
