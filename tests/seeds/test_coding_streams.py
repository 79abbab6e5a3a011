"""coding-agent-a2a's streams, and its questions: a stream stays open over them, and the context is enough to answer."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.chaos.victim import Victim
from tests.seeds.calling import JSON, Frame, ask, call, envelope, opened, refusal, shown, streaming
from tests.seeds.test_coding import AGENT, RPC, named, said, send
from tests.serving import serving


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("coding-streams")
    with serving(AGENT, "--store", f"{folder}/tasks.db", logs=folder / "server.log") as base:
        yield base


@pytest.fixture(scope="module")
def literal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Frames as the page shows them; a question is waited for half a second."""
    folder = tmp_path_factory.mktemp("coding-literal-streams")
    options = ("--store", "memory://", "--set", "frames=literal", "--set", "limit_patience=0.5s")
    with serving(AGENT, *options, logs=folder / "server.log") as base:
        yield base


def state(frame: Frame) -> str:
    return frame.json().get("status", {}).get("state", "")


def asks(frame: Frame) -> bool:
    return state(frame) == "input-required"


def words(status: JSON) -> str:
    return "".join(part["text"] for part in status["message"]["parts"])


def answer_of(task: JSON) -> str:
    return "".join(part["text"] for artifact in named(task, "assistant-response") for part in artifact["parts"])


# --- what a stream says ---------------------------------------------------------------------------------------


@pytest.mark.proves("000-11", "000-12", "000-13", "000-19", "000-21", "000-22", "000-24")
def test_literal_frames_are_those_of_the_page_to_the_byte(literal: str) -> None:
    script = said("thinking Looking around.", "tool_use read_file", "done Rewrote auth.ts.")
    with streaming(literal, RPC, "message/stream", script, id=1) as stream:
        frames = stream.rest()
    _, chunk, _, result, _ = [frame.json() for frame in frames]
    known = {
        "task": chunk["taskId"],
        "context": chunk["contextId"],
        "answer": chunk["artifact"]["artifactId"],
        "result": result["artifact"]["artifactId"],
    }
    home = '"taskId":"<task>","contextId":"<context>"'
    # Beside its text the page leaves out the ids every message must have.
    message = (
        '"message":{"kind":"message","messageId":"<id>","role":"agent",'
        '"parts":[{"kind":"text","text":"Using tool: read_file"}],"contextId":"<context>","taskId":"<task>"}'
    )
    assert [shown(frame.data, **known) for frame in frames] == [
        f'{{"kind":"status-update",{home},"final":false,"status":{{"state":"working","timestamp":"<time>"}}}}',
        f'{{"kind":"artifact-update",{home},"append":true,"artifact":{{"artifactId":"<answer>",'
        '"name":"assistant-response","parts":[{"kind":"text","text":"Looking around."}]}}',
        f'{{"kind":"status-update",{home},"final":false,'
        f'"status":{{"state":"working","timestamp":"<time>",{message}}}}}',
        f'{{"kind":"artifact-update",{home},"artifact":{{"artifactId":"<result>","name":"result",'
        '"parts":[{"kind":"data","data":{"summary":"Rewrote auth.ts."}}]}}',
        f'{{"kind":"status-update",{home},"final":true,"status":{{"state":"completed","timestamp":"<time>"}}}}',
    ]
    assert all(frame.lines[-1] == f"data: {frame.data}" and frame.event == "" for frame in frames)


@pytest.mark.proves("000-20", "000-21", "000-22", "000-23", "000-24", "000-25", "000-c3")
@pytest.mark.parametrize("style", ["base", "literal"])
def test_events_come_in_the_order_of_the_work_and_the_result_before_the_end(
    style: str, request: pytest.FixtureRequest
) -> None:
    base: str = request.getfixturevalue(style)
    output = "x" * 300
    script = ["init opus s-1", "thinking One ", "thinking two.", "tool_use grep", f"tool_result {output}"]
    with streaming(base, RPC, "message/stream", said(*script, "stats 1 2 3", "done Found.")) as stream:
        events = [frame.json() for frame in stream.rest()]
    # In a superset, one more frame tells official clients alone that the answer is complete.
    events = [event for event in events if "kind" in event]
    told = [event["artifact"]["name"] if "artifact" in event else event["status"] for event in events]
    assert [
        each if isinstance(each, str) else words(each) if "message" in each else each["state"] for each in told
    ] == [
        "working",
        "agent-metadata",
        "assistant-response",
        "assistant-response",
        "Using tool: grep",
        f"Tool result: {output[:200]}…",
        "result",
        "result",
        "completed",
    ]
    assert events[1]["artifact"]["parts"][0]["data"] == {"model": "opus", "sessionId": "s-1"}
    first, second = events[2:4]
    assert first["append"] is second["append"] is True
    assert first["artifact"]["artifactId"] == second["artifact"]["artifactId"]
    assert events[-2]["artifact"]["parts"][0]["data"] == {
        "stats": {"inputTokens": 1, "outputTokens": 2, "durationMs": 3}
    }
    assert [event.get("final") for event in events if "status" in event] == [False, False, False, True]


