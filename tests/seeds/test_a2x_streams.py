"""A2X's streams and questions: messages in the page's own streams, the answer in the status everywhere else."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.chaos.victim import Victim
from tests.seeds.calling import JSON, Frame, call, shown, streaming
from tests.seeds.test_a2x import AGENT, RPC, said, send, state, words
from tests.serving import serving

STREAM = "message/stream"
RESTARTED = "interrupted by server restart"
LARGE = "x" * 1_200_000  # no snapshot holds so much


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("a2x-streams")
    with serving(AGENT, "--store", f"{folder}/tasks.db", logs=folder / "server.log") as base:
        yield base


@pytest.fixture(scope="module")
def literal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("a2x-literal-streams")
    options = ("--store", "memory://", "--set", f"frames={RPC}=literal")
    with serving(AGENT, *options, logs=folder / "server.log") as base:
        yield base


def results(frames: list[Frame]) -> list[JSON]:
    return [frame.json()["result"] for frame in frames]


def delivers(frame: Frame) -> bool:
    return frame.json()["kind"] == "artifact-update"


def sayings(events: list[JSON]) -> list[str]:
    return [words(event["status"]) for event in events if "message" in event.get("status", {})]


# --- what a stream says ---------------------------------------------------------------------------------------


@pytest.mark.proves("003-2", "003-14", "003-d10")
def test_literal_frames_are_those_of_the_page_to_the_byte(literal: str) -> None:
    with streaming(literal, RPC, STREAM, said("write Analyzing...")) as stream:
        frames = stream.rest()
    task = frames[0].json()["taskId"]
    assert [shown(frame.lines[-1], task=task) for frame in frames] == [
        'data: {"kind":"status-update","taskId":"<task>","status":{"state":"working"}}',
        'data: {"kind":"message","role":"agent","parts":[{"kind":"text","text":"Analyzing..."}]}',
        'data: {"kind":"status-update","taskId":"<task>","status":{"state":"completed"}}',
    ]
    assert all(len(frame.lines) == 2 and frame.id for frame in frames)
    assert words(call(literal, RPC, "tasks/get", {"id": task})["status"]) == "Analyzing..."


@pytest.mark.proves("003-14", "S-12-17")
def test_to_the_letter_all_an_agent_says_and_makes_is_a_message(literal: str) -> None:
    with streaming(literal, RPC, STREAM, said("say Busy", "write One ", "write two.", "data 3")) as stream:
        events = [frame.json() for frame in stream.rest()]
    assert [event["kind"] for event in events] == ["status-update", *["message"] * 4, "status-update"]
    assert [event["parts"] for event in events[1:-1]] == [
        [{"kind": "text", "text": "Busy"}],
        [{"kind": "text", "text": "One "}],
        [{"kind": "text", "text": "two."}],
        [{"kind": "data", "data": {"number": 3}}],
    ]


@pytest.mark.proves("003-14")
def test_to_the_letter_a_stream_ends_with_what_failed_or_is_asked(literal: str) -> None:
    for step, named, told in (
        ("fail It broke", "failed", "It broke"),
        ("ask Which?", "input-required", "Which?"),
        ("auth Token?", "auth-required", "Token?"),
    ):
        with streaming(literal, RPC, STREAM, said(step)) as stream:
            last = stream.rest()[-1].json()
        assert (last["status"]["state"], words(last["status"])) == (named, told)
        assert list(last) == ["kind", "taskId", "status"]


@pytest.mark.proves("003-14", "003-30", "003-d10", "003-d11", "S-12-17")
def test_a_superset_delivers_each_piece_and_says_it_in_a_status_update(base: str) -> None:
    with streaming(base, RPC, STREAM, said("write One ", "say Busy", "write two."), id="req-001") as stream:
        frames = stream.rest()
    events = results(frames)
    for frame, event in zip(frames, events, strict=True):
        whole = frame.json()
        assert (whole["jsonrpc"], whole["id"]) == ("2.0", "req-001")
        assert {name: whole[name] for name in event} == event
    assert {event["kind"] for event in events} == {"status-update", "artifact-update"}
    assert sayings(events) == ["One ", "Busy", "two."]
    pieces = [event["artifact"]["parts"][0]["text"] for event in events if "artifact" in event]
    assert "".join(pieces) == "One two."
    assert [event["status"]["state"] for event in events if "status" in event][0::4] == ["working", "completed"]
    assert [event["final"] for event in events if "status" in event] == [False] * 4 + [True]
    task = call(base, RPC, "tasks/get", {"id": events[0]["taskId"]})
    assert words(task["status"]) == "One two."
    numbers = [int(frame.id.rpartition(".")[2]) for frame in frames if frame.id]
    assert numbers == sorted(set(numbers)) and frames[-1].id


@pytest.mark.proves("003-d18")
def test_plain_frames_are_official_responses_and_nothing_else(tmp_path: Path) -> None:
    options = ("--store", "memory://", "--set", f"frames={RPC}=plain")
    with (
        serving(AGENT, *options, logs=tmp_path / "server.log") as base,
        streaming(base, RPC, STREAM, said("write One ", "write two."), id=1) as stream,
    ):
        frames = [frame.json() for frame in stream.rest()]
    assert all(set(frame) == {"jsonrpc", "id", "result"} for frame in frames)
    assert [frame["result"]["kind"] for frame in frames] == ["status-update", *["artifact-update"] * 3, "status-update"]
    assert not sayings([frame["result"] for frame in frames]) and frames[-1]["result"]["final"] is True


@pytest.mark.proves("003-d10")
def test_an_agent_that_answers_with_a_message_says_it_in_the_last_status(base: str, literal: str) -> None:
    for where in (base, literal):
        with streaming(where, RPC, STREAM, said("answer This.")) as stream:
            events = [frame.json() for frame in stream.rest()]
        assert {event["kind"] for event in events} == {"status-update"}
        assert (events[-1]["status"]["state"], words(events[-1]["status"])) == ("completed", "This.")


# --- following ------------------------------------------------------------------------------------------------


@pytest.mark.proves("003-d12")
@pytest.mark.parametrize(
    ("step", "named", "told"),
    [
        ("write Done.", "completed", "Done."),
        ("fail It broke", "failed", "It broke"),
        ("ask Which?", "input-required", "Which?"),
        (f"write {LARGE}", "completed", LARGE),
    ],
    ids=["done", "failed", "asking", "large"],
)
def test_who_follows_a_task_at_rest_gets_one_final_status(base: str, step: str, named: str, told: str) -> None:
    task = send(base, step)
    with streaming(base, RPC, "tasks/resubscribe", {"id": task["id"]}) as stream:
        (event,) = results(stream.rest())
    assert (event["kind"], event["taskId"], event["final"]) == ("status-update", task["id"], True)
    assert (event["status"]["state"], words(event["status"])) == (named, told)


@pytest.mark.proves("003-d12")
def test_who_follows_a_task_at_work_gets_what_came_before_and_what_everybody_gets(base: str) -> None:
    with streaming(base, RPC, STREAM, said("write One ", "wait both", "write two.")) as first:
        id = results(first.until(delivers))[0]["taskId"]
        said_again = first.next()
        assert said_again is not None
        with streaming(base, RPC, "tasks/resubscribe", {"id": id}) as second:
            now, *before = results(second.until(lambda frame: bool(frame.id)))
            assert (now["status"]["state"], now["final"]) == ("working", False)
            assert before[0]["artifact"]["parts"] == before[1]["status"]["message"]["parts"]
            send(base, "open both")
            assert results(first.rest()) == results(second.rest())


@pytest.mark.proves("003-d13")
def test_who_hangs_up_stops_nothing_and_continues_where_it_was(base: str) -> None:
    with streaming(base, RPC, STREAM, said("write One ", "wait cut", "write two.")) as stream:
        id = results(stream.until(lambda frame: frame.id.endswith(".3")))[0]["taskId"]
        cursor = stream.cursor
    send(base, "open cut")
    with streaming(base, RPC, "tasks/resubscribe", {"id": id}, headers={"Last-Event-ID": cursor}) as stream:
        rest = results(stream.rest())
    assert sayings(rest) == ["two."] and rest[-1]["final"] is True
    assert words(call(base, RPC, "tasks/get", {"id": id})["status"]) == "One two."


@pytest.mark.proves("003-d13", "S-2-6")
def test_between_two_frames_of_one_piece_there_is_no_cursor(base: str) -> None:
    with streaming(base, RPC, STREAM, said("write One ", "wait torn", "write two.")) as stream:
        seen = stream.until(delivers)
        assert seen[-1].id == "" and stream.cursor == seen[0].id
        id = results(seen)[0]["taskId"]
        cursor = stream.cursor
    send(base, "open torn")
    with streaming(base, RPC, "tasks/resubscribe", {"id": id}, headers={"Last-Event-ID": cursor}) as stream:
        assert sayings(results(stream.rest())) == ["One ", "two."]


# --- questions ------------------------------------------------------------------------------------------------


@pytest.mark.proves("003-10", "003-29", "003-d14")
def test_a_question_ends_the_stream_and_is_answered_by_its_task(base: str) -> None:
    with streaming(base, RPC, STREAM, said("write So. ", "ask Which one?", "write Done.")) as stream:
        last = results(stream.rest())[-1]
    assert (last["status"]["state"], last["final"], words(last["status"])) == ("input-required", True, "Which one?")
    done = send(base, "this", taskId=last["taskId"], contextId=last["contextId"])
    assert (done["id"], state(done), words(done["status"])) == (last["taskId"], "completed", "So. Heard 'this'. Done.")


@pytest.mark.proves("003-29", "003-d14")
def test_the_answer_may_be_streamed_and_the_task_works_again(base: str) -> None:
    asking = send(base, "ask One?", "ask Two?")
    with streaming(base, RPC, STREAM, said("first", taskId=asking["id"])) as stream:
        events = results(stream.rest())
    assert events[0]["status"]["state"] == "working"
    assert (words(events[-1]["status"]), events[-1]["final"]) == ("Two?", True)
    assert words(send(base, "second", taskId=asking["id"])["status"]) == "Heard 'first'. Heard 'second'. "


@pytest.mark.proves("003-d14")
def test_a_wrong_token_is_asked_for_again(base: str) -> None:
    asking = send(base, "auth Your token?")
    wrong = send(base, "nonsense", taskId=asking["id"])
    assert (wrong["id"], state(wrong), words(wrong["status"])) == (asking["id"], "auth-required", "Wrong. Your token?")
    assert state(send(base, "open-sesame", taskId=asking["id"])) == "completed"


@pytest.mark.proves("003-d15")
def test_the_context_alone_begins_another_task(base: str) -> None:
    asking = send(base, "ask Which one?")
    other = send(base, "hello", contextId=asking["contextId"])
    assert other["id"] != asking["id"] and other["contextId"] == asking["contextId"]
    assert state(call(base, RPC, "tasks/get", {"id": asking["id"]})) == "input-required"


@pytest.mark.proves("003-d16")
def test_questions_outlive_the_process_and_what_worked_has_failed(tmp_path: Path) -> None:
    victim = Victim(tmp_path, agent=AGENT)
    victim.start()
    try:
        finished = send(victim.base, "write Kept.")
        asking = send(victim.base, "write So. ", "ask Which one?")
        locked = send(victim.base, "auth Your token?")
        with streaming(victim.base, RPC, STREAM, said("write Half", "wait forever")) as stream:
            working = results(stream.until(lambda frame: frame.id.endswith(".3")))[0]["taskId"]
            cursor = stream.cursor
            victim.kill()
        victim.start()
        lost = call(victim.base, RPC, "tasks/get", {"id": working})
        for task in (finished, asking, locked):
            assert call(victim.base, RPC, "tasks/get", {"id": task["id"]}) == task
        again = {"Last-Event-ID": cursor}
        with streaming(victim.base, RPC, "tasks/resubscribe", {"id": working}, headers=again) as stream:
            (last,) = results(stream.rest())
        done = [send(victim.base, said, taskId=task["id"]) for said, task in (("x", asking), ("open-sesame", locked))]
    finally:
        victim.stop()
    assert (state(lost), words(lost["status"])) == ("failed", RESTARTED)
    assert (last["status"]["state"], last["final"]) == ("failed", True)
    assert [words(task["status"]) for task in done] == ["So. Heard 'x'. ", "Unlocked. "]
