"""Protocol 0.3 over JSON-RPC: `kind` on everything, bare results, `final` on the last status."""

from typing import Any

import pytest

from dragoman.model.errors import Unauthenticated
from dragoman.model.facts import Asked, Chunk, Created, Entry, Said, Settled
from dragoman.model.messages import Message, Part, Role
from dragoman.model.operations import (
    CancelTask,
    CreatePush,
    DeletePush,
    GetPush,
    GetTask,
    ListPush,
    PushConfig,
    PushPage,
    SendMessage,
    SendStreamingMessage,
    SubscribeToTask,
    TaskPage,
)
from dragoman.model.tasks import TaskState, TaskStatus
from dragoman.wire.k03 import K03
from dragoman.wire.settings import WireSettings
from dragoman.wire.shapes03 import STATES
from tests.wire.wording import (
    AT,
    REF,
    USER_03,
    agent_reports,
    agent_says,
    artifact,
    asked,
    body_of,
    call,
    error_of,
    frames_of,
    header,
    refused,
    task,
    understood,
    view,
)


def sent(message: dict[str, Any], **params: Any) -> SendMessage:
    return asked(call("message/send", {"message": message, **params}), SendMessage)


def wrong(method: str, params: object) -> str:
    error = error_of(call(method, params))
    assert error["code"] == -32602
    assert "data" not in error
    return error["message"]


