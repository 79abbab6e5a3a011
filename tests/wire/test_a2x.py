"""A2X: the answer in the status, streams that say it again, and the page's streams to the letter."""

from typing import Any

import pytest

from dragoman.model.errors import ExtensionRequired
from dragoman.model.facts import Chunk, Created, Entry, Said, Settled
from dragoman.model.messages import Message, Part, Role
from dragoman.model.operations import TaskRef
from dragoman.model.tasks import TaskState, TaskStatus
from dragoman.wire.exchange import Exchange
from dragoman.wire.settings import Style, WireSettings
from tests.wire.wording import (
    AT,
    agent_reports,
    agent_says,
    artifact,
    body_of,
    call,
    error_of,
    frames_of,
    inbound,
    receive,
    understood,
    view,
)

PATH = "/api/a2a"
SENT = {"message": {"role": "user", "parts": [{"kind": "text", "text": "Analyze this repository"}]}}
REF = TaskRef("0199-uid", "t-77", "c-5")
HOME = {"taskId": "t-77", "contextId": "c-5"}
DONE = [{"kind": "text", "text": "done"}]
ANSWERED = {"kind": "message", "messageId": "m-9", "role": "agent", **HOME, "parts": DONE, "metadata": {}}
COMPLETED = TaskStatus(state=TaskState.COMPLETED, timestamp=AT)
FACTS = [
    Entry(1, Created(message=Message())),
    Entry(2, Said(status=TaskStatus(state=TaskState.WORKING, timestamp=AT))),
    Entry(3, Chunk(at=5, n=1, artifact=artifact(Part(text="One")))),
    Entry(4, Said(status=TaskStatus(state=TaskState.WORKING, timestamp=AT, message=agent_reports()))),
    Entry(5, Chunk(artifact=artifact(Part(text="")), append=True, last_chunk=True)),
    Entry(6, Settled(status=COMPLETED)),
]


def sent(method: str = "message/send", style: Style = "superset", **more: Any) -> Exchange:
    return understood(call(method, SENT | more, path=PATH, wire=WireSettings(frames={PATH: style})))


def answer(**more: Any) -> Any:
    return body_of(sent().reply(view(**more)))["result"]


def test_a_task_has_the_page_s_members_in_its_order_and_answers_in_the_status() -> None:
    said = Message(message_id="u-8", role=Role.USER, parts=(Part(text="hello"),))
    made = (artifact(Part(text="Here "), Part(data={"k": 1}), Part(text="it is")),)
    found = answer(artifacts=made, history=(said,), metadata={"k": 1})
    assert list(found) == ["kind", "id", "contextId", "status", "artifacts", "history", "metadata"]
    assert list(found["status"]) == ["state", "timestamp", "message"]
    message = found["status"]["message"]
    assert list(message) == ["kind", "messageId", "role", "taskId", "contextId", "parts", "metadata"]
    assert message["parts"] == [{"kind": "text", "text": "Here "}, {"kind": "text", "text": "it is"}]
    assert found["history"][0]["role"] == "user"


def test_what_is_all_data_is_the_answer_and_what_the_agent_said_at_the_end_is_not_replaced() -> None:
    data = answer(artifacts=(artifact(Part(data={"k": 1})),))
    assert data["status"]["message"]["parts"] == [{"kind": "data", "data": {"k": 1}}]
    ended = TaskStatus(state=TaskState.COMPLETED, timestamp=AT, message=agent_reports())
    assert answer(status=ended, artifacts=(artifact(Part(text="x")),))["status"]["message"] == ANSWERED
    assert "message" not in answer()["status"]
    working = TaskStatus(state=TaskState.WORKING, timestamp=AT)
    assert "message" not in answer(status=working, artifacts=(artifact(Part(text="x")),))["status"]


def test_a_direct_reply_is_a_message() -> None:
    reply = agent_says()
    bare = {"kind": "message", "messageId": "m-9", "role": "agent", "parts": DONE, "metadata": {}}
    assert body_of(sent().reply(reply))["result"] == bare
    ((_, frame),) = frames_of(sent("message/stream").open(reply))
    assert frame["result"] == bare and frame["kind"] == "message"
    ((_, frame),) = frames_of(sent("message/stream", "literal").open(reply))
    assert frame == {"kind": "message", "role": "agent", "parts": DONE}


