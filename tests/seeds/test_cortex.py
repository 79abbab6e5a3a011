"""CortexPrism, as its clients see it: the card, single calls, contexts, lists, cancelling, errors."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dragoman.agents.tools import DEFAULTS, EXAMPLES
from dragoman.app.sources import resolve
from tests.cli.process import dragoman
from tests.seeds.calling import JSON, Answer, ask, call, envelope, refusal, shown, streaming
from tests.serving import serving

AGENT = "tests/seeds/agents/cortex.py:agent"
RPC = "/a2a"
CARDS = ("/.well-known/agent-card.json", "/api/a2a/agent-card.json")
UNKNOWN = "cortex-00000000-0000-0000-0000-000000000000"


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("cortex")
    options = ("--profile", "cortex", "--store", f"{folder}/tasks.db")
    with serving(AGENT, *options, logs=folder / "server.log") as base:
        yield base


@pytest.fixture(scope="module")
def literal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """To the letter, with Cortex's statuses."""
    folder = tmp_path_factory.mktemp("cortex-literal")
    options = ("--profile", "cortex", "--store", "memory://", "--set", "frames=literal")
    with serving(AGENT, *options, "--set", "cortex_statuses=true", logs=folder / "server.log") as base:
        yield base


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """An agent without tools, among every other mount."""
    folder = tmp_path_factory.mktemp("cortex-bare")
    with serving(AGENT.replace(":agent", ":bare"), "--store", "memory://", logs=folder / "server.log") as base:
        yield base


@pytest.fixture(params=["base", "literal"])
def either(request: pytest.FixtureRequest) -> str:
    return request.getfixturevalue(request.param)


def said(*steps: str, context: str = "", **members: Any) -> JSON:
    """The parameters of a send, as Cortex's types spell them; its context travels in the metadata."""
    message: JSON = {"messageId": "m", "role": "user", "parts": [{"text": "\n".join(steps)}], **members}
    return {"message": message | ({"metadata": {"contextId": context}} if context else {})}


def send(base: str, *steps: str, configuration: JSON | None = None, **how: Any) -> JSON:
    more = {} if configuration is None else {"configuration": configuration}
    return call(base, RPC, "SendMessage", said(*steps, **how) | more)


def text(task: JSON) -> str:
    return "".join(part.get("text", "") for artifact in task.get("artifacts", ()) for part in artifact["parts"])


def words(messages: list[JSON]) -> list[str]:
    return ["".join(part.get("text", "") for part in message["parts"]) for message in messages]


def state(task: JSON) -> str:
    return task["status"]["state"]


def ended(base: str, id: str) -> str:
    """The state a working task comes to. It asks until then; another process gives nothing to wait on."""
    for _ in range(5_000):
        if (found := state(call(base, RPC, "GetTask", {"id": id}))) != "TASK_STATE_WORKING":
            return found
    raise AssertionError(f"{id} is still working")


# --- the card -------------------------------------------------------------------------------------------------


@pytest.mark.proves("001-51", "001-52", "001-42", "001-c1")
def test_both_card_paths_answer_the_same_with_one_json_rpc_interface(base: str, bare: str) -> None:
    for where in (base, bare):
        first, second = (ask(where, "GET", path) for path in CARDS)
        assert first.status == second.status == 200
        assert first.body == second.body
        interfaces = first.json()["interfaces"]
        assert interfaces[0]["url"] == f"{where}/a2a"
        assert [each.get("protocol") for each in interfaces].count("json-rpc") == 1
        assert interfaces[0]["protocol"] == "json-rpc"


@pytest.mark.proves("001-1", "001-2", "001-3", "001-d12", "001-c2", "S-12-13")
def test_both_methods_answer_the_card(either: str) -> None:
    answers = [ask(either, "POST", RPC, envelope(name, {})) for name in ("GetAgentCard", "GetExtendedAgentCard")]
    for answer in answers:
        assert answer.status == 200 and answer.headers["a2a-version"] == "1.0"
        assert answer.json()["result"] == ask(either, "GET", CARDS[0]).json()


