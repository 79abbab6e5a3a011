"""Protocol 0.3 over HTTP+JSON: under /v1, in the JSON of its gRPC file, read in every spelling in use."""

import json
from base64 import b64encode
from typing import Any

import pytest

from dragoman.model.errors import InvalidParams
from dragoman.model.facts import Chunk, Created, Entry, Said, Settled
from dragoman.model.messages import Message, Part, Role
from dragoman.model.operations import (
    CancelTask,
    CreatePush,
    DeletePush,
    GetExtendedCard,
    GetPush,
    GetTask,
    ListPush,
    ListTasks,
    PushConfig,
    PushPage,
    SendMessage,
    SendStreamingMessage,
    SubscribeToTask,
    TaskPage,
)
from dragoman.model.tasks import TaskState, TaskStatus
from dragoman.wire.p03 import P03
from dragoman.wire.settings import WireSettings
from tests.wire.wording import (
    AT,
    REF,
    USER_03,
    USER_P03,
    agent_reports,
    agent_says,
    artifact,
    asked,
    body_of,
    frames_of,
    header,
    refused,
    understood,
    view,
    visit,
)

PYTHON = {"user-agent": "python-httpx/0.28"}
NODE = {"user-agent": "node"}
SEND = "/v1/message:send"


def sent(message: object, **more: Any) -> SendMessage:
    return asked(visit("POST", SEND, {"message": message}, **more), SendMessage)


def wrong(body: object, path: str = SEND) -> str:
    found = refused(visit("POST", path, body))
    assert found.status == 400
    told = body_of(found)
    assert (told["code"], told["type"]) == (-32602, "InvalidParamsError")
    assert set(told) == {"code", "type", "message"}
    return told["message"]


