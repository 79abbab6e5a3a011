"""Clients of protocol 0.1 (typed parts, sessions, tasks they name themselves) and 0.2 (what 0.3 speaks, elsewhere)."""

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.chaos.victim import Victim
from tests.seeds.calling import JSON, Frame, ask, call, envelope, refusal, shown, streaming
from tests.serving import serving

AGENT = "tests/seeds/agents/simple.py"
RPC = "/"
SUBSCRIBE = "tasks/sendSubscribe"
RESTARTED = "interrupted by server restart"


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("t01")
    with serving(AGENT, "--store", f"{folder}/tasks.db", logs=folder / "server.log") as base:
        yield base


def said(*steps: str, id: str = "", **beside: Any) -> JSON:
    """The parameters of a send: the task is named by its client."""
    message = {"role": "user", "parts": [{"type": "text", "text": "\n".join(steps)}]}
    return {"id": id or str(uuid.uuid4()), "message": message, **beside}


def send(base: str, *steps: str, **beside: Any) -> JSON:
    return call(base, RPC, "tasks/send", said(*steps, **beside))


def state(task: JSON) -> str:
    return task["status"]["state"]


def words(status: JSON) -> str:
    return "".join(part["text"] for part in status["message"]["parts"])


def text(task: JSON) -> str:
    return "".join(part.get("text", "") for artifact in task["artifacts"] for part in artifact["parts"])


def items(frames: list[Frame]) -> list[JSON]:
    return [frame.json()["result"] for frame in frames]


def chunks(events: list[JSON]) -> str:
    return "".join(part.get("text", "") for each in events if "artifact" in each for part in each["artifact"]["parts"])


# --- one call, one answer -------------------------------------------------------------------------------------


@pytest.mark.proves("01-1", "01-2", "01-4", "01-8")
def test_a_send_makes_a_task_of_the_client_s_id_in_its_session_and_waits_for_it(base: str) -> None:
    answer = ask(base, "POST", RPC, envelope("tasks/send", said("hello", id="client-task-9", sessionId="s-3"), id=7))
    task = answer.json()["result"]
    artifact = task["artifacts"][0]["metadata"]["artifactId"]
    assert shown(answer.body, artifact=artifact) == (
        '{"jsonrpc":"2.0","id":7,"result":{"id":"client-task-9","sessionId":"s-3",'
        '"status":{"state":"completed","timestamp":"<time>"},'
        '"artifacts":[{"index":0,"parts":[{"type":"text","text":"hello"}],"metadata":{"artifactId":"<artifact>"}}]}}'
    )
    assert answer.headers["a2a-version"] == "0.1"
    assert call(base, RPC, "tasks/get", {"id": "client-task-9"}) == task


@pytest.mark.proves("01-1", "01-3", "S-6-4")
def test_a_type_or_a_session_is_enough_to_be_understood_and_what_is_missing_is_made(base: str) -> None:
    typed = call(base, RPC, "tasks/send", {"message": {"role": "user", "parts": [{"type": "text", "text": "x"}]}})
    assert typed["id"] and typed["sessionId"]
    session = {"message": {"role": "user", "parts": [{"text": "x"}]}, "sessionId": "only"}
    assert call(base, RPC, "tasks/send", session)["sessionId"] == "only"
    nothing = dict.fromkeys(("sessionId", "metadata", "pushNotification", "historyLength", "acceptedOutputModes"))
    assert state(send(base, "hello", **nothing)) == "completed"


@pytest.mark.proves("01-5", "01-6")
def test_parts_have_types_and_artifacts_a_place(base: str) -> None:
    task = send(base, "write Words.", "data 3", "file a.txt", "link https://x.example/y.png")
    assert [(each["index"], each.get("name"), each["parts"][0]) for each in task["artifacts"]] == [
        (0, None, {"type": "text", "text": "Words."}),
        (1, "data", {"type": "data", "data": {"number": 3}}),
        (2, "file", {"type": "file", "file": {"bytes": "AP9hLnR4dA==", "name": "a.txt", "mimeType": "text/plain"}}),
        (3, "link", {"type": "file", "file": {"uri": "https://x.example/y.png", "mimeType": "image/png"}}),
    ]
    parts = [
        {"type": "text", "text": "given"},
        {"type": "data", "data": [1, {"a": None}]},
        {"type": "file", "file": {"bytes": "AP8=", "name": "a.bin", "mimeType": "application/octet-stream"}},
    ]
    message = {"role": "user", "parts": parts, "metadata": {"k": 1}}
    task = call(base, RPC, "tasks/send", {"id": "parts", "message": message, "historyLength": 1})
    assert "[[1, {'a': None}], b'\\x00\\xff']" in text(task)
    assert task["history"] == [message]