@pytest.mark.proves("001-34", "001-35", "001-36", "001-37", "001-38", "001-39", "001-d19")
def test_each_tool_is_a_skill(base: str) -> None:
    found = {skill["id"]: skill for skill in ask(base, "GET", CARDS[0]).json()["skills"]}
    assert list(found) == ["file_read", "shell", "web_search", "send_weekly_report"]
    assert [skill["name"] for skill in found.values()] == ["File Read", "Shell", "Web Search", "Send Weekly Report"]
    assert [skill["description"] for skill in found.values()] == [
        "Reads a file.",
        "Runs a command.",
        "Searches the web.",
        "Mails the report.",
    ]
    assert found["shell"]["tags"] == ["process:spawn", "filesystem:write"]
    assert found["send_weekly_report"]["tags"] == ["send", "weekly", "report"]
    for name in ("file_read", "shell", "web_search"):
        assert found[name]["examples"] == list(EXAMPLES[name])
    assert found["send_weekly_report"]["examples"] == ["Do something with send_weekly_report"]


@pytest.mark.proves("001-40")
def test_without_tools_there_are_the_default_skills(bare: str) -> None:
    skills = ask(bare, "GET", CARDS[0]).json()["skills"]
    assert [skill["id"] for skill in skills] == [
        "code-generation",
        "debugging",
        "code-review",
        "architecture",
        "search",
    ]
    assert [skill["name"] for skill in skills] == [skill.name for skill in DEFAULTS]
    assert all(skill["description"] and skill["tags"] and skill["examples"] for skill in skills)
    assert text(send(bare, "skill", metadata={"skill": "debugging"})) == "debugging"


@pytest.mark.proves("001-41")
@pytest.mark.parametrize("headers", [{}, {"A2A-Version": "1.0"}])
def test_the_card_advertises_streams_and_the_history_of_states(base: str, headers: dict[str, str]) -> None:
    capabilities = ask(base, "GET", CARDS[0], headers=headers).json()["capabilities"]
    assert capabilities["streaming"] is True and capabilities["stateTransitionHistory"] is True


@pytest.mark.proves("001-d18", "001-40")
def test_the_profile_has_cortex_s_port_and_address_and_its_default_skills(tmp_path: Path) -> None:
    assert resolve({"--profile": "cortex"}).server.port == 4220
    with dragoman("serve", "--profile", "cortex", cwd=tmp_path) as running:
        base = running.up()
        card = ask(base, "GET", CARDS[0]).json()
        assert ask(base, "POST", "/a2a/jsonrpc", envelope("tasks/get", {})).status == 404
    assert card["supportedInterfaces"][0] == {
        "url": f"{base}/a2a",
        "protocolBinding": "JSONRPC",
        "protocolVersion": "1.0",
    }
    assert [skill["id"] for skill in card["skills"]] == [skill.id for skill in DEFAULTS]


# --- one call, one answer -------------------------------------------------------------------------------------


@pytest.mark.proves("001-4", "001-10", "001-c3")
def test_a_send_completes_with_the_text_in_an_artifact_and_two_messages_of_history(either: str) -> None:
    task = call(either, RPC, "SendMessage", {"message": {"messageId": "m", "role": "user", "parts": [{"text": "hi"}]}})
    assert state(task) == "TASK_STATE_COMPLETED"
    assert text(task) == "hi"
    assert words(task["history"]) == ["hi", "hi"]
    assert [message["role"][-4:].lower() for message in task["history"]] == ["user", "gent"]


@pytest.mark.proves("001-d1")
def test_a_result_is_the_bare_task_and_the_wrapped_one(base: str) -> None:
    result = send(base, "hi")
    wrapped = result.pop("task")
    assert result == wrapped
    assert wrapped == call(base, "/", "GetTask", {"id": wrapped["id"]}) | {"history": wrapped["history"]}


