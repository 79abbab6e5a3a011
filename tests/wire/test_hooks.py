"""Webhooks in the words of those who say them otherwise: simple_a2a, 0.1, and whoever calls at the systems' paths."""

from typing import Any

import pytest

from dragoman.model.operations import CreatePush, DeletePush, GetPush, ListPush, PushConfig, PushPage, SendMessage
from dragoman.wire.rest import match
from dragoman.wire.settings import WireSettings
from tests.wire.wording import asked, body_of, call, error_of, inbound, receive, understood

URL = "https://cb.example/hook"
SET, GET, LIST, DELETE = (f"tasks/pushNotification/{verb}" for verb in ("set", "get", "list", "delete"))
INFO = {"scheme": "token", "value": "s3cr3t", "headerName": "X-Hook"}
OWN = {"webhookUrl": URL, "authenticationInfo": INFO, "eventTypes": ["completed", "TaskArtifactUpdateEvent"]}
KEPT = PushConfig(
    id="t-77",
    task_id="t-77",
    url=URL,
    authentication={"scheme": "token"},
    header_name="X-Hook",
    event_types=("completed",),
    origin="simple",
)


def created(method: str, params: Any, path: str = "/") -> PushConfig:
    return asked(call(method, params, path=path), CreatePush).config


def shown(method: str, params: Any, value: PushConfig | PushPage | None) -> Any:
    return body_of(understood(call(method, params)).reply(value))["result"]


class TestReading:
    def test_simple_a2a_names_the_address_the_secret_its_header_and_what_it_wants_to_hear(self) -> None:
        assert created(SET, {"id": "t-77", "pushNotificationConfig": OWN}) == PushConfig(
            task_id="t-77",
            url=URL,
            authentication={"scheme": "token", "credentials": "s3cr3t"},
            header_name="X-Hook",
            event_types=("completed", "TaskArtifactUpdateEvent"),
        )

    def test_whoever_calls_it_a_url_speaks_0_1(self) -> None:
        config = {"url": URL, "token": "n", "authentication": {"schemes": ["Bearer"], "credentials": "c"}}
        exchange = understood(call(SET, {"id": "t-77", "pushNotificationConfig": config}))
        assert exchange.origin == "0.1" and exchange.policy.single_hook and exchange.policy.missing_hook == "none"
        bearer = {"scheme": "Bearer", "credentials": "c"}
        assert asked(exchange, CreatePush).config == PushConfig(
            task_id="t-77", url=URL, token="n", authentication=bearer
        )
        assert understood(call(SET, {"id": "t-77", "pushNotificationConfig": OWN})).origin == "simple"
        both = {"id": "t-77", "pushNotificationConfig": {**OWN, "url": URL}}
        assert understood(call(SET, both)).origin == "simple"

    def test_0_1_sends_its_webhook_beside_the_message(self) -> None:
        message = {"role": "user", "parts": [{"type": "text", "text": "hi"}]}
        params = {"id": "t-77", "message": message, "pushNotification": {"url": URL, "token": "n"}, "historyLength": 3}
        configuration = asked(call("tasks/send", params), SendMessage).configuration
        assert configuration.task_push_notification_config == PushConfig(url=URL, token="n")
        assert configuration.history_length == 3
        params["pushNotification"] = {"token": "n"}
        assert "pushNotification.url: is required" in error_of(call("tasks/send", params))["message"]

    def test_a_list_is_of_all_tasks_unless_one_is_named(self) -> None:
        assert asked(call(LIST, {}), ListPush) == asked(call(LIST), ListPush) == ListPush()
        assert asked(call(LIST, {"id": "t-77"}), ListPush) == ListPush(task_id="t-77")
        assert asked(call(LIST, {"taskId": "t-77"}), ListPush) == ListPush(task_id="t-77")
        assert asked(call(GET, {"id": "t-77"}), GetPush) == GetPush(task_id="t-77")
        assert asked(call(DELETE, {"id": "t-77"}), DeletePush) == DeletePush(task_id="t-77")

    @pytest.mark.parametrize(
        ("params", "field"),
        [
            ({"id": "t-77"}, "url"),
            ({"id": "t-77", "pushNotificationConfig": {}}, "url"),
            ({"pushNotificationConfig": OWN}, "taskId"),
            ({"id": "t-77", "pushNotificationConfig": {**OWN, "eventTypes": "completed"}}, "eventTypes"),
            ({"id": "t-77", "pushNotificationConfig": {**OWN, "authenticationInfo": {"headerName": 7}}}, "headerName"),
            ({"id": "t-77", "pushNotificationConfig": {**OWN, "authenticationInfo": 7}}, "authentication"),
        ],
    )
    def test_what_is_missing_or_of_a_wrong_kind_is_named(self, params: Any, field: str) -> None:
        error = error_of(call(SET, params))
        assert error["code"] == -32602 and field in str(error)

    @pytest.mark.parametrize("path", ["/a2a/jsonrpc", "/a2a", "/api/a2a"])
    def test_the_systems_paths_take_every_shape(self, path: str) -> None:
        name = "tasks/pushNotificationConfig/set"
        plain = PushConfig(task_id="t-77", url=URL)
        assert created(name, {"taskId": "t-77", "url": URL}, path) == plain
        assert created(name, {"task_id": "t-77", "push_notification_config": {"url": URL}}, path) == plain
        assert created(name, {"id": "t-77", "pushNotificationConfig": {"webhook_url": URL}}, path) == plain
        nested = {"taskId": "t-77", "pushNotificationConfig": {"url": URL, "authentication": {"credentials": "c"}}}
        assert created(name, nested, path).authentication == {"scheme": "Bearer", "credentials": "c"}

    def test_the_aliases_are_spelled_as_on_the_page_and_as_by_its_server(self) -> None:
        for word in ("pushNotificationConfig", "pushNotificationConfigs"):
            exchange = understood(receive(inbound("POST", f"/a2a/tasks/t-77/{word}", {"url": URL}), WireSettings()))
            assert exchange.origin == "proto"
            assert asked(exchange, CreatePush).config == PushConfig(task_id="t-77", url=URL)
        assert match(["tasks", "t", "pushNotificationConfig"], "card") is None, "not at the root"


