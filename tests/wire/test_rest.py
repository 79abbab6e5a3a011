"""HTTP+JSON 1.0: routes, verbs, queries, bodies and media types."""

from typing import Any

import pytest

from dragoman.model.errors import BodyTooLarge, Forbidden, Unauthenticated
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
    SendMessage,
    SendStreamingMessage,
    SubscribeToTask,
)
from dragoman.model.tasks import TaskState
from dragoman.wire.settings import WireSettings
from tests.wire.wording import (
    USER_10,
    USER_P03,
    asked,
    body_of,
    error_of,
    frames_of,
    header,
    inbound,
    receive,
    refuse,
    refused,
    understood,
    view,
    visit,
)

HOOKS = "/tasks/t-77/pushNotificationConfigs"


def wrong(found: Any) -> dict[str, str]:
    reply = refused(found)
    assert reply.status == 400
    error = error_of(reply)
    assert error["status"] == "INVALID_ARGUMENT"
    return {each["field"]: each["description"] for each in error["details"][0]["fieldViolations"]}


class TestRoutes:
    @pytest.mark.parametrize("prefix", ["", "/studio", "/v1"])
    def test_each_route_names_its_operation(self, prefix: str) -> None:
        tenant = prefix.strip("/")

        def go(verb: str, path: str, body: object = None) -> Any:
            return visit(verb, prefix + path, body, version="1.0")

        message = {"message": USER_10}
        assert asked(go("POST", "/message:send", message), SendMessage).tenant == tenant
        assert asked(go("POST", "/message:stream", message), SendStreamingMessage).tenant == tenant
        assert asked(go("GET", "/tasks"), ListTasks) == ListTasks(tenant=tenant)
        assert asked(go("GET", "/tasks/t-77"), GetTask) == GetTask(tenant=tenant, id="t-77")
        assert asked(go("POST", "/tasks/t-77:cancel"), CancelTask) == CancelTask(tenant=tenant, id="t-77")
        for verb in ("GET", "POST"):
            subscribed = asked(go(verb, "/tasks/t-77:subscribe"), SubscribeToTask)
            assert subscribed == SubscribeToTask(tenant=tenant, id="t-77")
        created = asked(go("POST", HOOKS, {"url": "https://cb.example", "taskId": "other"}), CreatePush)
        assert (created.tenant, created.config) == (tenant, PushConfig(url="https://cb.example", task_id="t-77"))
        assert asked(go("GET", HOOKS), ListPush) == ListPush(tenant=tenant, task_id="t-77")
        assert asked(go("GET", f"{HOOKS}/h-1"), GetPush) == GetPush(tenant=tenant, task_id="t-77", id="h-1")
        assert asked(go("DELETE", f"{HOOKS}/h-1"), DeletePush) == DeletePush(tenant=tenant, task_id="t-77", id="h-1")
        assert asked(go("GET", "/extendedAgentCard"), GetExtendedCard) == GetExtendedCard(tenant=tenant)

    def test_streams_are_known_as_such(self) -> None:
        assert understood(visit("POST", "/message:stream", {"message": USER_10})).streaming
        assert understood(visit("GET", "/tasks/t:subscribe")).streaming
        assert not understood(visit("GET", "/tasks/t")).streaming

    @pytest.mark.parametrize(
        ("path", "id"),
        [
            ("/tasks/a:b", "a:b"),
            ("/tasks/a%2Fb", "a/b"),
            ("/tasks/a%3Acancel", "a:cancel"),
            ("/tasks/t%C3%A2che", "tâche"),
            ("/tasks/:cancel", ":cancel"),
            ("/tasks/tasks", "tasks"),
            ("/tasks/a+b", "a+b"),
        ],
    )
    def test_ids_are_decoded_and_may_hold_colons(self, path: str, id: str) -> None:
        assert asked(visit("GET", path), GetTask).id == id

    @pytest.mark.parametrize(("path", "id"), [("/tasks/a:b:cancel", "a:b"), ("/tasks/a%3Ab:cancel", "a:b")])
    def test_the_action_stands_after_the_last_colon(self, path: str, id: str) -> None:
        assert asked(visit("POST", path), CancelTask).id == id

    def test_the_colon_of_a_collection_may_be_encoded(self) -> None:
        assert asked(visit("POST", "/message%3Asend", {"message": USER_10}), SendMessage)

    @pytest.mark.proves("W-178")
    @pytest.mark.parametrize(
        ("verb", "path", "allowed"),
        [
            ("GET", "/message:send", "POST"),
            ("PUT", "/message:stream", "POST"),
            ("POST", "/tasks", "GET"),
            ("DELETE", "/tasks/t-77", "GET"),
            ("GET", "/tasks/t-77:cancel", "POST"),
            ("DELETE", "/tasks/t-77:subscribe", "GET, POST"),
            ("PATCH", HOOKS, "GET, POST"),
            ("POST", f"{HOOKS}/h-1", "GET, DELETE"),
            ("POST", "/extendedAgentCard", "GET"),
            ("HEAD", "/studio/tasks", "GET"),
        ],
    )
    def test_a_wrong_verb_is_told_the_right_ones(self, verb: str, path: str, allowed: str) -> None:
        found = refused(visit(verb, path))
        assert (found.status, header(found, "allow")) == (405, allowed)
        assert error_of(found)["code"] == 405

    @pytest.mark.parametrize(
        "path",
        [
            "/tasks/",
            "/tasks/t/x",
            f"{HOOKS}/",
            f"{HOOKS}/a/b",
            "/nothing/here",
            "/a/b/c",
            "/extendedAgentCard/x",
            "/api/tasks",
        ],
    )
    def test_other_paths_name_nothing(self, path: str) -> None:
        found = refused(visit("GET", path))
        assert found.status == 404
        assert error_of(found) == {
            "code": 404,
            "status": "NOT_FOUND",
            "message": "Not found: no operation lives at this path",
        }

    def test_paths_of_0_3_that_name_nothing_say_so_in_its_words(self) -> None:
        for path in ("/v1/nothing", "/v1", "/studio/v1/nothing"):
            found = refused(visit("GET", path))
            assert (found.status, body_of(found)["type"]) == (404, "MethodNotFoundError")

    def test_a_path_that_is_not_utf_8_is_refused(self) -> None:
        assert refused(visit("GET", "/tasks/%FF")).status == 400
        assert refused(visit("GET", "/tasks/%0D%0Aid")).status == 400

    @pytest.mark.parametrize("version", ["0.3", "2.0"])
    def test_another_version_on_these_paths_is_refused(self, version: str) -> None:
        found = refused(visit("GET", "/tasks", version=version))
        assert (found.status, error_of(found)["details"][0]["reason"]) == (400, "VERSION_NOT_SUPPORTED")

    def test_a_foreign_version_on_the_paths_of_0_3_is_refused(self) -> None:
        assert refused(visit("GET", "/v1/tasks/t", version="0.1")).status == 400

    def test_an_absent_version_is_refused_where_the_letter_is_wanted(self) -> None:
        strict = WireSettings(require_version=True)
        assert refused(receive(inbound("GET", "/tasks"), strict)).status == 400
        assert understood(receive(inbound("GET", "/v1/tasks/t"), strict))
        assert understood(receive(inbound("GET", "/tasks", query="A2A-Version=1.0"), strict))


