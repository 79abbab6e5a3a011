"""Ids: ours under everything, clients' own where a dialect lets them choose, and who speaks when nobody says."""

import json
import uuid
from typing import Any

import pytest

from tests.protocol.speaking import Speaker, serving

pytestmark = pytest.mark.anyio


async def ask(speaker: Speaker, path: str, method: str, params: Any) -> Any:
    response = await speaker.ask("POST", path, speaker.envelope(method, params), {"a2a-version": ""})
    return response.json()["result"]


@pytest.mark.proves("S-1-1")
async def test_a_client_may_choose_its_tasks_name_and_never_our_id_for_it() -> None:
    async with serving() as (stage, app):
        speaker = Speaker("0.3", "JSONRPC", stage, app)
        said = {"id": "mine", "message": {"role": "user", "parts": [{"type": "text", "text": "echo hi"}]}}
        response = await speaker.ask("POST", "/", speaker.envelope("tasks/sendSubscribe", said))
        cursors = {line[4:] for line in response.text.splitlines() if line.startswith("id: ")}
        (uid,) = {cursor.rpartition(".")[0] for cursor in cursors}
        assert uuid.UUID(uid).version == 7
        assert (await ask(speaker, "/", "tasks/get", {"id": "mine"}))["id"] == "mine"
        assert "error" in (await speaker.ask("POST", "/", speaker.envelope("tasks/get", {"id": uid}))).json()


@pytest.mark.proves("S-1-1")
async def test_otherwise_our_id_is_the_tasks_name(speaker: Speaker) -> None:
    async with speaker.stream("echo hi") as stream:
        (first, *_) = await stream.rest()
    assert uuid.UUID(first.id).version == 7 and first.cursor.rpartition(".")[0] == first.id


SEEDS = [
    ("/a2a/jsonrpc", "message/send", {"parts": [{"text": "echo hi"}]}),
    ("/a2a", "message/send", {"parts": [{"text": "echo hi"}]}),
    ("/a2a", "SendMessage", {"parts": [{"text": "echo hi"}]}),
    ("/api/a2a", "message/send", {"parts": [{"text": "echo hi"}]}),
]


@pytest.mark.proves("S-12-10")
@pytest.mark.parametrize(("path", "method", "message"), SEEDS, ids=[f"{path} {method}" for path, method, _ in SEEDS])
async def test_on_the_seed_mounts_a_message_without_a_role_is_the_users(
    path: str, method: str, message: dict[str, Any]
) -> None:
    async with serving() as (stage, app):
        speaker = Speaker("0.3", "JSONRPC", stage, app)
        answer = json.dumps(await ask(speaker, path, method, {"message": message}))
        assert stage.runs == ["echo hi"]
        assert '"role": "user"' in answer or '"role": "ROLE_USER"' in answer
        refused = await speaker.ask("POST", "/", speaker.envelope("message/send", {"message": message}))
        assert refused.json()["error"]["code"] == -32602, "the official mount is strict"
