"""The reader of the seed mounts: names in every place and spelling, and none of two that contradict each other."""

import json
from typing import Any

import pytest

from dragoman.model.errors import InvalidParams
from dragoman.model.messages import Part
from dragoman.model.operations import DeletePush, GetPush, GetTask, ListPush, ListTasks, SendMessage
from dragoman.model.tasks import TaskState
from dragoman.wire import liberal
from dragoman.wire.settings import WireSettings
from tests.wire.wording import asked, call, error_of

SENDS = [
    ("/a2a/jsonrpc", "message/send"),
    ("/a2a", "message/send"),
    ("/a2a", "SendMessage"),
    ("/api/a2a", "message/send"),
    ("/", "tasks/send"),
]
BODY = {"role": "user", "parts": [{"text": "hi"}]}


def sent(path: str, method: str, inside: dict[str, Any], beside: dict[str, Any]) -> Any:
    return call(method, {"message": {**BODY, **inside}, **beside}, path=path)


@pytest.mark.proves("S-6-11", "S-6-10")
@pytest.mark.parametrize(("path", "method"), SENDS)
@pytest.mark.parametrize("task", ["taskId", "task_id"])
@pytest.mark.parametrize("context", ["contextId", "context_id"])
def test_a_task_and_its_context_are_named_in_the_message_or_beside_it(
    path: str, method: str, task: str, context: str
) -> None:
    names = {task: "t-77", context: "c-5"}
    for inside, beside in ((names, {}), ({}, names), (names, names), ({task: "t-77"}, {context: "c-5"})):
        message = asked(sent(path, method, inside, beside), SendMessage).message
        assert (message.task_id, message.context_id) == ("t-77", "c-5")


@pytest.mark.proves("S-6-11", "000-d3", "002-d10", "002-d11", "003-d7", "001-d3")
@pytest.mark.parametrize(("path", "method"), SENDS)
@pytest.mark.parametrize(
    ("inside", "beside", "where"),
    [
        ({"taskId": "t", "task_id": "u"}, {}, "message.taskId and message.task_id"),
        ({"taskId": "t"}, {"id": "u"}, "message.taskId and id"),
        ({"task_id": "t"}, {"task_id": "u"}, "message.task_id and task_id"),
        ({}, {"id": "t", "task_id": "u"}, "id and task_id"),
        ({"contextId": "c", "context_id": "d"}, {}, "message.contextId and message.context_id"),
        ({"contextId": "c"}, {"context_id": "d"}, "message.contextId and context_id"),
        ({"contextId": "c", "metadata": {"contextId": "d"}}, {}, "message.contextId and message.metadata.contextId"),
        ({}, {"contextId": "c", "metadata": {"contextId": "d"}}, "contextId and metadata.contextId"),
    ],
)
def test_names_that_differ_are_refused_wherever_they_stand(
    path: str, method: str, inside: dict[str, Any], beside: dict[str, Any], where: str
) -> None:
    error = error_of(sent(path, method, inside, beside))
    assert error["code"] == -32602 and f"is given differently in {where}" in error["message"]


@pytest.mark.parametrize("path", ["/a2a/jsonrpc", "/a2a", "/api/a2a"])
def test_a_session_is_a_context(path: str) -> None:
    for inside, beside in (({"sessionId": "c-5"}, {}), ({}, {"session_id": "c-5"}), ({"contextId": "c-5"}, {})):
        assert asked(sent(path, "message/send", inside, beside), SendMessage).message.context_id == "c-5"
    error = error_of(sent(path, "message/send", {"contextId": "c", "sessionId": "d"}, {}))
    assert error["code"] == -32602 and "message.contextId and message.sessionId" in error["message"]


@pytest.mark.proves("S-6-11", "000-d3", "003-d4")
@pytest.mark.parametrize("path", ["/a2a/jsonrpc", "/a2a", "/api/a2a"])
def test_an_operation_on_a_task_names_it_in_any_of_three_ways(path: str) -> None:
    for params in ({"id": "t"}, {"taskId": "t"}, {"task_id": "t"}, {"id": "t", "taskId": "t", "task_id": None}):
        assert asked(call("tasks/get", params, path=path), GetTask).id == "t"
    for params in ({"id": "t", "task_id": "u"}, {"taskId": "t", "task_id": "u"}):
        assert error_of(call("tasks/get", params, path=path))["code"] == -32602