class TestReading:
    @pytest.mark.parametrize("extra", [{}, {"unknown": 1}])
    def test_a_message_with_everything(self, extra: dict[str, Any]) -> None:
        operation = asked(
            call(
                "message/stream",
                {
                    "message": {
                        "kind": "message",
                        "messageId": "u-8",
                        "contextId": "c-5",
                        "taskId": "t-77",
                        "role": "user",
                        "parts": [
                            {"kind": "text", "text": "Rotate", "metadata": {"lang": "en"}},
                            {
                                "kind": "file",
                                "file": {"bytes": "UklGRg==", "name": "dog.webp", "mimeType": "image/webp"},
                            },
                            {"kind": "file", "file": {"uri": "https://files.example/dog.webp"}},
                            {"kind": "data", "data": {"angle": 90}},
                            {"kind": "data", "data": {"value": [3, 1]}, "metadata": {"data_part_compat": True}},
                        ],
                        "metadata": {"n": 1},
                        "extensions": ["urn:x"],
                        "referenceTaskIds": ["t-1"],
                        **extra,
                    },
                    "configuration": {"acceptedOutputModes": ["image/webp"], "historyLength": 3, "blocking": False},
                    "metadata": {"skill": "rotate"},
                },
            ),
            SendStreamingMessage,
        )
        assert operation.message == Message(
            message_id="u-8",
            context_id="c-5",
            task_id="t-77",
            role=Role.USER,
            parts=(
                Part(text="Rotate", metadata={"lang": "en"}),
                Part(raw=b"RIFF", filename="dog.webp", media_type="image/webp"),
                Part(url="https://files.example/dog.webp"),
                Part(data={"angle": 90}),
                Part(data=[3, 1]),
            ),
            metadata={"n": 1},
            extensions=("urn:x",),
            reference_task_ids=("t-1",),
        )
        assert operation.metadata == {"skill": "rotate"}
        assert operation.configuration.accepted_output_modes == ("image/webp",)
        assert (operation.configuration.history_length, operation.configuration.return_immediately) == (3, True)

    @pytest.mark.parametrize(
        ("configuration", "immediately"),
        [({}, False), ({"blocking": True}, False), ({"blocking": False}, True), ({"blocking": None}, False)],
    )
    def test_waiting_is_the_rule_unless_refused(self, configuration: dict[str, Any], immediately: bool) -> None:
        assert sent(USER_03, configuration=configuration).configuration.return_immediately is immediately
        assert not sent(USER_03).configuration.return_immediately

    def test_nothing_of_history_is_kept_apart_from_all_of_it(self) -> None:
        assert sent(USER_03, configuration={"historyLength": 0}).configuration.history_length == 0
        assert sent(USER_03, configuration={"historyLength": "4"}).configuration.history_length == 4
        assert sent(USER_03).configuration.history_length is None

    def test_a_message_may_leave_out_its_kind_and_spell_nulls(self) -> None:
        bare = {key: value for key, value in USER_03.items() if key != "kind"}
        expected = sent(USER_03).message
        assert sent(bare).message == expected
        assert sent({**bare, "taskId": None, "metadata": None}).message == expected

    def test_a_push_config_inside_is_flattened(self) -> None:
        hook = {"url": "https://cb.example", "authentication": {"schemes": ["Bearer", "Basic"], "credentials": "s"}}
        config = sent(USER_03, configuration={"pushNotificationConfig": hook}).configuration
        assert config.task_push_notification_config == PushConfig(
            url="https://cb.example", authentication={"scheme": "Bearer", "credentials": "s"}
        )

    @pytest.mark.parametrize(
        ("message", "says"),
        [
            ({"kind": "task"}, "message.kind: must be 'message'"),
            ({"messageId": None}, "message.messageId: is required"),
            ({"messageId": ""}, "message.messageId: must not be empty"),
            ({"role": "ROLE_USER"}, "message.role: 'ROLE_USER' is not a known value; use one of user, agent"),
            ({"role": 1}, "message.role: '1' is not a known value"),
            ({"parts": []}, "message.parts: must not be empty"),
            ({"parts": [{"text": "hi"}]}, "message.parts[0].kind: is required"),
            ({"parts": [{"kind": "video"}]}, "message.parts[0].kind: 'video' is not known; use text, file or data"),
            ({"parts": [{"kind": 5}]}, "message.parts[0].kind: '5' is not known"),
            ({"parts": ["hi"]}, "message.parts[0]: must be an object, not a string"),
            ({"parts": [{"kind": "text"}]}, "message.parts[0].text: is required"),
            ({"parts": [{"kind": "text", "text": 5}]}, "message.parts[0].text: must be a string"),
            ({"parts": [{"kind": "file"}]}, "message.parts[0].file: is required"),
            (
                {"parts": [{"kind": "file", "file": {}}]},
                "message.parts[0].file: must have exactly one of bytes and uri; has none",
            ),
            ({"parts": [{"kind": "file", "file": {"bytes": "", "uri": ""}}]}, "has both"),
            ({"parts": [{"kind": "file", "file": {"bytes": "*"}}]}, "message.parts[0].file.bytes: must be base64"),
            ({"parts": [{"kind": "text", "text": "a", "data": {}}]}, "message.parts[0]: must have exactly one of"),
            ({"parts": [{"kind": "data", "data": [1]}]}, "message.parts[0].data: must be an object, not an array"),
            ({"parts": [{"kind": "data"}]}, "message.parts[0].data: is required"),
            ({"taskId": "a\nb"}, "message.taskId: must not contain control characters"),
            ({"referenceTaskIds": ["x" * 300]}, "message.referenceTaskIds[0]: must be at most 256 characters"),
        ],
    )
    def test_a_bad_message_is_named_in_the_callers_words(self, message: dict[str, Any], says: str) -> None:
        assert says in wrong("message/send", {"message": {**USER_03, **message}})

    def test_too_many_parts_are_refused(self) -> None:
        params = {"message": {**USER_03, "parts": USER_03["parts"] * 3}}  # type: ignore[operator]
        error = error_of(call("message/send", params, wire=WireSettings(max_parts=2)))
        assert error["message"] == "message.parts: must have at most 2 items"

    @pytest.mark.parametrize(
        ("method", "params"),
        [
            ("message/send", {}),
            ("message/send", {"message": USER_03, "configuration": {"historyLength": -1}}),
            ("message/send", {"message": USER_03, "configuration": {"blocking": "no"}}),
            ("message/send", {"message": USER_03, "configuration": {"pushNotificationConfig": {}}}),
            (
                "message/send",
                {
                    "message": USER_03,
                    "configuration": {"pushNotificationConfig": {"url": "u", "authentication": {"schemes": []}}},
                },
            ),
            ("tasks/get", {}),
            ("tasks/get", {"id": 5}),
            ("tasks/get", {"id": "t", "historyLength": -1}),
            ("tasks/cancel", {"id": ""}),
            ("tasks/pushNotificationConfig/set", {"taskId": "t"}),
            ("tasks/pushNotificationConfig/set", {"pushNotificationConfig": {"url": "u"}}),
            ("tasks/pushNotificationConfig/delete", {"id": "t"}),
        ],
    )
    def test_bad_parameters_are_refused(self, method: str, params: object) -> None:
        assert wrong(method, params)

    def test_the_other_operations(self) -> None:
        assert asked(call("tasks/get", {"id": "t-77", "historyLength": 0}), GetTask) == GetTask(
            id="t-77", history_length=0
        )
        assert asked(call("tasks/cancel", {"id": "t-77", "metadata": {}}), CancelTask) == CancelTask(
            id="t-77", metadata={}
        )
        assert asked(call("tasks/resubscribe", {"id": "t-77"}), SubscribeToTask) == SubscribeToTask(id="t-77")
        created = asked(
            call(
                "tasks/pushNotificationConfig/set",
                {"taskId": "t-77", "pushNotificationConfig": {"id": "h-1", "url": "https://cb.example", "token": "n"}},
            ),
            CreatePush,
        )
        assert created.config == PushConfig(task_id="t-77", id="h-1", url="https://cb.example", token="n")
        two = {"id": "t-77", "pushNotificationConfigId": "h-1"}
        method = "tasks/pushNotificationConfig"
        assert asked(call(f"{method}/get", two), GetPush) == GetPush(task_id="t-77", id="h-1")
        assert asked(call(f"{method}/get", {"id": "t-77"}), GetPush) == GetPush(task_id="t-77")
        assert asked(call(f"{method}/delete", two), DeletePush) == DeletePush(task_id="t-77", id="h-1")
        assert asked(call(f"{method}/list", {"id": "t-77"}), ListPush) == ListPush(task_id="t-77")


