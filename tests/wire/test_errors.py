"""The one table: every error in every dialect and binding, in its exact shape."""

from typing import Any, NamedTuple

import pytest

from dragoman.model import errors as e
from dragoman.wire.errors import TABLE, NoRoute, WrongVerb
from dragoman.wire.settings import Style, WireSettings
from tests.wire.wording import (
    USER_03,
    USER_10,
    USER_P03,
    body_of,
    call,
    error_of,
    frames_of,
    header,
    understood,
    visit,
)

TYPE = "type.googleapis.com/google.rpc."


def info(reason: str, **metadata: str) -> dict[str, Any]:
    found: dict[str, Any] = {"@type": f"{TYPE}ErrorInfo", "reason": reason, "domain": "a2a-protocol.org"}
    return {**found, "metadata": metadata} if metadata else found


class Case(NamedTuple):
    error: BaseException
    code: int
    code_03: int
    http: int
    status: str
    name_03: str
    details: list[dict[str, Any]]
    rpc_http: int
    shown: str = ""  # instead of the error's own words


CASES = [
    Case(e.ParseFailure(), -32700, -32700, 400, "INVALID_ARGUMENT", "JSONParseError", [], 200),
    Case(e.InvalidRequest("Not so"), -32600, -32600, 400, "INVALID_ARGUMENT", "InvalidRequestError", [], 200),
    Case(e.MethodNotFound("Dance"), -32601, -32601, 404, "NOT_FOUND", "MethodNotFoundError", [], 200),
    Case(NoRoute(), -32601, -32601, 404, "NOT_FOUND", "MethodNotFoundError", [], 404),
    Case(WrongVerb("GET"), -32601, -32601, 405, "UNIMPLEMENTED", "MethodNotFoundError", [], 405),
    Case(
        e.InvalidParams([e.Violation("message.parts", "must not be empty"), e.Violation("id", "is required")]),
        -32602,
        -32602,
        400,
        "INVALID_ARGUMENT",
        "InvalidParamsError",
        [
            {
                "@type": f"{TYPE}BadRequest",
                "fieldViolations": [
                    {"field": "message.parts", "description": "must not be empty"},
                    {"field": "id", "description": "is required"},
                ],
            }
        ],
        200,
    ),
    Case(
        e.TaskNotFound("t-404"),
        -32001,
        -32001,
        404,
        "NOT_FOUND",
        "TaskNotFoundError",
        [info("TASK_NOT_FOUND", taskId="t-404")],
        200,
    ),
    Case(
        e.TaskNotCancelable("t-9", "TASK_STATE_COMPLETED"),
        -32002,
        -32002,
        400,
        "FAILED_PRECONDITION",
        "TaskNotCancelableError",
        [info("TASK_NOT_CANCELABLE", taskId="t-9", state="TASK_STATE_COMPLETED")],
        200,
    ),
    Case(
        e.PushNotSupported(),
        -32003,
        -32003,
        400,
        "FAILED_PRECONDITION",
        "PushNotificationNotSupportedError",
        [info("PUSH_NOTIFICATION_NOT_SUPPORTED")],
        200,
    ),
    Case(
        e.UnsupportedOperation("It is finished", taskId="t-9"),
        -32004,
        -32004,
        400,
        "FAILED_PRECONDITION",
        "UnsupportedOperationError",
        [info("UNSUPPORTED_OPERATION", taskId="t-9")],
        200,
    ),
    Case(
        e.ContentTypeNotSupported("No pictures, please"),
        -32005,
        -32005,
        400,
        "INVALID_ARGUMENT",
        "ContentTypeNotSupportedError",
        [info("CONTENT_TYPE_NOT_SUPPORTED")],
        200,
    ),
    Case(
        e.InvalidAgentResponse("The agent answered twice"),
        -32006,
        -32006,
        500,
        "INTERNAL",
        "InvalidAgentResponseError",
        [info("INVALID_AGENT_RESPONSE")],
        200,
    ),
    Case(
        e.ExtendedCardNotConfigured(),
        -32007,
        -32007,
        400,
        "FAILED_PRECONDITION",
        "AuthenticatedExtendedCardNotConfiguredError",
        [info("EXTENDED_AGENT_CARD_NOT_CONFIGURED")],
        200,
    ),
    Case(
        e.ExtensionRequired("urn:x"),
        -32008,
        -32603,
        400,
        "FAILED_PRECONDITION",
        "ExtensionSupportRequiredError",
        [info("EXTENSION_SUPPORT_REQUIRED", extension="urn:x")],
        200,
    ),
    Case(
        e.VersionNotSupported("4.0", ("1.0", "0.3")),
        -32009,
        -32603,
        400,
        "FAILED_PRECONDITION",
        "VersionNotSupportedError",
        [info("VERSION_NOT_SUPPORTED", version="4.0", supported="1.0, 0.3")],
        200,
    ),
    Case(e.BodyTooLarge(9), -32600, -32600, 413, "RESOURCE_EXHAUSTED", "InvalidRequestError", [], 413),
    Case(e.Unauthenticated("Bearer"), -32603, -32603, 401, "UNAUTHENTICATED", "UnauthenticatedError", [], 401),
    Case(e.Forbidden("Not you"), -32603, -32603, 403, "PERMISSION_DENIED", "ForbiddenError", [], 403),
    Case(
        e.Busy("Too many streams", retry_after=3),
        -32603,
        -32603,
        429,
        "RESOURCE_EXHAUSTED",
        "BusyError",
        [{"@type": f"{TYPE}RetryInfo", "retryDelay": "3s"}],
        429,
    ),
    Case(
        e.Unavailable("Nobody answers", retry_after=5),
        -32603,
        -32603,
        503,
        "UNAVAILABLE",
        "InternalError",
        [{"@type": f"{TYPE}RetryInfo", "retryDelay": "5s"}],
        503,
    ),
    Case(
        e.Overloaded("Too many streams", limit="limits.streams", most=7),
        -32603,
        -32603,
        503,
        "UNAVAILABLE",
        "BusyError",
        [
            {"@type": f"{TYPE}RetryInfo", "retryDelay": "1s"},
            {"@type": f"{TYPE}QuotaFailure", "violations": [{"subject": "limits.streams", "description": "At most 7"}]},
        ],
        503,
    ),
    Case(
        e.StoreFull("disk at /var/x"),
        -32603,
        -32603,
        503,
        "UNAVAILABLE",
        "InternalError",
        [],
        200,
        "The server's storage is full; nothing was saved",
    ),
    Case(
        e.OutcomeUnknown("SQL"),
        -32603,
        -32603,
        503,
        "UNAVAILABLE",
        "InternalError",
        [],
        200,
        "It is not known whether this took effect; read the task before trying again",
    ),
    Case(
        e.Conflict(),
        -32603,
        -32603,
        503,
        "UNAVAILABLE",
        "InternalError",
        [],
        200,
        "The task is being changed by others; try again",
    ),
    Case(
        e.KeyTaken(object()),
        -32602,
        -32602,
        400,
        "INVALID_ARGUMENT",
        "InvalidParamsError",
        [],
        200,
        "This idempotency key was used before for another request",
    ),
    Case(e.HandlerChanged(), -32603, -32603, 500, "INTERNAL", "InternalError", [], 200, "The agent failed"),
    Case(e.StoreError("select *"), -32603, -32603, 500, "INTERNAL", "InternalError", [], 200, "Internal error"),
    Case(KeyError("/etc/secret"), -32603, -32603, 500, "INTERNAL", "InternalError", [], 200, "Internal error"),
]
each_error = pytest.mark.parametrize("case", CASES, ids=[type(case.error).__name__ for case in CASES])