class TestQueries:
    @pytest.mark.proves("W-177")
    def test_parameters_are_decoded_and_unknown_ones_ignored(self) -> None:
        query = (
            "contextId=c%2F5&status=TASK_STATE_WORKING&pageSize=20&pageToken=a%3D&historyLength=0&includeArtifacts=true"
            "&statusTimestampAfter=2026-05-06T07%3A08%3A09Z&utm_source=x&flag"
        )
        assert asked(visit("GET", "/tasks", query=query), ListTasks) == ListTasks(
            context_id="c/5",
            status=TaskState.WORKING,
            page_size=20,
            page_token="a=",
            history_length=0,
            include_artifacts=True,
            status_timestamp_after="2026-05-06T07:08:09Z",
        )

    @pytest.mark.proves("W-051")
    @pytest.mark.parametrize(
        ("query", "field"),
        [
            ("pageSize=0", "pageSize"),
            ("pageSize=101", "pageSize"),
            ("pageSize=ten", "pageSize"),
            ("pageSize=", "pageSize"),
            ("status=RUNNING", "status"),
            ("status=", "status"),
            ("includeArtifacts=yes", "includeArtifacts"),
            ("historyLength=-1", "historyLength"),
            ("statusTimestampAfter=now", "statusTimestampAfter"),
            ("contextId=a%0Ab", "contextId"),
        ],
    )
    def test_a_bad_parameter_is_named(self, query: str, field: str) -> None:
        assert list(wrong(visit("GET", "/tasks", query=query))) == [field]

    def test_a_number_far_out_of_range_is_told_the_range(self) -> None:
        assert wrong(visit("GET", "/tasks", query="pageSize=1099511627776")) == {
            "pageSize": "must be between 1 and 100"
        }

    def test_the_path_wins_over_the_query(self) -> None:
        assert asked(visit("GET", "/tasks/t-77", query="id=other&historyLength=2"), GetTask) == GetTask(
            id="t-77", history_length=2
        )

    def test_the_tenant_may_stand_in_the_query_but_not_contradict(self) -> None:
        assert understood(visit("GET", "/tasks", query="tenant=studio")).tenant == "studio"
        assert understood(visit("GET", "/studio/tasks", query="tenant=studio")).tenant == "studio"
        assert list(wrong(visit("GET", "/studio/tasks", query="tenant=workshop"))) == ["tenant"]


