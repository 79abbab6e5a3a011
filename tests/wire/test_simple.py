"""simple_a2a: results, frames to the letter and with all its server adds, versions as they stand."""

import json
from typing import Any

import pytest

from dragoman.model.errors import TaskNotCancelable, TaskOver, UnsupportedOperation
from dragoman.model.facts import Chunk, Created, Entry, Said, Settled
from dragoman.model.messages import Message, Part, Role
from dragoman.model.operations import CancelTask, ListTasks, SendMessage, SubscribeToTask, TaskPage, TaskRef
from dragoman.model.tasks import TaskState, TaskStatus, View
from dragoman.wire.exchange import Exchange
from dragoman.wire.settings import Style, WireSettings
from tests.wire.wording import (
    AT,
    agent_reports,
    agent_says,
    artifact,
    asked,
    body_of,
    call,
    error_of,
    frames_of,
    header,
    refused,
    understood,
    view,
)

SENT = {"message": {"messageId": "msg-1", "role": "user", "parts": [{"text": "hello", "kind": "text"}]}}
REF = TaskRef("0199-uid", "t-77", "c-5", "simple")
HOME = {"taskId": "t-77", "contextId": "c-5"}
QUESTION = TaskStatus(state=TaskState.INPUT_REQUIRED, timestamp=AT, message=agent_reports())
ASKED = {"messageId": "m-9", "contextId": "c-5", "taskId": "t-77", "role": "agent", "parts": [{"text": "done"}]}
FACTS = [
    Entry(1, Created(message=Message())),
    Entry(2, Chunk(artifact=artifact(Part(text="One")))),
    Entry(3, Chunk(artifact=artifact(Part(text="")), append=True, last_chunk=True)),
    Entry(4, Said(status=TaskStatus(state=TaskState.WORKING, timestamp=AT))),
    Entry(5, Settled(status=QUESTION)),
]


def sent(method: str = "tasks/send", style: Style = "superset", **more: Any) -> Exchange:
    return understood(call(method, SENT | more, wire=WireSettings(frames={"/": style})))


def results(stream: bytes) -> list[Any]:
    found = [data for _, data in frames_of(stream)]
    assert all(set(each) == {"jsonrpc", "result"} for each in found), "its frames have no id"
    return [each["result"] for each in found]


def test_a_task_has_the_page_s_members_and_what_else_there_is() -> None:
    said = Message(message_id="u-8", role=Role.USER, parts=(Part(text="hello"),))
    full = view(
        status=QUESTION,
        artifacts=(
            artifact(
                Part(raw=b"\0"),
            ),
        ),
        history=(said,),
        metadata={"k": 1},
    )
    found = body_of(sent().reply(View(uid="u", seq=1, task=full.task)))["result"]
    assert list(found) == ["id", "contextId", "status", "artifacts", "history", "metadata"]
    assert found["status"] == {"state": "input_required", "timestamp": AT, "message": ASKED}
    assert found["artifacts"] == [{"artifactId": "a-3", "parts": [{"raw": "AA=="}]}]
    assert found["history"][0]["role"] == "user" and found["metadata"] == {"k": 1}
    bare = body_of(sent().reply(view()))["result"]
    assert list(bare) == ["id", "contextId", "status", "artifacts"] and bare["artifacts"] == []


def test_a_list_is_a_bare_array_of_whole_tasks() -> None:
    exchange = understood(call("tasks/list", {}))
    assert asked(exchange, ListTasks).include_artifacts
    page = TaskPage(views=(view(), view()), next_page_token="t", page_size=2, total=9, artifacts=True)
    assert [each["id"] for each in body_of(exchange.reply(page))["result"]] == ["t-77", "t-77"]


def test_a_direct_reply_is_a_completed_task_and_a_stream_delivers_it() -> None:
    reply = agent_says(context_id="c-5")
    found = body_of(sent().reply(reply))["result"]
    assert (found["id"], found["status"]["state"]) == ("m-9", "completed")
    assert found["artifacts"] == [{"artifactId": "m-9", "parts": [{"text": "done"}]}]
    delivered, end = results(sent("tasks/sendSubscribe").open(reply))
    assert delivered["artifact"] == found["artifacts"][0] and delivered["lastChunk"] is True
    assert (end["status"], end["final"], end["taskId"]) == (found["status"], True, "m-9")


def test_a_direct_reply_is_streamed_to_the_letter_too() -> None:
    delivered, end = results(sent("tasks/sendSubscribe", "literal").open(agent_says(context_id="c-5")))
    assert delivered == {
        "type": "TaskArtifactUpdateEvent",
        "taskId": "m-9",
        "artifact": {"artifactId": "m-9", "parts": [{"text": "done"}]},
        "final": False,
    }
    assert list(end) == ["type", "taskId", "status", "final"] and list(end["status"]) == ["state", "message"]