@pytest.mark.proves("W-112", "W-168", "W-169", "D-2-13")
@each_error
def test_json_rpc_1_0(case: Case) -> None:
    reply = understood(call("SendMessage", {"message": USER_10}, id=7)).fail(case.error)
    expected: dict[str, Any] = {
        "code": case.code,
        "message": case.shown or str(case.error),
        **({"data": case.details} if case.details else {}),
    }
    assert body_of(reply) == {"jsonrpc": "2.0", "id": 7, "error": expected}
    assert (reply.status, header(reply, "content-type")) == (case.rpc_http, "application/json")
    assert header(reply, "a2a-version") == "1.0"


@pytest.mark.proves("W-112")
@each_error
def test_json_rpc_0_3(case: Case) -> None:
    reply = understood(call("message/send", {"message": USER_03}, id="q")).fail(case.error)
    assert body_of(reply) == {
        "jsonrpc": "2.0",
        "id": "q",
        "error": {"code": case.code_03, "message": case.shown or str(case.error)},
    }
    assert (reply.status, header(reply, "a2a-version")) == (case.rpc_http, "0.3")


@pytest.mark.proves("W-112", "W-180", "W-181")
@each_error
def test_http_json_1_0(case: Case) -> None:
    reply = understood(visit("POST", "/message:send", {"message": USER_10})).fail(case.error)
    expected = {
        "code": case.http,
        "status": case.status,
        "message": case.shown or str(case.error),
        **({"details": case.details} if case.details else {}),
    }
    assert body_of(reply) == {"error": expected}
    assert (reply.status, header(reply, "content-type")) == (case.http, "application/json")


