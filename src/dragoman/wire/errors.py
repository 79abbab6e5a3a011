"""The one table of errors: what each is called and numbered in every version and binding.

Codes are those of 1.0; a dialect overrides what it numbers differently. HTTP statuses and canonical names are 1.0.1's.
Only rows with a reason are A2A errors and carry an ErrorInfo.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from dragoman.model import errors as e


class NoRoute(e.CallerError):
    """The path names nothing; over HTTP+JSON this is what an unknown method is to JSON-RPC."""

    def __init__(self) -> None:
        super().__init__("Not found: no operation lives at this path")


class WrongVerb(e.CallerError):
    """The path exists, but not for this HTTP method."""

    def __init__(self, allowed: str) -> None:
        super().__init__(f"Method not allowed here; use {allowed}")
        self.allowed = allowed


class Row(NamedTuple):
    code: int
    http: int
    status: str
    name: str
    reason: str = ""
    message: str = ""  # shown instead of the error's own words, where those are for us and not for clients
    early: bool = False  # raised before the envelope counts: JSON-RPC, too, answers with the HTTP status


_FAILED = "FAILED_PRECONDITION"
_INVALID = "INVALID_ARGUMENT"
_INTERNAL = "Internal error"

TABLE: Mapping[type[BaseException], Row] = {
    e.ParseFailure: Row(-32700, 400, _INVALID, "JSONParseError"),
    e.InvalidRequest: Row(-32600, 400, _INVALID, "InvalidRequestError"),
    e.MethodNotFound: Row(-32601, 404, "NOT_FOUND", "MethodNotFoundError"),
    NoRoute: Row(-32601, 404, "NOT_FOUND", "MethodNotFoundError", early=True),
    WrongVerb: Row(-32601, 405, "UNIMPLEMENTED", "MethodNotFoundError", early=True),
    e.InvalidParams: Row(-32602, 400, _INVALID, "InvalidParamsError"),
    e.TaskNotFound: Row(-32001, 404, "NOT_FOUND", "TaskNotFoundError", "TASK_NOT_FOUND"),
    e.TaskNotCancelable: Row(-32002, 400, _FAILED, "TaskNotCancelableError", "TASK_NOT_CANCELABLE"),
    e.PushNotSupported: Row(
        -32003, 400, _FAILED, "PushNotificationNotSupportedError", "PUSH_NOTIFICATION_NOT_SUPPORTED"
    ),
    e.UnsupportedOperation: Row(-32004, 400, _FAILED, "UnsupportedOperationError", "UNSUPPORTED_OPERATION"),
    e.ContentTypeNotSupported: Row(-32005, 400, _INVALID, "ContentTypeNotSupportedError", "CONTENT_TYPE_NOT_SUPPORTED"),
    e.InvalidAgentResponse: Row(-32006, 500, "INTERNAL", "InvalidAgentResponseError", "INVALID_AGENT_RESPONSE"),
    e.ExtendedCardNotConfigured: Row(
        -32007, 400, _FAILED, "AuthenticatedExtendedCardNotConfiguredError", "EXTENDED_AGENT_CARD_NOT_CONFIGURED"
    ),
    e.ExtensionRequired: Row(-32008, 400, _FAILED, "ExtensionSupportRequiredError", "EXTENSION_SUPPORT_REQUIRED"),
    e.VersionNotSupported: Row(-32009, 400, _FAILED, "VersionNotSupportedError", "VERSION_NOT_SUPPORTED"),
    e.BodyTooLarge: Row(-32600, 413, "RESOURCE_EXHAUSTED", "InvalidRequestError", early=True),
    e.Unauthenticated: Row(-32603, 401, "UNAUTHENTICATED", "UnauthenticatedError", early=True),
    e.Forbidden: Row(-32603, 403, "PERMISSION_DENIED", "ForbiddenError", early=True),
    e.Busy: Row(-32603, 429, "RESOURCE_EXHAUSTED", "BusyError", early=True),
    e.Unavailable: Row(-32603, 503, "UNAVAILABLE", "InternalError", early=True),
    e.Overloaded: Row(-32603, 503, "UNAVAILABLE", "BusyError", early=True),
    e.StoreFull: Row(
        -32603, 503, "UNAVAILABLE", "InternalError", message="The server's storage is full; nothing was saved"
    ),
    e.OutcomeUnknown: Row(
        -32603,
        503,
        "UNAVAILABLE",
        "InternalError",
        message="It is not known whether this took effect; read the task before trying again",
    ),
    e.Conflict: Row(
        -32603, 503, "UNAVAILABLE", "InternalError", message="The task is being changed by others; try again"
    ),
    e.KeyTaken: Row(
        -32602,
        400,
        _INVALID,
        "InvalidParamsError",
        message="This idempotency key was used before for another request",
    ),
    e.AgentError: Row(-32603, 500, "INTERNAL", "InternalError", message="The agent failed"),
    BaseException: Row(-32603, 500, "INTERNAL", "InternalError", message=_INTERNAL),
}

DOMAIN = "a2a-protocol.org"
_TYPE = "type.googleapis.com/google.rpc."


class Words(NamedTuple):
    """Where a dialect numbers or words errors otherwise than the table. `statuses` are the HTTP status around an answer
    over JSON-RPC, where it is not the usual one."""

    codes: Mapping[type[BaseException], int] = {}
    phrases: Mapping[type[BaseException], str] = {}
    statuses: Mapping[type[BaseException], int] = {}


PLAIN = Words()
# Before 1.0 two of these numbers meant other things or nothing: a 0.x client gets the general one.
WORDS_03 = Words({e.ExtensionRequired: -32603, e.VersionNotSupported: -32603})


class Fault(NamedTuple):
    """An error as a client may see it, before a binding wraps it. `rpc` is the HTTP status around a JSON-RPC body."""

    code: int
    http: int
    rpc: int
    status: str
    name: str
    message: str
    details: list[dict[str, Any]]
    headers: tuple[tuple[bytes, bytes], ...]


def fault(error: BaseException, words: Words) -> Fault:
    """Look an error up: by its own row, else by its nearest ancestor's. What nobody foresaw is internal."""
    kind = next(kind for kind in type(error).__mro__ if kind in TABLE)
    row = TABLE[kind]
    return Fault(
        code=next((words.codes[each] for each in type(error).__mro__ if each in words.codes), row.code),
        http=row.http,
        rpc=words.statuses.get(kind, row.http if row.early else 200),
        status=row.status,
        name=row.name,
        message=words.phrases.get(kind) or row.message or str(error),
        details=_details(error, row),
        headers=_headers(error),
    )