@pytest.mark.proves("001-4", "001-d1")
def test_to_the_letter_it_is_the_bare_task(literal: str) -> None:
    answer = ask(literal, "POST", RPC, envelope("SendMessage", said("whole Hello."), "x"))
    task = answer.json()["result"]
    known = {"task": task["id"], "context": task["contextId"], "artifact": task["artifacts"][0]["artifactId"]}
    asked, replied = (
        f'{{"messageId":"{id}","contextId":"<context>","taskId":"<task>","role":"{role}","parts":[{{"text":"{text}"}}]}}'
        for id, role, text in (("m", "user", "whole Hello."), ("<task>.answer", "agent", "Hello."))
    )
    assert shown(answer.body, **known) == (
        '{"jsonrpc":"2.0","id":"x","result":{"id":"<task>","contextId":"<context>",'
        '"status":{"state":"TASK_STATE_COMPLETED","timestamp":"<time>"},'
        '"artifacts":[{"artifactId":"<artifact>","name":"answer","parts":[{"text":"Hello."}]}],'
        f'"history":[{asked},{replied}]}}}}'
    )


@pytest.mark.proves("001-6", "001-9", "001-c5")
def test_a_task_is_read_while_it_works_and_after(either: str) -> None:
    with streaming(either, RPC, "SendStreamingMessage", said("write One ", "wait read", "write two.")) as stream:
        id = stream.until(lambda frame: "artifact" in frame.json())[0].json()["result"]["task"]["id"]
        working = call(either, RPC, "GetTask", {"id": id})
        assert state(working) == "TASK_STATE_WORKING" and text(working) == "One "
        send(either, "open read")
        stream.rest()
    done = call(either, RPC, "GetTask", {"id": id})
    assert state(done) == "TASK_STATE_COMPLETED" and text(done) == "One two."


@pytest.mark.proves("001-11", "001-12", "001-d6")
@pytest.mark.parametrize(
    ("step", "ends", "reason"),
    [
        ("fail It broke.", "TASK_STATE_FAILED", "It broke."),
        ("reject Not today.", "TASK_STATE_REJECTED", "Not today."),
        ("ask Which one?", "TASK_STATE_INPUT_REQUIRED", "Which one?"),
        ("login Log in at home.", "TASK_STATE_AUTH_REQUIRED", "Log in at home."),
    ],
)
def test_every_other_end_and_pause_says_why(either: str, step: str, ends: str, reason: str) -> None:
    task = send(either, step)
    assert state(task) == ends and words([task["status"]["message"]]) == [reason]
    read = call(either, RPC, "GetTask", {"id": task["id"]})
    assert read["status"] == task["status"]


@pytest.mark.proves("001-d6")
def test_a_question_is_answered_by_its_task(either: str) -> None:
    asked = send(either, "ask Which one?")
    done = send(either, "the red one", taskId=asked["id"])
    assert (done["id"], state(done), text(done)) == (asked["id"], "TASK_STATE_COMPLETED", "Heard 'the red one'. ")


@pytest.mark.proves("001-d20")
@pytest.mark.parametrize("style", ["superset", "literal"])
def test_a_reply_without_a_task_is_a_completed_one_for_cortex(style: str, tmp_path: Path) -> None:
    options = ("--store", "memory://", "--set", f"frames=/a2a={style}")
    with serving(AGENT.replace(":agent", ":replies"), *options, logs=tmp_path / "server.log") as base:
        result = send(base, "hi", context="c")
        with streaming(base, RPC, "SendStreamingMessage", said("hi")) as stream:
            first, done = stream.rest()
    assert (state(result), text(result), result["contextId"]) == ("TASK_STATE_COMPLETED", "Heard 'hi'.", "c")
    streamed = first.json()["result"]
    assert done.lines == ("[DONE]",)
    if style == "superset":
        assert words([result["message"], streamed["message"]]) == ["Heard 'hi'."] * 2  # as 1.0 has it
        assert list(streamed) == ["message"]
    else:
        assert "message" not in result and text(streamed["task"]) == "Heard 'hi'."


# --- configuration, tenant ------------------------------------------------------------------------------------