def test_a_superset_delivers_each_piece_and_says_it_again() -> None:
    frames = frames_of(sent("message/stream").frames(REF, FACTS, True))
    results = [data["result"] for _, data in frames]
    assert [each["kind"] for each in results] == [
        "status-update",
        "artifact-update",
        "status-update",
        "status-update",
        "artifact-update",
        "status-update",
    ]
    assert [id for id, _ in frames] == ["0199-uid.2", "", "0199-uid.3", "0199-uid.4", "0199-uid.5", "0199-uid.6"]
    again = results[2]["status"]
    assert (again["state"], again["message"]["parts"]) == ("working", [{"kind": "text", "text": "One"}])
    assert again["message"]["messageId"] == "0199-uid.5.1" and results[2]["final"] is False
    assert results[-1]["final"] is True
    for _, data in frames:
        assert {name: data[name] for name in data["result"]} == data["result"]


def test_literal_frames_are_the_page_s() -> None:
    written = sent("message/stream", "literal").frames(REF, FACTS, True).decode()
    assert [line for line in written.split("\n") if line.startswith("data")] == [
        'data: {"kind":"status-update","taskId":"t-77","status":{"state":"working"}}',
        'data: {"kind":"message","role":"agent","parts":[{"kind":"text","text":"One"}]}',
        'data: {"kind":"message","role":"agent","parts":[{"kind":"text","text":"done"}]}',
        'data: {"kind":"status-update","taskId":"t-77","status":{"state":"completed"}}',
    ]


def test_plain_frames_are_official() -> None:
    frames = [data for _, data in frames_of(sent("message/stream", "plain").frames(REF, FACTS, True))]
    assert [each["result"]["kind"] for each in frames][1:3] == ["artifact-update", "status-update"]
    assert all(set(each) == {"jsonrpc", "id", "result"} for each in frames) and len(frames) == 5


@pytest.mark.parametrize("style", ["superset", "literal"])
def test_a_subscription_begins_with_the_status_as_it_stands(style: Style) -> None:
    exchange = understood(call("tasks/resubscribe", {"id": "t-77"}, path=PATH, wire=WireSettings(frames={PATH: style})))
    ((id, frame),) = frames_of(exchange.open(view(artifacts=(artifact(Part(text="done")),))))
    assert id == "0199-uid.9" and frame["kind"] == "status-update" and frame["taskId"] == "t-77"
    assert frame["status"]["message"]["parts"] == DONE
    assert frame.get("final") is (True if style == "superset" else None)
    assert ("timestamp" in frame["status"]) is (style == "superset")


@pytest.mark.parametrize("style", ["superset", "literal"])
def test_who_takes_a_stream_up_again_at_work_is_told_what_came_before(style: Style) -> None:
    exchange = understood(call("tasks/resubscribe", {"id": "t-77"}, path=PATH, wire=WireSettings(frames={PATH: style})))
    working = TaskStatus(state=TaskState.WORKING, timestamp=AT)
    made = (artifact(Part(text="done")), artifact(Part(text="")))
    frames = frames_of(exchange.open(view(status=working, artifacts=made)))
    kinds = ["status-update", "artifact-update", "status-update", "artifact-update"]
    assert [data["kind"] for _, data in frames] == (kinds if style == "superset" else ["status-update", "message"])
    assert [id for id, _ in frames][-1] == "0199-uid.9" and {id for id, _ in frames[:-1]} == {""}


def test_a_missing_extension_is_an_invalid_request_that_names_header_and_extensions() -> None:
    error = error_of(sent().fail(ExtensionRequired("urn:a", "urn:b")))
    assert error["code"] == -32600
    for named in ("urn:a, urn:b", "X-A2A-Extensions", " A2A-Extensions"):
        assert named in error["message"]


def test_to_the_letter_an_invalid_request_is_called_so() -> None:
    literal = WireSettings(frames={PATH: "literal"})
    assert error_of(receive(inbound("POST", PATH, {}), literal)) == {"code": -32600, "message": "Invalid Request"}
    assert "jsonrpc" in error_of(receive(inbound("POST", PATH, {}), WireSettings()))["message"]
