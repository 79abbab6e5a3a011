"""protoAgent's streams, its questions, and what a restart leaves of either."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.chaos.victim import Victim
from tests.seeds.calling import JSON, Frame, ask, call, streaming
from tests.seeds.test_proto import AGENT, NOTHING, RPC, said, send, text
from tests.serving import serving

KINDS = {"task", "status-update", "artifact-update"}
RESTARTED = "interrupted by server restart"


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("proto-streams")
    options = ("--profile", "proto", "--store", f"{folder}/tasks.db")
    with serving(AGENT, *options, logs=folder / "server.log") as base:
        yield base


@pytest.fixture(scope="module")
def literal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("proto-literal")
    options = ("--profile", "proto", "--store", "memory://", "--set", "frames=literal")
    with serving(AGENT, *options, logs=folder / "server.log") as base:
        yield base


@pytest.fixture
def victim(tmp_path: Path) -> Iterator[Victim]:
    """A server to be killed. It has started."""
    victim = Victim(tmp_path, "--profile", "proto", agent=AGENT)
    victim.start()
    yield victim
    victim.stop()


def item(frame: Frame | None) -> JSON:
    assert frame is not None, "the stream has ended"
    return frame.json()["result"]


def items(frames: list[Frame]) -> list[JSON]:
    return [item(frame) for frame in frames]


def words(status: JSON) -> str:
    return "".join(part["text"] for part in status["message"]["parts"])


def chunks(events: list[JSON]) -> str:
    return "".join(part.get("text", "") for each in events if "artifact" in each for part in each["artifact"]["parts"])


def begun(frame: Frame) -> bool:
    return "artifact" in item(frame)


# --- what a stream says ---------------------------------------------------------------------------------------


@pytest.mark.proves("004-10", "004-11", "004-12", "004-13", "004-14", "004-16", "004-c3", "S-2-8")
@pytest.mark.parametrize("style", ["base", "literal"])
def test_a_stream_begins_with_the_task_and_every_frame_says_its_kind(
    style: str, request: pytest.FixtureRequest
) -> None:
    base: str = request.getfixturevalue(style)
    script = said("write One ", "tool fetch a.txt = 3 lines", "write two.", "spend 5 6")
    with streaming(base, RPC, "message/stream", script, id="mine") as stream:
        frames = stream.rest()
    events = items(frames)
    for frame, event in zip(frames, events, strict=True):
        whole = frame.json()
        assert (whole["jsonrpc"], whole["id"]) == ("2.0", "mine")
        assert event["kind"] in KINDS and len(frame.data.splitlines()) == 1
        if style == "base":
            assert whole["kind"] == event["kind"]  # a superset: read without its envelope, it says the same
        else:
            assert set(whole) == {"jsonrpc", "id", "result"}
    first, last = events[0], events[-1]
    assert first["kind"] == "task" and first["status"]["state"] == "submitted" and first["artifacts"] == []
    assert first["data"]["usage"] == NOTHING
    updates = [event for event in events if event["kind"] == "status-update"]
    told = [words(each["status"]) if "message" in each["status"] else each["status"]["state"] for each in updates]
    assert told == ["working", "🔧 fetch: a.txt", "✅ fetch → 3 lines", "completed"]
    assert chunks(events) == "One two."
    assert [each["final"] for each in updates] == [False, False, False, True] and last is updates[-1]
    assert {each["taskId"] for each in events[1:]} == {first["id"]}


# --- taking a stream up again ---------------------------------------------------------------------------------


@pytest.mark.proves("004-23", "004-c4")
def test_who_hangs_up_and_resubscribes_gets_the_rest_and_loses_nothing(base: str) -> None:
    script = said(
        "write One ", "tool a b = c", "write two ", "wait back", "write three ", "tool d e = f", "write four."
    )
    with streaming(base, RPC, "message/stream", script) as stream:
        seen = items(stream.until(lambda frame: begun(frame) and "two " in frame.data))
    id = seen[0]["id"]
    with streaming(base, RPC, "tasks/resubscribe", {"id": id}) as stream:
        first = item(stream.next())
        assert (first["kind"], first["id"], first["status"]["state"]) == ("task", id, "working")
        assert text(first) == chunks(seen) == "One two "
        send(base, "open back")
        rest = items(stream.rest())
    assert chunks(rest) == "three four."
    assert [words(each["status"]) for each in rest if "message" in each.get("status", {})] == ["🔧 d: e", "✅ d → f"]
    assert (rest[-1]["status"]["state"], rest[-1]["final"]) == ("completed", True)
    assert {each["kind"] for each in rest} <= KINDS
    assert text(call(base, RPC, "tasks/get", {"id": id})) == "One two three four."


@pytest.mark.proves("004-23", "004-c4")
def test_who_says_what_came_last_gets_exactly_the_remaining_frames(base: str) -> None:
    script = said("write a", "write b", "wait cut", *(f"write {n} " for n in range(50)))
    with streaming(base, RPC, "message/stream", script) as stream:
        seen = stream.until(begun)
    send(base, "open cut")
    id = item(seen[0])["id"]
    with streaming(base, RPC, "tasks/resubscribe", {"id": id}, headers={"Last-Event-ID": seen[-1].id}) as stream:
        rest = stream.rest()
    assert chunks(items(seen)) + chunks(items(rest)) == "ab" + "".join(f"{n} " for n in range(50))
    assert all(frame.id != seen[-1].id for frame in rest) and "task" not in {each["kind"] for each in items(rest)}
    numbers = [int(frame.id.rpartition(".")[2]) for frame in (*seen, *rest)]
    assert numbers == sorted(set(numbers))


@pytest.mark.proves("004-23")
def test_two_followers_see_the_same_and_the_task_works_on_without_any(base: str) -> None:
    with streaming(base, RPC, "message/stream", said("write a", "wait both", "write b")) as first:
        id = item(first.until(begun)[0])["id"]
        with streaming(base, RPC, "tasks/resubscribe", {"id": id}) as second:
            assert text(item(second.next())) == "a"
            send(base, "open both")
            assert items(first.rest()) == items(second.rest())
    with streaming(base, RPC, "message/stream", said("write c", "wait alone", "write d")) as stream:
        id = item(stream.until(begun)[0])["id"]
    send(base, "open alone")
    with streaming(base, RPC, "tasks/resubscribe", {"id": id}) as stream:
        stream.rest()
    assert text(call(base, RPC, "tasks/get", {"id": id})) == "cd"


@pytest.mark.proves("004-19", "004-d3", "S-2-13")
def test_resubscribing_to_a_finished_task_answers_its_final_state_and_artifacts_once(base: str) -> None:
    task = send(base, "write Done ", "write and dusted.", "spend 1 1")
    with streaming(base, RPC, "tasks/resubscribe", {"id": task["id"]}) as stream:
        frames = stream.rest()
    assert items(frames) == [task]
    assert frames[0].json()["kind"] == "task"


@pytest.mark.proves("004-19", "004-23", "004-c4", "S-2-4")
def test_what_is_too_large_for_the_first_frame_is_not_lost_with_it(base: str) -> None:
    large = "x" * 1_200_000
    with streaming(base, RPC, "message/stream", said(f"write {large}", "wait large", "write end.")) as stream:
        id = item(stream.until(begun)[0])["id"]
    with streaming(base, RPC, "tasks/resubscribe", {"id": id}) as stream:
        first = item(stream.next())
        assert first["artifacts"] == [], "they come behind it"
        cursor = stream.cursor
    send(base, "open large")
    with streaming(base, RPC, "tasks/resubscribe", {"id": id}, headers={"Last-Event-ID": cursor}) as stream:
        rest = stream.rest()
    assert chunks(items(rest)) == large + "end." and item(rest[-1])["final"] is True
    numbers = [int(id.rpartition(".")[2]) for id in (cursor, *(frame.id for frame in rest))]
    assert numbers == sorted(set(numbers))
    with streaming(base, RPC, "tasks/resubscribe", {"id": id}) as stream:
        assert [text(task) for task in items(stream.rest())] == [large + "end."]


# --- questions ------------------------------------------------------------------------------------------------


@pytest.mark.proves("004-15", "004-24", "004-25", "004-27", "004-c5")
def test_a_question_closes_the_stream_and_the_answer_by_task_goes_on_where_it_paused(base: str) -> None:
    with streaming(
        base, RPC, "message/stream", said("write Before. ", "ask_human Which one?", "write After.")
    ) as stream:
        events = items(stream.rest())
    last = events[-1]
    assert (last["kind"], last["status"]["state"], last["final"]) == ("status-update", "input-required", True)
    assert words(last["status"]) == "Which one?"
    parked = call(base, RPC, "tasks/get", {"id": last["taskId"]})
    assert parked["status"]["state"] == "input-required" and words(parked["status"]) == "Which one?"
    done = send(base, "the red one", taskId=last["taskId"], contextId=last["contextId"])
    assert (done["id"], done["status"]["state"]) == (last["taskId"], "completed")
    assert text(done) == "Before. Heard 'the red one'. After."


@pytest.mark.proves("004-28", "004-29")
def test_the_answer_may_be_streamed_and_may_lead_to_another_question(base: str) -> None:
    parked = send(base, "ask_human First?", "ask_human Second?")
    answer = said("one", taskId=parked["id"], contextId=parked["contextId"])
    with streaming(base, RPC, "message/stream", answer) as stream:
        events = items(stream.rest())
    assert (events[0]["kind"], events[0]["id"]) == ("task", parked["id"])
    assert (events[-1]["status"]["state"], events[-1]["final"]) == ("input-required", True)
    assert words(events[-1]["status"]) == "Second?"
    with streaming(base, RPC, "message/stream", said("two", taskId=parked["id"])) as stream:
        events = items(stream.rest())
    assert (events[-1]["status"]["state"], events[-1]["final"]) == ("completed", True)
    assert text(call(base, RPC, "tasks/get", {"id": parked["id"]})) == "Heard 'one'. Heard 'two'. "


@pytest.mark.proves("004-31")
def test_the_context_alone_answers_nothing_and_leaves_the_question_open(base: str) -> None:
    parked = send(base, "ask_human Which?")
    other = send(base, "hello", contextId=parked["contextId"])
    assert other["id"] != parked["id"] and text(other) == "hello"
    assert call(base, RPC, "tasks/get", {"id": parked["id"]})["status"]["state"] == "input-required"


@pytest.mark.proves("004-27")
def test_a_resubscriber_sees_what_the_answer_brings(base: str) -> None:
    parked = send(base, "ask_human Which?")
    with streaming(base, RPC, "tasks/resubscribe", {"id": parked["id"]}) as stream:
        assert item(stream.next())["status"]["state"] == "input-required"
        send(base, "this", taskId=parked["id"])
        events = items(stream.rest())
    assert chunks(events) == "Heard 'this'. " and events[-1]["final"] is True


# --- a restart in between -------------------------------------------------------------------------------------


@pytest.mark.proves("004-18", "004-19", "004-22", "004-25", "004-c5", "004-c6")
def test_a_killed_server_fails_what_worked_and_keeps_what_was_finished_or_parked(victim: Victim) -> None:
    base = victim.base
    finished = send(base, "write Kept.", "spend 7 8")
    failed = send(base, "fail Already.")
    parked = send(base, "write Before. ", "ask_human Which?", "write After.")
    with streaming(base, RPC, "message/stream", said("write Half", "wait forever")) as stream:
        working = item(stream.until(begun)[0])["id"]
        victim.kill()
    victim.start()
    lost = call(base, RPC, "tasks/get", {"id": working})
    assert (lost["status"]["state"], words(lost["status"])) == ("failed", RESTARTED)
    assert text(lost) == "Half" and lost["data"]["durationMs"] > 0
    for task in (finished, failed, parked):
        assert call(base, RPC, "tasks/get", {"id": task["id"]}) == task
        assert ask(base, "GET", f"/a2a/tasks/{task['id']}").json() == task
    for task in (lost, finished):
        with streaming(base, RPC, "tasks/resubscribe", {"id": task["id"]}) as stream:
            assert items(stream.rest()) == [task]
    done = send(base, "this one", taskId=parked["id"], contextId=parked["contextId"])
    assert (done["id"], done["status"]["state"]) == (parked["id"], "completed")
    assert text(done) == "Before. Heard 'this one'. After."


@pytest.mark.proves("004-18", "004-22")
def test_a_task_is_kept_from_its_creation_on(victim: Victim) -> None:
    with streaming(victim.base, RPC, "message/stream", said("wait forever")) as stream:
        id = item(stream.next())["id"]
        victim.kill()
    victim.start()
    task = call(victim.base, RPC, "tasks/get", {"id": id})
    assert (task["status"]["state"], words(task["status"])) == ("failed", RESTARTED)


@pytest.mark.proves("004-22", "004-d4")
def test_a_stream_broken_by_a_restart_is_taken_up_to_the_honest_end(victim: Victim) -> None:
    with streaming(victim.base, RPC, "message/stream", said("write Half", "wait forever")) as stream:
        id = item(stream.until(begun)[0])["id"]
        cursor = stream.cursor
        victim.kill()
    victim.start()
    again = {"Last-Event-ID": cursor}
    with streaming(victim.base, RPC, "tasks/resubscribe", {"id": id}, headers=again) as stream:
        (last,) = items(stream.rest())
    assert (last["status"]["state"], last["final"], words(last["status"])) == ("failed", True, RESTARTED)


@pytest.mark.proves("004-d4")
def test_a_question_survives_two_restarts_and_is_asked_and_answered_across_them(victim: Victim) -> None:
    parked = send(victim.base, "ask_human First?", "ask_human Second?")
    victim.kill()
    victim.start()
    with streaming(victim.base, RPC, "message/stream", said("one", taskId=parked["id"])) as stream:
        last = items(stream.rest())[-1]
    assert (words(last["status"]), last["final"]) == ("Second?", True)
    victim.kill()
    victim.start()
    done = send(victim.base, "two", taskId=parked["id"])
    assert text(done) == "Heard 'one'. Heard 'two'. "


@pytest.mark.proves("004-5")
def test_a_send_waits_for_as_long_as_the_task_takes(base: str) -> None:
    tasks: list[JSON] = []
    sending = threading.Thread(target=lambda: tasks.append(send(base, "wait long", "write Slow.", contextId="slow")))
    sending.start()
    while not call(base, "/", "ListTasks", {"contextId": "slow"}, headers={"A2A-Version": "1.0"})["tasks"]:
        pass
    assert not tasks
    send(base, "open long")
    sending.join(20)
    assert [text(task) for task in tasks] == ["Slow."]