@pytest.mark.proves("001-d4", "001-9")
def test_who_does_not_wait_gets_the_task_as_it_begins(either: str) -> None:
    task = send(either, "wait unhurried", configuration={"blocking": False})
    assert state(task) == "TASK_STATE_WORKING"
    send(either, "open unhurried", configuration={"blocking": True})
    assert ended(either, task["id"]) == "TASK_STATE_COMPLETED"


@pytest.mark.proves("001-d4")
@pytest.mark.parametrize(("length", "told"), [(0, []), (1, ["hello"]), (2, ["write hello", "hello"]), (9, 2)])
def test_history_is_as_long_as_was_asked_for(either: str, length: int, told: list[str] | int) -> None:
    task = send(either, "write hello", configuration={"historyLength": length})
    found = words(task.get("history", []))
    assert len(found) == told if isinstance(told, int) else found == told


@pytest.mark.proves("001-d4")
def test_a_repeated_key_gets_the_same_task(either: str) -> None:
    configuration = {"idempotencyKey": "once", "acceptedOutputModes": ["text"], "acceptedContextExtensions": ["urn:x"]}
    first, again = (send(either, "hi", configuration=configuration) for _ in range(2))
    assert first == again
    error = ask(either, "POST", RPC, envelope("SendMessage", said("ho") | {"configuration": configuration})).json()[
        "error"
    ]
    assert error["code"] == -32602


@pytest.mark.proves("001-d11")
def test_a_tenant_is_a_boundary(base: str) -> None:
    task = call(base, RPC, "SendMessage", said("hi", context="shared") | {"tenant": "north"})
    assert refusal(base, RPC, "GetTask", {"id": task["id"]})["code"] == -32001
    assert refusal(base, RPC, "CancelTask", {"id": task["id"], "tenant": "south"})["code"] == -32001
    assert call(base, RPC, "GetTask", {"id": task["id"], "tenant": "north"})["id"] == task["id"]
    assert [each["id"] for each in call(base, RPC, "ListTasks", {"tenant": "north"})["tasks"]] == [task["id"]]
    assert call(base, RPC, "ListTasks", {"contextId": "shared"})["tasks"] == []
    assert text(send(base, "recall", context="shared")) == ""


# --- contexts -------------------------------------------------------------------------------------------------

PLACES = {
    "the message's metadata": lambda context: said("hi", metadata={"contextId": context}),
    "the message": lambda context: said("hi", contextId=context),
    "beside the message": lambda context: said("hi") | {"contextId": context},
    "the metadata beside it": lambda context: said("hi") | {"metadata": {"contextId": context}},
}


@pytest.mark.proves("001-d3")
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("context", ["ctx-1", "c" * 256])
def test_the_context_is_found_wherever_it_stands(either: str, place: str, context: str) -> None:
    assert call(either, RPC, "SendMessage", PLACES[place](context))["contextId"] == context


@pytest.mark.proves("001-d3")
@pytest.mark.parametrize("params", [*(PLACES[place]("c" * 257) for place in PLACES), said("hi", context="a\nb")])
def test_a_context_too_long_or_with_line_breaks_is_refused(base: str, params: JSON) -> None:
    error = refusal(base, RPC, "SendMessage", params)
    assert error["code"] == -32602 and "contextId" in error["message"]


@pytest.mark.proves("001-d3")
@pytest.mark.parametrize("one", PLACES)
@pytest.mark.parametrize("other", PLACES)
def test_two_places_must_agree(base: str, one: str, other: str) -> None:
    first, second = PLACES[one]("mine"), PLACES[other]("mine" if one == other else "yours")
    both = {**first, **second, "message": {**first["message"], **second["message"]}}
    if one == other:
        assert call(base, RPC, "SendMessage", both)["contextId"] == "mine"
        return
    error = refusal(base, RPC, "SendMessage", both)
    assert error["code"] == -32602 and "contextId" in error["message"]


