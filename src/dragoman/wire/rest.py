"""HTTP+JSON: which operation a path and verb name, and bare objects as bodies."""

from collections.abc import Collection, Mapping
from typing import Any
from urllib.parse import parse_qsl, unquote

import msgspec
from msgspec import Struct

from dragoman.model.errors import InvalidParams, ParseFailure
from dragoman.model.operations import Operation
from dragoman.wire.dialect import Dialect, Framing
from dragoman.wire.errors import Fault, fault
from dragoman.wire.exchange import Around, Headers, Inbound, Reply
from dragoman.wire.reading import parse
from dragoman.wire.settings import WireSettings

A2A_JSON = "application/a2a+json"


class Match(Struct, frozen=True):
    """A path that names something: the operation of each verb, and the parameters the path carries."""

    verbs: Mapping[str, str]
    bound: Mapping[str, str]

    @property
    def allowed(self) -> str:
        return ", ".join(self.verbs)


_PLAIN: Mapping[str, Mapping[str, str]] = {
    "message:send": {"POST": "SendMessage"},
    "message:stream": {"POST": "SendStreamingMessage"},
    "tasks": {"GET": "ListTasks"},
}
_CARD = {"GET": "GetExtendedAgentCard"}
_TASK = {"GET": "GetTask"}
_ACTIONS: Mapping[str, Mapping[str, str]] = {
    "cancel": {"POST": "CancelTask"},
    # The prose of every version says POST, the interface definition GET: clients of both kinds exist.
    "subscribe": {"GET": "SubscribeToTask", "POST": "SubscribeToTask"},
}
_HOOKS = {"GET": "ListTaskPushNotificationConfigs", "POST": "CreateTaskPushNotificationConfig"}
_HOOK = {"GET": "GetTaskPushNotificationConfig", "DELETE": "DeleteTaskPushNotificationConfig"}


def match(segments: list[str], card: str, hooks: Collection[str] = ("pushNotificationConfigs",)) -> Match | None:
    """The operations behind these segments (still percent-encoded), or None. `card` names the extended card, `hooks`
    what webhooks are called."""
    match segments:
        case [word] if (name := segment(word)) in _PLAIN:
            return Match(_PLAIN[name], {})
        case [word] if word == card:
            return Match(_CARD, {})
        case ["tasks", id] if id:
            # Ids may hold colons, so only the last one can begin an action.
            task, _, action = id.rpartition(":")
            if task and action in _ACTIONS:
                return Match(_ACTIONS[action], {"id": segment(task)})
            return Match(_TASK, {"id": segment(id)})
        case ["tasks", id, word] if id and word in hooks:
            return Match(_HOOKS, {"taskId": segment(id)})
        case ["tasks", id, word, config] if id and config and word in hooks:
            return Match(_HOOK, {"taskId": segment(id), "id": segment(config)})
        case _:
            return None


def segment(encoded: str) -> str:
    """A path segment as meant. Raises InvalidParams when it is not UTF-8."""
    try:
        return unquote(encoded, errors="strict")
    except UnicodeDecodeError:
        raise InvalidParams("the path is not valid UTF-8 when percent-decoded") from None


def read(dialect: Dialect, name: str, inbound: Inbound, bound: Mapping[str, str], wire: WireSettings) -> Operation:
    """The operation, from body or query; what the path says wins over both."""
    if inbound.method != "POST":
        query = dict(parse_qsl(inbound.query, keep_blank_values=True))
        return dialect.read_fields(name, query | dict(bound), wire, True)
    if name in ("SendMessage", "SendStreamingMessage"):
        if not inbound.body:
            raise ParseFailure("The body is empty; send a JSON object.")
        if inbound.body.lstrip()[:1] not in (b"{", b""):
            parse(inbound.body)
            raise InvalidParams("the body must be a JSON object")
        return dialect.read(name, inbound.body, wire)
    fields: Any = parse(inbound.body) if inbound.body.strip() else None
    if fields is None:
        fields = {}
    if not isinstance(fields, dict):
        raise InvalidParams("the body must be a JSON object")
    return dialect.read_fields(name, {**fields, **bound}, wire, False)


def error_body(dialect: Dialect, found: Fault) -> bytes:
    if dialect.details:
        error: dict[str, Any] = {"code": found.http, "status": found.status, "message": found.message}
        if found.details:
            error["details"] = found.details
        return msgspec.json.encode({"error": error})
    return msgspec.json.encode({"code": found.code, "type": found.name, "message": found.message})


_JSON: Headers = ((b"content-type", b"application/json"), (b"cache-control", b"no-store"))
_JSON_A2A: Headers = ((b"content-type", A2A_JSON.encode()), (b"cache-control", b"no-store"), (b"vary", b"accept"))


class Rest:
    """`exchange.Binding` for one request: bare objects, and errors told by the status as well."""

    __slots__ = ("headers",)

    nothing = b"{}"
    streamed = False
    around: Around = (b"", b"")
    # Never the A2A media type: one client refuses to read an error that does not begin with application/json.
    error_headers: Headers = _JSON

    def __init__(self, dialect: Dialect, inbound: Inbound) -> None:
        headers = inbound.headers
        named = A2A_JSON in headers.get("content-type", "") or A2A_JSON in headers.get("accept", "")
        self.headers = _JSON_A2A if named and dialect.details else _JSON

    def framed(self, framing: Framing) -> Around:
        return self.around

    def status(self, found: Fault) -> int:
        return found.http

    def error(self, dialect: Dialect, found: Fault) -> bytes:
        return error_body(dialect, found)


def refusal(dialect: Dialect, error: BaseException) -> Reply:
    """An error for which no exchange exists."""
    found = fault(error, dialect.words)
    headers: Headers = (*_JSON, (b"a2a-version", dialect.version.encode()), *found.headers)
    return Reply(found.http, headers, error_body(dialect, found))
