"""simple_a2a's streams and questions: frames without ids, states with underscores, answers by task or context."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.chaos.victim import Victim
from tests.seeds.calling import JSON, Frame, ask, call, envelope, opened, refusal, shown, streaming
from tests.seeds.test_simple import AGENT, RPC, V10, said, send, state, text, words
from tests.serving import serving

SUBSCRIBE = "tasks/sendSubscribe"
RESTARTED = "interrupted by server restart"


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("simple-streams")
    with serving(AGENT, "--store", f"{folder}/tasks.db", logs=folder / "server.log") as base:
        yield base


@pytest.fixture(scope="module")
def literal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("simple-literal-streams")
    options = ("--profile", "simple", "--store", "memory://", "--set", "frames=literal")
    with serving(AGENT, *options, logs=folder / "server.log") as base:
        yield base


@pytest.fixture
def victim(tmp_path: Path) -> Iterator[Victim]:
    """A server to be killed. It has started."""
    victim = Victim(tmp_path, agent=AGENT)
    victim.start()
    yield victim
    victim.stop()


def item(frame: Frame | None) -> JSON:
    """What a frame tells. It is a response without an id."""
    assert frame is not None, "the stream has ended"
    whole = frame.json()
    assert set(whole) == {"jsonrpc", "result"} and whole["jsonrpc"] == "2.0"
    return whole["result"]


def items(frames: list[Frame]) -> list[JSON]:
    return [item(frame) for frame in frames]


def chunks(events: list[JSON]) -> str:
    return "".join(part.get("text", "") for each in events if "artifact" in each for part in each["artifact"]["parts"])


def delivers(frame: Frame) -> bool:
    return "artifact" in item(frame)


# --- what a stream says ---------------------------------------------------------------------------------------


@pytest.mark.proves("002-6", "002-34", "002-35", "002-36", "002-c3")
def test_literal_frames_are_those_of_the_page_to_the_byte(literal: str) -> None:
    with streaming(literal, RPC, SUBSCRIBE, said("write One ", "write two."), id="abc-123") as stream:
        frames = stream.rest()
    chunk = item(frames[1])
    known = {"task": chunk["taskId"], "artifact": chunk["artifact"]["artifactId"]}

    def delivered(text: str) -> str:
        return (
            'data: {"jsonrpc":"2.0","result":{"type":"TaskArtifactUpdateEvent","taskId":"<task>",'
            f'"artifact":{{"artifactId":"<artifact>","parts":[{{"text":"{text}"}}]}},"final":false}}}}'
        )

    def changed(state: str, final: str) -> str:
        return (
            'data: {"jsonrpc":"2.0","result":{"type":"TaskStatusUpdateEvent","taskId":"<task>",'
            f'"status":{{"state":"{state}"}},"final":{final}}}}}'
        )

    assert [shown(frame.lines[-1], **known) for frame in frames] == [
        changed("working", "false"),
        delivered("One "),
        delivered("two."),
        changed("completed", "true"),
    ]
    assert all(frame.event == "" and len(frame.lines) == 2 and frame.id for frame in frames)


@pytest.mark.proves("002-6", "002-35", "002-36", "002-c3", "002-d2", "002-d14")
def test_superset_frames_add_what_puts_the_pieces_together(base: str) -> None:
    script = said("write One ", "say Busy", "write two.", "data 3")
    with streaming(base, RPC, SUBSCRIBE, script) as stream:
        events = items(stream.rest())
    page = {"TaskStatusUpdateEvent": "status", "TaskArtifactUpdateEvent": "artifact"}
    built: dict[str, str] = {}
    for event in events:
        assert list(event)[:4] == ["type", "taskId", page[event["type"]], "final"]
        assert event["contextId"] == events[0]["contextId"]
        if "artifact" in event:
            id = event["artifact"]["artifactId"]
            built[id] = (built[id] if event["append"] else "") + chunks([event])
    updates = [event["status"] for event in events if "status" in event]
    told = [words(each) if "message" in each else each["state"] for each in updates]
    assert told == ["working", "Busy", "completed"]
    assert all(each["timestamp"].endswith("Z") for each in updates)
    assert [event["final"] for event in events] == [False] * (len(events) - 1) + [True]
    task = call(base, RPC, "tasks/get", {"id": events[0]["taskId"]})
    assert {each["artifactId"]: text({"artifacts": [each]}) for each in task["artifacts"]} == built


@pytest.mark.proves("002-34")
def test_a_stream_stays_open_while_the_task_works(base: str) -> None:
    with streaming(base, RPC, SUBSCRIBE, said("write Half ", "wait more", "write done.")) as stream:
        assert stream.headers["cache-control"] == "no-cache" and stream.headers["x-accel-buffering"] == "no"
        seen = items(stream.until(delivers))
        assert state(call(base, RPC, "tasks/get", {"id": seen[0]["taskId"]})) == "working"
        send(base, "open more")
        rest = items(stream.rest())
    assert chunks(seen) + chunks(rest) == "Half done."
    assert rest[-1]["final"] is True


@pytest.mark.proves("002-31", "002-36")
@pytest.mark.parametrize(
    ("step", "named", "told"),
    [
        ("fail It broke", "failed", "It broke"),
        ("reject Not here", "rejected", "Not here"),
        ("ask Which one?", "input_required", "Which one?"),
        ("auth Your token?", "auth_required", "Your token?"),
    ],
)
@pytest.mark.parametrize("style", ["base", "literal"])
def test_a_stream_ends_with_whatever_the_task_has_come_to(
    style: str, step: str, named: str, told: str, request: pytest.FixtureRequest
) -> None:
    base: str = request.getfixturevalue(style)
    with streaming(base, RPC, SUBSCRIBE, said("write So. ", step)) as stream:
        last = items(stream.rest())[-1]
    assert (last["status"]["state"], last["final"], words(last["status"])) == (named, True, told)


# --- following ------------------------------------------------------------------------------------------------


@pytest.mark.proves("002-d15")
def test_who_joins_later_gets_the_task_and_then_what_everybody_gets(base: str) -> None:
    with streaming(base, RPC, SUBSCRIBE, said("write One ", "wait both", "write two.")) as first:
        id = items(first.until(delivers))[0]["taskId"]
        with streaming(base, RPC, "tasks/resubscribe", {"id": id}) as second:
            snapshot = item(second.next())
            assert (snapshot["id"], state(snapshot), text(snapshot)) == (id, "working", "One ")
            assert "type" not in snapshot and "kind" not in snapshot
            send(base, "open both")
            assert items(first.rest()) == items(second.rest())


@pytest.mark.proves("002-d16")
def test_who_hangs_up_stops_nothing_and_continues_where_it_was(base: str) -> None:
    with streaming(base, RPC, SUBSCRIBE, said("write One ", "wait cut", "write two.")) as stream:
        id = items(stream.until(delivers))[0]["taskId"]
        cursor = stream.cursor
    send(base, "open cut")
    with streaming(base, RPC, "tasks/resubscribe", {"id": id}, headers={"Last-Event-ID": cursor}) as stream:
        rest = items(stream.rest())
    assert chunks(rest) == "two." and rest[-1]["final"] is True
    assert text(call(base, RPC, "tasks/get", {"id": id})) == "One two."


@pytest.mark.proves("002-d16")
def test_sending_again_with_a_cursor_only_reads_on(base: str) -> None:
    script = said("write One ", "write two.", contextId="again")
    with streaming(base, RPC, SUBSCRIBE, script) as stream:
        seen = stream.until(delivers)
    again = {"Last-Event-ID": seen[-1].id}
    with streaming(base, RPC, SUBSCRIBE, script, headers=again) as stream:
        rest = items(stream.rest())
    assert chunks(items(seen)) + chunks(rest) == "One two."
    assert len(call(base, RPC, "tasks/list", {"contextId": "again"})) == 1


# --- questions ------------------------------------------------------------------------------------------------


@pytest.mark.proves("002-33", "002-c10")
def test_a_question_is_answered_under_the_id_of_its_task(base: str) -> None:
    asking = send(base, "write So. ", "ask Which one?", "write Done.")
    assert (state(asking), words(asking["status"])) == ("input_required", "Which one?")
    done = call(base, RPC, "tasks/send", said("the red one") | {"id": asking["id"]})
    assert (done["id"], done["contextId"], state(done)) == (asking["id"], asking["contextId"], "completed")
    assert text(done) == "So. Heard 'the red one'. Done."


@pytest.mark.proves("002-33", "002-c10", "002-d17")
def test_a_wrong_token_leaves_the_vault_closed_and_the_context_is_enough_to_try_again(base: str) -> None:
    asking = send(base, "auth Your token?", contextId="vault")
    assert state(asking) == "auth_required"
    wrong = send(base, "nonsense", contextId="vault")
    assert (wrong["id"], state(wrong), words(wrong["status"])) == (asking["id"], "auth_required", "Wrong. Your token?")
    right = send(base, "open-sesame", contextId="vault")
    assert (right["id"], state(right), text(right)) == (asking["id"], "completed", "Unlocked. ")


@pytest.mark.proves("002-33", "002-d18")
@pytest.mark.parametrize("by", ["id", "taskId", "contextId"])
def test_an_answer_may_be_streamed(base: str, by: str) -> None:
    asking = send(base, "ask Which one?", "write Done.")
    named = asking["contextId"] if by == "contextId" else asking["id"]
    with streaming(base, RPC, SUBSCRIBE, said("this") | {by: named}) as stream:
        events = items(stream.rest())
    assert {event["taskId"] for event in events} == {asking["id"]}
    assert (events[0]["status"]["state"], events[-1]["status"]["state"]) == ("working", "completed")
    assert chunks(events) == "Heard 'this'. Done."


@pytest.mark.proves("002-d17")
def test_of_several_questions_in_a_context_the_error_names_the_tasks(base: str) -> None:
    first = send(base, "ask One?")
    message = {
        "messageId": "m",
        "role": "ROLE_USER",
        "contextId": first["contextId"],
        "parts": [{"text": "auth Two?"}],
    }
    second = call(base, RPC, "SendMessage", {"message": message}, headers=V10)["task"]
    for method in ("tasks/send", SUBSCRIBE):
        error = refusal(base, RPC, method, said("this", contextId=first["contextId"]))
        assert error["code"] == -32602
        assert first["id"] in error["message"] and second["id"] in error["message"]
    assert state(call(base, RPC, "tasks/get", {"id": first["id"]})) == "input_required"
    done = call(base, RPC, "tasks/send", said("open-sesame", contextId=first["contextId"]) | {"id": second["id"]})
    assert (done["id"], state(done)) == (second["id"], "completed")
    assert send(base, "this", contextId=first["contextId"])["id"] == first["id"]


@pytest.mark.proves("002-d17")
def test_a_context_without_a_question_begins_another_task_in_it(base: str) -> None:
    first = send(base, "hello")
    second = send(base, "again", contextId=first["contextId"])
    assert second["id"] != first["id"] and second["contextId"] == first["contextId"]


@pytest.mark.proves("002-d12")
def test_a_message_to_a_task_at_work_waits_for_its_turn(base: str) -> None:
    with streaming(base, RPC, SUBSCRIBE, said("write One. ", "wait work")) as stream:
        id = items(stream.until(delivers))[0]["taskId"]
        more = said("write Two.", wait=False) | {"id": id}
        assert state(call(base, RPC, "tasks/send", more)) == "working"
        send(base, "open work")
        events = items(stream.rest())
    assert chunks(events) == "Two." and events[-1]["status"]["state"] == "completed"
    assert text(call(base, RPC, "tasks/get", {"id": id})) == "One. Two."


# --- a restart in between -------------------------------------------------------------------------------------


@pytest.mark.proves("002-33", "002-d19")
def test_questions_outlive_the_process_and_what_worked_has_failed(victim: Victim) -> None:
    base = victim.base
    finished = send(base, "write Kept.")
    asking = send(base, "write So. ", "ask Which one?", "write Done.")
    locked = send(base, "auth Your token?")
    with streaming(base, RPC, SUBSCRIBE, said("write Half", "wait forever")) as stream:
        working = items(stream.until(delivers))[0]["taskId"]
        cursor = stream.cursor
        victim.kill()
    victim.start()
    lost = call(base, RPC, "tasks/get", {"id": working})
    assert (state(lost), words(lost["status"]), text(lost)) == ("failed", RESTARTED, "Half")
    for task in (finished, asking, locked):
        assert call(base, RPC, "tasks/get", {"id": task["id"]}) == task
    assert {task["id"] for task in call(base, RPC, "tasks/list", {})} == {
        task["id"] for task in (finished, asking, locked, lost)
    }
    with streaming(base, RPC, "tasks/resubscribe", {"id": working}, headers={"Last-Event-ID": cursor}) as stream:
        (last,) = items(stream.rest())
    assert (last["status"]["state"], last["final"]) == ("failed", True)
    done = send(base, "this", contextId=asking["contextId"])
    assert (done["id"], text(done)) == (asking["id"], "So. Heard 'this'. Done.")
    opened_now = call(base, RPC, "tasks/send", said("open-sesame") | {"id": locked["id"]})
    assert (state(opened_now), text(opened_now)) == ("completed", "Unlocked. ")


@pytest.mark.proves("002-c3")
def test_curl_streams(base: str) -> None:
    body = envelope(SUBSCRIBE, said("hello"))
    headers = {"Accept": "*/*", "User-Agent": "curl/8.5.0"}
    with opened(base, "POST", RPC, body, headers) as stream:
        assert stream.status == 200 and stream.headers["content-type"] == "text/event-stream"
        assert items(stream.rest())[-1]["final"] is True
    assert ask(base, "GET", RPC).status == 405