@pytest.mark.proves("001-c6", "001-c6b")
@pytest.mark.parametrize("methods", [("send", "send"), ("stream", "stream"), ("send", "stream"), ("stream", "send")])
def test_the_second_turn_knows_the_first_and_its_answer(either: str, methods: tuple[str, str]) -> None:
    context = f"talk-{'-'.join(methods)}"
    for method, step in zip(methods, (("write My name is Ada.",), ("recall",)), strict=True):
        if method == "send":
            send(either, *step, context=context)
        else:
            with streaming(either, RPC, "SendStreamingMessage", said(*step, context=context)) as stream:
                stream.rest()
    latest = call(either, RPC, "ListTasks", {"contextId": context, "pageSize": 1})["tasks"][0]
    assert latest["contextId"] == context
    assert text(latest) == "[user]: write My name is Ada.\n[agent]: My name is Ada."


@pytest.mark.proves("001-c6")
def test_no_other_context_knows_it(base: str) -> None:
    send(base, "write A secret.", context="ours")
    assert text(send(base, "recall", context="theirs")) == ""
    assert text(send(base, "recall")) == ""


# --- lists ----------------------------------------------------------------------------------------------------


@pytest.mark.proves("001-7", "001-c5", "001-d10")
def test_pages_of_one_cover_everything_once(either: str) -> None:
    sent = [send(either, f"write {n}", context="pages") for n in range(3)]
    params: JSON = {"contextId": "pages", "pageSize": 1}
    listed: list[JSON] = []
    while True:
        page = call(either, RPC, "ListTasks", params)
        assert len(page["tasks"]) == 1
        listed += page["tasks"]
        if not page["nextPageToken"]:
            break
        params["pageToken"] = page["nextPageToken"]
    assert [task["id"] for task in listed] == [task["id"] for task in reversed(sent)]


@pytest.mark.proves("001-d10")
def test_a_list_holds_whole_tasks_unless_less_is_asked_for(either: str) -> None:
    task = send(either, "write Listed.", context="whole")
    task.pop("task", None)
    assert call(either, RPC, "ListTasks", {"contextId": "whole"})["tasks"] == [task]
    (slim,) = call(either, RPC, "ListTasks", {"contextId": "whole", "includeArtifacts": False})["tasks"]
    assert not slim.get("artifacts") and slim["id"] == task["id"]


@pytest.mark.proves("001-d10")
def test_a_list_is_of_one_state_if_that_is_asked_for(either: str) -> None:
    send(either, "fail No.", context="states")
    done = send(either, "write Yes.", context="states")
    for status, ids in (("TASK_STATE_COMPLETED", [done["id"]]), ("TASK_STATE_INPUT_REQUIRED", [])):
        found = call(either, RPC, "ListTasks", {"contextId": "states", "status": status})
        assert [task["id"] for task in found["tasks"]] == ids


@pytest.mark.proves("001-d10", "001-7", "S-12-15")
def test_a_list_is_of_everything(bare: str) -> None:
    sent = {send(bare, "write x")["id"] for _ in range(120)}
    listed = call(bare, RPC, "ListTasks", {})
    assert sent <= {task["id"] for task in listed["tasks"]} and not listed["nextPageToken"]


# --- cancelling -----------------------------------------------------------------------------------------------


@pytest.mark.proves("001-8", "001-12", "001-c5")
def test_a_running_task_is_cancelled_and_its_work_really_stops(either: str) -> None:
    with streaming(either, RPC, "SendStreamingMessage", said("write Begun. ", "work digging")) as stream:
        id = stream.until(lambda frame: "artifact" in frame.json())[0].json()["result"]["task"]["id"]
        assert text(send(either, "stopped digging")) == "False"
        cancelled = call(either, RPC, "CancelTask", {"id": id})
        *_, last, done = stream.rest()
    assert state(cancelled) == "TASK_STATE_CANCELED" and text(cancelled) == "Begun. "
    assert (state(last.json()), last.json()["final"], done.lines) == ("TASK_STATE_CANCELED", True, ("[DONE]",))
    assert text(send(either, "stopped digging")) == "True"
    assert call(either, RPC, "CancelTask", {"id": id}) == cancelled