@pytest.mark.proves("W-112")
@each_error
def test_http_json_0_3(case: Case) -> None:
    reply = understood(visit("POST", "/v1/message:send", {"message": USER_P03})).fail(case.error)
    assert body_of(reply) == {"code": case.code_03, "type": case.name_03, "message": case.shown or str(case.error)}
    assert (reply.status, header(reply, "content-type")) == (case.http, "application/json")


@pytest.mark.proves("W-059")
@each_error
def test_inside_a_stream(case: Case) -> None:
    rpc = understood(call("SendStreamingMessage", {"message": USER_10}, id=7))
    rest = understood(visit("POST", "/message:stream", {"message": USER_10}))
    old = understood(visit("POST", "/v1/message:stream", {"message": USER_P03}))
    for exchange in (rpc, rest, old):
        frame = exchange.frame_error(case.error)
        assert frame.startswith(b"event: error\ndata: ")
        ((id, data),) = frames_of(frame)
        assert id == ""
        assert data == body_of(exchange.fail(case.error))


def test_every_row_of_the_table_is_proved() -> None:
    assert set(TABLE) - {BaseException, e.AgentError} == {type(case.error) for case in CASES} & set(TABLE)


@pytest.mark.proves("W-055")
def test_who_must_wait_is_told_how_long_and_who_must_log_in_how() -> None:
    exchange = understood(call("SendMessage", {"message": USER_10}))
    assert header(exchange.fail(e.Busy("Later", retry_after=7)), "retry-after") == "7"
    assert header(exchange.fail(e.Unauthenticated("Bearer")), "www-authenticate") == "Bearer"
    assert header(exchange.fail(e.Unavailable("Later", retry_after=7)), "retry-after") == "7"
    assert header(exchange.fail(WrongVerb("GET, POST")), "allow") == "GET, POST"
    missing = exchange.fail(e.MissingScope(("read", "write"), ("write",)))
    assert str(header(missing, "www-authenticate")).endswith('error="insufficient_scope", scope="read write"')
    assert missing.status == 403
    assert "the scope write, which" in body_of(missing)["error"]["message"]


@pytest.mark.proves("W-058")
def test_details_are_flat_strings() -> None:
    for case in CASES:
        body = body_of(understood(call("SendMessage", {"message": USER_10})).fail(case.error))
        for detail in body["error"].get("data", []):
            assert detail["@type"].startswith(TYPE)
            assert all(isinstance(value, str) for value in detail.get("metadata", {}).values())


@pytest.mark.proves("000-d7", "001-d21", "003-d21", "004-d6", "002-d21")
@pytest.mark.parametrize(
    ("path", "method"),
    [
        ("/a2a/jsonrpc", "tasks/get"),
        ("/a2a", "GetTask"),
        ("/api/a2a", "tasks/get"),
        ("/a2a", "tasks/get"),
        ("/", "tasks/list"),
    ],
)
def test_errors_of_the_systems_carry_their_name_but_not_in_what_their_pages_show(path: str, method: str) -> None:
    styles: tuple[Style, ...] = ("superset", "literal", "plain")
    for style in styles:
        wire = WireSettings(frames={path: style})
        found = understood(call(method, {"id": "t-77"}, path=path, wire=wire))
        data = error_of(found.fail(e.TaskNotFound("t-77"))).get("data", [{}])
        named = style == "superset" or method == "GetTask"
        assert (data[0].get("reason") == "TASK_NOT_FOUND") is named