@pytest.mark.proves("01-7")
def test_history_is_shown_to_who_asks_for_it_and_only_as_much(base: str) -> None:
    asking = send(base, "ask Which one?")
    for unwanted in ({}, {"historyLength": 0}, {"historyLength": None}):
        assert "history" not in call(base, RPC, "tasks/get", {"id": asking["id"]} | unwanted)
    done = send(base, "this", id=asking["id"], historyLength=2)
    assert [each["role"] for each in done["history"]] == ["agent", "user"]
    whole = call(base, RPC, "tasks/get", {"id": asking["id"], "historyLength": 10})
    assert [words({"message": each}) for each in whole["history"]] == ["ask Which one?", "Which one?", "this"]
    assert refusal(base, RPC, "tasks/send", said("x", historyLength=-1))["code"] == -32602


@pytest.mark.proves("01-9")
@pytest.mark.parametrize(
    ("step", "named", "later"),
    [
        ("write Done.", "completed", None),
        ("fail It broke", "failed", None),
        ("ask Which one?", "input-required", None),
        ("reject Not here", "failed", "rejected"),
        ("auth Your token?", "input-required", "auth-required"),
    ],
)
def test_states_that_came_later_are_told_by_the_nearest_word(
    base: str, step: str, named: str, later: str | None
) -> None:
    task = send(base, step)
    assert state(task) == named
    assert task["status"].get("message", {}).get("metadata") == (later and {"state": later})


@pytest.mark.proves("01-13")
def test_a_reply_without_a_task_is_a_completed_task(tmp_path: Path) -> None:
    with serving(f"{AGENT}:blunt", "--store", "memory://", logs=tmp_path / "server.log") as base:
        task = send(base, "hi", sessionId="s-3")
        assert (state(task), words(task["status"]), task["sessionId"]) == ("completed", "You said hi.", "s-3")
        with streaming(base, RPC, SUBSCRIBE, said("hi")) as stream:
            (event,) = items(stream.rest())
    assert (state(event), words(event["status"]), event["final"]) == ("completed", "You said hi.", True)


# --- streams --------------------------------------------------------------------------------------------------


@pytest.mark.proves("01-10", "S-2-8")
def test_a_stream_has_no_task_but_its_statuses_and_artifacts(base: str) -> None:
    script = said("write One ", "say Busy", "write two.", "data 3", id="streamed")
    with streaming(base, RPC, SUBSCRIBE, script, id="call-1") as stream:
        frames = stream.rest()
    assert all(frame.json()["id"] == "call-1" and frame.id for frame in frames)
    events = items(frames)
    assert {event["id"] for event in events} == {"streamed"}
    updates = [event for event in events if "status" in event]
    told = [words(each["status"]) if "message" in each["status"] else state(each) for each in updates]
    assert told == ["working", "Busy", "completed"]
    assert [each["final"] for each in updates] == [False, False, True]
    pieces = [event["artifact"] for event in events if "artifact" in event]
    assert [(each["index"], each["append"], each["lastChunk"]) for each in pieces] == [
        (0, False, False),
        (0, True, False),
        (1, False, True),
        (0, True, True),
    ]
    assert chunks(events) == text(call(base, RPC, "tasks/get", {"id": "streamed"})) == "One two."


@pytest.mark.proves("01-10")
@pytest.mark.parametrize("step", ["fail It broke", "reject Not here", "ask Which one?", "auth Your token?"])
def test_a_stream_ends_with_a_final_status_also_at_a_question(base: str, step: str) -> None:
    with streaming(base, RPC, SUBSCRIBE, said(step)) as stream:
        last = items(stream.rest())[-1]
    assert last["final"] is True and words(last["status"]) == step.partition(" ")[2]