@pytest.mark.proves("001-d7")
@pytest.mark.parametrize("step", ["write Done.", "fail No.", "reject No."])
def test_a_finished_task_is_not_cancelled_and_stays_as_it_was(base: str, step: str) -> None:
    task = send(base, step)["task"]
    assert refusal(base, RPC, "CancelTask", {"id": task["id"]})["code"] == -32002
    assert call(base, RPC, "GetTask", {"id": task["id"]}) == task


# --- errors ---------------------------------------------------------------------------------------------------

WRONG = [
    (b"not json", -32700, 500),
    (b"{}", -32600, 500),
    (b'{"jsonrpc":"2.0","id":1}', -32600, 500),
    (b"[]", -32600, 500),
    (envelope("Nothing", {}), -32601, 404),
    (envelope("GetTask", {"id": UNKNOWN}), -32001, 500),
    (envelope("CancelTask", {"id": UNKNOWN}), -32001, 500),
    (envelope("GetTask", {}), -32602, 500),
    (envelope("SendMessage", {}), -32602, 500),
    (envelope("SendMessage", said("hi", taskId=UNKNOWN)), -32001, 500),
    (envelope("SendStreamingMessage", {"message": {"role": "user"}}), -32602, 500),
]


@pytest.mark.proves("001-d8", "001-d9")
@pytest.mark.parametrize("headers", [{}, {"A2A-Version": "1.0"}], ids=["silent", "1.0"])
@pytest.mark.parametrize(("body", "code", "status"), WRONG)
def test_errors_have_official_numbers_and_cortex_s_statuses_by_setting(
    base: str, literal: str, body: bytes, code: int, status: int, headers: dict[str, str]
) -> None:
    for where, expected in ((base, 200), (literal, status)):
        answer = ask(where, "POST", RPC, body, headers)
        found = answer.json()
        assert (answer.status, found["error"]["code"]) == (expected, code)
        assert answer.headers["a2a-version"] == "1.0"
        assert "result" not in found and found["jsonrpc"] == "2.0"
        assert "Traceback" not in found["error"]["message"]


@pytest.mark.proves("001-d8", "001-d9")
def test_a_name_of_its_kind_is_its_own_also_where_others_come_first(bare: str) -> None:
    """Without the profile, who is silent at /a2a is taken for protoAgent's client, unless the name says otherwise."""
    answers = {name: ask(bare, "POST", RPC, envelope(name, {})) for name in ("Nothing", "nothing/here")}
    assert {name: answer.headers["a2a-version"] for name, answer in answers.items()} == {
        "Nothing": "1.0",
        "nothing/here": "0.3",
    }
    assert {answer.json()["error"]["code"] for answer in answers.values()} == {-32601}


@pytest.mark.proves("001-d9")
def test_every_answer_says_which_version_it_is_in(base: str) -> None:
    answers: list[Answer] = [ask(base, "GET", path) for path in CARDS]
    answers.append(ask(base, "GET", CARDS[0], headers={"If-None-Match": answers[0].headers["etag"]}))
    answers += [ask(base, "POST", RPC, envelope(name, {"id": UNKNOWN})) for name in ("ListTasks", "GetTask")]
    answers.append(ask(base, "POST", RPC, envelope("SendMessage", said("hi"))))
    assert [answer.headers["a2a-version"] for answer in answers] == ["1.0"] * 6
    assert answers[2].status == 304
    with streaming(base, RPC, "SendStreamingMessage", said("hi")) as stream:
        assert stream.headers["a2a-version"] == "1.0"


@pytest.mark.proves("001-d3")
def test_bytes_that_are_no_message_leave_nothing_behind(base: str) -> None:
    # How many there are: tasks of other tests may still be ending.
    before = call(base, RPC, "ListTasks", {})["totalSize"]
    for params in ({"message": {"parts": []}}, {"message": {"parts": [{}]}}, {"message": "hi"}):
        assert refusal(base, RPC, "SendMessage", json.loads(json.dumps(params)))["code"] == -32602
    assert call(base, RPC, "ListTasks", {})["totalSize"] == before