@pytest.mark.proves("S-6-11")
@pytest.mark.parametrize(
    ("params", "task", "config"),
    [
        ({"taskId": "t"}, "t", ""),
        ({"id": "t"}, "t", ""),
        ({"task_id": "t", "id": "c"}, "t", "c"),
        ({"id": "t", "pushNotificationConfigId": "c"}, "t", "c"),
        ({"id": "t", "push_notification_config_id": "c"}, "t", "c"),
        ({"taskId": "t", "id": "t", "pushNotificationConfigId": "c"}, "t", "c"),
    ],
)
def test_an_operation_on_a_webhook_names_its_task_and_then_itself(
    params: dict[str, Any], task: str, config: str
) -> None:
    for path in ("/a2a/jsonrpc", "/a2a", "/api/a2a"):
        got = asked(call("tasks/pushNotificationConfig/get", params, path=path), GetPush)
        gone = asked(call("tasks/pushNotificationConfig/delete", params, path=path), DeletePush)
        assert (got.task_id, got.id) == (gone.task_id, gone.id) == (task, config)
        assert asked(call("tasks/pushNotificationConfig/list", params, path=path), ListPush).task_id == task


@pytest.mark.proves("S-6-11")
@pytest.mark.parametrize(
    "params",
    [
        {"taskId": "t", "task_id": "u"},
        {"taskId": "t", "pushNotificationConfigId": "c", "push_notification_config_id": "d"},
        {"taskId": "t", "id": "c", "pushNotificationConfigId": "d"},
        {"pushNotificationConfigId": "c"},
        {},
    ],
)
def test_no_webhook_is_guessed_from_names_that_differ(params: dict[str, Any]) -> None:
    error = error_of(call("tasks/pushNotificationConfig/delete", params, path="/a2a"))
    assert error["code"] == -32602


@pytest.mark.proves("S-6-10")
@pytest.mark.parametrize(("path", "method"), SENDS)
def test_null_is_data_where_nothing_else_is_in_the_part_and_absent_elsewhere(path: str, method: str) -> None:
    absent = {"text": "hi", "data": None, "file": None, "raw": None, "url": None, "metadata": None}
    message = asked(sent(path, method, {"parts": [{"data": None}, absent]}, {}), SendMessage).message
    assert message.parts == (Part(data=None), Part(text="hi"))
    assert error_of(sent(path, method, {"parts": [{"file": None}]}, {}))["code"] == -32602


@pytest.mark.proves("S-6-11")
@pytest.mark.parametrize(("path", "method"), [("/", "message/send"), ("/", "SendMessage"), *SENDS])
def test_one_member_spelled_twice_may_not_say_two_things(path: str, method: str) -> None:
    kind = {"kind": "text"} if (path, method) == ("/", "message/send") else {}
    who = "ROLE_USER" if (path, method) == ("/", "SendMessage") else "user"
    message = {"messageId": "m-1", "role": who, "parts": [{"text": "hi", **kind}]}
    same = {**message, "message_id": "m-1", "task_id": "t", "taskId": None}
    assert asked(call(method, {"message": same}, path=path), SendMessage).message.task_id == "t"
    error = error_of(call(method, {"message": {**message, "message_id": "m-2"}}, path=path))
    assert error["code"] == -32602 and "message.messageId: is given differently as message_id" in error["message"]


_TEXT: dict[str, Any] = {"kind": "text", "text": "hi"}


