"""Cortex: how it sees tasks, and how much its lists hold."""

import json
from typing import Any

import pytest
from msgspec.structs import replace

from dragoman.model.errors import UnsupportedOperation
from dragoman.model.messages import Message, Part, Role
from dragoman.model.operations import ListTasks, SendMessage, TaskPage
from dragoman.model.tasks import TaskState, TaskStatus, View
from dragoman.wire.exchange import Reply
from dragoman.wire.liberal import EVERYTHING
from dragoman.wire.settings import WireSettings
from tests.wire.wording import USER_10, artifact, asked, call, inbound, receive, understood, view

SAID = Message(message_id="u-8", role=Role.USER, parts=(Part(text="Rotate it"),))
LOOKS = Message(message_id="s-1", role=Role.AGENT, parts=(Part(text="Looking"),))
ROTATED = view(artifacts=(artifact(Part(text="Rotated.")),), history=(SAID, LOOKS))
STYLES = [WireSettings(), WireSettings(frames={"/a2a": "literal"}), WireSettings(frames={"/a2a": "plain"})]


def answered(method: str, params: dict[str, Any], value: Any, wire: WireSettings) -> Any:
    exchange = understood(call(method, params, path="/a2a", wire=wire))
    return json.loads(exchange.reply(value).body)["result"]


def words(task: Any) -> list[str]:
    return [message["parts"][0]["text"] for message in task["history"]]


@pytest.mark.parametrize("wire", STYLES, ids=["superset", "literal", "plain"])
def test_what_was_delivered_stands_in_the_history_which_is_as_long_as_was_asked_for(wire: WireSettings) -> None:
    assert words(answered("GetTask", {"id": "t-77"}, ROTATED, wire)) == ["Rotate it", "Looking", "Rotated."]
    assert words(answered("GetTask", {"id": "t-77", "historyLength": 2}, ROTATED, wire)) == ["Looking", "Rotated."]
    none = view(artifacts=ROTATED.task.artifacts)
    assert not answered("GetTask", {"id": "t-77", "historyLength": 0}, none, wire).get("history")
    sent = {"message": USER_10, "configuration": {"historyLength": 1}}
    found = answered("SendMessage", sent, ROTATED, wire)
    assert words(found.get("task", found)) == ["Rotated."]
    page = TaskPage(views=(ROTATED,), next_page_token="", page_size=1, total=1, artifacts=True)
    assert words(answered("ListTasks", {"historyLength": 1}, page, wire)["tasks"][0]) == ["Rotated."]


def test_a_task_nobody_works_on_yet_is_working_also_in_a_list() -> None:
    new = view(status=TaskStatus(state=TaskState.SUBMITTED))
    page = TaskPage(views=(new, View(uid="u", seq=1, task=new.task)), next_page_token="", page_size=2, total=2)
    listed = answered("ListTasks", {}, page, WireSettings())["tasks"]
    assert {task["status"]["state"] for task in listed} == {"TASK_STATE_WORKING"}
    stream = understood(call("SendStreamingMessage", {"message": USER_10}, path="/a2a"))
    assert b"TASK_STATE_WORKING" in stream.open(new)


def test_a_list_to_the_letter_has_tasks_as_its_sends_have_and_a_token() -> None:
    seen = View(uid="u", seq=1, task=view(metadata={"k": 1}).task)
    page = TaskPage(views=(seen,), next_page_token="n", page_size=1, total=2)
    listed = answered("ListTasks", {"pageSize": 1}, page, STYLES[1])
    bare = answered("GetTask", {"id": "t-77"}, seen, STYLES[1])
    assert listed == {"tasks": [bare], "nextPageToken": "n"}
    assert bare["metadata"] == {"k": 1}