class TestReading:
    @pytest.mark.proves("S-6-11")
    @pytest.mark.parametrize(
        "message",
        [
            {
                "messageId": "u-8",
                "role": "ROLE_USER",
                "content": [
                    {"text": "Rotate"},
                    {"file": {"fileWithBytes": "AP8=", "name": "x", "mimeType": "a/b"}},
                    {"file": {"fileWithUri": "https://f.example"}},
                    {"data": {"data": {"angle": 90}}, "metadata": {"u": 1}},
                ],
            },
            {
                "message_id": "u-8",
                "role": 1,
                "content": [
                    {"text": "Rotate"},
                    {"file": {"file_with_bytes": "AP8=", "name": "x", "mime_type": "a/b"}},
                    {"file": {"file_with_uri": "https://f.example"}},
                    {"data": {"data": {"angle": 90}}, "metadata": {"u": 1}},
                ],
            },
            {
                "kind": "message",
                "messageId": "u-8",
                "role": "user",
                "parts": [
                    {"kind": "text", "text": "Rotate"},
                    {"kind": "file", "file": {"bytes": "AP8=", "name": "x", "mimeType": "a/b"}},
                    {"kind": "file", "file": {"uri": "https://f.example"}},
                    {"kind": "data", "data": {"angle": 90}, "metadata": {"u": 1}},
                ],
            },
            {
                "messageId": "u-8",
                "role": "ROLE_USER",
                "parts": [
                    {"text": "Rotate"},
                    {"file": {"fileWithBytes": "AP8", "name": "x", "mimeType": "a/b"}},
                    {"file": {"fileWithUri": "https://f.example"}},
                    {"data": {"angle": 90}, "metadata": {"u": 1}},
                ],
            },
        ],
    )
    @pytest.mark.parametrize("name", ["message", "request"])
    def test_every_spelling_in_use_means_the_same(self, message: object, name: str) -> None:
        assert asked(visit("POST", SEND, {name: message}), SendMessage).message == Message(
            message_id="u-8",
            role=Role.USER,
            parts=(
                Part(text="Rotate"),
                Part(raw=b"\x00\xff", filename="x", media_type="a/b"),
                Part(url="https://f.example"),
                Part(data={"angle": 90}, metadata={"u": 1}),
            ),
        )

    def test_wrapped_data_is_unwrapped(self) -> None:
        parts = [{"data": {"data": {"value": [3, 1]}}, "metadata": {"data_part_compat": True}}]
        assert sent({**USER_P03, "content": parts}).message.parts == (Part(data=[3, 1]),)
        assert sent({**USER_P03, "content": [{"data": {"data": {}}}]}).message.parts == (Part(data={}),)

    @pytest.mark.parametrize(
        ("body", "immediately"),
        [
            ({"message": USER_P03}, False),
            ({"message": USER_P03, "configuration": {}}, True),
            ({"message": USER_P03, "configuration": {"blocking": False}}, True),
            ({"message": USER_P03, "configuration": {"blocking": True}}, False),
        ],
    )
    def test_a_configuration_that_does_not_ask_to_wait_does_not(self, body: object, immediately: bool) -> None:
        operation = asked(visit("POST", "/v1/message:stream", body), SendStreamingMessage)
        assert operation.configuration.return_immediately is immediately

    def test_zero_history_is_no_limit(self) -> None:
        body = {"message": USER_P03, "configuration": {"history_length": 0, "push_notification": {"url": "u"}}}
        configuration = asked(visit("POST", SEND, body), SendMessage).configuration
        assert configuration.history_length is None
        assert configuration.task_push_notification_config == PushConfig(url="u")
        assert asked(visit("GET", "/v1/tasks/t-77", query="historyLength=0"), GetTask).history_length is None
        assert asked(visit("GET", "/v1/tasks/t-77", query="history_length=7"), GetTask).history_length == 7

    @pytest.mark.parametrize(
        ("message", "says"),
        [
            ({"messageId": ""}, "message.messageId: must not be empty"),
            ({"content": []}, "message.content: must not be empty"),
            ({"content": [{}]}, "message.content[0]: must have exactly one of text, file and data; has none"),
            ({"content": [{"text": "a", "file": {"fileWithUri": "u"}}]}, "has text and file"),
            ({"content": [{"file": {}}]}, "message.content[0].file: must have exactly one of fileWithBytes"),
            ({"content": [{"file": {"fileWithUri": "u", "fileWithBytes": "AA=="}}]}, "has both"),
            ({"content": [{"file": {"fileWithBytes": "*"}}]}, "message.content[0].file.fileWithBytes: must be base64"),
            ({"content": [{"data": [1]}]}, "message.content[0].data: must be an object"),
            ({"content": [{"kind": "data", "data": [1]}]}, "message.content[0].data: must be an object"),
            ({"content": ["x"]}, "message.content[0]: must be an object"),
            ({"role": "ROLE_ROBOT"}, "message.role: 'ROLE_ROBOT' is not a known value"),
            ({"role": "ROLE_UNSPECIFIED"}, "message.role: must not be empty"),
        ],
    )
    def test_a_bad_message_is_named_in_the_callers_words(self, message: dict[str, Any], says: str) -> None:
        assert says in wrong({"message": {**USER_P03, **message}})

    @pytest.mark.parametrize("agent", ["", "curl/8", "python-httpx/0.28", "Go-http-client/1.1"])
    def test_bytes_that_were_encoded_twice_are_decoded_twice(self, agent: str) -> None:
        twice = b64encode(b64encode(b"\x00\xff")).decode()
        message = {**USER_P03, "content": [{"file": {"fileWithBytes": twice}}]}
        assert sent(message, headers={"user-agent": agent}).message.parts[0].raw == b"\x00\xff"

    def test_a_strangers_short_text_is_not_taken_for_base64(self) -> None:
        message = {**USER_P03, "content": [{"file": {"fileWithBytes": b64encode(b"test").decode()}}]}
        assert sent(message).message.parts[0].raw == b"test"
        long = b64encode(b64encode(b"\xff" * 18)).decode()
        message = {**USER_P03, "content": [{"file": {"fileWithBytes": long}}]}
        assert sent(message).message.parts[0].raw == b"\xff" * 18

    def test_a_peer_known_to_encode_once_is_taken_at_its_word(self) -> None:
        message = {**USER_P03, "content": [{"file": {"fileWithBytes": b64encode(b"test").decode()}}]}
        assert sent(message, headers=NODE).message.parts[0].raw == b"test"

    @pytest.mark.parametrize("content", [b"", b"tes", b"te t", b"\x00\xff", b"tR==", b"{}=="])
    def test_bytes_that_are_no_clean_base64_are_left_alone(self, content: bytes) -> None:
        message = {**USER_P03, "content": [{"file": {"fileWithBytes": b64encode(content).decode()}}]}
        assert sent(message, headers=PYTHON).message.parts[0].raw == content

    def test_the_other_operations(self) -> None:
        assert asked(visit("GET", "/v1/tasks/t-77"), GetTask) == GetTask(id="t-77")
        assert asked(visit("GET", "/v1/tasks", query="pageSize=5"), ListTasks) == ListTasks(page_size=5)
        for body in (None, {}, {"name": "tasks/other"}, b"null", b" "):
            headers = {"content-type": "application/json"}
            assert asked(visit("POST", "/v1/tasks/t-77:cancel", body, headers=headers), CancelTask).id == "t-77"
        for verb in ("GET", "POST"):
            assert asked(visit(verb, "/v1/tasks/t-77:subscribe"), SubscribeToTask).id == "t-77"
        hooks = "/v1/tasks/t-77/pushNotificationConfigs"
        assert asked(visit("GET", hooks), ListPush) == ListPush(task_id="t-77")
        assert asked(visit("GET", f"{hooks}/h-1"), GetPush) == GetPush(task_id="t-77", id="h-1")
        assert asked(visit("DELETE", f"{hooks}/h-1"), DeletePush) == DeletePush(task_id="t-77", id="h-1")
        for page in ("/v1/card", "/agent/authenticatedExtendedCard"):
            assert asked(visit("GET", page), GetExtendedCard) == GetExtendedCard()

    @pytest.mark.parametrize(
        "body",
        [
            {
                "parent": "tasks/t-77",
                "configId": "h-1",
                "config": {"name": "tasks/t-77/pushNotificationConfigs/h-1", "pushNotificationConfig": {"url": "u"}},
            },
            {"parent": "tasks/t-77", "config_id": "h-1", "config": {"push_notification_config": {"url": "u"}}},
            {"name": "tasks/t-77/pushNotificationConfigs/h-1", "pushNotificationConfig": {"url": "u", "id": "h-1"}},
            {"config": {"url": "u", "id": "h-1"}},
            {"taskId": "other", "pushNotificationConfig": {"url": "u", "id": "h-1"}},
            {"url": "u", "id": "h-1"},
            {"config": {"url": "u", "id": "h-1", "token": "", "authentication": {}}},
            {"config": {"url": "u", "id": "h-1", "authentication": {"schemes": [], "credentials": ""}}},
        ],
    )
    def test_a_push_config_comes_in_many_wrappings(self, body: object) -> None:
        found = asked(visit("POST", "/v1/tasks/t-77/pushNotificationConfigs", body), CreatePush)
        assert found.config == PushConfig(task_id="t-77", id="h-1", url="u")

    def test_a_bad_push_config_is_named_where_it_stands(self) -> None:
        path = "/v1/tasks/t-77/pushNotificationConfigs"
        assert (
            wrong({"config": {"pushNotificationConfig": {}}}, path) == "config.pushNotificationConfig.url: is required"
        )
        assert wrong({"configId": 5, "config": {"url": "u"}}, path).startswith("configId: must be a string")

    def test_a_tenant_may_stand_before_v1(self) -> None:
        found = understood(visit("POST", "/studio/v1/message:send", {"message": USER_P03}))
        assert (found.tenant, found.origin) == ("studio", "0.3")

    def test_v1_is_a_tenant_of_1_0(self) -> None:
        found = understood(visit("GET", "/v1/tasks/t-77", version="1.0"))
        assert (found.tenant, found.origin) == ("v1", "1.0")
        assert refused(visit("GET", "/v1/card", version="1.0")).status == 404

    def test_kinds_of_k03_are_read(self) -> None:
        assert sent(USER_03).message.parts == (Part(text="Rotate it"),)


