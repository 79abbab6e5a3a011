"""0.1: parts with a type, sessions, tasks named by their clients, and nothing later than itself in any answer."""

import json
from typing import Any

import pytest

from dragoman.model.errors import InvalidParams, StreamingNotSupported, TaskOver
from dragoman.model.facts import Asked, Chunk, Created, Entry, Said, Settled
from dragoman.model.messages import Message, Part, Role
from dragoman.model.operations import GetTask, SendMessage, SendStreamingMessage, TaskRef
from dragoman.model.tasks import TaskState, TaskStatus, View
from dragoman.wire.settings import WireSettings
from dragoman.wire.t01 import T01
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
    understood,
    view,
)

SENT: dict[str, Any] = {
    "id": "client-task-9",
    "sessionId": "s-3",
    "message": {
        "role": "user",
        "parts": [
            {"type": "text", "text": "Crop to a square"},
            {"type": "file", "file": {"bytes": "iVBORw0KGgo=", "name": "cat.png", "mimeType": "image/png"}},
            {"type": "data", "data": [1, 2]},
        ],
    },
    "historyLength": 2,
}
REF = TaskRef("0199-uid", "t-77", "c-5", "0.1")
SAID = tuple(Message(message_id=f"u-{n}", role=Role.USER, parts=(Part(text=str(n)),)) for n in range(3))
PARTS = artifact(
    Part(text="t", metadata={"m": 1}),
    Part(data={"k": 1}),
    Part(data=[1]),
    Part(data=5),
    Part(raw=b"\0", filename="z", media_type="a/b"),
    Part(url="https://f.example/x"),
    name="n",
    description="d",
    metadata={"own": 1},
)


def sent(method: str = "tasks/send", **more: Any) -> Any:
    return call(method, SENT | more)


def test_a_send_is_read_with_what_stands_beside_the_message() -> None:
    send = asked(sent(), SendMessage)
    assert (send.message.task_id, send.message.context_id) == ("client-task-9", "s-3")
    text, file, data = send.message.parts
    assert (text.text, file.raw, file.filename, file.media_type, data.data) == (
        "Crop to a square",
        b"\x89PNG\r\n\x1a\n",
        "cat.png",
        "image/png",
        [1, 2],
    )
    assert send.configuration.history_length == 2 and not send.configuration.return_immediately
    assert understood(sent("tasks/sendSubscribe")).origin == "0.1"
    assert asked(sent("tasks/sendSubscribe"), SendStreamingMessage).message == send.message


def test_what_is_null_is_absent() -> None:
    nothing = dict.fromkeys(("id", "sessionId", "historyLength", "metadata", "pushNotification"))
    send = asked(sent(**nothing), SendMessage)
    assert (send.message.task_id, send.message.context_id, send.metadata) == ("", "", None)
    assert send.configuration.history_length is None


def test_a_get_is_read_as_everywhere_and_history_is_left_to_who_answers() -> None:
    assert T01.read("GetTask", b'{"id":"t-77","historyLength":2}', WireSettings()) == GetTask(
        id="t-77", history_length=2
    )


@pytest.mark.parametrize("length", [-1, "many", 1.5])
def test_a_length_that_is_none_is_refused_by_its_name(length: Any) -> None:
    error = error_of(sent(historyLength=length))
    assert error["code"] == -32602 and error["message"].startswith("historyLength")


@pytest.mark.proves("S-6-4")
@pytest.mark.parametrize(
    ("params", "origin"),
    [
        ({"message": {"role": "user", "parts": [{"type": "text", "text": "x"}]}}, "0.1"),
        ({"message": {"role": "user", "parts": [{"text": "x"}]}, "sessionId": "s"}, "0.1"),
        ({"message": {"role": "user", "parts": [{"text": "x"}]}}, "simple"),
        ({"message": {"role": "user", "parts": [{"data": {"type": "text"}}]}}, "simple"),
        ({"message": {"role": "user", "parts": [{"text": "sessionId"}]}}, "simple"),
    ],
)
def test_a_type_or_a_session_tells_it_from_simple_a2a(params: Any, origin: str) -> None:
    assert understood(call("tasks/send", params)).origin == origin


