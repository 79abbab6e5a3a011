"""Protocol 1.0: reading is exact first and tolerant second; writing follows ProtoJSON."""

import json
from typing import Any

import pytest
from msgspec import UNSET
from msgspec.structs import replace

from dragoman.model.errors import InvalidParams
from dragoman.model.facts import Asked, Chunk, Created, Entry, Said, Settled
from dragoman.model.messages import Message, Part, Role
from dragoman.model.operations import (
    CancelTask,
    CreatePush,
    DeletePush,
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
from dragoman.wire import p10
from dragoman.wire.settings import WireSettings
from tests.wire.wording import (
    AT,
    REF,
    USER_10,
    agent_reports,
    agent_says,
    artifact,
    asked,
    body_of,
    call,
    error_of,
    frames_of,
    post,
    task,
    understood,
    view,
)


def sent(message: dict[str, Any], **params: Any) -> SendMessage:
    return asked(call("SendMessage", {"message": message, **params}), SendMessage)


def wrong(method: str, params: object) -> dict[str, str]:
    """field → description of everything the reader objects to."""
    error = error_of(call(method, params))
    assert error["code"] == -32602, error
    (detail,) = error["data"]
    assert detail["@type"] == "type.googleapis.com/google.rpc.BadRequest"
    return {each["field"]: each["description"] for each in detail["fieldViolations"]}


def wrong_part(part: object) -> dict[str, str]:
    return wrong("SendMessage", {"message": {**USER_10, "parts": [{"text": "ok"}, part]}})


class TestReading:
    def test_a_message_with_everything(self) -> None:
        operation = asked(
            call(
                "SendStreamingMessage",
                {
                    "tenant": "studio",
                    "message": {
                        "messageId": "u-8",
                        "contextId": "c-5",
                        "taskId": "t-77",
                        "role": "ROLE_USER",
                        "parts": [
                            {"text": "Rotate", "mediaType": "text/markdown"},
                            {"raw": "UklGRg==", "filename": "dog.webp", "mediaType": "image/webp"},
                            {"url": "https://files.example/dog.webp"},
                            {"data": {"angle": 90}, "metadata": {"unit": "deg"}},
                        ],
                        "metadata": {"n": 1},
                        "extensions": ["urn:x"],
                        "referenceTaskIds": ["t-1", "t-2"],
                    },
                    "configuration": {
                        "acceptedOutputModes": ["image/webp"],
                        "historyLength": 3,
                        "returnImmediately": True,
                        "taskPushNotificationConfig": {
                            "url": "https://cb.example/in",
                            "authentication": {"scheme": "Bearer", "credentials": "s"},
                        },
                    },
                    "metadata": {"skill": "rotate"},
                },
            ),
            SendStreamingMessage,
        )
        message = operation.message
        assert operation.tenant == "studio"
        assert operation.metadata == {"skill": "rotate"}
        assert (message.message_id, message.context_id, message.task_id) == ("u-8", "c-5", "t-77")
        assert message.role is Role.USER
        assert message.parts == (
            Part(text="Rotate", media_type="text/markdown"),
            Part(raw=b"RIFF", filename="dog.webp", media_type="image/webp"),
            Part(url="https://files.example/dog.webp"),
            Part(data={"angle": 90}, metadata={"unit": "deg"}),
        )
        assert (message.metadata, message.extensions) == ({"n": 1}, ("urn:x",))
        assert message.reference_task_ids == ("t-1", "t-2")
        options = operation.configuration
        assert (options.accepted_output_modes, options.history_length) == (("image/webp",), 3)
        assert options.return_immediately
        assert options.task_push_notification_config == PushConfig(
            url="https://cb.example/in", authentication={"scheme": "Bearer", "credentials": "s"}
        )

    @pytest.mark.proves("S-6-10")
    @pytest.mark.parametrize(
        "message",
        [
            {
                "message_id": "u-8",
                "context_id": "c-5",
                "role": "ROLE_USER",
                "parts": [{"text": "hi", "media_type": "a/b"}],
            },
            {
                "messageId": "u-8",
                "contextId": "c-5",
                "role": 1,
                "parts": [{"text": "hi", "mediaType": "a/b", "raw": None}],
            },
            {
                "kind": "message",
                "messageId": "u-8",
                "contextId": "c-5",
                "taskId": None,
                "role": "ROLE_USER",
                "parts": [{"kind": "text", "text": "hi", "mediaType": "a/b", "data": None}],
                "metadata": None,
                "generation": "12",
            },
        ],
    )
    def test_loose_spellings_mean_the_same(self, message: dict[str, Any]) -> None:
        assert sent(message).message == Message(
            message_id="u-8", context_id="c-5", role=Role.USER, parts=(Part(text="hi", media_type="a/b"),)
        )

    @pytest.mark.proves("S-6-11")
    @pytest.mark.parametrize("name", ["taskId", "task_id"])
    def test_a_task_id_in_snake_case_is_still_the_task_s(self, name: str) -> None:
        """A message that lost it would begin a task nobody asked for."""
        assert sent({**USER_10, name: "t-77"}).message.task_id == "t-77"
        assert sent({**USER_10, name: "t-77", "unknown": 1}).message.task_id == "t-77"

    @pytest.mark.proves("S-6-10")
    def test_the_fast_and_the_tolerant_path_agree(self) -> None:
        for parts in ([{"text": ""}], [{"raw": "AP8="}], [{"data": None}], [{"url": "u"}], [{"data": [1.0, 2**60]}]):
            exact = sent({**USER_10, "parts": parts})
            assert sent({**USER_10, "parts": parts, "unknown": 1}) == exact
            assert len(exact.message.parts) == 1

    @pytest.mark.proves("S-6-10")
    @pytest.mark.parametrize("spelled", ["-_-_", "+/+/", "-_-_=="])
    def test_base64_comes_in_both_alphabets(self, spelled: str) -> None:
        assert sent({**USER_10, "parts": [{"raw": spelled}]}).message.parts[0].raw == b"\xfb\xff\xbf"

    @pytest.mark.proves("S-6-10")
    def test_base64_may_lack_its_padding(self) -> None:
        assert sent({**USER_10, "parts": [{"raw": "AP8"}]}).message.parts[0].raw == b"\x00\xff"

    @pytest.mark.proves("S-6-10")
    @pytest.mark.parametrize("length", [5, 5.0, "5", "5.0"])
    def test_integers_come_in_several_dresses(self, length: object) -> None:
        assert asked(call("GetTask", {"id": "t", "historyLength": length}), GetTask).history_length == 5

    @pytest.mark.parametrize(
        "data", [12345678901234567, 0.1234567890123456, 1.0, -0.0, 2**64 + 1, "\u0000", [None], {}]
    )
    @pytest.mark.parametrize("extra", [{}, {"unknown": True}])
    def test_values_inside_data_are_kept_as_they_are(self, data: object, extra: dict[str, Any]) -> None:
        found = sent({**USER_10, "parts": [{"data": data}], "metadata": {"v": data}, **extra}).message
        assert json.dumps(found.parts[0].data) == json.dumps(data)
        assert json.dumps(found.metadata) == json.dumps({"v": data})

    def test_a_missing_member_is_named_in_the_callers_words(self) -> None:
        assert wrong("SendMessage", {}) == {"message": "is required"}
        assert wrong("SendMessage", {"message": {}}) == {
            "message.messageId": "is required",
            "message.role": "is required",
            "message.parts": "is required",
        }
        assert wrong("SendMessage", {"message": {"messageId": "", "role": "ROLE_UNSPECIFIED", "parts": []}}) == {
            "message.messageId": "must not be empty",
            "message.role": "must not be empty",
            "message.parts": "must not be empty",
        }
        assert wrong("SendMessage", {"message": {**USER_10, "parts": []}}) == {"message.parts": "must not be empty"}
        assert wrong("SendMessage", {"message": {**USER_10, "role": 0}}) == {"message.role": "must not be empty"}
        assert wrong("GetTask", {"id": ""}) == {"id": "must not be empty"}

    @pytest.mark.parametrize(
        ("part", "field", "says"),
        [
            ({}, "message.parts[1]", "has none"),
            ({"file": {"bytes": "AP8="}}, "message.parts[1]", "has none"),
            ({"text": "a", "url": "b"}, "message.parts[1]", "has text and url"),
            ({"text": "a", "data": {}}, "message.parts[1]", "has text and data"),
            ({"text": 7}, "message.parts[1].text", "must be a string, not a number"),
            ({"text": True}, "message.parts[1].text", "not a boolean"),
            ({"text": ["a"]}, "message.parts[1].text", "not an array"),
            ({"raw": "*"}, "message.parts[1].raw", "must be base64"),
            ({"raw": "A"}, "message.parts[1].raw", "must be base64"),
            ({"raw": "é"}, "message.parts[1].raw", "must be base64"),
            ({"raw": 5}, "message.parts[1].raw", "must be a string"),
            ({"text": "a", "metadata": []}, "message.parts[1].metadata", "must be an object, not an array"),
            ("a", "message.parts[1]", "must be an object, not a string"),
            (None, "message.parts[1]", "must be an object, not null"),
        ],
    )
    def test_a_bad_part_is_named_by_its_path(self, part: object, field: str, says: str) -> None:
        found = wrong_part(part)
        assert field in found
        assert says in found[field]

    @pytest.mark.parametrize(
        ("params", "field"),
        [
            ({"message": []}, "message"),
            ({"message": {**USER_10, "parts": {"text": "a"}}}, "message.parts"),
            ({"message": {**USER_10, "messageId": 5}}, "message.messageId"),
            ({"message": {**USER_10, "messageId": "x" * 257}}, "message.messageId"),
            ({"message": {**USER_10, "contextId": "a\nb"}}, "message.contextId"),
            ({"message": {**USER_10, "taskId": "a\r\nid: 9"}}, "message.taskId"),
            ({"message": {**USER_10, "taskId": "a\u0000"}}, "message.taskId"),
            ({"message": {**USER_10, "referenceTaskIds": ["a", "b\u2028"]}}, "message.referenceTaskIds[1]"),
            ({"message": {**USER_10, "referenceTaskIds": "a"}}, "message.referenceTaskIds"),
            ({"message": {**USER_10, "extensions": [4]}}, "message.extensions[0]"),
            ({"message": {**USER_10, "role": "user"}}, "message.role"),
            ({"message": {**USER_10, "role": 9}}, "message.role"),
            ({"message": {**USER_10, "role": True}}, "message.role"),
            ({"message": {**USER_10, "role": {}}}, "message.role"),
            ({"message": USER_10, "configuration": {"historyLength": -1}}, "configuration.historyLength"),
            ({"message": USER_10, "configuration": {"historyLength": 5.5}}, "configuration.historyLength"),
            ({"message": USER_10, "configuration": {"historyLength": "many"}}, "configuration.historyLength"),
            ({"message": USER_10, "configuration": {"historyLength": True}}, "configuration.historyLength"),
            ({"message": USER_10, "configuration": {"historyLength": 2**31}}, "configuration.historyLength"),
            ({"message": USER_10, "configuration": {"returnImmediately": "yes"}}, "configuration.returnImmediately"),
            (
                {"message": USER_10, "configuration": {"acceptedOutputModes": "a/b"}},
                "configuration.acceptedOutputModes",
            ),
            ({"message": USER_10, "configuration": 4}, "configuration"),
            ({"message": USER_10, "metadata": "x"}, "metadata"),
            ({"message": USER_10, "tenant": "a\tb"}, "tenant"),
            (
                {"message": USER_10, "configuration": {"taskPushNotificationConfig": {"token": "x"}}},
                "configuration.taskPushNotificationConfig.url",
            ),
        ],
    )
    @pytest.mark.parametrize("method", ["SendMessage", "SendStreamingMessage"])
    def test_a_wrong_type_deep_inside_is_named_by_its_path(self, method: str, params: object, field: str) -> None:
        assert list(wrong(method, params)) == [field]

    @pytest.mark.proves("W-052")
    def test_an_unknown_enum_name_is_named(self) -> None:
        assert "'TASK_STATE_RUNNING'" in wrong("ListTasks", {"status": "TASK_STATE_RUNNING"})["status"]
        assert "ROLE_USER" in wrong("SendMessage", {"message": {**USER_10, "role": "ROLE_ROBOT"}})["message.role"]

    @pytest.mark.proves("W-051")
    def test_everything_wrong_is_told_at_once_but_not_without_end(self) -> None:
        assert len(wrong("SendMessage", {"message": {**USER_10, "parts": [{}] * 500}})) == 20
        many = {"message": {"parts": [{}] * 500, "referenceTaskIds": [5] * 50}}
        assert len(wrong("SendMessage", many)) == 20

    @pytest.mark.proves("W-207")
    def test_too_many_parts_are_refused_before_they_are_read(self) -> None:
        few = WireSettings(max_parts=2)
        for text in ("ok", 5):
            params = {"message": {**USER_10, "parts": [{"text": text}] * 3}}
            error = error_of(call("SendMessage", params, wire=few))
            assert error["message"] == "message.parts: must have at most 2 items"

    @pytest.mark.parametrize("member", ["referenceTaskIds", "extensions"])
    def test_no_other_list_is_longer_either(self, member: str) -> None:
        params = {"message": {**USER_10, member: ["a"] * 3}}
        error = error_of(call("SendMessage", params, wire=WireSettings(max_parts=2)))
        assert error["message"] == f"message.{member}: must have at most 2 items"

    @pytest.mark.proves("W-207")
    def test_depth_is_a_setting(self) -> None:
        nested: Any = "x"
        for _ in range(20):
            nested = [nested]
        params = {"message": {**USER_10, "parts": [{"data": nested}]}}
        assert asked(call("SendMessage", params), SendMessage)
        error = error_of(call("SendMessage", params, wire=WireSettings(max_depth=20)))
        assert (error["code"], error["message"]) == (-32600, "The body nests deeper than 20 levels")

    def test_list_with_every_filter(self) -> None:
        operation = asked(
            call(
                "ListTasks",
                {
                    "tenant": "studio",
                    "contextId": "c-5",
                    "status": "TASK_STATE_WORKING",
                    "pageSize": 100,
                    "pageToken": "next",
                    "historyLength": 0,
                    "statusTimestampAfter": "2026-05-06T09:08:09.1+02:00",
                    "includeArtifacts": True,
                },
            ),
            ListTasks,
        )
        assert operation == ListTasks(
            tenant="studio",
            context_id="c-5",
            status=TaskState.WORKING,
            page_size=100,
            page_token="next",
            history_length=0,
            status_timestamp_after="2026-05-06T07:08:09.100000Z",
            include_artifacts=True,
        )
        assert asked(call("ListTasks", {}), ListTasks) == ListTasks()
        assert asked(call("ListTasks"), ListTasks) == ListTasks()
        assert asked(call("ListTasks", {"status": 6}), ListTasks).status is TaskState.INPUT_REQUIRED
        assert asked(call("ListTasks", {"status": "TASK_STATE_UNSPECIFIED"}), ListTasks).status is None

    @pytest.mark.proves("W-118")
    @pytest.mark.parametrize(
        ("given", "kept"),
        [
            ("2026-05-06T07:08:09Z", "2026-05-06T07:08:09Z"),
            ("2026-05-06t07:08:09.123456789z", "2026-05-06T07:08:09.123456Z"),
            ("2026-05-06T00:08:09-07:30", "2026-05-06T07:38:09Z"),
        ],
    )
    def test_times_are_kept_in_utc(self, given: str, kept: str) -> None:
        assert asked(call("ListTasks", {"statusTimestampAfter": given}), ListTasks).status_timestamp_after == kept

    @pytest.mark.parametrize(
        "time",
        ["yesterday", "2026-05-06", "2026-05-06T07:08:09", "2026-13-06T07:08:09Z", "0001-01-01T00:00:00+23:59", ""],
    )
    def test_a_time_without_sense_or_zone_is_refused(self, time: str) -> None:
        assert list(wrong("ListTasks", {"statusTimestampAfter": time})) == ["statusTimestampAfter"]
        assert "statusTimestampAfter" in wrong("ListTasks", {"statusTimestampAfter": 5})

    @pytest.mark.parametrize("size", [0, 101, -1, "0"])
    def test_page_sizes_stay_between_1_and_100(self, size: object) -> None:
        assert wrong("ListTasks", {"pageSize": size}) == {"pageSize": "must be between 1 and 100"}

    def test_the_other_operations(self) -> None:
        assert asked(call("GetTask", {"id": "t-77", "tenant": "s"}), GetTask) == GetTask(id="t-77", tenant="s")
        cancel = asked(call("CancelTask", {"id": "t-77", "metadata": {"why": "late"}}), CancelTask)
        assert cancel == CancelTask(id="t-77", metadata={"why": "late"})
        assert asked(call("SubscribeToTask", {"id": "t-77"}), SubscribeToTask).id == "t-77"
        created = asked(
            call("CreateTaskPushNotificationConfig", {"tenant": "s", "taskId": "t-77", "url": "https://cb.example"}),
            CreatePush,
        )
        assert (created.tenant, created.config.task_id, created.config.url) == ("s", "t-77", "https://cb.example")
        two = {"taskId": "t-77", "id": "h-1"}
        assert asked(call("GetTaskPushNotificationConfig", two), GetPush) == GetPush(task_id="t-77", id="h-1")
        assert asked(call("DeleteTaskPushNotificationConfig", two), DeletePush) == DeletePush(task_id="t-77", id="h-1")
        listed = asked(call("ListTaskPushNotificationConfigs", {"taskId": "t-77", "pageSize": 5}), ListPush)
        assert (listed.task_id, listed.page_size) == ("t-77", 5)
        assert wrong("CreateTaskPushNotificationConfig", {"url": "https://cb.example"}) == {"taskId": "is required"}

    @pytest.mark.proves("S-1-6")
    @pytest.mark.parametrize("id", ["a\nb", "x" * 257, "a\u0085b"])
    def test_an_id_that_would_break_lines_is_refused(self, id: str) -> None:
        assert list(wrong("GetTask", {"id": id})) == ["id"]

    def test_an_unusual_id_is_still_an_id(self) -> None:
        odd = "tâche:№7/\u200b"
        assert asked(call("GetTask", {"id": odd}), GetTask).id == odd

    def test_negative_history_is_refused_on_get(self) -> None:
        assert wrong("GetTask", {"id": "t", "historyLength": -3}) == {"historyLength": "must be at least 0"}

    def test_broken_json_under_a_good_envelope_is_the_parsers(self) -> None:
        with pytest.raises(InvalidParams):
            p10.read("GetTask", b'{"id":1e999}', WireSettings())
        assert (
            error_of(post(b'{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":"\\ud83d"}}'))["code"] == -32700
        )


class TestWriting:
    def exchange(self, method: str = "SendMessage") -> Any:
        return understood(call(method, {"message": USER_10} if "Send" in method else {"id": "t-77"}, version="1.0"))

    def test_a_send_is_answered_with_a_wrapped_task(self) -> None:
        found = body_of(
            self.exchange().reply(
                view(
                    artifacts=(artifact(Part(url="https://f.example/x", filename="x", media_type="a/b"), name="x"),),
                    history=(Message(message_id="u", role=Role.USER, parts=(Part(text=""), Part(data=None))),),
                    metadata={"k": 1.0},
                )
            )
        )
        assert found["result"] == {
            "task": {
                "id": "t-77",
                "contextId": "c-5",
                "status": {"state": "TASK_STATE_COMPLETED", "timestamp": AT},
                "artifacts": [
                    {
                        "artifactId": "a-3",
                        "name": "x",
                        "parts": [{"url": "https://f.example/x", "filename": "x", "mediaType": "a/b"}],
                    }
                ],
                "history": [{"messageId": "u", "role": "ROLE_USER", "parts": [{"text": ""}, {"data": None}]}],
                "metadata": {"k": 1.0},
            }
        }

    def test_get_and_cancel_are_answered_with_a_bare_task(self) -> None:
        for method in ("GetTask", "CancelTask"):
            assert body_of(self.exchange(method).reply(view()))["result"]["id"] == "t-77"

    def test_a_direct_answer_is_a_wrapped_message(self) -> None:
        reply = self.exchange().reply(agent_says(Part(raw=b"\x00\xff"), context_id="c-5"))
        assert body_of(reply)["result"] == {
            "message": {"messageId": "m-9", "contextId": "c-5", "role": "ROLE_AGENT", "parts": [{"raw": "AP8="}]}
        }

    def test_the_context_is_always_printed(self) -> None:
        assert body_of(self.exchange("GetTask").reply(view(context_id="")))["result"]["contextId"] == ""
        assert "status" not in body_of(self.exchange("GetTask").reply(view(status=None)))["result"]

    @pytest.mark.proves("W-013")
    def test_a_list_always_has_its_four_members(self) -> None:
        exchange = understood(call("ListTasks", {}))
        empty = TaskPage(views=(), next_page_token="", page_size=50, total=0)
        expected: dict[str, Any] = {"tasks": [], "nextPageToken": "", "pageSize": 50, "totalSize": 0}
        assert body_of(exchange.reply(empty))["result"] == expected

    @pytest.mark.proves("W-011", "W-012")
    def test_artifacts_in_a_list_are_there_exactly_when_asked_for(self) -> None:
        exchange = understood(call("ListTasks", {}))
        views = (view(), view(artifacts=(artifact(Part(text="a")),)))
        without = TaskPage(views=views, next_page_token="p", page_size=2, total=7)
        result = body_of(exchange.reply(without))["result"]
        assert [task.get("artifacts") for task in result["tasks"]] == [None, None]
        assert (result["nextPageToken"], result["pageSize"], result["totalSize"]) == ("p", 2, 7)
        complete = TaskPage(views=views, next_page_token="", page_size=2, total=2, artifacts=True)
        tasks = body_of(exchange.reply(complete))["result"]["tasks"]
        assert [len(task["artifacts"]) for task in tasks] == [0, 1]

    def test_push_configs(self) -> None:
        exchange = understood(call("GetTaskPushNotificationConfig", {"taskId": "t-77", "id": "h-1"}))
        config = PushConfig(
            task_id="t-77", id="h-1", url="https://cb.example", token="n", authentication={"scheme": "Basic"}
        )
        shown = {
            "taskId": "t-77",
            "id": "h-1",
            "url": "https://cb.example",
            "token": "n",
            "authentication": {"scheme": "Basic"},
        }
        assert body_of(exchange.reply(config))["result"] == shown
        theirs = replace(config, header_name="X-Key", event_types=("completed",), origin="simple")
        assert body_of(exchange.reply(theirs))["result"] == shown
        assert body_of(exchange.reply(PushPage(configs=(theirs,))))["result"] == {"configs": [shown]}
        listed = PushPage(configs=(config,), next_page_token="n")
        assert body_of(exchange.reply(listed))["result"] == {"configs": [shown], "nextPageToken": "n"}
        assert body_of(exchange.reply(PushPage()))["result"] == {}
        assert body_of(exchange.reply(None)) == {"jsonrpc": "2.0", "id": "r-1", "result": None}


class TestStreams:
    def exchange(self) -> Any:
        return understood(call("SendStreamingMessage", {"message": USER_10}))

    def test_it_begins_with_the_task_and_its_cursor(self) -> None:
        ((id, data),) = frames_of(self.exchange().open(view()))
        assert id == "0199-uid.9"
        assert data["result"]["task"]["id"] == "t-77"

    def test_a_direct_answer_has_no_cursor(self) -> None:
        ((id, data),) = frames_of(self.exchange().open(agent_says()))
        assert (id, list(data["result"])) == ("", ["message"])

    @pytest.mark.proves("S-2-1")
    def test_facts_become_frames_and_private_ones_do_not(self) -> None:
        working = TaskStatus(state=TaskState.WORKING, message=agent_reports(), timestamp=AT)
        entries = [
            Entry(1, Created(message=Message(message_id="u"))),
            Entry(4, Said(status=working, metadata={"p": 50})),
            Entry(5, Chunk(artifact=artifact(Part(text="one")))),
            Entry(6, Chunk(artifact=artifact(Part(text="two")), append=True, metadata={"q": 1})),
            Entry(7, Chunk(artifact=artifact(Part(text="")), append=True, last_chunk=True)),
            Entry(8, Chunk(artifact=artifact(Part(text="x")), last_chunk=True)),
            Entry(9, Settled(status=task().status or TaskStatus())),
        ]
        found = frames_of(self.exchange().frames(REF, entries, True))
        assert [id for id, _ in found] == [f"0199-uid.{seq}" for seq in (4, 5, 6, 7, 8, 9)]
        assert [data["result"] for _, data in found] == [
            {
                "statusUpdate": {
                    "taskId": "t-77",
                    "contextId": "c-5",
                    "status": {
                        "state": "TASK_STATE_WORKING",
                        "message": {
                            "messageId": "m-9",
                            "contextId": "c-5",
                            "taskId": "t-77",
                            "role": "ROLE_AGENT",
                            "parts": [{"text": "done"}],
                        },
                        "timestamp": AT,
                    },
                    "metadata": {"p": 50},
                }
            },
            _chunk("one"),
            _chunk("two", metadata={"q": 1}, append=True),
            _chunk("", append=True, lastChunk=True),
            _chunk("x", lastChunk=True),
            {
                "statusUpdate": {
                    "taskId": "t-77",
                    "contextId": "c-5",
                    "status": {"state": "TASK_STATE_COMPLETED", "timestamp": AT},
                }
            },
        ]

    def test_no_member_says_that_it_is_the_last(self) -> None:
        entry = Entry(3, Asked(status=TaskStatus(state=TaskState.INPUT_REQUIRED), n=0))
        assert b"final" not in self.exchange().frames(REF, [entry], True)

    def test_unset_is_never_printed(self) -> None:
        assert Part(text="a").raw is UNSET
        assert b"raw" not in self.exchange().frames(REF, [Entry(1, Chunk(artifact=artifact(Part(text="a"))))], False)


def _chunk(text: str, **more: Any) -> dict[str, Any]:
    told = {"taskId": "t-77", "contextId": "c-5", "artifact": {"artifactId": "a-3", "parts": [{"text": text}]}}
    return {"artifactUpdate": {**told, **more}}
