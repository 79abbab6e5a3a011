"""Cortex: how it sees tasks, and how much its lists hold."""

import json
from typing import Any

import pytest

from dragoman.model.messages import Message, Part, Role
from dragoman.model.operations import ListTasks, TaskPage
from dragoman.model.tasks import TaskState, TaskStatus, View
from dragoman.wire.liberal import EVERYTHING
from dragoman.wire.settings import WireSettings
from tests.wire.wording import USER_10, artifact, asked, call, understood, view

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
