"""Errors: each failure a caller can meet has its code, a sentence, and no trace of our insides."""

import json
import re
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from dragoman.testing.inprocess import App
from tests.protocol.speaking import SPEAKERS, Refused, Speaker, serving

pytestmark = pytest.mark.anyio

UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
PUSH: list[tuple[str, dict[str, Any]]] = [
    ("push create", {"taskId": "x", "url": "https://example.com/hook"}),
    ("push get", {"taskId": "x", "id": "c"}),
    ("push list", {"taskId": "x"}),
    ("push delete", {"taskId": "x", "id": "c"}),
]
PUSH_03: dict[str, dict[str, Any]] = {
    "push create": {"taskId": "x", "pushNotificationConfig": {"url": "https://example.com/hook"}},
    "push get": {"id": "x", "pushNotificationConfigId": "c"},
    "push list": {"id": "x"},
    "push delete": {"id": "x", "pushNotificationConfigId": "c"},
}


async def finished(speaker: Speaker) -> str:
    return (await speaker.send("echo hi")).id


async def no_task(speaker: Speaker) -> None:
    await speaker.get("nobody-made-this")


async def over(speaker: Speaker) -> None:
    await speaker.send("more", taskId=await finished(speaker))


async def too_late(speaker: Speaker) -> None:
    await speaker.cancel(await finished(speaker))


async def no_parts(speaker: Speaker) -> None:
    await speaker.send()


async def no_card(speaker: Speaker) -> None:
    await speaker.call("card", {})


async def wrong_context(speaker: Speaker) -> None:
    asked = await speaker.send("ask")
    await speaker.send("blue", taskId=asked.id, contextId="another")


async def used_key(speaker: Speaker) -> None:
    for text in ("echo one", "echo two"):
        await speaker.send(text, headers={"idempotency-key": "k"})


FAILURES: list[tuple[Callable[[Speaker], Awaitable[None]], int, str]] = [
    (no_task, -32001, "Task not found"),
    (over, -32004, ""),
    (too_late, -32002, "already finished"),
    (no_parts, -32602, "must not be empty"),
    (no_card, -32004, "no extended card"),
    (wrong_context, -32602, "context"),
    (used_key, -32602, "used before with a different message"),
]


@pytest.mark.proves("W-043", "W-057", "W-112", "W-169")
@pytest.mark.parametrize(("failing", "code", "says"), FAILURES, ids=[each[0].__name__ for each in FAILURES])
async def test_a_failure_has_its_code_and_a_sentence(
    speaker: Speaker, failing: Callable[[Speaker], Awaitable[None]], code: int, says: str
) -> None:
    with pytest.raises(Refused) as caught:
        await failing(speaker)
    refused = caught.value
    assert refused.code == code
    assert says in refused.message
    assert refused.message[0].isupper() or ":" in refused.message  # a sentence, or a field and what is wrong with it
    assert "Traceback" not in refused.response.text


@pytest.mark.proves("W-059", "W-109", "W-168", "W-181")
@pytest.mark.parametrize("failing", [each[0] for each in FAILURES], ids=[each[0].__name__ for each in FAILURES])
async def test_an_error_means_the_same_over_every_binding(failing: Callable[[Speaker], Awaitable[None]]) -> None:
    told: list[tuple[int, str, Any]] = []
    for version, binding in SPEAKERS:
        async with serving() as (stage, app):
            speaker = Speaker(version, binding, stage, app)
            with pytest.raises(Refused) as caught:
                await failing(speaker)
            # Each server has made a task of its own.
            told.append((caught.value.code, *nameless([caught.value.message, caught.value.details])))
    (rpc, rest, old_rpc, old_rest) = told
    assert rpc == rest
    assert rpc[2], "1.0 has details in both"
    if rpc[0] > -32100:
        assert [detail["domain"] for detail in rpc[2] if "reason" in detail] == ["a2a-protocol.org"]
    assert old_rpc[0] == old_rest[0] == rpc[0]
    assert old_rpc[2] is None and old_rest[2] is None


def nameless(told: Any) -> Any:
    return json.loads(UUID.sub("ID", json.dumps(told)))


@pytest.mark.proves("W-060")
@pytest.mark.parametrize(("operation", "params"), PUSH, ids=[each[0] for each in PUSH])
async def test_without_webhooks_every_operation_on_them_says_so(
    speaker: Speaker, operation: str, params: dict[str, Any]
) -> None:
    given = {"id": "x"} if speaker.rest else params if speaker.modern else PUSH_03[operation]
    async with serving(push=False) as (stage, app):
        without = Speaker(speaker.version, speaker.binding, stage, app)
        with pytest.raises(Refused) as caught:
            await without.call(operation, given)
    assert caught.value.code == -32003


@pytest.mark.proves("W-062")
async def test_without_an_extended_card_asking_for_it_is_unsupported(speaker: Speaker) -> None:
    with pytest.raises(Refused) as caught:
        await speaker.call("card", {})
    assert caught.value.code == -32004


@pytest.mark.proves("W-055")
async def test_what_passes_has_another_code_than_what_lasts(speaker: Speaker) -> None:
    async with serving(limit_inbox=1) as (stage, app):
        busy = Speaker(speaker.version, speaker.binding, stage, app)
        first = await busy.send("wait", now=True)
        await stage.working.wait()
        await busy.send("echo second", taskId=first.id, now=True)
        with pytest.raises(Refused) as caught:
            await busy.send("echo third", taskId=first.id, now=True)
        response = caught.value.response
        assert response.status == 429
        assert int(response.headers["retry-after"]) > 0
        stage.gate.set()
        await busy.settled(first.id)
        with pytest.raises(Refused) as caught:
            await busy.send("echo fourth", taskId=first.id)
        assert (caught.value.code, caught.value.response.status == 429) == (-32004, False)


@pytest.mark.proves("W-056", "D-2-13")
async def test_what_an_agent_raises_is_logged_and_not_told(speaker: Speaker, caplog: pytest.LogCaptureFixture) -> None:
    seen = await speaker.send("crash")
    assert seen.state == "FAILED"
    assert "secret" not in speaker.last.text and "Traceback" not in speaker.last.text
    (record,) = [each for each in caplog.records if each.exc_info]
    assert "secret /etc/passwd SELECT" in caplog.text
    assert record.levelname == "ERROR"


@pytest.mark.proves("W-174")
async def test_the_media_type_of_1_0_is_for_those_who_speak_it() -> None:
    async with serving() as (stage, app):
        speaker = Speaker("1.0", "HTTP+JSON", stage, app)
        a2a = {"content-type": "application/a2a+json"}
        for headers, media in (({}, "application/json"), (a2a, "application/a2a+json")):
            await speaker.send("echo hi", headers=headers)
            assert speaker.last.headers["content-type"] == media
        assert await media_of_an_error(app, speaker) == "application/json"


async def media_of_an_error(app: App, speaker: Speaker) -> str:
    with pytest.raises(Refused) as caught:
        await speaker.send(headers={"content-type": "application/a2a+json"})
    return caught.value.response.headers["content-type"]