class TestWriting:
    def exchange(self, path: str = SEND, **more: Any) -> Any:
        body = {"message": USER_P03} if path.endswith(("send", "stream")) else None
        return understood(visit("POST" if body else "GET", path, body, **more))

    def test_a_task_holds_only_what_old_readers_know(self) -> None:
        reply = self.exchange().reply(
            view(
                artifacts=(
                    artifact(
                        Part(text=""),
                        Part(raw=b"\x00\xff", filename="x", media_type="a/b"),
                        Part(url="https://f.example"),
                        Part(data={"x": 1}, metadata={}),
                        Part(data=5),
                        name="n",
                        description="d",
                        metadata={"z": 1},
                        extensions=("urn:x",),
                    ),
                ),
                history=(
                    Message(
                        message_id="u",
                        role=Role.USER,
                        parts=(Part(text="q"),),
                        reference_task_ids=("t-1",),
                        metadata={"k": 1},
                        extensions=("urn:x",),
                    ),
                ),
                status=TaskStatus(state=TaskState.CANCELED, message=agent_reports(), timestamp=AT),
                metadata={"k": 1},
            )
        )
        assert header(reply, "content-type") == "application/json"
        assert body_of(reply) == {
            "task": {
                "id": "t-77",
                "contextId": "c-5",
                "status": {
                    "state": "TASK_STATE_CANCELLED",
                    "message": {
                        "messageId": "m-9",
                        "contextId": "c-5",
                        "taskId": "t-77",
                        "role": "ROLE_AGENT",
                        "content": [{"text": "done"}],
                    },
                    "timestamp": AT,
                },
                "artifacts": [
                    {
                        "artifactId": "a-3",
                        "name": "n",
                        "description": "d",
                        "parts": [
                            {"text": ""},
                            {"file": {"fileWithBytes": "AP8=", "name": "x", "mimeType": "a/b"}},
                            {"file": {"fileWithUri": "https://f.example"}},
                            {"data": {"data": {"x": 1}}, "metadata": {}},
                            {"data": {"data": {"value": 5}}, "metadata": {"data_part_compat": True}},
                        ],
                        "metadata": {"z": 1},
                        "extensions": ["urn:x"],
                    }
                ],
                "history": [
                    {
                        "messageId": "u",
                        "role": "ROLE_USER",
                        "content": [{"text": "q"}],
                        "metadata": {"k": 1},
                        "extensions": ["urn:x"],
                    }
                ],
                "metadata": {"k": 1},
            }
        }

    def test_get_answers_a_bare_task(self) -> None:
        assert body_of(self.exchange("/v1/tasks/t-77").reply(view(status=None))) == {
            "id": "t-77",
            "contextId": "c-5",
            "status": {},
        }

    def test_python_and_go_peers_get_their_bytes_twice_encoded(self) -> None:
        task = view(artifacts=(artifact(Part(raw=b"\x00\xff")),))
        for headers, shown in ((PYTHON, "QVA4PQ=="), (NODE, "AP8="), ({}, "AP8=")):
            body = body_of(self.exchange("/v1/tasks/t-77", headers=headers).reply(task))
            assert body["artifacts"][0]["parts"] == [{"file": {"fileWithBytes": shown}}]

    def test_a_direct_answer_is_wrapped(self) -> None:
        found = body_of(self.exchange().reply(agent_says(context_id="c-5")))
        assert found["message"]["content"] == [{"text": "done"}]

    def test_lists_and_push_configs(self) -> None:
        page = TaskPage(views=(view(),), next_page_token="", page_size=50, total=1)
        found = body_of(self.exchange("/v1/tasks").reply(page))
        assert (len(found["tasks"]), found["nextPageToken"], found["pageSize"], found["totalSize"]) == (1, "", 50, 1)
        exchange = self.exchange("/v1/tasks/t-77/pushNotificationConfigs")
        shown = {"name": "tasks/t-77/pushNotificationConfigs/h-1", "pushNotificationConfig": {"id": "h-1", "url": "u"}}
        config = PushConfig(task_id="t-77", id="h-1", url="u")
        assert body_of(exchange.reply(config)) == shown
        assert body_of(exchange.reply(PushPage(configs=(config,)))) == {"configs": [shown]}
        assert body_of(exchange.reply(PushPage())) == {}
        assert body_of(exchange.reply(PushPage(next_page_token="n"))) == {"nextPageToken": "n"}
        assert body_of(exchange.reply(None)) == {}

    def test_streams(self) -> None:
        exchange = self.exchange("/v1/message:stream")
        ((_, opened),) = frames_of(exchange.open(view()))
        assert list(opened) == ["task"]
        entries = [
            Entry(1, Created(message=Message(message_id="u"))),
            Entry(2, Said(status=TaskStatus(state=TaskState.WORKING), metadata={"m": 1})),
            Entry(3, Chunk(artifact=artifact(Part(text="a")), append=True, metadata={"q": 1})),
            Entry(4, Chunk(artifact=artifact(Part(text="b")))),
            Entry(5, Settled(status=TaskStatus(state=TaskState.CANCELED))),
        ]
        home = {"taskId": "t-77", "contextId": "c-5"}
        piece = {"artifactId": "a-3"}
        assert [data for _, data in frames_of(exchange.frames(REF, entries, True))] == [
            {"statusUpdate": {**home, "status": {"state": "TASK_STATE_WORKING"}, "metadata": {"m": 1}}},
            {
                "artifactUpdate": {
                    **home,
                    "artifact": {**piece, "parts": [{"text": "a"}]},
                    "metadata": {"q": 1},
                    "append": True,
                }
            },
            {"artifactUpdate": {**home, "artifact": {**piece, "parts": [{"text": "b"}]}}},
            {"statusUpdate": {**home, "status": {"state": "TASK_STATE_CANCELLED"}, "final": True}},
        ]

    def test_the_cache_keeps_peers_apart(self) -> None:
        entry = Entry(2, Chunk(artifact=artifact(Part(raw=b"\x00\xff"))))
        shown = [
            frames_of(self.exchange("/v1/message:stream", headers=headers).frames(REF, [entry], False))
            for headers in (PYTHON, NODE)
        ]
        assert "QVA4PQ==" in json.dumps(shown[0]) and "AP8=" in json.dumps(shown[1])