@pytest.mark.proves("000-11", "000-d1")
def test_superset_frames_are_official_responses_with_the_page_s_members_beside_the_result(base: str) -> None:
    script = said("thinking Hi.", "tool_use ls", "done Listed.")
    with streaming(base, RPC, "message/stream", script, id="call-1") as stream:
        frames = stream.rest()
    for frame in frames:
        event = frame.json()
        result = event.pop("result")
        assert (event.pop("jsonrpc"), event.pop("id")) == ("2.0", "call-1")
        if event:
            assert event["kind"] == result["kind"] and event["taskId"] == result["taskId"]
            assert event.get("status") == result.get("status") and event.get("artifact") == result.get("artifact")
        else:
            assert result["kind"] == "artifact-update" and result["lastChunk"] is True
    numbers = [int(frame.id.rpartition(".")[2]) for frame in frames]
    assert numbers == sorted(set(numbers))


@pytest.mark.proves("000-d1")
def test_what_a_stream_told_is_what_the_task_holds(base: str) -> None:
    with streaming(
        base, RPC, "message/stream", said("thinking Half ", "thinking done.", "stats 3 4 5", "done Both.")
    ) as s:
        events = [frame.json() for frame in s.rest()]
    told: dict[str, list[Any]] = {}
    for event in events:
        if "artifact" in event.get("result", {}):
            artifact = event["result"]["artifact"]
            told.setdefault(artifact["artifactId"], []).extend(artifact["parts"])
    task = call(base, RPC, "tasks/get", {"taskId": events[0]["taskId"]})
    texts = {id: "".join(part.get("text", "") for part in parts) for id, parts in told.items()}
    assert {each["artifactId"] for each in task["artifacts"]} == set(told)
    for artifact in task["artifacts"]:
        assert "".join(part.get("text", "") for part in artifact["parts"]) == texts[artifact["artifactId"]]
        data = [part for part in artifact["parts"] if part["kind"] == "data"]
        assert data == [part for part in told[artifact["artifactId"]] if part["kind"] == "data"]


@pytest.mark.proves("000-26")
def test_a_stream_ends_with_the_error_that_failed_the_task(literal: str) -> None:
    with streaming(literal, RPC, "message/stream", said("error Out of tokens")) as stream:
        *_, last = stream.rest()
    event = last.json()
    assert (event["status"]["state"], event["final"], words(event["status"])) == ("failed", True, "Out of tokens")


@pytest.mark.proves("000-37")
def test_the_curl_command_of_the_page_streams(base: str) -> None:
    body = envelope("message/stream", said("thinking It starts the server.", messageId="test-1"), id=1)
    headers = {"Accept": "text/event-stream", "User-Agent": "curl/8.5.0"}
    with opened(base, "POST", RPC, body, headers) as stream:
        assert stream.status == 200 and stream.headers["content-type"] == "text/event-stream"
        assert stream.headers["cache-control"] == "no-cache"
        assert state(stream.rest()[-1]) == "completed"


# --- questions ------------------------------------------------------------------------------------------------


@pytest.mark.proves("000-27", "000-28", "000-29", "000-31", "000-c6")
def test_a_stream_stays_open_over_a_question_and_the_answer_goes_on_in_it(base: str) -> None:
    script = said("thinking First. ", "approval rm -rf build", "done Gone.")
    with streaming(base, RPC, "message/stream", script) as stream:
        question = stream.until(asks)[-1].json()
        assert question["final"] is False and question["result"]["final"] is False
        assert words(question["status"]) == "Approve: rm -rf build?"
        task = send(base, "y", messageId="msg-2", contextId=question["contextId"])
        rest = stream.rest()
    assert task["id"] == question["taskId"] and task["status"]["state"] == "completed"
    assert answer_of(task) == "First. Answered 'y'."
    states = [state(frame) for frame in rest if state(frame)]
    assert states == ["working", "completed"]
    assert [frame.json()["final"] for frame in rest if state(frame)] == [False, True]


@pytest.mark.proves("000-28")
def test_a_second_question_is_asked_on_the_same_stream(base: str) -> None:
    with streaming(base, RPC, "message/stream", said("approval make", "approval make install", "done Made.")) as stream:
        context = stream.until(asks)[-1].json()["contextId"]
        again = send(base, "y", contextId=context)
        assert again["status"]["state"] == "input-required" and words(again["status"]) == "Approve: make install?"
        assert words(stream.until(asks)[-1].json()["status"]) == "Approve: make install?"
        send(base, "n", contextId=context)
        assert state(stream.rest()[-1]) == "completed"
    task = call(base, RPC, "tasks/get", {"taskId": again["id"]})
    assert answer_of(task) == "Answered 'y'.Answered 'n'."


@pytest.mark.proves("000-d2", "000-31", "S-6-1")
def test_a_blocking_send_answers_at_the_question_and_its_context_resumes_it(base: str) -> None:
    task = send(base, "approval git push", "done Pushed.", blocking=True)
    assert task["status"]["state"] == "input-required"
    assert words(task["status"]) == "Approve: git push?"
    assert call(base, RPC, "tasks/get", {"taskId": task["id"]})["status"]["state"] == "input-required"
    done = send(base, "y", contextId=task["contextId"], blocking=True)
    assert (done["id"], done["status"]["state"]) == (task["id"], "completed")
    assert answer_of(done) == "Answered 'y'."