def test_a_list_is_of_everything_unless_less_is_asked_for() -> None:
    for params, size in (({}, EVERYTHING), ({"pageSize": 7}, 7), ({"pageSize": 5_000}, 5_000)):
        assert asked(call("ListTasks", params, path="/a2a"), ListTasks).page_size == size
    assert asked(call("tasks/list", {"limit": 3}), ListTasks).page_size == 3
    assert asked(call("tasks/list", {}), ListTasks).page_size == EVERYTHING
    assert asked(call("ListTasks", {}, version="1.0"), ListTasks).page_size is None


def test_a_list_is_of_whole_tasks_unless_less_is_asked_for() -> None:
    for params, whole in (({}, True), ({"includeArtifacts": False}, False), ({"includeArtifacts": True}, True)):
        assert asked(call("ListTasks", params, path="/a2a"), ListTasks).include_artifacts is whole
        assert asked(call("tasks/list", params), ListTasks).include_artifacts is whole


@pytest.mark.parametrize("wire", STYLES[:2], ids=["superset", "literal"])
def test_a_direct_reply_is_a_completed_task_too(wire: WireSettings) -> None:
    said = Message(message_id="r-1", context_id="c-5", role=Role.AGENT, parts=(Part(text="Rotated."),))
    task = answered("SendMessage", {"message": USER_10}, said, wire)
    assert (task["id"], task["contextId"], task["status"]["state"]) == ("r-1", "c-5", "TASK_STATE_COMPLETED")
    assert task["artifacts"] == [{"artifactId": "r-1", "parts": [{"text": "Rotated."}]}]
    assert words(task) == ["Rotated."]
    official = {"messageId": "r-1", "contextId": "c-5", "role": "ROLE_AGENT", "parts": [{"text": "Rotated."}]}
    assert task.get("message", official) == official


def test_the_token_of_its_webhooks_is_a_credential() -> None:
    hook = {"id": "h", "url": "https://cb.example", "taskId": "", "authentication": {"schemeId": "x", "token": "t"}}
    params = {"message": USER_10, "configuration": {"pushNotificationConfig": hook}}
    config = asked(call("SendMessage", params, path="/a2a"), SendMessage).configuration.task_push_notification_config
    assert config is not None and config.authentication == {"scheme": "Bearer", "credentials": "t"}


def refused(body: object, wire: WireSettings, version: str = "", path: str = "/a2a") -> tuple[int, str, int]:
    """The status, the version and the code."""
    reply = receive(inbound("POST", path, body, version=version), wire)
    assert isinstance(reply, Reply)
    return reply.status, dict(reply.headers)[b"a2a-version"].decode(), json.loads(reply.body)["error"]["code"]


def test_who_names_neither_version_nor_method_is_taken_for_whom_the_card_names_first() -> None:
    wire = WireSettings(cortex_statuses=True)
    own = WireSettings(cortex_statuses=True, primary=("/a2a", "1.0"))
    unknown, silent = {"jsonrpc": "2.0", "id": 1, "method": "Dance"}, b"no json"
    assert refused(unknown, wire) == refused(unknown, own) == (404, "1.0", -32601)
    assert refused({**unknown, "method": "dance/now"}, wire) == (200, "0.3", -32601)
    assert refused(silent, wire) == (200, "0.3", -32700)
    assert refused(silent, own) == (500, "1.0", -32700)
    assert refused(silent, own, version="0.3") == (200, "0.3", -32700)
    assert refused(silent, wire, version="1.0") == (500, "1.0", -32700)
    assert refused(unknown, own, path="/") == (200, "0.3", -32601)  # official: silence is 0.3


def test_an_array_of_everything_says_when_it_is_not() -> None:
    exchange = understood(call("tasks/list", {}))
    cut = TaskPage(views=(ROTATED,), next_page_token="n", page_size=EVERYTHING, total=20_000)
    for page in (cut, replace(cut, page_size=2)):
        with pytest.raises(UnsupportedOperation, match="limit"):
            exchange.reply(page)
    for page in (replace(cut, page_size=1), replace(cut, next_page_token="")):
        assert len(json.loads(exchange.reply(page).body)["result"]) == 1