@pytest.mark.parametrize(
    "params",
    [
        {"message": {"messageId": "m", "role": "ROLE_USER", "content": [{"text": "hi"}]}},
        {"message": {"messageId": "m", "role": "ROLE_USER", "content": [{"text": "hi"}, {"text": ""}], "taskId": "t"}},
        {
            "message": {"messageId": "m", "role": "ROLE_USER", "content": [{"text": "hi"}], "contextId": "c"},
            "configuration": {"blocking": True, "acceptedOutputModes": ["text/plain"]},
        },
        {"message": {"messageId": "m", "role": "ROLE_USER", "content": [{"text": "hi"}]}, "configuration": {}},
        {
            "message": {"messageId": "m", "role": "ROLE_USER", "content": [{"text": "hi"}]},
            "configuration": {"historyLength": 3},
            "metadata": {"a": 1},
        },
        {"request": {"message_id": "m", "role": 1, "parts": [{"kind": "text", "text": "hi"}]}},
        {"message": {"messageId": "m", "role": "ROLE_AGENT", "content": [{"text": "hi", "metadata": {"a": 1}}]}},
        {"message": {"messageId": "", "role": "ROLE_USER", "content": [{"text": "hi"}]}},
        {"message": {"messageId": "m", "role": "ROLE_USER", "content": []}},
        {"message": {"messageId": "m\n", "role": "ROLE_USER", "content": [{"text": "hi"}]}},
        {"message": {"messageId": "m", "role": "ROLE_USER", "content": [{"text": "hi"}] * 1001}},
        {"message": {"messageId": "m", "role": "ROLE_USER", "content": [{"text": "hi", "data": {}}]}},
    ],
)
@pytest.mark.parametrize("name", ["SendMessage", "SendStreamingMessage"])
def test_the_quick_reader_and_the_careful_one_agree(name: str, params: dict[str, Any]) -> None:
    raw, wire = json.dumps(params).encode(), WireSettings()
    found: list[Any] = []
    for read in (lambda: P03.read(name, raw, wire), lambda: P03.read_fields(name, params, wire, False)):
        try:
            found.append(read())
        except InvalidParams as error:
            found.append(str(error))
    assert found[0] == found[1]
