"""Who has to log in and did not, where two systems answer that in words of their own."""

import json
from typing import Any

import pytest

from dragoman.model.errors import Unauthenticated
from dragoman.wire.exchange import Exchange
from dragoman.wire.mounts import table
from dragoman.wire.settings import WireSettings
from tests.wire.wording import body_of, call, understood

GUESTS = WireSettings(a2x_tasks=True, simple_errors=True)
ERROR = Unauthenticated("Bearer", "Log in first")
SAID = {"message": {"messageId": "m", "role": "user", "parts": [{"kind": "text", "text": "hi"}]}}


def asked(method: str, path: str, params: Any = SAID, wire: WireSettings = GUESTS, **more: Any) -> Exchange:
    return understood(call(method, params, path=path, wire=wire, **more))


def test_by_default_everybody_is_turned_away_alike() -> None:
    for method, path in (("message/send", "/api/a2a"), ("tasks/send", "/"), ("message/send", "/")):
        reply = asked(method, path, wire=WireSettings()).turn_away(ERROR, "t")
        assert (reply.status, body_of(reply)["error"]["code"]) == (401, -32603)
    assert not any(mount.greets for mount in table(WireSettings()).values())


def test_only_mounts_whose_answer_depends_on_the_question_are_asked_for_it() -> None:
    def greeting(wire: WireSettings) -> set[str]:
        return {path for path, mount in table(wire).items() if mount.greets}

    assert greeting(WireSettings(a2x_tasks=True)) == {"/api/a2a"}
    assert greeting(WireSettings(simple_errors=True)) == set(table(WireSettings())), "its names are spoken everywhere"


@pytest.mark.parametrize("context", ["", "c-9"])
def test_a2x_answers_a_message_with_a_task_that_asks_to_log_in(context: str) -> None:
    params = {"message": {**SAID["message"], **({"contextId": context} if context else {})}}
    reply = asked("message/send", "/api/a2a", params).turn_away(ERROR, "t-1")
    assert reply.status == 200
    task = body_of(reply)["result"]
    assert (task["kind"], task["id"], task["contextId"]) == ("task", "t-1", context or "t-1")
    assert task["status"]["state"] == "auth-required"
    assert task["status"]["message"]["parts"] == [{"kind": "text", "text": "Log in first"}]


@pytest.mark.parametrize("style", ["superset", "literal", "plain"])
def test_a_stream_is_that_one_frame_and_cannot_be_resumed(style: Any) -> None:
    wire = WireSettings(a2x_tasks=True, frames={"/api/a2a": style})
    reply = asked("message/stream", "/api/a2a", wire=wire).turn_away(ERROR, "t-1")
    assert (reply.status, dict(reply.headers)[b"content-type"]) == (200, b"text/event-stream")
    frames = [frame for frame in reply.body.decode().split("\n\n") if frame]
    assert all(frame.startswith("data: ") for frame in frames), "nothing to resume from"
    last = json.loads(frames[-1].removeprefix("data: "))
    found = last.get("result", last)
    assert found["status"]["state"] == "auth-required"


def test_to_whom_reads_nothing_but_a_stream_it_says_so_in_one() -> None:
    reply = asked("tasks/resubscribe", "/api/a2a", {"id": "x"}).turn_away(ERROR, "t-1")
    assert reply.status == 200 and reply.body.startswith(b"event: error\ndata: ")
    assert b'"code":-32600' in reply.body


@pytest.mark.parametrize("method", ["tasks/get", "tasks/cancel"])
def test_whatever_else_is_asked_of_a2x_is_an_invalid_request(method: str) -> None:
    reply = asked(method, "/api/a2a", {"id": "x"}).turn_away(ERROR, "t-1")
    assert reply.status == 200
    assert body_of(reply)["error"]["code"] == -32600 and body_of(reply)["id"] == "r-1"


@pytest.mark.parametrize("method", ["tasks/send", "tasks/sendSubscribe", "tasks/list"])
def test_simple_a2a_answers_with_a_number(method: str) -> None:
    reply = asked(method, "/").turn_away(ERROR, "t-1")
    assert reply.status == 200
    assert body_of(reply)["error"]["code"] == -32000
    assert dict(reply.headers)[b"www-authenticate"] == b"Bearer"