class TestWriting:
    def result(self, value: Any, method: str = "message/send") -> Any:
        params = {"message": USER_03} if method.startswith("message") else {"id": "t-77"}
        return body_of(understood(call(method, params)).reply(value))["result"]

    def test_a_task_is_bare_and_everything_has_its_kind(self) -> None:
        shown = self.result(
            view(
                artifacts=(
                    artifact(
                        Part(text="a", media_type="text/markdown"),
                        Part(raw=b"\x00\xff", filename="b.bin", media_type="a/b"),
                        Part(url="https://f.example"),
                        Part(data={"x": 1}, metadata={"y": 2}),
                        Part(data=[1], metadata={"y": 2}),
                        Part(data=None),
                        name="n",
                        description="d",
                        metadata={"z": 3},
                        extensions=("urn:x",),
                    ),
                ),
                history=(
                    Message(message_id="u", role=Role.USER, parts=(Part(text="q"),), context_id="c-5", task_id="t-77"),
                ),
                status=TaskStatus(state=TaskState.CANCELED, message=agent_reports(), timestamp=AT),
                metadata={"k": 1},
            )
        )
        assert shown == {
            "kind": "task",
            "id": "t-77",
            "contextId": "c-5",
            "status": {
                "state": "canceled",
                "message": {
                    "kind": "message",
                    "messageId": "m-9",
                    "role": "agent",
                    "parts": [{"kind": "text", "text": "done"}],
                    "contextId": "c-5",
                    "taskId": "t-77",
                },
                "timestamp": AT,
            },
            "artifacts": [
                {
                    "artifactId": "a-3",
                    "name": "n",
                    "description": "d",
                    "parts": [
                        {"kind": "text", "text": "a"},
                        {"kind": "file", "file": {"bytes": "AP8=", "name": "b.bin", "mimeType": "a/b"}},
                        {"kind": "file", "file": {"uri": "https://f.example"}},
                        {"kind": "data", "data": {"x": 1}, "metadata": {"y": 2}},
                        {"kind": "data", "data": {"value": [1]}, "metadata": {"y": 2, "data_part_compat": True}},
                        {"kind": "data", "data": {"value": None}, "metadata": {"data_part_compat": True}},
                    ],
                    "metadata": {"z": 3},
                    "extensions": ["urn:x"],
                }
            ],
            "history": [
                {
                    "kind": "message",
                    "messageId": "u",
                    "role": "user",
                    "parts": [{"kind": "text", "text": "q"}],
                    "contextId": "c-5",
                    "taskId": "t-77",
                }
            ],
            "metadata": {"k": 1},
        }

    def test_what_is_empty_is_left_out_but_the_context_is_not(self) -> None:
        assert self.result(view(context_id="", status=None), "tasks/get") == {
            "kind": "task",
            "id": "t-77",
            "contextId": "",
            "status": {"state": "unknown"},
        }

    @pytest.mark.parametrize("state", TaskState)
    def test_states_are_spelled_in_lower_case(self, state: TaskState) -> None:
        shown = self.result(view(status=TaskStatus(state=state)), "tasks/cancel")
        assert shown["status"] == {"state": STATES[state]}
        assert shown["status"]["state"] == state.value.removeprefix("TASK_STATE_").lower().replace("_", "-")

    def test_a_direct_answer_is_a_bare_message(self) -> None:
        shown = self.result(Message(message_id="m", context_id="c", parts=(Part(text="42"),)))
        assert shown == {
            "kind": "message",
            "messageId": "m",
            "contextId": "c",
            "role": "agent",
            "parts": [{"kind": "text", "text": "42"}],
        }

    def test_push_configs_are_nested_and_lists_bare(self) -> None:
        config = PushConfig(
            task_id="t-77", id="h-1", url="https://cb.example", token="n", authentication={"scheme": "Basic"}
        )
        shown = {
            "taskId": "t-77",
            "pushNotificationConfig": {
                "id": "h-1",
                "url": "https://cb.example",
                "token": "n",
                "authentication": {"schemes": ["Basic"]},
            },
        }
        assert self.result(config, "tasks/get") == shown
        assert self.result(PushPage(configs=(config, PushConfig(task_id="t-77", url="u"))), "tasks/get") == [
            shown,
            {"taskId": "t-77", "pushNotificationConfig": {"url": "u"}},
        ]
        assert self.result(PushPage(), "tasks/get") == []

    def test_deleting_answers_a_null_that_is_there(self) -> None:
        params = {"id": "t-77", "pushNotificationConfigId": "h"}
        exchange = understood(call("tasks/pushNotificationConfig/delete", params))
        assert body_of(exchange.reply(None)) == {"jsonrpc": "2.0", "id": "r-1", "result": None}

    def test_dialects_beside_it_may_list(self) -> None:
        assert K03.page(TaskPage(views=(), next_page_token="", page_size=5, total=0)) == b"[]"

    def test_the_version_is_said_back(self) -> None:
        assert header(understood(call("tasks/get", {"id": "t"})).reply(view()), "a2a-version") == "0.3"