@pytest.mark.proves("01-11")
def test_who_joins_later_gets_the_status_what_was_made_and_then_what_everybody_gets(base: str) -> None:
    with streaming(base, RPC, SUBSCRIBE, said("write One ", "wait t01", "write two.", id="joined")) as first:
        first.until(lambda frame: "artifact" in frame.json()["result"])
        with streaming(base, RPC, "tasks/resubscribe", {"id": "joined"}) as second:
            now, made = second.next(), second.next()
            assert now is not None and made is not None
            assert (state(now.json()["result"]), now.json()["result"]["final"]) == ("working", False)
            assert made.json()["result"]["artifact"]["parts"] == [{"type": "text", "text": "One "}]
            send(base, "open t01")
            assert items(first.rest()) == items(second.rest())


@pytest.mark.proves("01-11")
def test_who_hangs_up_stops_nothing_and_continues_where_it_was(base: str) -> None:
    with streaming(base, RPC, SUBSCRIBE, said("write One ", "wait cut01", "write two.", id="cut")) as stream:
        stream.until(lambda frame: "artifact" in frame.json()["result"])
        cursor = stream.cursor
    send(base, "open cut01")
    with streaming(base, RPC, "tasks/resubscribe", {"id": "cut"}, headers={"Last-Event-ID": cursor}) as stream:
        assert chunks(items(stream.rest())) == "two."


# --- questions ------------------------------------------------------------------------------------------------


@pytest.mark.proves("01-12")
def test_a_question_is_answered_under_the_id_of_its_task(base: str) -> None:
    for number, method in enumerate(("tasks/send", SUBSCRIBE)):
        asking = send(base, "ask Which one?", "write Done.", id=f"asked-{number}", sessionId="s")
        answer = said("this", id=asking["id"], sessionId="s")
        if method == SUBSCRIBE:
            with streaming(base, RPC, method, answer) as stream:
                assert state(items(stream.rest())[-1]) == "completed"
        else:
            assert state(call(base, RPC, method, answer)) == "completed"
        assert text(call(base, RPC, "tasks/get", {"id": asking["id"]})) == "Heard 'this'. Done."
    assert send(base, "hello", sessionId="s")["id"] not in ("asked-0", "asked-1")


@pytest.mark.proves("01-12", "01-16")
def test_questions_and_the_client_s_ids_outlive_the_process(tmp_path: Path) -> None:
    victim = Victim(tmp_path, agent=AGENT)
    victim.start()
    try:
        asking = send(victim.base, "ask Which one?", id="asked")
        locked = send(victim.base, "auth Your token?", id="locked")
        with streaming(victim.base, RPC, SUBSCRIBE, said("write Half", "wait forever", id="worked")) as stream:
            stream.until(lambda frame: "artifact" in frame.json()["result"])
            victim.kill()
        victim.start()
        assert call(victim.base, RPC, "tasks/get", {"id": "asked"}) == asking
        assert call(victim.base, RPC, "tasks/get", {"id": "locked"}) == locked
        lost = call(victim.base, RPC, "tasks/get", {"id": "worked"})
        done = [send(victim.base, "x", id="asked"), send(victim.base, "open-sesame", id="locked")]
    finally:
        victim.stop()
    assert (state(lost), words(lost["status"])) == ("failed", RESTARTED)
    assert [text(task) for task in done] == ["Heard 'x'. ", "Unlocked. "]


# --- errors and versions --------------------------------------------------------------------------------------


@pytest.mark.proves("01-14")
def test_a_finished_task_takes_nothing_more_and_says_so_in_its_own_numbers(base: str) -> None:
    task = send(base, "hello")
    assert refusal(base, RPC, "tasks/send", said("more", id=task["id"]))["code"] == -32009
    assert refusal(base, RPC, SUBSCRIBE, said("more", id=task["id"]))["code"] == -32009
    assert refusal(base, RPC, "tasks/cancel", {"id": task["id"]})["code"] == -32002
    with streaming(base, RPC, "tasks/resubscribe", {"id": task["id"]}) as stream:
        (frame,) = stream.rest()
    assert set(frame.json()["error"]) == {"code", "message"} and frame.json()["error"]["code"] == -32009
    assert call(base, RPC, "tasks/get", {"id": task["id"]}) == task


@pytest.mark.proves("01-14")
def test_a_running_task_is_cancelled_and_an_unknown_one_not_found(base: str) -> None:
    with streaming(base, RPC, SUBSCRIBE, said("wait never", id="running")) as stream:
        stream.next()
        assert state(call(base, RPC, "tasks/cancel", {"id": "running"})) == "canceled"
        assert state(items(stream.rest())[-1]) == "canceled"
    for method in ("tasks/get", "tasks/cancel"):
        assert refusal(base, RPC, method, {"id": "nobody's"})["code"] == -32001


