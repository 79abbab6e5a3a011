"""Whatever dialect a webhook is told in, a receiver hears the same."""

import json
from typing import Any

import pytest
from msgspec.structs import replace

from dragoman.model.errors import DragomanError, InvalidParams, InvalidRequest, ParseFailure
from dragoman.model.facts import AnyFact
from dragoman.model.messages import Artifact, Message, Part, Role
from dragoman.model.news import News
from dragoman.model.tasks import Task, TaskState, TaskStatus, View
from dragoman.wire.heard import heard
from dragoman.wire.news import newsroom
from dragoman.wire.settings import WireSettings
from tests.wire.test_news import ASKED, DONE, MADE, ORIGINS, QUESTION, WORKING, hook, view
from tests.wire.wording import AT


def news(origin: str, fact: AnyFact, seen: View, **wire: Any) -> News:
    body, _ = newsroom(WireSettings(**wire))(hook(origin), fact, seen)
    return heard(body)


def words(message: Message | None) -> list[Any]:
    return [part.text for part in message.parts] if message else []


WHOLE = {"0.3", "0.1", "coding-agent", "a2x"}


@pytest.mark.parametrize("origin", ORIGINS)
def test_the_end_is_heard_with_what_was_made(origin: str) -> None:
    found = news(origin, DONE, view(DONE.status, MADE))
    assert found.over and found.state is TaskState.COMPLETED
    assert (found.task.id, found.task.context_id) == ("t-77", "c-5")
    assert found.task.status is not None and found.task.status.timestamp == AT
    # A2X has its answers in the status.
    assert words(found.message) == (["square"] if origin == "a2x" else [])
    assert found.task.artifacts == (MADE,) or found.task.artifacts == (replace(MADE, metadata={"artifactId": "a-3"}),)
    assert found.whole == (origin not in ("simple", "proto"))
    if origin in WHOLE - {"0.1"}:
        assert found.task.history == (ASKED,) or [words(each) for each in found.task.history] == [["Crop it"]]
    assert found.omitted == () and not found.append


@pytest.mark.parametrize("origin", ORIGINS)
def test_a_question_is_heard_with_its_words(origin: str) -> None:
    found = news(origin, QUESTION, view(QUESTION.status))
    assert not found.over and found.state is TaskState.INPUT_REQUIRED
    assert words(found.message) == ["How large?"]
    assert found.message is not None and found.message.role is Role.AGENT
    assert found.whole == (origin in WHOLE)


@pytest.mark.parametrize("origin", [each for each in ORIGINS if each != "a2x"])
def test_progress_is_heard(origin: str) -> None:
    found = news(origin, WORKING, view(WORKING.status))
    assert (found.state, words(found.message)) == (TaskState.WORKING, ["Cropping"])
    if not found.whole:
        assert found.task.metadata == {"p": 50}


def test_several_artifacts_are_heard_where_the_body_has_room_for_them() -> None:
    other = Artifact(artifact_id="a-4", parts=(Part(text="round"),))
    assert news("simple", DONE, view(DONE.status, MADE, other)).task.artifacts == (MADE, other)
    assert news("1.0", DONE, view(DONE.status, MADE, other)).task.artifacts == (MADE, other)


def test_what_was_left_out_is_named() -> None:
    large = Artifact(artifact_id="a-1", parts=(Part(text="x" * 4_000),))
    for origin in ORIGINS:
        found = news(origin, DONE, view(DONE.status, large), max_news=1_000)
        assert "artifacts" in found.omitted, origin
        assert found.task.artifacts == () and found.task.metadata is None


def body(**members: Any) -> News:
    return heard(json.dumps(members).encode())


def test_an_artifact_by_itself_is_news_too() -> None:
    piece = {"artifactId": "a-1", "parts": [{"kind": "text", "text": "more"}]}
    made = Artifact(artifact_id="a-1", parts=(Part(text="more"),))
    for found in (
        body(artifactUpdate={"taskId": "t-1", "contextId": "c-1", "artifact": piece, "append": True}),
        body(kind="artifact-update", taskId="t-1", contextId="c-1", artifact=piece, append=True, lastChunk=False),
        body(type="TaskArtifactUpdateEvent", taskId="t-1", contextId="c-1", artifact=piece, append=True),
        body(id="t-1", sessionId="c-1", artifact={"index": 0, **piece, "append": True}, append=True),
    ):
        assert found == News(task=Task(id="t-1", context_id="c-1", artifacts=(made,)), append=True)
        assert found.state is None and found.message is None and not found.over


def test_an_artifact_without_a_name_is_called_by_its_place() -> None:
    (made,) = body(id="t-1", artifact={"index": 2, "parts": []}).task.artifacts
    assert made == Artifact(artifact_id="2")


def test_a_message_by_itself_is_news_of_its_task() -> None:
    said = {"messageId": "m-1", "taskId": "t-1", "contextId": "c-1", "role": "agent", "parts": [{"text": "hi"}]}
    message = Message(message_id="m-1", task_id="t-1", context_id="c-1", role=Role.AGENT, parts=(Part(text="hi"),))
    for found in (body(message=said), body(kind="message", **said), body(**said)):
        assert found == News(task=Task(id="t-1", context_id="c-1", status=TaskStatus(message=message)))
        assert found.message == message


def test_an_event_of_a_stream_of_0_1_is_understood() -> None:
    found = body(id="t-1", status={"state": "completed", "timestamp": AT}, final=True)
    assert found.over and found.task.id == "t-1" and not found.whole


def test_a_response_around_it_is_taken_off() -> None:
    inner = {"statusUpdate": {"taskId": "t-1", "status": {"state": "TASK_STATE_WORKING"}}}
    assert body(jsonrpc="2.0", id=1, result=inner) == body(**inner)


def test_metadata_without_omissions_stays() -> None:
    found = body(id="t-1", status={"state": "working"}, metadata={"a": 1, "dragoman.omitted": "history"})
    assert found.task.metadata == {"a": 1, "dragoman.omitted": "history"} and found.omitted == ()
    found = body(id="t-1", status={"state": "working"}, metadata={"a": 1, "dragoman.omitted": ["history"]})
    assert found.task.metadata == {"a": 1} and found.omitted == ("history",)


@pytest.mark.parametrize(
    ("raw", "error"),
    [
        (b"", ParseFailure),
        (b"{", ParseFailure),
        (b'"\xff"', ParseFailure),
        (b"[1]", InvalidRequest),
        (b'"t-1"', InvalidRequest),
        (b"{}", InvalidParams),
        (b'{"jsonrpc":"2.0","id":1}', InvalidRequest),
        (b'{"jsonrpc":"2.0","error":{"code":-32001}}', InvalidRequest),
        (b'{"taskId":"t-1"}', InvalidRequest),
        (b'{"id":"t-1","status":"completed"}', InvalidParams),
        (b'{"task":{"id":"t-1"}}', InvalidParams),
        (b'{"id":"t-1","status":{"state":"sleeping"}}', InvalidParams),
        (b'{"id":"t-1","status":{"state":"working"},"artifacts":[{"parts":[{}]}]}', InvalidParams),
        (b'{"kind":"message","parts":7}', InvalidParams),
        (b'{"a":' * 100 + b"1" + b"}" * 100, InvalidRequest),
    ],
)
def test_what_is_no_news_is_refused(raw: bytes, error: type[DragomanError]) -> None:
    with pytest.raises(error):
        heard(raw)
