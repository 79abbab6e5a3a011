"""simple_a2a, as its clients see it: the card, single calls, versions, errors. Its streams and questions are in
test_simple_streams.py, its own client's reading in test_simple_client.py."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dragoman.app.sources import resolve
from tests.cli.process import dragoman
from tests.seeds.calling import JSON, ask, call, envelope, refusal, shown, streaming
from tests.serving import serving

AGENT = "tests/seeds/agents/simple.py"
RPC = "/"
CARD = "/agentCard"
V10 = {"A2A-Version": "1.0"}


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("simple")
    with serving(AGENT, "--store", f"{folder}/tasks.db", logs=folder / "server.log") as base:
        yield base


@pytest.fixture(scope="module")
def literal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("simple-literal")
    with serving(AGENT, "--store", "memory://", "--set", "frames=/=literal", logs=folder / "server.log") as base:
        yield base


@pytest.fixture(scope="module")
def particular(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """An agent that does not stream, takes only text and insists on extensions."""
    folder = tmp_path_factory.mktemp("simple-particular")
    with serving(f"{AGENT}:particular", "--store", "memory://", logs=folder / "server.log") as base:
        yield base


@pytest.fixture(scope="module")
def blunt(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """An agent that answers without a task."""
    folder = tmp_path_factory.mktemp("simple-blunt")
    with serving(f"{AGENT}:blunt", "--store", "memory://", logs=folder / "server.log") as base:
        yield base


def said(*steps: str, wait: bool = True, **members: str) -> JSON:
    """The parameters of a send, as the page spells them."""
    message = {"messageId": "msg-1", "role": "user", "parts": [{"text": "\n".join(steps), "kind": "text"}], **members}
    return {"message": message} | ({} if wait else {"configuration": {"blocking": False}})


def send(base: str, *steps: str, **members: Any) -> JSON:
    return call(base, RPC, "tasks/send", said(*steps, **members))


def state(task: JSON) -> str:
    return task["status"]["state"]


def text(task: JSON) -> str:
    return "".join(part.get("text", "") for artifact in task["artifacts"] for part in artifact["parts"])


def words(status: JSON) -> str:
    return "".join(part["text"] for part in status["message"]["parts"])


# --- the card -------------------------------------------------------------------------------------------------


@pytest.mark.proves("002-2", "002-c1", "002-d1")
def test_the_card_is_where_its_clients_look_and_has_their_members(base: str) -> None:
    answer = ask(base, "GET", CARD)
    card = answer.json()
    assert (answer.status, answer.headers["content-type"]) == (200, "application/json")
    assert (card["name"], card["version"]) == ("Simple agent", "1.0")
    assert (card["capabilities"]["streaming"], card["capabilities"]["extendedAgentCard"]) == (True, False)
    assert [skill["name"] for skill in card["skills"]] == ["Play", "Answer"]
    assert {"type": "json-rpc", "url": f"{base}/", "version": "1.0"} in card["interfaces"]
    assert all(set(each) >= {"type", "url", "version"} for each in card["interfaces"])
    assert ask(base, "GET", "/.well-known/agent-card.json").body == answer.body


@pytest.mark.proves("002-d1")
def test_the_profile_listens_at_its_port_and_shows_its_address_alone(tmp_path: Path) -> None:
    assert resolve({"--profile": "simple"}).server.port == 9292
    with dragoman("serve", "--profile", "simple", cwd=tmp_path) as running:
        base = running.up()
        assert ask(base, "GET", CARD).json()["interfaces"] == [
            {"type": "json-rpc", "url": f"{base}/", "version": "1.0"}
        ]
        assert state(call(base, RPC, "tasks/send", said("hello"))) in ("completed", "input_required")


# --- one call, one answer -------------------------------------------------------------------------------------


@pytest.mark.proves("002-1", "002-3", "002-4", "002-5", "002-c2", "002-d2")
def test_a_send_is_answered_as_the_page_shows(base: str, literal: str) -> None:
    for where in (base, literal):
        answer = ask(where, "POST", RPC, envelope("tasks/send", said("hello"), id="abc-123"))
        task = answer.json()["result"]
        page = (
            '{"jsonrpc":"2.0","id":"abc-123","result":{"id":"<task>","contextId":"<context>",'
            '"status":{"state":"completed","timestamp":"<time>"},"artifacts":['
        )
        assert shown(answer.body, task=task["id"], context=task["contextId"]).startswith(page)
        assert task["artifacts"] == [{"artifactId": task["artifacts"][0]["artifactId"], "parts": [{"text": "hello"}]}]
        assert task["status"]["timestamp"][-5] == "." and "kind" not in task
        assert (answer.status, answer.headers["a2a-version"]) == (200, "1.0")


@pytest.mark.proves("002-5")
def test_a_send_waits_for_the_end_of_the_work(base: str) -> None:
    held = send(base, "wait end", "write Slow.", contextId="slow", wait=False)
    queued = send(base, "write Next.", contextId="slow", wait=False)
    assert (state(held), state(queued)) == ("working", "submitted")
    send(base, "open end")
    done = send(base, "write Last.", contextId="slow")
    assert (state(done), text(done)) == ("completed", "Last.")
    assert text(call(base, RPC, "tasks/get", {"id": queued["id"]})) == "Next."


@pytest.mark.proves("002-30", "002-31")
@pytest.mark.parametrize(
    ("step", "named"),
    [
        ("write Done.", "completed"),
        ("fail It broke", "failed"),
        ("reject Not here", "rejected"),
        ("ask Which one?", "input_required"),
        ("auth Your token?", "auth_required"),
    ],
)
def test_states_have_the_page_s_names(base: str, step: str, named: str) -> None:
    task = send(base, step)
    assert state(task) == named
    assert call(base, RPC, "tasks/get", {"id": task["id"]}) == task
    if named != "completed":
        assert words(task["status"]) == step.partition(" ")[2]
        assert task["status"]["message"]["role"] == "agent"


@pytest.mark.proves("002-30", "002-31")
def test_a_task_is_submitted_until_its_turn_comes_then_working_then_done(base: str) -> None:
    held = send(base, "wait turn", contextId="turns", wait=False)
    queued = send(base, "write Mine.", contextId="turns", wait=False)
    listed = {task["id"]: state(task) for task in call(base, RPC, "tasks/list", {"contextId": "turns"})}
    assert listed == {held["id"]: "working", queued["id"]: "submitted"}
    send(base, "open turn")
    send(base, "hello", contextId="turns")
    listed = {task["id"]: state(task) for task in call(base, RPC, "tasks/list", {"contextId": "turns"})}
    assert listed[held["id"]] == listed[queued["id"]] == "completed"


@pytest.mark.proves("002-7", "002-c4")
def test_a_task_is_read_by_its_id_and_an_unknown_one_is_not_found(base: str) -> None:
    task = send(base, "hello")
    assert call(base, RPC, "tasks/get", {"id": task["id"]}) == task
    assert refusal(base, RPC, "tasks/get", {"id": "task-uuid"})["code"] == -32001


@pytest.mark.proves("002-8", "002-c5", "002-d3", "S-6-6")
def test_the_list_is_a_bare_array_of_all_tasks_with_all_there_is_of_them(base: str) -> None:
    own = send(base, "write Mine.")
    message = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "write Theirs."}]}
    theirs = call(base, RPC, "SendMessage", {"message": message}, headers=V10)["task"]
    listed = call(base, RPC, "tasks/list", {})
    assert isinstance(listed, list) and listed[1] == own
    assert listed[0] == call(base, RPC, "tasks/list", {"contextId": theirs["contextId"]})[0]
    assert (listed[0]["id"], state(listed[0]), text(listed[0])) == (theirs["id"], "completed", "Theirs.")
    assert call(base, RPC, "tasks/list", {"limit": 1}) == listed[:1]
    assert call(base, RPC, "tasks/list", None) == listed
    for _ in range(60):  # more than a page of other dialects
        send(base, "hi", contextId="many")
    assert len(call(base, RPC, "tasks/list", {"contextId": "many"})) == 60


@pytest.mark.proves("002-9", "002-20", "002-32", "002-c6", "002-d4")
def test_a_running_task_is_cancelled_once_and_its_stream_sees_it(base: str) -> None:
    with streaming(base, RPC, "tasks/sendSubscribe", said("write Half. ", "wait forever")) as stream:
        first = stream.until(lambda frame: "artifact" in frame.json()["result"])[0].json()["result"]
        cancelled = call(base, RPC, "tasks/cancel", {"id": first["taskId"]})
        last = stream.rest()[-1].json()["result"]
    assert (cancelled["id"], state(cancelled), text(cancelled)) == (first["taskId"], "canceled", "Half. ")
    assert (last["status"]["state"], last["final"]) == ("canceled", True)
    assert refusal(base, RPC, "tasks/cancel", {"id": first["taskId"]})["code"] == -32002
    assert call(base, RPC, "tasks/get", {"id": first["taskId"]}) == cancelled


@pytest.mark.proves("002-20", "002-32", "002-c6", "002-d21")
@pytest.mark.parametrize("end", ["write Done.", "fail It broke", "reject Not here"])
def test_a_task_that_is_over_cannot_be_cancelled_and_stays_as_it_is(base: str, literal: str, end: str) -> None:
    task = send(base, end)
    error = refusal(base, RPC, "tasks/cancel", {"id": task["id"]})
    assert (error["code"], error["data"][0]["reason"]) == (-32002, "TASK_NOT_CANCELABLE")
    assert call(base, RPC, "tasks/get", {"id": task["id"]}) == task
    assert set(refusal(literal, RPC, "tasks/cancel", {"id": send(literal, end)["id"]})) == {"code", "message"}


@pytest.mark.proves("002-d5")
def test_who_waits_for_an_answer_can_be_cancelled(base: str) -> None:
    for question in ("ask Which one?", "auth Your token?"):
        task = send(base, question)
        assert state(call(base, RPC, "tasks/cancel", {"id": task["id"]})) == "canceled"
        assert refusal(base, RPC, "tasks/send", said("late") | {"id": task["id"]})["code"] == -32004


@pytest.mark.proves("002-d6")
def test_every_part_comes_and_goes_by_its_members(base: str) -> None:
    task = send(base, "data 3", "file a.txt", "link https://x.example/y.png")
    data, file, link = [artifact["parts"][0] for artifact in task["artifacts"]]
    assert data == {"data": {"number": 3}}
    assert file == {"raw": "AP9hLnR4dA==", "filename": "a.txt", "mediaType": "text/plain"}
    assert link == {"url": "https://x.example/y.png", "mediaType": "image/png"}
    parts = [
        {"text": "given", "kind": "text", "mediaType": "text/plain"},
        {"raw": "AP8=", "mediaType": "application/octet-stream", "filename": "a.bin", "metadata": {"k": 1}},
        {"data": {"a": [1, None]}, "mediaType": "application/json"},
        {"text": "more"},
    ]
    task = call(base, RPC, "tasks/send", {"message": {"role": "user", "parts": parts}})
    assert "[b'\\x00\\xff', {'a': [1, None]}, 'more']" in text(task)
    (kept,) = task["history"]
    assert kept["parts"] == [{key: value for key, value in part.items() if key != "kind"} for part in parts]
    for wrong in ({}, {"text": "a", "data": {}}):
        params = {"message": {"role": "user", "parts": [wrong]}}
        assert refusal(base, RPC, "tasks/send", params)["code"] == -32602


@pytest.mark.proves("002-d7")
def test_a_reply_without_a_task_is_a_completed_task_also_in_a_stream(blunt: str) -> None:
    task = send(blunt, "hi")
    assert (state(task), text(task)) == ("completed", "You said hi.")
    assert "task-uuid" not in task["id"] and task["contextId"]
    with streaming(blunt, RPC, "tasks/sendSubscribe", said("hi")) as stream:
        answer, end = [frame.json()["result"] for frame in stream.rest()]
    assert answer["artifact"]["parts"] == [{"text": "You said hi."}]
    assert (end["status"]["state"], end["final"]) == ("completed", True)


# --- versions -------------------------------------------------------------------------------------------------

METHODS = [("tasks/send", said("hi")), ("tasks/sendSubscribe", said("hi")), ("tasks/list", {})]


@pytest.mark.proves("002-27", "002-28", "002-c8", "002-d8")
@pytest.mark.parametrize(("method", "params"), METHODS, ids=[name for name, _ in METHODS])
@pytest.mark.parametrize("version", ["1.0", "0.3", None])
def test_both_versions_pass_and_so_does_none(base: str, method: str, params: JSON, version: str | None) -> None:
    headers = {"A2A-Version": version} if version else {}
    answer = ask(base, "POST", RPC, envelope(method, params), headers)
    assert answer.status == 200 and b'"error"' not in answer.body and b'"result"' in answer.body
    assert answer.headers["a2a-version"] == "1.0"


@pytest.mark.proves("002-26", "002-29", "002-c8", "002-d8", "S-6-8")
@pytest.mark.parametrize(("method", "params"), METHODS, ids=[name for name, _ in METHODS])
@pytest.mark.parametrize("version", ["2.0", "0.2", "1.0.0", "1", "latest"])
def test_any_other_version_is_not_supported(base: str, method: str, params: JSON, version: str) -> None:
    error = refusal(base, RPC, method, params, headers={"A2A-Version": version})
    assert error["code"] == -32008 and "1.0, 0.3" in error["message"]
    assert error["data"][0]["reason"] == "VERSION_NOT_SUPPORTED"


@pytest.mark.proves("002-26", "002-29")
@pytest.mark.parametrize("method", ["tasks/get", "tasks/cancel", "tasks/resubscribe"])
def test_nor_is_one_that_nobody_speaks_by_the_names_it_shares(base: str, method: str) -> None:
    headers = {"A2A-Version": "2.0"}
    answer = ask(base, "POST", RPC, envelope(method, {"id": send(base, "ask Which one?")["id"]}), headers)
    told = answer.body.decode().partition("data: ")[2] or answer.body.decode()  # who subscribes reads events alone
    assert json.loads(told)["error"]["code"] == -32008 and "1.0, 0.3" in told


@pytest.mark.proves("002-d9", "S-6-8")
@pytest.mark.parametrize("version", ["1.0", "0.3"])
def test_the_names_it_shares_with_0_3_pass_in_both_versions_too(base: str, version: str) -> None:
    headers = {"A2A-Version": version}
    asking = send(base, "ask Which one?")
    by_id = {"id": asking["id"]}
    assert call(base, RPC, "tasks/get", by_id, headers=headers) == asking
    with streaming(base, RPC, "tasks/resubscribe", by_id, headers=headers) as stream:
        first = stream.next()
        assert first is not None and first.json()["result"] == asking
        cancelled = call(base, RPC, "tasks/cancel", by_id, headers=headers)
    assert state(cancelled) == "canceled"


# --- names shared with others ---------------------------------------------------------------------------------


@pytest.mark.proves("002-d9", "S-6-5", "S-12-12")
def test_shared_names_are_answered_in_the_words_of_who_made_the_task(base: str) -> None:
    own = send(base, "ask Which one?")
    text_part = {"kind": "text", "text": "ask Which one?"}
    theirs = call(
        base,
        RPC,
        "message/send",
        {"message": {"kind": "message", "messageId": "m", "role": "user", "parts": [text_part]}},
    )
    for task, named in ((own, "input_required"), (theirs, "input-required")):
        found = call(base, RPC, "tasks/get", {"id": task["id"]})
        assert found == task and (state(found), "kind" in found) == (named, named == "input-required")
        cancelled = call(base, RPC, "tasks/cancel", {"id": task["id"]})
        assert "kind" in cancelled if task is theirs else "kind" not in cancelled
    again = [refusal(base, RPC, "tasks/cancel", {"id": task["id"]}) for task in (own, theirs)]
    assert [error["code"] for error in again] == [-32002, -32002]
    assert ["data" in error for error in again] == [True, False]


@pytest.mark.proves("002-d23", "S-6-9")
@pytest.mark.parametrize("path", ["/a2a/jsonrpc", "/a2a", "/api/a2a"])
def test_its_own_names_are_spoken_at_every_other_mount_too(base: str, path: str) -> None:
    asking = call(base, path, "tasks/send", said("ask Which one?"))
    assert state(asking) == "input_required" and "kind" not in asking
    with streaming(base, path, "tasks/sendSubscribe", said("this") | {"id": asking["id"]}) as stream:
        last = stream.rest()[-1].json()
    assert set(last) == {"jsonrpc", "result"} and last["result"]["final"] is True
    assert asking["id"] in [task["id"] for task in call(base, path, "tasks/list", {"limit": 5})]
    error = refusal(base, path, "tasks/send", said("hi"), headers={"A2A-Version": "2.0"})
    assert error["code"] == -32008
    shared = call(base, path, "tasks/get", {"taskId": asking["id"]})
    assert (shared["kind"], state(shared)) == ("task", "completed"), "what is shared is the mount's"


@pytest.mark.proves("002-d10")
def test_a_send_names_its_task_by_either_name_but_not_by_two(base: str) -> None:
    for name in ("id", "taskId"):
        task = send(base, "ask Which one?")
        done = call(base, RPC, "tasks/send", said("this") | {name: task["id"]})
        assert (done["id"], state(done)) == (task["id"], "completed")
    error = refusal(base, RPC, "tasks/send", said("x") | {"id": "one", "taskId": "another"})
    assert error["code"] == -32602 and "taskId" in error["message"]
    task = send(base, "hello")
    error = refusal(base, RPC, "tasks/get", {"taskId": task["id"]})
    assert (error["code"], error["message"]) == (-32602, "id: is required")


@pytest.mark.proves("002-d11")
def test_the_context_may_stand_in_several_places_but_says_one_thing(base: str) -> None:
    for params in (
        said("hi", contextId="here"),
        said("hi") | {"contextId": "here"},
        said("hi") | {"metadata": {"contextId": "here"}},
    ):
        assert call(base, RPC, "tasks/send", params)["contextId"] == "here"
    assert refusal(base, RPC, "tasks/send", said("hi", contextId="a") | {"contextId": "b"})["code"] == -32602
    asking = send(base, "ask Which one?")
    error = refusal(base, RPC, "tasks/send", said("x", contextId="other") | {"id": asking["id"]})
    assert error["code"] == -32602 and asking["id"] in error["message"]


# --- errors ---------------------------------------------------------------------------------------------------


@pytest.mark.proves("002-14", "002-15", "002-c9")
@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"not json", -32700),
        (b"", -32700),
        (b'{"jsonrpc":"2.0","id":1,"method":', -32700),
        (b'{"id":"x","method":"tasks/list","params":{}}', -32600),
        (b'{"jsonrpc":"1.0","id":"x","method":"tasks/list"}', -32600),
        (b'{"jsonrpc":"2.0","id":"x","params":{}}', -32600),
        (b"[]", -32600),
        (b"5", -32600),
    ],
)
def test_what_is_no_request_is_refused(base: str, body: bytes, code: int) -> None:
    answer = ask(base, "POST", RPC, body)
    assert (answer.status, answer.json()["error"]["code"]) == (200, code)
    assert answer.json()["id"] == ("x" if b'"x"' in body else None)


@pytest.mark.proves("002-16", "002-17", "002-c9")
def test_unknown_methods_and_missing_parameters_are_told_apart(base: str) -> None:
    assert refusal(base, RPC, "tasks/foo", {})["code"] == -32601
    for method in ("tasks/send", "tasks/sendSubscribe"):
        for params in ({}, None, {"message": "hello"}, {"message": {"role": "user"}}):
            error = refusal(base, RPC, method, params)
            assert error["code"] == -32602 and error["message"].startswith("message")
    for method in ("tasks/get", "tasks/cancel"):
        assert refusal(base, RPC, method, {})["code"] == -32602


@pytest.mark.proves("002-19", "002-d12")
def test_no_operation_finds_an_unknown_task(base: str) -> None:
    for method in ("tasks/get", "tasks/cancel"):
        assert refusal(base, RPC, method, {"id": "task-uuid"})["code"] == -32001
    for method in ("tasks/send", "tasks/sendSubscribe"):
        assert refusal(base, RPC, method, said("hi") | {"id": "task-uuid"})["code"] == -32001
    with streaming(base, RPC, "tasks/resubscribe", {"id": "task-uuid"}) as stream:
        (frame,) = stream.rest()
    assert frame.json()["error"]["code"] == -32001


@pytest.mark.proves("002-22", "002-c9", "002-d12")
def test_what_cannot_be_done_is_not_supported(base: str, particular: str) -> None:
    assert ask(particular, "GET", CARD).json()["capabilities"]["streaming"] is False
    assert refusal(particular, RPC, "tasks/sendSubscribe", said("hi"))["code"] == -32004
    task = send(base, "hello")
    error = refusal(base, RPC, "tasks/send", said("more") | {"id": task["id"]})
    assert (error["code"], error["data"][0]["reason"]) == (-32004, "UNSUPPORTED_OPERATION")
    with streaming(base, RPC, "tasks/resubscribe", {"id": task["id"]}) as stream:
        (frame,) = stream.rest()
    assert frame.json()["error"]["code"] == -32004


@pytest.mark.proves("002-23")
def test_a_part_the_agent_does_not_take_is_told_so(particular: str) -> None:
    named = "https://github.com/google-agentic-commerce/a2a-x402/blob/main/spec/v0.2, urn:second"
    params = {"message": {"role": "user", "parts": [{"data": {"a": 1}}]}}
    error = refusal(particular, RPC, "tasks/send", params, headers={"A2A-Extensions": named})
    assert error["code"] == -32005 and "text/plain" in error["message"]


@pytest.mark.proves("002-25")
def test_a_required_extension_must_be_named(particular: str) -> None:
    error = refusal(particular, RPC, "tasks/send", said("hi"))
    assert error["code"] == -32007 and "urn:second" in error["message"]


@pytest.mark.proves("002-18", "002-24", "002-d13")
def test_what_goes_wrong_inside_is_told_without_its_words(base: str, blunt: str) -> None:
    internal = refusal(base, RPC, "tasks/send", said("derail"))
    assert internal["code"] == -32603
    answer = refusal(blunt, RPC, "tasks/send", said("break"))
    assert answer["code"] == -32006
    task = send(base, "write Half. ", "break")
    assert (state(task), text(task)) == ("failed", "Half. ")
    for told in (internal["message"], answer["message"], words(task["status"])):
        assert told and "secret" not in told