class TestBodies:
    @pytest.mark.parametrize("body", [None, b"", b"{}", b"null", b" \n", b'{"metadata":null}', b'{"id":"x","extra":1}'])
    def test_cancel_takes_every_body_in_use(self, body: bytes | None) -> None:
        assert asked(visit("POST", "/tasks/t-77:cancel", body), CancelTask) == CancelTask(id="t-77")

    def test_cancel_keeps_its_metadata(self) -> None:
        found = asked(visit("POST", "/tasks/t-77:cancel", {"metadata": {"why": "late"}}), CancelTask)
        assert found.metadata == {"why": "late"}

    def test_the_body_may_repeat_the_tenant_but_not_contradict(self) -> None:
        body = {"message": USER_10, "tenant": "studio"}
        assert understood(visit("POST", "/studio/message:send", body)).tenant == "studio"
        assert understood(visit("POST", "/message:send", body)).tenant == "studio"
        assert list(wrong(visit("POST", "/workshop/message:send", body))) == ["tenant"]

    @pytest.mark.proves("W-215")
    @pytest.mark.parametrize("path", ["/message:send", "/tasks/t:cancel", HOOKS])
    @pytest.mark.parametrize("body", [b"[]", b'"x"', b"5", b"[{}]"])
    def test_a_body_that_is_no_object_is_refused(self, path: str, body: bytes) -> None:
        assert wrong(visit("POST", path, body)) == {"": "the body must be a JSON object"}

    @pytest.mark.proves("W-215")
    @pytest.mark.parametrize("path", ["/message:send", "/tasks/t:cancel"])
    @pytest.mark.parametrize("body", [b"{", b"[", b"nonsense", b"{} {}", b'{"a":"\xff"}', b'{"metadata":"\\ud800"}'])
    def test_a_body_that_is_no_json_is_refused(self, path: str, body: bytes) -> None:
        found = refused(visit("POST", path, body))
        assert (found.status, error_of(found)["status"]) == (400, "INVALID_ARGUMENT")
        assert "JSON" in error_of(found)["message"] or "UTF-8" in error_of(found)["message"]

    def test_sending_nothing_is_refused(self) -> None:
        assert "empty" in error_of(visit("POST", "/message:send"))["message"]
        assert refused(visit("POST", "/message:send", b"  ")).status == 400

    def test_a_depth_bomb_is_refused(self) -> None:
        assert "deeper" in error_of(visit("POST", "/message:send", b"[" * 100_000))["message"]

    @pytest.mark.parametrize("media", ["text/plain", "application/xml", ""])
    def test_a_body_of_another_media_type_is_refused(self, media: str) -> None:
        found = refused(visit("POST", "/message:send", {"message": USER_10}, headers={"content-type": media}))
        assert (found.status, error_of(found)["details"][0]["reason"]) == (400, "CONTENT_TYPE_NOT_SUPPORTED")

    @pytest.mark.proves("W-180", "W-215")
    def test_a_wrong_field_is_named(self) -> None:
        body = {"message": {**USER_10, "parts": [{"text": 5}]}}
        assert wrong(visit("POST", "/message:send", body)) == {
            "message.parts[0].text": "must be a string, not a number"
        }


