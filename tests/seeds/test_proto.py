"""protoAgent, as its clients see it: the card, single calls, what they cost, cancelling, HTTP+JSON aliases."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dragoman.app.settings import DAY, HOUR, Settings
from dragoman.app.sources import resolve
from tests.cli.process import dragoman
from tests.seeds.calling import JSON, Answer, ask, call, envelope, refusal, shown, streaming
from tests.serving import serving

AGENT = "tests/seeds/agents/proto.py"
RPC = "/a2a"
CARDS = ("/.well-known/agent-card.json", "/.well-known/agent.json")
HITL = "https://proto-labs.ai/a2a/ext/hitl-mode-v1"
NOTHING = {"input_tokens": 0, "output_tokens": 0, "total_tokens": 0}


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("proto")
    options = ("--profile", "proto", "--store", f"{folder}/tasks.db")
    with serving(AGENT, *options, logs=folder / "server.log") as base:
        yield base


def said(*steps: str, skill: str = "", **members: str) -> JSON:
    """The parameters of a send as the page spells them: no kind, no messageId."""
    message = {"role": "user", "parts": [{"text": "\n".join(steps)}], **members}
    return {"message": message} | ({"metadata": {"skill": skill}} if skill else {})


def send(base: str, *steps: str, **how: Any) -> JSON:
    return call(base, RPC, "message/send", said(*steps, **how))


def text(task: JSON) -> str:
    return "".join(part.get("text", "") for artifact in task["artifacts"] for part in artifact["parts"])


# --- the card -------------------------------------------------------------------------------------------------


@pytest.mark.proves("004-2", "004-3", "004-33", "004-60", "004-c1")
def test_both_card_paths_answer_the_same_bytes_and_advertise_questions(base: str) -> None:
    first, second = (ask(base, "GET", path) for path in CARDS)
    assert first.status == second.status == 200
    assert first.body == second.body
    assert first.headers["content-type"] == second.headers["content-type"] == "application/json"
    card = first.json()
    assert HITL in [extension["uri"] for extension in card["capabilities"]["extensions"]]
    assert card["url"] == f"{base}/a2a" and card["protocolVersion"] == "0.3.0"


@pytest.mark.proves("004-1")
def test_the_profile_listens_where_the_page_says(tmp_path: Path) -> None:
    assert resolve({"--profile": "proto"}).server.port == 7870
    with dragoman("serve", "--profile", "proto", cwd=tmp_path) as running:
        card = ask(running.up(), "GET", CARDS[0]).json()
    assert card["url"] == f"{running.base}/a2a"
    assert [extension["uri"] for extension in card["capabilities"]["extensions"]] == [HITL]


@pytest.mark.proves("004-36")
def test_the_extended_card_has_the_shape_of_the_public_one(base: str) -> None:
    card = call(base, RPC, "agent/getAuthenticatedExtendedCard", {})
    assert card == ask(base, "GET", CARDS[0]).json()


# --- one call, one answer -------------------------------------------------------------------------------------


@pytest.mark.proves("004-4", "004-5", "004-6", "004-8", "004-9", "004-c2")
def test_a_send_waits_for_the_end_and_tells_what_it_cost(base: str) -> None:
    answer = ask(
        base, "POST", RPC, envelope("message/send", said("write It says ", "write hello.", "spend 1200 340"), "x")
    )
    task = answer.json()["result"]
    page = (
        b'{"jsonrpc":"2.0","id":"x","result":{"kind":"task","id":"<task>","contextId":"<context>",'
        b'"status":{"state":"completed","timestamp":"<time>"},"artifacts":['
    )
    assert answer.status == 200
    assert shown(answer.body, task=task["id"], context=task["contextId"]).encode().startswith(page)
    assert text(task) == "It says hello."
    assert list(task)[:6] == ["kind", "id", "contextId", "status", "artifacts", "data"]
    assert task["data"]["usage"] == {"input_tokens": 1200, "output_tokens": 340, "total_tokens": 1540}
    assert task["data"]["durationMs"] > 0


@pytest.mark.proves("004-8", "004-9", "004-d1", "S-12-9")
def test_a_task_that_reported_nothing_says_so_in_zeros_wherever_it_is_shown(base: str) -> None:
    task = send(base, "write Free.")
    id = task["id"]
    with streaming(base, RPC, "tasks/resubscribe", {"id": id}) as stream:
        (frame,) = stream.rest()
    everywhere = [
        task,
        call(base, RPC, "tasks/get", {"id": id}),
        call(base, RPC, "tasks/cancel", {"id": id}),
        ask(base, "GET", f"/a2a/tasks/{id}").json(),
        *ask(base, "GET", f"/a2a/tasks?contextId={task['contextId']}").json(),
        frame.json()["result"],
    ]
    for shown_task in everywhere:
        assert shown_task["data"]["usage"] == NOTHING
        assert shown_task["data"]["durationMs"] == task["data"]["durationMs"] > 0


@pytest.mark.proves("004-8", "004-d1", "S-12-9")
@pytest.mark.parametrize(("step", "state"), [("fail No.", "failed"), ("ask_human Which?", "input-required")])
def test_tasks_that_are_not_completed_tell_their_cost_too(base: str, step: str, state: str) -> None:
    task = send(base, "spend 3 4", step)
    assert task["status"]["state"] == state
    assert task["data"]["usage"] == {"input_tokens": 3, "output_tokens": 4, "total_tokens": 7}
    assert task["data"]["durationMs"] > 0


@pytest.mark.proves("004-7")
def test_the_metadata_s_skill_is_the_one_that_runs(base: str) -> None:
    assert text(send(base, "#12", skill="summarize_pr")) == "Summary of #12"
    assert text(send(base, "#12")) == "#12"


@pytest.mark.proves("004-6")
def test_the_context_may_be_named_beside_the_message(base: str) -> None:
    task = call(base, RPC, "message/send", said("hi") | {"contextId": "ctx-7"})
    assert task["contextId"] == "ctx-7"


@pytest.mark.proves("004-17")
def test_a_task_is_read_while_it_works_and_after(base: str) -> None:
    with streaming(base, RPC, "message/stream", said("write One ", "wait read", "write two.")) as stream:
        id = stream.until(lambda frame: "artifact" in frame.json())[0].json()["result"]["id"]
        working = call(base, RPC, "tasks/get", {"id": id})
        assert working["status"]["state"] == "working" and text(working) == "One "
        assert working["data"]["usage"] == NOTHING
        send(base, "open read")
        stream.rest()
    done = call(base, RPC, "tasks/get", {"id": id})
    assert done["status"]["state"] == "completed" and text(done) == "One two."
    assert refusal(base, RPC, "tasks/get", {"id": "nobody"})["code"] == -32001


# --- cancelling -----------------------------------------------------------------------------------------------


@pytest.mark.proves("004-34", "004-35", "004-c7", "S-12-12")
def test_a_running_task_is_cancelled_and_cancelling_it_again_changes_nothing(base: str) -> None:
    with streaming(base, RPC, "message/stream", said("wait forever")) as stream:
        first = stream.next()
        assert first is not None
        id = first.json()["result"]["id"]
        cancelled = call(base, RPC, "tasks/cancel", {"id": id})
        last = stream.rest()[-1].json()["result"]
    assert (cancelled["id"], cancelled["status"]["state"]) == (id, "canceled")
    assert (last["status"]["state"], last["final"]) == ("canceled", True)
    assert call(base, RPC, "tasks/cancel", {"id": id}) == cancelled


@pytest.mark.proves("004-35")
@pytest.mark.parametrize("step", ["write Done.", "fail No."])
def test_cancelling_a_finished_task_answers_it_as_it_is(base: str, step: str) -> None:
    task = send(base, step)
    assert call(base, RPC, "tasks/cancel", {"id": task["id"]}) == task


# --- a fresh task ---------------------------------------------------------------------------------------------


@pytest.mark.proves("004-31", "004-32")
def test_a_message_to_a_finished_task_or_none_starts_a_fresh_one(base: str) -> None:
    first = send(base, "one")
    again = send(base, "two", taskId=first["id"])
    assert again["id"] != first["id"] and text(again) == "two"
    assert again["contextId"] == first["contextId"]
    assert call(base, RPC, "tasks/get", {"id": first["id"]}) == first
    assert send(base, "three", contextId=first["contextId"])["id"] not in (first["id"], again["id"])


@pytest.mark.proves("004-32")
def test_a_message_to_an_unknown_task_starts_a_fresh_one(base: str) -> None:
    task = send(base, "hi", taskId="nobody-s")
    assert task["id"] != "nobody-s" and task["status"]["state"] == "completed" and text(task) == "hi"


@pytest.mark.proves("004-32", "S-6-1")
def test_a_message_to_a_working_task_starts_a_fresh_one_and_leaves_it_working(base: str) -> None:
    with streaming(base, RPC, "message/stream", said("wait working", "write Mine.")) as stream:
        first = stream.next()
        assert first is not None
        id = first.json()["result"]["id"]
        other = send(base, "write Yours.", taskId=id)
        assert other["id"] != id and text(other) == "Yours."
        assert call(base, RPC, "tasks/get", {"id": id})["status"]["state"] == "working"
        send(base, "open working")
        stream.rest()
    task = call(base, RPC, "tasks/get", {"id": id})
    assert text(task) == "Mine."
    assert len([each for each in task["history"] if each["role"] == "user"]) == 1


@pytest.mark.proves("004-d5")
@pytest.mark.parametrize("step", ["ask_human Which?", "write Done."])
def test_a_task_and_a_context_that_do_not_belong_together_are_refused(base: str, step: str) -> None:
    task = send(base, step)
    error = refusal(base, RPC, "message/send", said("this", taskId=task["id"], contextId="another"))
    assert error["code"] == -32602 and "contextId" in error["message"]
    assert call(base, RPC, "tasks/get", {"id": task["id"]}) == task


# --- HTTP+JSON ------------------------------------------------------------------------------------------------


def error(answer: Answer) -> tuple[int, int]:
    return answer.status, answer.json()["code"]


@pytest.mark.proves("004-52", "004-53", "004-c12")
def test_a_task_is_read_bare_under_its_path(base: str) -> None:
    task = send(base, "write Read me.", "spend 1 2")
    answer = ask(base, "GET", f"/a2a/tasks/{task['id']}")
    assert answer.status == 200 and answer.headers["content-type"] == "application/json"
    assert answer.json() == call(base, RPC, "tasks/get", {"id": task["id"]}) == task
    assert error(ask(base, "GET", "/a2a/tasks/nobody")) == (404, -32001)


@pytest.mark.proves("004-53", "004-c12")
def test_messages_are_sent_and_tasks_cancelled_under_the_mount_too(base: str) -> None:
    body = json.dumps(said("ask_human Which?")).encode()
    sent = ask(base, "POST", "/a2a/message:send", body).json()
    assert (sent["kind"], sent["status"]["state"]) == ("task", "input-required")
    cancelled = ask(base, "POST", f"/a2a/tasks/{sent['id']}:cancel", b"{}")
    assert (cancelled.status, cancelled.json()["status"]["state"]) == (200, "canceled")
    assert ask(base, "POST", f"/a2a/tasks/{sent['id']}:cancel", b"{}").json() == cancelled.json()


# --- lifetimes ------------------------------------------------------------------------------------------------


@pytest.mark.proves("004-20", "004-21")
def test_finished_tasks_are_kept_for_a_day_and_in_memory_for_an_hour_unless_told() -> None:
    store = Settings().store
    assert (store.retention, store.cached_for, store.sweep) == (DAY, HOUR, 300)


def gone(base: str, id: str) -> None:
    """Wait until the task is forgotten; the server looks every second at most, so this ends."""
    while "result" in ask(base, "POST", RPC, envelope("tasks/get", {"id": id})).json():
        pass


@pytest.mark.proves("004-20", "004-d2", "S-5-18")
def test_a_task_forgotten_by_memory_is_answered_from_the_file(tmp_path: Path) -> None:
    soon = ("--set", "cached_for=0.1s", "--set", "sweep=0.1s")
    with (
        serving(AGENT, *soon, "--store", f"{tmp_path}/tasks.db", logs=tmp_path / "file.log") as kept,
        serving(AGENT, *soon, "--store", "memory://", logs=tmp_path / "memory.log") as forgetful,
    ):
        task = send(kept, "write Kept.", "spend 1 2")
        gone(forgetful, send(forgetful, "write Lost.")["id"])
        assert call(kept, RPC, "tasks/get", {"id": task["id"]}) == task
        with streaming(kept, RPC, "tasks/resubscribe", {"id": task["id"]}) as stream:
            assert [frame.json()["result"] for frame in stream.rest()] == [task]


@pytest.mark.proves("004-21", "004-d2", "D-5-6")
def test_a_finished_task_is_deleted_after_its_retention_and_a_parked_one_never(tmp_path: Path) -> None:
    soon = ("--set", "retention=0.1s", "--set", "sweep=0.1s")
    with serving(AGENT, *soon, "--store", f"{tmp_path}/tasks.db", logs=tmp_path / "server.log") as base:
        parked = send(base, "ask_human Still there?")
        finished = send(base, "write Brief.")
        gone(base, finished["id"])
        assert ask(base, "GET", f"/a2a/tasks/{finished['id']}").status == 404
        assert text(send(base, "yes", taskId=parked["id"])) == "Heard 'yes'. "