@pytest.mark.parametrize("params", [{"message": "type", "a": "type"}, {"message": {"type": 1}}, {"x": "sessionId"}])
def test_what_is_no_message_is_refused(params: Any) -> None:
    error = error_of(call("tasks/send", params))
    assert error["code"] == -32602


def test_every_part_and_artifact_is_spelled_its_way() -> None:
    found = body_of(understood(sent()).reply(view(artifacts=(PARTS, artifact(Part(text="x"))), metadata={"k": 1})))
    first, second = found["result"]["artifacts"]
    assert first == {
        "index": 0,
        "parts": [
            {"type": "text", "text": "t", "metadata": {"m": 1}},
            {"type": "data", "data": {"k": 1}},
            {"type": "data", "data": [1]},
            {"type": "data", "data": {"value": 5}, "metadata": {"data_part_compat": True}},
            {"type": "file", "file": {"bytes": "AA==", "name": "z", "mimeType": "a/b"}},
            {"type": "file", "file": {"uri": "https://f.example/x"}},
        ],
        "name": "n",
        "description": "d",
        "metadata": {"own": 1, "artifactId": "a-3"},
    }
    assert second["index"] == 1 and list(found["result"]) == ["id", "sessionId", "status", "artifacts", "metadata"]


@pytest.mark.parametrize(
    ("state", "shown"), [(TaskState.REJECTED, "failed"), (TaskState.AUTH_REQUIRED, "input-required")]
)
def test_a_later_state_is_told_as_the_nearest_one_with_its_word_in_the_metadata(state: TaskState, shown: str) -> None:
    word = state.value.removeprefix("TASK_STATE_").lower().replace("_", "-")
    told = body_of(understood(sent()).reply(view(status=TaskStatus(state=state, timestamp=AT))))["result"]["status"]
    assert told["state"] == shown
    assert told["message"] == {"role": "agent", "parts": [], "metadata": {"state": word}}
    said = TaskStatus(state=state, timestamp=AT, message=agent_says(metadata={"k": 1}))
    told = body_of(understood(sent()).reply(view(status=said)))["result"]["status"]
    assert told["message"]["parts"] == [{"type": "text", "text": "done"}]
    assert told["message"]["metadata"] == {"k": 1, "state": word}


@pytest.mark.parametrize(("wanted", "shown"), [(None, []), (0, []), (2, ["1", "2"]), (9, ["0", "1", "2"])])
def test_history_is_shown_to_who_asks_for_it(wanted: int | None, shown: list[str]) -> None:
    seen = View(uid="u", seq=1, task=view(history=SAID).task, origin="0.1")
    asking = {} if wanted is None else {"historyLength": wanted}
    for exchange in (call("tasks/get", {"id": "t-77"} | asking), sent(historyLength=wanted)):
        found = body_of(understood(exchange).reply(seen))["result"].get("history", [])
        assert [each["parts"][0]["text"] for each in found] == shown
    assert asked(call("tasks/get", {"id": "t-77"}), GetTask).history_length is None


def test_a_direct_reply_is_a_task_that_is_over() -> None:
    reply = agent_says(context_id="c-5")
    found = body_of(understood(sent()).reply(reply))["result"]
    message = {"role": "agent", "parts": [{"type": "text", "text": "done"}]}
    assert found == {
        "id": "m-9",
        "sessionId": "c-5",
        "status": {"state": "completed", "message": message},
        "artifacts": [],
    }
    ((_, frame),) = frames_of(understood(sent("tasks/sendSubscribe")).open(reply))
    assert frame["result"] == {"id": "m-9", "status": found["status"], "final": True}


