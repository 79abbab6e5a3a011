"""coding-agent-a2a, as its clients see it: the card, single calls, cancelling, errors."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dragoman.app.sources import resolve
from tests.cli.process import dragoman
from tests.seeds.calling import JSON, ask, call, envelope, refusal, shown, streaming
from tests.serving import serving

AGENT = "tests/seeds/agents/coding.py"
RPC = "/a2a/jsonrpc"
CARD = "/.well-known/agent-card.json"


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("coding")
    with serving(AGENT, "--store", f"{folder}/tasks.db", logs=folder / "server.log") as base:
        yield base


@pytest.fixture(scope="module")
def literal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("coding-literal")
    options = ("--store", "memory://", "--set", f"frames={RPC}=literal")
    with serving(AGENT, *options, logs=folder / "server.log") as base:
        yield base


def said(*events: str, blocking: bool | None = None, **members: str) -> JSON:
    """The parameters of a send, as the page spells them."""
    parts = [{"kind": "text", "text": "\n".join(events)}]
    message = {"kind": "message", "messageId": "msg-uuid", "role": "user", "parts": parts, **members}
    return {"message": message} | ({} if blocking is None else {"configuration": {"blocking": blocking}})


def send(base: str, *events: str, **how: Any) -> JSON:
    return call(base, RPC, "message/send", said(*events, **how))


def named(task: JSON, name: str) -> list[JSON]:
    return [artifact for artifact in task["artifacts"] if artifact["name"] == name]


# --- the card -------------------------------------------------------------------------------------------------


@pytest.mark.proves("000-2", "000-4", "000-5", "000-6", "000-c1")
def test_the_profile_shows_the_card_of_the_page_with_the_adapter_in_its_name(tmp_path: Path) -> None:
    with dragoman("serve", "--profile", "coding-agent", cwd=tmp_path, env={"AGENT_ADAPTER": "claude-code"}) as running:
        base = running.up()
        answer = ask(base, "GET", CARD)
        pure = ask(base, "GET", CARD, headers={"A2A-Version": "0.3"}).json()
    card = answer.json()
    modes = ["text/plain", "application/json"]
    skill = {
        "id": "code-task",
        "name": "Execute coding task",
        "description": "Runs a coding task (edit, refactor, analyse, explain, test) via a coding agent CLI.",
        "tags": ["coding", "refactor", "edit", "test"],
        "inputModes": ["text/plain"],
        "outputModes": modes,
        "examples": [
            "Refactor the auth module to use JWT",
            "Add unit tests for src/utils/date.ts",
            "Explain how the rate limiter works",
        ],
    }
    page = {
        "name": "coding-agent-a2a (claude-code)",
        "description": "Delegates coding tasks to the claude-code agent and streams results back via the A2A protocol.",
        "protocolVersion": "0.3.0",
        "version": "0.1.0",
        "url": f"{base}{RPC}",
        "defaultInputModes": ["text/plain"],
        "defaultOutputModes": modes,
        "skills": [skill],
    }
    assert answer.status == 200
    assert {name: card[name] for name in page} == page
    assert {name: pure[name] for name in page} == page
    switches = {"streaming": True, "pushNotifications": False, "stateTransitionHistory": True}
    assert switches.items() <= card["capabilities"].items()
    assert pure["capabilities"] == switches


@pytest.mark.proves("000-6", "000-7")
def test_the_profile_listens_where_the_page_says_and_is_called_cursor_unless_told(tmp_path: Path) -> None:
    assert resolve({"--profile": "coding-agent"}).server.port == 41242
    with dragoman("serve", "--profile", "coding-agent", cwd=tmp_path) as running:
        assert ask(running.up(), "GET", CARD).json()["name"] == "coding-agent-a2a (cursor)"


# --- one call, one answer -------------------------------------------------------------------------------------


@pytest.mark.proves("000-1", "000-3", "000-8", "000-9", "000-10", "000-c2")
def test_a_send_waits_for_the_end_and_answers_the_task_the_page_shows(base: str) -> None:
    script = said("init opus s-1", "thinking Hello, ", "thinking world.", "done Greeted.", blocking=True)
    answer = ask(base, "POST", RPC, envelope("message/send", script, id=1))
    task = answer.json()["result"]
    page = (
        b'{"jsonrpc":"2.0","id":1,"result":{"kind":"task","id":"<task>","contextId":"<context>",'
        b'"status":{"state":"completed","timestamp":"<time>"},"artifacts":['
    )
    assert shown(answer.body, task=task["id"], context=task["contextId"]).encode().startswith(page)
    assert answer.headers["content-type"] == "application/json" and answer.headers["a2a-version"] == "0.3"
    (answered,) = named(task, "assistant-response")
    assert answered["parts"] == [{"kind": "text", "text": "Hello, world."}]
    (metadata,) = named(task, "agent-metadata")
    assert metadata["parts"] == [{"kind": "data", "data": {"model": "opus", "sessionId": "s-1"}}]
    (result,) = named(task, "result")
    assert result["parts"] == [{"kind": "data", "data": {"summary": "Greeted."}}]
    (asked,) = task["history"]
    assert asked["parts"] == script["message"]["parts"] and asked["role"] == "user" and asked["kind"] == "message"


@pytest.mark.proves("000-9")
def test_a_send_waits_unless_it_says_that_it_does_not(base: str) -> None:
    task = send(base, "wait first", blocking=False)
    assert task["status"]["state"] in ("submitted", "working")
    send(base, "open first")
    assert send(base, "thinking waited")["status"]["state"] == "completed"


@pytest.mark.proves("000-25")
def test_what_was_used_stands_in_an_artifact_called_result(base: str) -> None:
    task = send(base, "stats 12 34 560", "thinking Counted.")
    (result,) = named(task, "result")
    stats = {"inputTokens": 12, "outputTokens": 34, "durationMs": 560}
    assert result["parts"] == [{"kind": "data", "data": {"stats": stats}}]


@pytest.mark.proves("000-14", "000-c4")
@pytest.mark.parametrize("name", ["taskId", "id"])
def test_a_task_is_read_by_either_name_while_it_works_and_after(base: str, name: str) -> None:
    gate = f"read-{name}"
    with streaming(base, RPC, "message/stream", said(f"wait {gate}", "done Read.")) as stream:
        first = stream.next()
        assert first is not None
        id = first.json()["taskId"]
        working = call(base, RPC, "tasks/get", {name: id}, id=2)
        assert (working["kind"], working["id"], working["status"]["state"]) == ("task", id, "working")
        send(base, f"open {gate}")
        stream.rest()
    task = call(base, RPC, "tasks/get", {name: id})
    assert task["status"]["state"] == "completed" and named(task, "result")
    assert task == call(base, RPC, "tasks/get", {"id": id, "taskId": id})


@pytest.mark.proves("000-c4", "000-d3")
def test_two_names_that_differ_are_refused(base: str) -> None:
    task = send(base, "thinking hi")
    error = refusal(base, RPC, "tasks/get", {"id": task["id"], "taskId": "another"})
    assert error["code"] == -32602 and "taskId" in error["message"]


@pytest.mark.proves("000-26")
def test_an_error_fails_the_task_with_its_text(base: str) -> None:
    task = send(base, "thinking So", "error The compiler is missing")
    assert task["status"]["state"] == "failed"
    assert task["status"]["message"]["parts"] == [{"kind": "text", "text": "The compiler is missing"}]


# --- cancelling -----------------------------------------------------------------------------------------------


@pytest.mark.proves("000-16", "000-18", "000-c5")
def test_a_running_task_is_cancelled_and_cancelling_it_again_changes_nothing(base: str) -> None:
    with streaming(base, RPC, "message/stream", said("thinking Wait, ", "wait forever")) as stream:
        frames = stream.until(lambda frame: "artifact" in frame.json())
        id = frames[0].json()["taskId"]
        cancelled = call(base, RPC, "tasks/cancel", {"taskId": id}, id=3)
        last = stream.rest()[-1].json()
    assert (cancelled["id"], cancelled["kind"], cancelled["status"]["state"]) == (id, "task", "canceled")
    assert last["status"]["state"] == "canceled" and last["final"] is True
    assert call(base, RPC, "tasks/cancel", {"taskId": id}) == cancelled
    assert call(base, RPC, "tasks/cancel", {"id": id}) == cancelled


@pytest.mark.proves("000-18")
@pytest.mark.parametrize("event", ["done Well.", "error Badly."])
def test_cancelling_a_finished_task_answers_it_as_it_is(base: str, event: str) -> None:
    task = send(base, event)
    assert call(base, RPC, "tasks/cancel", {"taskId": task["id"]}) == task
    assert call(base, RPC, "tasks/get", {"taskId": task["id"]}) == task


@pytest.mark.proves("000-16", "000-18")
def test_a_task_that_asks_can_be_cancelled(base: str) -> None:
    task = send(base, "approval rm -rf build")
    cancelled = call(base, RPC, "tasks/cancel", {"taskId": task["id"]})
    assert cancelled["status"]["state"] == "canceled"


# --- errors ---------------------------------------------------------------------------------------------------

MISSING = [
    b"{}",
    b'{"id":1,"method":"tasks/get","params":{}}',
    b'{"jsonrpc":"2.0","id":1}',
    b'{"jsonrpc":"2.0","id":1,"params":{}}',
]


def error_of(base: str, body: bytes) -> str:
    answer = ask(base, "POST", RPC, body)
    assert answer.status == 200
    return answer.body.decode()


def wrong(code: int, message: str, id: str = "null") -> str:
    return f'{{"jsonrpc":"2.0","id":{id},"error":{{"code":{code},"message":"{message}"}}}}'


@pytest.mark.proves("000-33", "000-c8", "S-12-11")
def test_what_is_no_json_is_a_parse_error(base: str, literal: str) -> None:
    for where in (base, literal):
        assert error_of(where, b"not json") == wrong(-32700, "Parse error")


@pytest.mark.proves("000-34", "000-c8", "S-12-11")
@pytest.mark.parametrize("body", MISSING)
def test_a_request_without_its_fields_is_invalid(base: str, body: bytes) -> None:
    assert error_of(base, body) == wrong(-32600, "Invalid request", "1" if b'"id":1' in body else "null")


@pytest.mark.proves("000-35", "000-c8", "S-12-11")
def test_an_unknown_method_is_not_found(base: str) -> None:
    assert error_of(base, envelope("foo", {}, id=1)) == wrong(-32601, "Method not found", "1")


@pytest.mark.proves("000-15", "000-36", "000-c4", "S-12-11")
@pytest.mark.parametrize("method", ["tasks/get", "tasks/cancel"])
def test_an_unknown_task_is_not_found_by_the_name_the_page_gives_it(base: str, literal: str, method: str) -> None:
    body = envelope(method, {"taskId": "task-uuid"}, id=2)
    assert error_of(literal, body) == wrong(-32001, "TaskNotFound", "2")
    error = refusal(base, RPC, method, {"taskId": "task-uuid"})
    assert (error["code"], error["message"]) == (-32001, "TaskNotFound")