class TestStreams:
    def exchange(self, method: str = "message/stream") -> Any:
        return understood(call(method, {"message": USER_03} if method == "message/stream" else {"id": "t-77"}, id=4))

    def test_it_begins_with_the_bare_task(self) -> None:
        ((id, data),) = frames_of(self.exchange().open(view()))
        assert (id, data["id"], data["result"]["kind"]) == ("0199-uid.9", 4, "task")

    def test_the_flags_are_printed_also_when_false(self) -> None:
        entries = [
            Entry(1, Created(message=Message(message_id="u"))),
            Entry(2, Chunk(artifact=artifact(Part(text="one")))),
            Entry(3, Chunk(artifact=artifact(Part(data=5)), append=True, last_chunk=True, metadata={"q": 1})),
        ]
        found = frames_of(self.exchange().frames(REF, entries, False))
        home = {"kind": "artifact-update", "taskId": "t-77", "contextId": "c-5"}
        assert [data["result"] for _, data in found] == [
            {
                **home,
                "artifact": {"artifactId": "a-3", "parts": [{"kind": "text", "text": "one"}]},
                "append": False,
                "lastChunk": False,
            },
            {
                **home,
                "artifact": {
                    "artifactId": "a-3",
                    "parts": [{"kind": "data", "data": {"value": 5}, "metadata": {"data_part_compat": True}}],
                },
                "append": True,
                "lastChunk": True,
                "metadata": {"q": 1},
            },
        ]

    def test_final_is_true_on_the_status_after_which_the_stream_closes_and_nowhere_else(self) -> None:
        said = Entry(2, Said(status=TaskStatus(state=TaskState.WORKING, message=agent_says())))
        asked_for = Entry(3, Asked(status=TaskStatus(state=TaskState.INPUT_REQUIRED), n=0, metadata={"m": 1}))
        settled = Entry(5, Settled(status=task().status or TaskStatus()))
        chunk = Entry(6, Chunk(artifact=artifact(Part(text="late"))))
        exchange = self.exchange()

        def finals(entries: list[Entry], closing: bool) -> list[Any]:
            frames = frames_of(exchange.frames(REF, entries, closing))
            return [data["result"].get("final") for _, data in frames]

        assert finals([said, asked_for], False) == [False, False]
        assert finals([said, asked_for], True) == [False, True]
        assert finals([said, asked_for], False) == [False, False]
        assert finals([said, settled, chunk], True) == [False, True, None]
        assert finals([chunk], True) == [None]
        assert set(asked_for.frames or {}) == {"0.3", ("0.3", True)}
        repeated = [exchange.frames(REF, [said, settled], True) for _ in range(2)]
        assert repeated[0] == repeated[1]

    def test_resubscribing_to_nothing_is_answered_with_a_stream(self) -> None:
        reply = self.exchange("tasks/resubscribe").fail(KeyError("secret"))
        assert (reply.status, header(reply, "content-type")) == (200, "text/event-stream")
        assert reply.body.startswith(b'event: error\ndata: {"jsonrpc":"2.0","id":4,"error":{"code":-32603')
        assert b"secret" not in reply.body

    def test_other_streams_fail_with_plain_json(self) -> None:
        assert header(self.exchange().fail(KeyError()), "content-type") == "application/json"

    def test_a_bad_resubscription_is_refused_in_a_stream_too(self) -> None:
        reply = refused(call("tasks/resubscribe", {}))
        assert (reply.status, header(reply, "content-type")) == (200, "text/event-stream")
        ((_, told),) = frames_of(reply.body)
        assert told["error"]["code"] == -32602
        assert header(self.exchange("tasks/resubscribe").fail(Unauthenticated("Bearer")), "content-type") == (
            "application/json"
        )