@pytest.mark.parametrize("style", ["superset", "plain"])
def test_frames_have_what_the_page_shows_and_what_its_server_adds(style: Style) -> None:
    chunk, last, said, end = results(sent("tasks/sendSubscribe", style).frames(REF, FACTS, True))
    one = {"artifactId": "a-3", "parts": [{"text": "One"}]}
    told = {"type": "TaskArtifactUpdateEvent", "final": False, **HOME}
    assert chunk == {**told, "artifact": one, "append": False, "lastChunk": False}
    assert (last["append"], last["lastChunk"]) == (True, True)
    changed = {"type": "TaskStatusUpdateEvent", **HOME}
    assert said == {**changed, "status": {"state": "working", "timestamp": AT}, "final": False}
    assert end["status"] == {"state": "input_required", "timestamp": AT, "message": ASKED} and end["final"] is True


def test_literal_frames_have_what_the_page_shows_and_nothing_else() -> None:
    chunk, said, end = results(sent("tasks/sendSubscribe", "literal").frames(REF, FACTS, True))
    assert list(chunk) == ["type", "taskId", "artifact", "final"]
    assert said == {
        "type": "TaskStatusUpdateEvent",
        "taskId": "t-77",
        "status": {"state": "working"},
        "final": False,
    }
    assert end["status"] == {"state": "input_required", "message": ASKED} and end["final"] is True


def test_a_subscription_begins_with_the_task_in_the_words_of_who_made_it() -> None:
    exchange = understood(call("tasks/resubscribe", {"id": "t-77"}))
    assert isinstance(exchange.operation, SubscribeToTask)
    seen = view()
    (task,) = results(exchange.open(View(uid=seen.uid, seq=9, task=seen.task, origin="simple")))
    assert task["status"]["state"] == "completed" and "type" not in task and "kind" not in task


@pytest.mark.parametrize("version", ["1.0", "0.3", ""])
def test_the_versions_of_the_page_pass(version: str) -> None:
    exchange = call("tasks/send", SENT, version=version)
    assert asked(exchange, SendMessage).message.message_id == "msg-1"
    assert understood(exchange).origin == "simple"


@pytest.mark.parametrize("version", ["2.0", "1.0.0", "1", "0.2", "0.1", "one"])
@pytest.mark.parametrize("method", ["tasks/send", "tasks/sendSubscribe", "tasks/list"])
def test_any_other_is_refused_with_both(method: str, version: str) -> None:
    error = error_of(call(method, SENT, version=version))
    assert (error["code"], error["data"][0]["reason"]) == (-32008, "VERSION_NOT_SUPPORTED")
    assert error["message"].endswith("use 1.0, 0.3")


def test_errors_about_a_task_are_told_by_who_made_it() -> None:
    cancel = understood(call("tasks/cancel", {"id": "t-77"}))
    assert isinstance(cancel.operation, CancelTask)
    own = refused(cancel.fail(TaskNotCancelable("t-77", "TASK_STATE_COMPLETED").about("simple")))
    assert error_of(own)["data"][0]["reason"] == "TASK_NOT_CANCELABLE" and header(own, "a2a-version") == "1.0"
    theirs = understood(call("tasks/cancel", {"id": "t-77"})).fail(TaskNotCancelable("t-77", "x").about("0.3"))
    assert "data" not in error_of(theirs) and header(theirs, "a2a-version") == "0.3"
    older = understood(call("tasks/resubscribe", {"id": "t-77"})).fail(TaskOver("It is over").about("0.1"))
    assert b'"code":-32009' in older.body and header(older, "a2a-version") == "0.1"


@pytest.mark.proves("002-d3")
@pytest.mark.parametrize(
    ("params", "size", "shown", "whole"),
    [
        ({}, 10_000, 10_000, False),
        ({}, 10_000, 3, False),  # they weigh too much for one answer
        ({"limit": 3}, 3, 2, False),
        ({"limit": 2}, 2, 2, True),
    ],
)
def test_a_list_is_whole_or_an_error_that_says_what_to_do(
    params: dict[str, int], size: int, shown: int, whole: bool
) -> None:
    listing = understood(call("tasks/list", params))
    page = TaskPage(views=(view(),) * shown, next_page_token="more", page_size=size, total=20_000)
    if whole:
        assert len(json.loads(listing.reply(page).body)["result"]) == shown
        return
    with pytest.raises(UnsupportedOperation, match="limit") as found:
        listing.reply(page)
    assert error_of(listing.fail(found.value))["code"] == -32004