def _details(error: BaseException, row: Row) -> list[dict[str, Any]]:
    details: list[dict[str, Any]] = []
    if row.reason:
        facts = error.facts if isinstance(error, e.CallerError) else {}
        details.append(
            {
                "@type": f"{_TYPE}ErrorInfo",
                "reason": row.reason,
                "domain": DOMAIN,
                **({"metadata": facts} if facts else {}),
            }
        )
    if isinstance(error, e.InvalidParams):
        violations = [{"field": v.field, "description": v.description} for v in error.violations]
        details.append({"@type": f"{_TYPE}BadRequest", "fieldViolations": violations})
    if isinstance(error, e.Busy | e.Unavailable):
        details.append({"@type": f"{_TYPE}RetryInfo", "retryDelay": f"{error.retry_after}s"})
    if isinstance(error, e.Busy) and error.limit:
        reached = {"subject": error.limit, "description": f"At most {error.most}"}
        details.append({"@type": f"{_TYPE}QuotaFailure", "violations": [reached]})
    return details


def _headers(error: BaseException) -> tuple[tuple[bytes, bytes], ...]:
    match error:
        case e.Busy() | e.Unavailable():
            return ((b"retry-after", b"%d" % error.retry_after),)
        case e.Unauthenticated():
            return ((b"www-authenticate", error.challenge.encode("latin-1", "replace")),)
        case e.MissingScope():
            needed = " ".join(error.scopes).encode("latin-1", "replace")
            return ((b"www-authenticate", b'Bearer realm="dragoman", error="insufficient_scope", scope="%b"' % needed),)
        case WrongVerb():
            return ((b"allow", error.allowed.encode()),)
        case _:
            return ()
