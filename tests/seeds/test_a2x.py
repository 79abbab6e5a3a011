"""A2X, as its clients see it: the card, single calls, extensions, errors. Its streams and questions are in
test_a2x_streams.py."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dragoman.app.sources import resolve
from tests.cli.process import dragoman
from tests.seeds.agents.simple import X402
from tests.seeds.calling import JSON, ask, call, envelope, refusal, shown, streaming
from tests.serving import serving

AGENT = "tests/seeds/agents/simple.py"
RPC = "/api/a2a"
CARD = "/.well-known/agent.json"


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("a2x")
    with serving(AGENT, "--store", f"{folder}/tasks.db", logs=folder / "server.log") as base:
        yield base


@pytest.fixture(scope="module")
def literal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("a2x-literal")
    options = ("--profile", "a2x", "--store", "memory://", "--set", "frames=literal")
    with serving(AGENT, *options, logs=folder / "server.log") as base:
        yield base


@pytest.fixture(scope="module")
def particular(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """An agent that insists on two extensions, knows a third, and takes only text."""
    folder = tmp_path_factory.mktemp("a2x-particular")
    options = ("--profile", "a2x", "--store", "memory://")
    with serving(f"{AGENT}:particular", *options, logs=folder / "server.log") as base:
        yield base


@pytest.fixture(scope="module")
def blunt(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """An agent that answers without a task."""
    folder = tmp_path_factory.mktemp("a2x-blunt")
    with serving(f"{AGENT}:blunt", "--store", "memory://", logs=folder / "server.log") as base:
        yield base


def said(*steps: str, wait: bool = True, **members: str) -> JSON:
    """The parameters of a send, as the page spells them."""
    message = {"role": "user", "parts": [{"kind": "text", "text": "\n".join(steps)}], **members}
    return {"message": message} | ({} if wait else {"configuration": {"blocking": False}})


def send(base: str, *steps: str, **how: Any) -> JSON:
    return call(base, RPC, "message/send", said(*steps, **how))


def state(task: JSON) -> str:
    return task["status"]["state"]


def words(status: JSON) -> str:
    return "".join(part.get("text", "") for part in status["message"]["parts"])


# --- the card -------------------------------------------------------------------------------------------------


@pytest.mark.proves("003-4", "003-5", "003-6", "003-c1", "003-d1")
def test_the_profile_shows_the_card_of_the_page(tmp_path: Path) -> None:
    assert resolve({"--profile": "a2x"}).server.port == 3000
    with dragoman("serve", "--profile", "a2x", cwd=tmp_path) as running:
        base = running.up()
        answer = ask(base, "GET", CARD)
        pure = ask(base, "GET", CARD, headers={"A2A-Version": "0.3"}).json()
        same = ask(base, "GET", "/.well-known/agent-card.json").body
    page: JSON = {
        "name": "GitHub Repo Analyzer",
        "description": "Analyzes GitHub repositories for code complexity, dependencies, and security vulnerabilities.",
        "protocolVersion": "0.3.0",
        "version": "1.0.0",
        "url": f"{base}{RPC}",
        "skills": [
            {
                "id": "analyze-repo",
                "name": "Analyze Repository",
                "description": "Analyzes a GitHub repository and returns a structured report.",
                "tags": ["github", "analysis", "security", "dependencies"],
                "inputModes": ["text/plain"],
                "outputModes": ["text/plain"],
            }
        ],
    }
    assert answer.status == 200 and answer.body == same
    for card in (answer.json(), pure):
        assert {name: card[name] for name in page} == page and card["capabilities"]["streaming"] is True
    assert "supportedInterfaces" not in pure


@pytest.mark.proves("003-6", "003-26", "003-c1")
def test_the_card_declares_extensions_with_their_uri_and_whether_they_are_required(particular: str) -> None:
    for headers in ({}, {"A2A-Version": "0.3"}, {"A2A-Version": "1.0"}):
        card = ask(particular, "GET", CARD, headers=headers).json()
        assert card["capabilities"]["extensions"] == [
            {"uri": X402, "description": "Supports payments.", "required": True},
            {"uri": "urn:second", "required": True},
            {"uri": "urn:optional"},
        ]


# --- one call, one answer -------------------------------------------------------------------------------------


@pytest.mark.proves("003-1", "003-2", "003-12", "003-13", "003-18", "003-c10", "003-d2")
def test_a_send_without_a_message_id_is_answered_as_the_page_shows(base: str, literal: str) -> None:
    page = (
        '{"jsonrpc":"2.0","id":"req-001","result":{"kind":"task","id":"<task>","contextId":"<context>",'
        '"status":{"state":"completed","timestamp":"<time>",'
        '"message":{"kind":"message","messageId":"<message>","role":"agent","taskId":"<task>","contextId":"<context>",'
        '"parts":[{"kind":"text","text":"Here is the analysis report..."}],"metadata":{}}},"artifacts":['
    )
    for where in (base, literal):
        for spoken in ("Here is the analysis report...", "answer Here is the analysis report..."):
            answer = ask(where, "POST", RPC, envelope("message/send", said(spoken), id="req-001"))
            task = answer.json()["result"]
            known = {"message": task["status"]["message"]["messageId"], "task": task["id"]}
            told = shown(answer.body, **known, context=task["contextId"])
            assert told.startswith(page)
            assert told.startswith(f"{page}]") is spoken.startswith("answer")
            assert (answer.status, answer.headers["a2a-version"]) == (200, "0.3")


@pytest.mark.proves("003-13", "003-d3")
def test_what_was_made_stands_in_the_artifacts_and_its_text_in_the_status_too(base: str) -> None:
    task = send(base, "write One ", "data 3", "write two.")
    assert words(task["status"]) == "One two." and task["status"]["message"]["role"] == "agent"
    text, data = task["artifacts"]
    assert text["parts"] == [{"kind": "text", "text": "One two."}]
    assert data["parts"] == [{"kind": "data", "data": {"number": 3}}]
    assert call(base, RPC, "tasks/get", {"id": task["id"]}) == task
    for step in ("data 3", "piece 3"):
        only_data = send(base, step)
        for told in (only_data["status"]["message"], *only_data["artifacts"]):
            assert told["parts"] == [{"kind": "data", "data": {"number": 3}}]


@pytest.mark.proves("003-7", "003-8", "003-9", "003-10", "003-11")
@pytest.mark.parametrize(
    ("step", "named", "told"),
    [
        ("write Done.", "completed", "Done."),
        ("fail It broke", "failed", "It broke"),
        ("ask Which one?", "input-required", "Which one?"),
        ("reject Not here", "rejected", "Not here"),
        ("auth Your token?", "auth-required", "Your token?"),
    ],
)
def test_states_have_the_page_s_names_and_say_what_there_is_to_say(base: str, step: str, named: str, told: str) -> None:
    task = send(base, step)
    assert (state(task), words(task["status"])) == (named, told)
    assert call(base, RPC, "tasks/get", {"id": task["id"]}) == task


@pytest.mark.proves("003-7", "003-8")
def test_a_task_is_submitted_while_it_queues_and_working_when_it_works(base: str) -> None:
    held = send(base, "wait queue", contextId="queue", wait=False)
    queued = send(base, "write Mine.", contextId="queue", wait=False)
    assert (state(held), state(queued)) == ("working", "submitted")
    send(base, "open queue")
    assert words(send(base, "write Last.", contextId="queue")["status"]) == "Last."
    assert state(call(base, RPC, "tasks/get", {"id": queued["id"]})) == "completed"


@pytest.mark.proves("003-15", "003-16", "003-c10", "003-d4")
def test_a_task_is_read_and_cancelled_by_its_id(base: str) -> None:
    with streaming(base, RPC, "message/stream", said("write Half. ", "wait forever")) as stream:
        frames = stream.until(lambda frame: "artifact" in frame.json()["result"])
        id = frames[0].json()["result"]["taskId"]
        assert state(call(base, RPC, "tasks/get", {"id": id}, id="req-002")) == "working"
        cancelled = call(base, RPC, "tasks/cancel", {"id": id}, id="req-003")
        last = stream.rest()[-1].json()["result"]
    assert (cancelled["kind"], cancelled["id"], state(cancelled)) == ("task", id, "canceled")
    assert (last["status"]["state"], last["final"]) == ("canceled", True)
    assert refusal(base, RPC, "tasks/cancel", {"id": id})["code"] == -32002
    assert call(base, RPC, "tasks/get", {"taskId": id}) == cancelled


@pytest.mark.proves("003-d4")
@pytest.mark.parametrize("end", ["write Done.", "fail It broke"])
def test_a_task_that_is_over_cannot_be_cancelled(base: str, end: str) -> None:
    task = send(base, end)
    assert refusal(base, RPC, "tasks/cancel", {"id": task["id"]})["code"] == -32002
    assert call(base, RPC, "tasks/get", {"id": task["id"]}) == task


@pytest.mark.proves("003-19", "003-20", "003-21", "003-c10")
def test_parts_of_every_kind_come_and_go(base: str) -> None:
    task = send(base, "write Words.", "data 3", "file a.txt", "link https://x.example/y.png")
    assert [artifact["parts"] for artifact in task["artifacts"]] == [
        [{"kind": "text", "text": "Words."}],
        [{"kind": "data", "data": {"number": 3}}],
        [{"kind": "file", "file": {"bytes": "AP9hLnR4dA==", "name": "a.txt", "mimeType": "text/plain"}}],
        [{"kind": "file", "file": {"uri": "https://x.example/y.png", "mimeType": "image/png"}}],
    ]
    parts = [
        {"kind": "text", "text": "given"},
        {"kind": "data", "data": {"a": [1, None]}},
        {"kind": "file", "file": {"bytes": "AP8=", "name": "a.bin", "mimeType": "application/octet-stream"}},
    ]
    task = call(base, RPC, "message/send", {"message": {"role": "user", "parts": parts}})
    assert "[{'a': [1, None]}, b'\\x00\\xff']" in words(task["status"])
    assert task["history"][0]["parts"] == parts


@pytest.mark.proves("003-24")
def test_an_agent_is_given_the_message_the_ids_and_the_task_so_far(base: str) -> None:
    task = send(base, "given")
    assert words(task["status"]) == f"{task['id']} {task['contextId']} 1 []"


@pytest.mark.proves("003-25", "003-d5")
def test_what_an_agent_answers_without_a_task_is_a_message(blunt: str) -> None:
    message = send(blunt, "hi")
    assert (message["kind"], message["role"]) == ("message", "agent") and message["messageId"]
    assert message["parts"] == [{"kind": "text", "text": "You said hi."}]
    with streaming(blunt, RPC, "message/stream", said("hi")) as stream:
        (frame,) = stream.rest()
    assert frame.json()["result"]["parts"] == message["parts"] and frame.json()["kind"] == "message"


# --- which task a message goes to -----------------------------------------------------------------------------


@pytest.mark.proves("003-d6")
def test_a_message_to_a_finished_or_unknown_task_begins_a_new_one(base: str) -> None:
    over = send(base, "hello")
    fresh = send(base, "again", taskId=over["id"])
    assert fresh["id"] != over["id"] and fresh["contextId"] == over["contextId"]
    assert (state(fresh), words(fresh["status"])) == ("completed", "again")
    assert call(base, RPC, "tasks/get", {"id": over["id"]}) == over
    unknown = send(base, "hello", taskId="task-abc-123")
    assert unknown["id"] != "task-abc-123" and state(unknown) == "completed"
    with streaming(base, RPC, "message/stream", said("hello", taskId=over["id"])) as stream:
        assert stream.rest()[-1].json()["taskId"] not in (over["id"], fresh["id"])
    assert refusal(base, RPC, "tasks/get", {"id": "task-abc-123"})["code"] == -32001


@pytest.mark.proves("003-d6")
def test_a_message_to_a_task_at_work_continues_it(base: str) -> None:
    held = send(base, "wait busy", wait=False)
    more = send(base, "write More.", taskId=held["id"], wait=False)
    assert (more["id"], state(more)) == (held["id"], "working")
    send(base, "open busy")
    with streaming(base, RPC, "tasks/resubscribe", {"id": held["id"]}) as stream:
        assert stream.rest()[-1].json()["result"]["final"] is True
    assert words(call(base, RPC, "tasks/get", {"id": held["id"]})["status"]) == "More."


@pytest.mark.proves("003-d7")
def test_ids_that_contradict_each_other_are_refused(base: str) -> None:
    task = send(base, "ask Which one?")
    assert refusal(base, RPC, "tasks/get", {"id": task["id"], "taskId": "another"})["code"] == -32602
    error = refusal(base, RPC, "message/send", said("x", taskId=task["id"], contextId="another"))
    assert error["code"] == -32602 and task["id"] in error["message"]


# --- extensions -----------------------------------------------------------------------------------------------


@pytest.mark.proves("003-28", "003-c2", "003-d8")
@pytest.mark.parametrize("named", ["", "urn:other", "urn:optional", X402])
def test_who_names_no_required_extension_is_told_which_and_where(particular: str, named: str) -> None:
    headers = {"X-A2A-Extensions": named} if named else {}
    error = refusal(particular, RPC, "message/send", said("hi"), headers=headers)
    assert error["code"] == -32600 and "X-A2A-Extensions" in error["message"]
    assert "urn:second" in error["message"] and (X402 in error["message"]) is (named != X402)


@pytest.mark.proves("003-27", "003-d8")
@pytest.mark.parametrize(
    "headers",
    [
        {"X-A2A-Extensions": f"{X402}, urn:second"},
        {"A2A-Extensions": f"urn:second,{X402},urn:unknown"},
        {"X-A2A-Extensions": X402, "A2A-Extensions": "urn:second"},
        {"x-a2a-extensions": f"{X402},{X402} , urn:second,"},
    ],
)
def test_either_header_activates_extensions_and_those_in_effect_are_named_back(
    particular: str, headers: dict[str, str]
) -> None:
    answer = ask(particular, "POST", RPC, envelope("message/send", said("hi")), headers)
    effective = set(answer.headers["x-a2a-extensions"].split(", "))
    assert effective == {X402, "urn:second"}
    assert set(words(answer.json()["result"]["status"]).split()) == effective


# --- versions and errors --------------------------------------------------------------------------------------


@pytest.mark.proves("003-3", "003-d9")
def test_0_3_is_spoken_whatever_known_version_is_asked_for_and_an_unknown_one_refused(base: str) -> None:
    for version in ("0.3", "0.3.0", "1.0", "0.2.6"):
        answer = ask(base, "POST", RPC, envelope("message/send", said("hi")), {"A2A-Version": version})
        assert answer.json()["result"]["kind"] == "task" and answer.headers["a2a-version"] == "0.3"
    error = refusal(base, RPC, "message/send", said("hi"), headers={"A2A-Version": "2.0"})
    assert error["code"] == -32009 and error["data"][0]["reason"] == "VERSION_NOT_SUPPORTED"


@pytest.mark.proves("003-17", "003-22")
def test_a_response_has_a_result_or_an_error_and_the_error_is_the_page_s(literal: str) -> None:
    answer = ask(literal, "POST", RPC, b'{"jsonrpc":"1.0","id":"req-001","method":"message/send","params":{}}')
    assert answer.status == 200
    page = '{"jsonrpc":"2.0","id":"req-001","error":{"code":-32600,"message":"Invalid Request"}}'
    assert answer.body.decode() == page


@pytest.mark.proves("003-23")
@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"not json", -32700),
        (b"{}", -32600),
        (b"[]", -32600),
        (envelope("message/sent", {}), -32601),
        (envelope("message/send", {}), -32602),
        (envelope("message/send", {"message": {"role": "user", "parts": [{"kind": "text"}]}}), -32602),
        (envelope("tasks/get", {}), -32602),
        (envelope("message/send", said("derail")), -32603),
    ],
)
@pytest.mark.parametrize("style", ["base", "literal"])
def test_errors_have_their_numbers(style: str, body: bytes, code: int, request: pytest.FixtureRequest) -> None:
    answer = ask(request.getfixturevalue(style), "POST", RPC, body)
    error = answer.json()["error"]
    assert (answer.status, error["code"]) == (200, code)
    assert "secret" not in error["message"] and "result" not in answer.json()