class TestMediaTypes:
    @pytest.mark.proves("W-174")
    @pytest.mark.parametrize(
        ("headers", "media"),
        [
            ({}, "application/json"),
            ({"accept": "*/*"}, "application/json"),
            ({"accept": "application/json"}, "application/json"),
            ({"accept": "application/a2a+json, application/json"}, "application/a2a+json"),
            ({"content-type": "application/a2a+json"}, "application/a2a+json"),
            ({"content-type": "application/a2a+json; charset=utf-8"}, "application/a2a+json"),
        ],
    )
    def test_success_speaks_the_media_type_of_the_request_and_errors_plain_json(
        self, headers: dict[str, str], media: str
    ) -> None:
        exchange = understood(visit("POST", "/message:send", {"message": USER_10}, headers=headers))
        reply = exchange.reply(view())
        assert header(reply, "content-type") == media
        assert header(reply, "cache-control") == "no-store"
        assert header(exchange.fail(KeyError()), "content-type") == "application/json"

    def test_0_3_knows_one_media_type_only(self) -> None:
        headers = {"accept": "application/a2a+json"}
        exchange = understood(visit("POST", "/v1/message:send", {"message": USER_P03}, headers=headers))
        assert header(exchange.reply(view()), "content-type") == "application/json"

    def test_streams_have_their_own(self) -> None:
        exchange = understood(visit("POST", "/message:stream", {"message": USER_10}))
        assert exchange.stream_headers() == (
            (b"content-type", b"text/event-stream"),
            (b"cache-control", b"no-cache"),
            (b"x-accel-buffering", b"no"),
            (b"a2a-version", b"1.0"),
        )
        assert exchange.closing() == b""
        ((id, data),) = frames_of(exchange.open(view()))
        assert (id, list(data)) == ("0199-uid.9", ["task"])


class TestUnread:
    """What is refused at the door is refused in the words of where it was going."""

    @pytest.mark.parametrize(
        ("path", "version", "body"),
        [
            ("/", "1.0", {"jsonrpc", "id", "error"}),
            ("/", "", {"jsonrpc", "id", "error"}),
            ("/studio", "1.0", {"jsonrpc", "id", "error"}),
            ("/message:send", "1.0", {"error"}),
            ("/v1/message:send", "", {"code", "type", "message"}),
            ("/nowhere/at/all", "", {"error"}),
            ("/tasks/%FF", "", {"error"}),
            ("/", "1.0, 0.3", {"jsonrpc", "id", "error"}),
        ],
    )
    def test_a_refusal_has_the_shape_of_its_binding(self, path: str, version: str, body: set[str]) -> None:
        found = refuse(inbound("POST", path, version=version), BodyTooLarge(100))
        assert found.status == 413
        assert set(body_of(found)) == body
        assert "100 bytes" in found.body.decode()

    def test_missing_credentials_bring_their_challenge(self) -> None:
        found = refuse(inbound("POST", "/"), Unauthenticated('Bearer realm="a"'))
        assert (found.status, header(found, "www-authenticate")) == (401, 'Bearer realm="a"')
        assert refuse(inbound("GET", "/tasks"), Forbidden("Not from there")).status == 403