@pytest.mark.proves("01-14")
def test_what_has_no_number_is_told_by_the_general_one(tmp_path: Path) -> None:
    with serving(f"{AGENT}:particular", "--store", "memory://", logs=tmp_path / "server.log") as base:
        assert refusal(base, RPC, SUBSCRIBE, said("hi"))["code"] == -32006
        assert refusal(base, RPC, "tasks/send", said("hi"))["code"] == -32603


@pytest.mark.proves("01-15")
@pytest.mark.parametrize("version", ["0.1", "0.2", "0.3", "1.0", "2.0"])
def test_its_names_are_spoken_in_versions_before_1_0(base: str, version: str) -> None:
    headers = {"A2A-Version": version}
    if version.startswith("0"):
        assert state(call(base, RPC, "tasks/send", said("hi"), headers=headers)) == "completed"
    else:
        error = refusal(base, RPC, "tasks/send", said("hi"), headers=headers)
        assert error["code"] == -32603 and "0.1" in error["message"]


@pytest.mark.proves("01-17", "S-6-5")
def test_the_names_shared_with_others_are_answered_in_the_words_of_the_task_s_maker(base: str) -> None:
    message = {"kind": "message", "messageId": "m", "role": "user", "parts": [{"kind": "text", "text": "ask Which?"}]}
    theirs = call(base, RPC, "message/send", {"message": message})
    own = send(base, "ask Which?")
    assert "sessionId" in call(base, RPC, "tasks/get", {"id": own["id"]})
    assert "contextId" in call(base, RPC, "tasks/get", {"id": theirs["id"]})
    by_other = call(base, "/a2a/jsonrpc", "tasks/get", {"taskId": own["id"]})
    assert (by_other["kind"], by_other["contextId"], state(by_other)) == ("task", own["sessionId"], "input-required")
    answered = call(base, RPC, "message/send", {"message": {**message, "taskId": own["id"]}})
    assert (answered["kind"], answered["id"], state(answered)) == ("task", own["id"], "completed")


# --- the card, and 0.2 ----------------------------------------------------------------------------------------


@pytest.mark.proves("01-18", "02-2")
def test_the_card_is_at_the_old_path_with_the_old_members(base: str) -> None:
    card = ask(base, "GET", "/.well-known/agent.json").json()
    assert (card["name"], card["url"], card["version"]) == ("Simple agent", f"{base}/", "1.0")
    assert {"streaming", "pushNotifications"} <= set(card["capabilities"])
    assert [(skill["id"], skill["name"]) for skill in card["skills"]] == [("play", "Play"), ("answer", "Answer")]
    assert ask(base, "GET", "/.well-known/agent-card.json").json() == card


@pytest.mark.proves("02-3")
def test_the_extended_card_of_0_2_is_a_page_for_who_may_see_it(tmp_path: Path) -> None:
    page, options = "/agent/authenticatedExtendedCard", ("--store", "memory://")
    with serving(f"{AGENT}:secretive", *options, logs=tmp_path / "closed.log") as base:
        answer = ask(base, "GET", page)
        assert answer.status == 401 and answer.headers["www-authenticate"].startswith("Bearer")
    with serving(
        f"{AGENT}:secretive", *options, "--set", "open_extended_card=true", logs=tmp_path / "open.log"
    ) as base:
        card = ask(base, "GET", page).json()
        assert card == call(base, RPC, "agent/getAuthenticatedExtendedCard", {})
        assert [skill["id"] for skill in card["skills"]] == ["known", "hidden"] and card["url"] == f"{base}/"
        assert ask(base, "POST", page, b"{}").status == 405


@pytest.mark.proves("02-1")
def test_0_2_is_answered_by_0_3_under_the_same_names(base: str) -> None:
    message = {"kind": "message", "messageId": "m", "role": "user", "parts": [{"kind": "text", "text": "hello"}]}
    headers = {"A2A-Version": "0.2.6"}
    task = call(base, RPC, "message/send", {"message": message}, headers=headers)
    assert (task["kind"], state(task)) == ("task", "completed")
    assert call(base, RPC, "tasks/get", {"id": task["id"]}, headers=headers) == task
    with streaming(base, RPC, "message/stream", {"message": message}, headers=headers) as stream:
        first, *_, last = items(stream.rest())
    assert first["kind"] == "task" and last["final"] is True