@pytest.mark.parametrize(
    "params",
    [
        {"message": {"parts": [{"text": "hi"}]}},
        {
            "message": {
                "kind": "message",
                "messageId": "m",
                "role": "user",
                "parts": [_TEXT, {"type": "text", "text": ""}],
            }
        },
        {"message": {"role": "ROLE_USER", "taskId": "t", "contextId": "c", "parts": [_TEXT]}},
        {"message": {"role": "agent", "parts": [_TEXT]}},
        {"message": {"parts": [_TEXT]}, "configuration": {"blocking": False}},
        {"message": {"parts": [_TEXT]}, "configuration": {"blocking": True, "acceptedOutputModes": ["text"]}},
        {"message": {"parts": [_TEXT]}, "configuration": {"blocking": None}},
        {"message": {"parts": [_TEXT]}, "configuration": {}},
        {"message": {"parts": [_TEXT], "taskId": "x" * 257}},
        {"message": {"parts": [_TEXT], "contextId": "a\nb"}},
        {"message": {"parts": []}},
        {"message": {"parts": [_TEXT] * 1001}},
        {"message": {"parts": [{"kind": "text", "text": 5}]}},
        {"message": {"parts": [_TEXT]}, "configuration": {"acceptedOutputModes": ["text"] * 1001}},
    ],
)
@pytest.mark.parametrize("name", ["SendMessage", "SendStreamingMessage"])
def test_the_quick_reader_and_the_careful_one_agree(name: str, params: dict[str, Any]) -> None:
    raw, wire = json.dumps(params).encode(), WireSettings()
    found: list[Any] = []
    for read in (lambda: liberal.read(name, raw, wire), lambda: liberal.read_fields(name, params, wire, False)):
        try:
            found.append(read())
        except InvalidParams as error:
            found.append(str(error))
    assert found[0] == found[1]


@pytest.mark.proves("001-d4")
@pytest.mark.parametrize(
    ("given", "now"),
    [
        ({}, False),
        ({"blocking": True}, False),
        ({"blocking": False}, True),
        ({"returnImmediately": True}, True),
        ({"returnImmediately": False, "blocking": False}, False),  # the newer word counts
    ],
)
@pytest.mark.parametrize("more", [{}, {"historyLength": 1}])
def test_who_does_not_want_to_wait_says_so_in_either_word(
    given: dict[str, bool], now: bool, more: dict[str, int]
) -> None:
    for path, method in SENDS:
        found = asked(sent(path, method, {}, {"configuration": given | more}), SendMessage)
        assert found.configuration.return_immediately is now


@pytest.mark.parametrize(("path", "method"), SENDS)
@pytest.mark.parametrize(
    ("part", "meant"),
    [
        (
            {"kind": "file", "file": {"bytes": "aGk", "name": "a", "mimeType": "b/c"}},
            Part(raw=b"hi", filename="a", media_type="b/c"),
        ),
        ({"file": {"file_with_bytes": "aGk="}}, Part(raw=b"hi")),
        ({"file": {"fileWithUri": "https://a/b", "media_type": "b/c"}}, Part(url="https://a/b", media_type="b/c")),
        ({"kind": "file", "file": {"name": "a"}}, Part(url="", filename="a")),
        ({"raw": "aGk=", "mediaType": "b/c", "filename": "a"}, Part(raw=b"hi", filename="a", media_type="b/c")),
        ({"url": "https://a/b", "mime_type": "b/c"}, Part(url="https://a/b", media_type="b/c")),
        ({"kind": "data", "data": [1]}, Part(data=[1])),
        ({"type": "text", "text": "", "metadata": {"m": 1}}, Part(text="", metadata={"m": 1})),
    ],
)
def test_a_part_is_known_by_its_members_whichever_version_they_are_from(
    path: str, method: str, part: dict[str, Any], meant: Part
) -> None:
    if (path, part.get("type")) == ("/", "text"):
        return  # a type is 0.1's there
    for inside in ({"parts": [part]}, {"parts": None, "content": [part]}):
        assert asked(sent(path, method, inside, {}), SendMessage).message.parts == (meant,)


@pytest.mark.parametrize("word", ["input_required", "input-required", "TASK_STATE_INPUT_REQUIRED"])
def test_a_list_of_one_state_takes_its_name_from_any_dialect(word: str) -> None:
    for path, method in (("/", "tasks/list"), ("/a2a", "ListTasks"), ("/a2a/jsonrpc", "tasks/list")):
        assert asked(call(method, {"status": word}, path=path), ListTasks).status is TaskState.INPUT_REQUIRED
    for nothing in ("unknown", "TASK_STATE_UNSPECIFIED", None):
        assert asked(call("tasks/list", {"status": nothing}), ListTasks).status is None