class TestWriting:
    def test_simple_a2a_is_shown_its_own_words_and_no_secret(self) -> None:
        safe = {
            "webhookUrl": URL,
            "authenticationInfo": {"scheme": "token", "headerName": "X-Hook"},
            "eventTypes": ["completed"],
        }
        assert shown(GET, {"id": "t-77"}, KEPT) == {"id": "t-77", "pushNotificationConfig": safe}
        bare = PushConfig(task_id="t-77", url=URL, origin="simple")
        without = {"id": "t-77", "pushNotificationConfig": {"webhookUrl": URL}}
        assert shown(LIST, {}, PushPage(configs=(KEPT, bare)))[1] == without
        assert shown(LIST, {}, PushPage()) == []
        assert shown(GET, {"id": "t-77"}, None) is None
        unnamed = PushConfig(task_id="t-77", url=URL, authentication={"scheme": "bearer"}, origin="simple")
        info = {"webhookUrl": URL, "authenticationInfo": {"scheme": "bearer"}}
        assert shown(GET, {"id": "t-77"}, unnamed)["pushNotificationConfig"] == info

    def test_what_0_1_set_is_shown_as_it_says_it_to_whoever_asks_by_the_shared_name(self) -> None:
        config = PushConfig(id="t-77", task_id="t-77", url=URL, authentication={"scheme": "Bearer"}, origin="0.1")
        answer = {"id": "t-77", "pushNotificationConfig": {"url": URL, "authentication": {"schemes": ["Bearer"]}}}
        assert shown(GET, {"id": "t-77"}, config) == answer
        set_ = {"id": "t-77", "pushNotificationConfig": {"url": URL}}
        assert shown(SET, set_, config) == answer

    def test_the_rules_for_what_0_1_made_are_its_own_where_the_name_is_shared(self) -> None:
        policy = understood(call(GET, {"id": "t-77"})).policy
        assert policy.of("0.1").single_hook and policy.of("simple").single_hook
        assert policy.of("0.1") is not policy