@pytest.mark.proves("000-31")
def test_the_answer_may_be_streamed_and_may_name_the_task(base: str) -> None:
    task = send(base, "approval git push", "done Pushed.")
    named_too = said("y", contextId=task["contextId"], taskId=task["id"])
    with streaming(base, RPC, "message/stream", named_too) as stream:
        events = [frame.json() for frame in stream.rest()]
    assert {event["taskId"] for event in events if "taskId" in event} == {task["id"]}
    assert events[0]["status"]["state"] == "working" and events[-1]["status"]["state"] == "completed"


@pytest.mark.proves("000-d4")
def test_two_questions_in_one_context_must_be_told_apart_by_task(base: str) -> None:
    first = send(base, "approval one", "done One.")
    context = first["contextId"]
    message = {"messageId": "m", "role": "ROLE_USER", "contextId": context, "parts": [{"text": "approval two"}]}
    second = call(base, "/", "SendMessage", {"message": message}, headers={"A2A-Version": "1.0"})["task"]
    error = refusal(base, RPC, "message/send", said("y", contextId=context))
    assert error["code"] == -32602
    assert first["id"] in error["message"] and second["id"] in error["message"] and "taskId" in error["message"]
    done = send(base, "y", contextId=context, taskId=second["id"])
    assert (done["id"], done["status"]["state"]) == (second["id"], "completed")
    assert send(base, "y", contextId=context)["id"] == first["id"]


@pytest.mark.proves("000-d4")
def test_a_context_without_a_question_begins_a_new_task_in_it(base: str) -> None:
    first = send(base, "thinking hi")
    second = send(base, "thinking again", contextId=first["contextId"])
    assert second["id"] != first["id"] and second["contextId"] == first["contextId"]


@pytest.mark.proves("000-27", "000-d2", "S-6-2")
def test_a_stream_nobody_answers_ends_after_a_while_with_the_question_open(literal: str) -> None:
    with streaming(literal, RPC, "message/stream", said("approval make", "done Made.")) as stream:
        *_, asked, last = [frame.json() for frame in stream.rest()]
    assert (asked["status"]["state"], asked["final"]) == ("input-required", False)
    assert last == asked | {"final": True}
    assert send(literal, "y", contextId=asked["contextId"])["status"]["state"] == "completed"


@pytest.mark.proves("000-d5")
def test_a_question_outlives_the_process_and_a_working_task_fails_with_it(tmp_path: Path) -> None:
    victim = Victim(tmp_path, agent=AGENT)
    victim.start()
    try:
        asked = send(victim.base, "thinking Before. ", "approval make", "done Made.")
        with streaming(victim.base, RPC, "message/stream", said("wait forever")) as stream:
            frame = stream.next()
            assert frame is not None
            working = frame.json()["taskId"]
            victim.kill()
        victim.start()
        lost = call(victim.base, RPC, "tasks/get", {"taskId": working})
        assert (lost["status"]["state"], words(lost["status"])) == ("failed", "interrupted by server restart")
        task = call(victim.base, RPC, "tasks/get", {"taskId": asked["id"]})
        assert task == asked
        done = send(victim.base, "y", contextId=asked["contextId"])
    finally:
        victim.stop()
    assert (done["id"], done["status"]["state"]) == (asked["id"], "completed")
    assert answer_of(done) == "Before. Answered 'y'."
    assert [each["parts"][0]["data"] for each in named(done, "result")] == [{"summary": "Made."}]


@pytest.mark.proves("000-d6")
@pytest.mark.parametrize("style", ["base", "literal"])
def test_who_follows_a_finished_task_gets_it_once(style: str, request: pytest.FixtureRequest) -> None:
    base: str = request.getfixturevalue(style)
    task = send(base, "thinking Over.", "stats 1 2 3")
    with streaming(base, RPC, "tasks/resubscribe", {"taskId": task["id"]}) as stream:
        (frame,) = stream.rest()
    told = frame.json()
    assert told["kind"] == "task" and (told["result"] if style == "base" else told) == task


@pytest.mark.proves("000-d5")
def test_a_broken_stream_is_taken_up_where_it_broke(base: str) -> None:
    with streaming(base, RPC, "message/stream", said("thinking One. ", "wait mended", "thinking Two.")) as stream:
        seen = stream.until(lambda frame: "artifact" in frame.json())
        id, cursor = seen[0].json()["taskId"], stream.cursor
    send(base, "open mended")
    with streaming(base, RPC, "tasks/resubscribe", {"taskId": id}, headers={"Last-Event-ID": cursor}) as stream:
        rest = [frame.json() for frame in stream.rest()]
    assert rest[0]["artifact"]["parts"] == [{"kind": "text", "text": "Two."}]
    assert rest[-1]["status"]["state"] == "completed" and rest[-1]["final"] is True
    assert ask(base, "GET", RPC).status == 405