def test_a_stream_has_statuses_and_artifacts_by_their_place_and_no_task() -> None:
    question = TaskStatus(state=TaskState.INPUT_REQUIRED, timestamp=AT, message=agent_reports())
    facts = [
        Entry(1, Created(message=Message())),
        Entry(2, Said(status=TaskStatus(state=TaskState.WORKING, timestamp=AT))),
        Entry(3, Chunk(artifact=artifact(Part(text="x")), append=True, index=4)),
        Entry(4, Asked(status=question, n=0)),
        Entry(5, Settled(status=TaskStatus(state=TaskState.FAILED, timestamp=AT))),
    ]
    frames = [data for _, data in frames_of(understood(sent("tasks/sendSubscribe")).frames(REF, facts, False))]
    assert [each["id"] for each in frames] == ["r-1"] * 4
    working, chunk, waiting, failed = [each["result"] for each in frames]
    assert working == {"id": "t-77", "status": {"state": "working", "timestamp": AT}, "final": False}
    assert (chunk["artifact"]["index"], chunk["artifact"]["append"], chunk["artifact"]["lastChunk"]) == (4, True, False)
    assert waiting["final"] is True and failed["final"] is True


@pytest.mark.parametrize("state", [TaskState.WORKING, TaskState.COMPLETED])
def test_a_subscription_begins_with_the_status_and_what_was_delivered(state: TaskState) -> None:
    seen = view(status=TaskStatus(state=state, timestamp=AT), artifacts=(artifact(Part(text="x")),))
    exchange = understood(call("tasks/resubscribe", {"id": "t-77"}))
    frames = frames_of(exchange.open(View(uid=seen.uid, seq=9, task=seen.task, origin="0.1")))
    kinds = ["status" if "status" in data["result"] else "artifact" for _, data in frames]
    assert kinds == (["status", "artifact"] if state is TaskState.WORKING else ["artifact", "status"])
    assert [id for id, _ in frames] == ["", "0199-uid.9"]


def test_its_errors_have_its_numbers() -> None:
    assert error_of(understood(sent()).fail(TaskOver("over")))["code"] == -32009
    assert error_of(understood(sent("tasks/sendSubscribe")).fail(StreamingNotSupported()))["code"] == -32006
    for version, code in (("0.1", None), ("0.2", None), ("0.3", None), ("1.0", -32603)):
        found = call("tasks/send", SENT, version=version)
        assert understood(found) if code is None else error_of(found)["code"] == code


_TEXT: dict[str, Any] = {"type": "text", "text": "hi"}


@pytest.mark.parametrize(
    "params",
    [
        {"message": {"role": "user", "parts": [_TEXT]}},
        {"id": "t", "sessionId": "s", "message": {"parts": [_TEXT, _TEXT]}, "historyLength": 0},
        {"id": "t", "message": {"role": "user", "parts": [_TEXT | {"metadata": {"m": 1}}]}, "metadata": {"n": 2}},
        {"sessionId": "s", "message": {"role": "user", "parts": [{"text": "hi"}]}, "historyLength": "3"},
        {"id": "t", "message": {"role": "agent", "parts": [_TEXT]}, "unknown": True},
        {"id": "x" * 257, "message": {"role": "user", "parts": [_TEXT]}},
        {"sessionId": "a\nb", "message": {"role": "user", "parts": [_TEXT]}},
        {"message": {"role": "user", "parts": [_TEXT]}, "historyLength": -1},
        {"message": {"role": "user", "parts": []}},
        {"message": {"role": "user", "parts": [_TEXT] * 1001}},
        {"message": {"role": "user", "parts": [{"type": "text", "text": 5}]}},
    ],
)
@pytest.mark.parametrize("name", ["SendMessage", "SendStreamingMessage"])
def test_the_quick_reader_and_the_careful_one_agree(name: str, params: dict[str, Any]) -> None:
    raw, wire = json.dumps(params).encode(), WireSettings()
    found: list[Any] = []
    for read in (lambda: T01.read(name, raw, wire), lambda: T01.read_fields(name, params, wire, False)):
        try:
            found.append(read())
        except InvalidParams as error:
            found.append(str(error))
    assert found[0] == found[1]
