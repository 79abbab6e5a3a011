"""Clients made of nothing but the protocol's words: each version over each binding, against the ASGI application.

A `Speaker` spells requests in its dialect and reads answers back into one shape, so that a test can say once
what all of them must see. `raw` and `body` keep what was really on the wire.
"""

import asyncio
import itertools
import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import quote, urlencode

import dragoman
from dragoman.testing.inprocess import App, Exchange, Lifespan, Response
from dragoman.testing.sse import Frame, Frames
from tests.protocol.stage import Stage

BOUND = 10
STATES_03 = {
    "submitted": "SUBMITTED",
    "working": "WORKING",
    "completed": "COMPLETED",
    "failed": "FAILED",
    "canceled": "CANCELED",
    "input-required": "INPUT_REQUIRED",
    "rejected": "REJECTED",
    "auth-required": "AUTH_REQUIRED",
}
CODES = {
    "TASK_NOT_FOUND": -32001,
    "TASK_NOT_CANCELABLE": -32002,
    "PUSH_NOTIFICATION_NOT_SUPPORTED": -32003,
    "UNSUPPORTED_OPERATION": -32004,
    "CONTENT_TYPE_NOT_SUPPORTED": -32005,
    "INVALID_AGENT_RESPONSE": -32006,
    "EXTENDED_AGENT_CARD_NOT_CONFIGURED": -32007,
    "EXTENSION_SUPPORT_REQUIRED": -32008,
    "VERSION_NOT_SUPPORTED": -32009,
}
KINDS: dict[str, str] = {
    "status-update": "status",
    "artifact-update": "artifact",
    "statusUpdate": "status",
    "artifactUpdate": "artifact",
}
_numbers = itertools.count(1)


class Refused(Exception):
    """An error answer. `code` is JSON-RPC's number for it, whatever the binding."""

    def __init__(self, code: int, message: str, details: Any, response: Response) -> None:
        super().__init__(f"{code} {message}")
        self.code, self.message, self.details, self.response = code, message, details, response


class Seen:
    """A task, message or update as its reader understands it."""

    def __init__(self, kind: str, raw: dict[str, Any], cursor: str = "", envelope: Any = None) -> None:
        self.kind, self.raw, self.cursor, self.envelope = kind, raw, cursor, envelope

    @property
    def id(self) -> str:
        return self.raw["id"] if self.kind == "task" else self.raw.get("taskId", "")

    @property
    def context(self) -> str:
        return self.raw.get("contextId", "")

    @property
    def state(self) -> str:
        status = self.raw.get("status") or {}
        state: str = status.get("state", "")
        found = STATES_03.get(state, state.removeprefix("TASK_STATE_"))
        return "CANCELED" if found == "CANCELLED" else found

    @property
    def words(self) -> str:
        """Of the status message, or of the message itself."""
        message = self.raw if self.kind == "message" else (self.raw.get("status") or {}).get("message")
        return "" if message is None else text_of(message)

    @property
    def history(self) -> list[str]:
        return [text_of(message) for message in self.raw.get("history", [])]

    @property
    def artifacts(self) -> list[str]:
        """The text of each artifact; of an update, of its one piece."""
        found = [self.raw["artifact"]] if self.kind == "artifact" else self.raw.get("artifacts", [])
        return [text_of(artifact) for artifact in found]


def text_of(holder: dict[str, Any]) -> str:
    parts = holder.get("parts") or holder.get("content") or []
    return "".join(str(part.get("text", "")) for part in parts)


class Stream:
    """An open stream. Leaving it is a disconnect."""

    def __init__(self, speaker: "Speaker", exchange: Exchange) -> None:
        self._speaker, self._exchange = speaker, exchange
        self._frames, self._ready = Frames(), list[Frame]()
        self._chunks = exchange.chunks()
        self.headers = exchange.headers
        self.raw: list[Frame] = []

    async def next(self) -> Seen | None:
        """The next event; None once the server ended the stream."""
        async with asyncio.timeout(BOUND):
            while not self._ready:
                chunk = await anext(self._chunks, None)
                if chunk is None:
                    return None
                self._ready += self._frames.feed(chunk)
        frame = self._ready.pop(0)
        self.raw.append(frame)
        return self._speaker.read_item(frame)

    async def until(self, state: str) -> list[Seen]:
        found: list[Seen] = []
        while (event := await self.next()) is not None:
            found.append(event)
            if event.state == state:
                return found
        raise AssertionError(f"the stream ended before {state}")

    async def rest(self) -> list[Seen]:
        found: list[Seen] = []
        while (event := await self.next()) is not None:
            found.append(event)
        return found


class Speaker:
    """One version over one binding."""

    def __init__(self, version: str, binding: str, stage: Stage, app: App) -> None:
        self.version, self.binding, self.stage, self.app = version, binding, stage, app
        self.rest = binding == "HTTP+JSON"
        self.modern = version == "1.0"

    # --- requests

    def part(self, text: str) -> dict[str, Any]:
        return {"text": text} if self.modern or self.rest else {"kind": "text", "text": text}

    def message(self, *content: str | dict[str, Any], **members: Any) -> dict[str, Any]:
        parts = [self.part(each) if isinstance(each, str) else each for each in content]
        enums = self.modern or self.rest
        message = {
            "messageId": f"m-{next(_numbers)}",
            "role": "ROLE_USER" if enums else "user",
            "content" if self.rest and not self.modern else "parts": parts,
            **members,
        }
        return message if enums else {"kind": "message", **message}

    def sending(
        self,
        *content: str | dict[str, Any],
        now: bool = False,
        history: int | None = None,
        modes: Sequence[str] = (),
        metadata: dict[str, Any] | None = None,
        tenant: str = "",
        **members: Any,
    ) -> dict[str, Any]:
        configuration: dict[str, Any] = {}
        if self.modern:
            if now:
                configuration["returnImmediately"] = True
        elif now or self.rest:
            configuration["blocking"] = not now
        if history is not None:
            configuration["historyLength"] = history
        if modes:
            configuration["acceptedOutputModes"] = list(modes)
        params: dict[str, Any] = {"message": self.message(*content, **members)}
        if configuration:
            params["configuration"] = configuration
        if metadata is not None:
            params["metadata"] = metadata
        if tenant and self.modern and not self.rest:
            params["tenant"] = tenant
        return params

    def headers(self, body: bytes, more: dict[str, str] | None) -> dict[str, str]:
        given = {"content-type": "application/json"} if body else {}
        if self.modern:
            given["a2a-version"] = "1.0"
        return {**given, **(more or {})}

    def target(self, verb: str, path: str, tenant: str = "") -> tuple[str, str]:
        start = (f"/{tenant}" if tenant else "") + ("" if self.modern else "/v1")
        return verb, start + path

    async def ask(self, verb: str, path: str, body: Any = None, headers: dict[str, str] | None = None) -> Response:
        """Any request, answered whole."""
        data = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        exchange = Exchange(self.app, verb, path, self.headers(data, headers), data)
        async with asyncio.timeout(BOUND):
            await exchange.open()
            try:
                return await exchange.whole()
            finally:
                await exchange.close()

    def envelope(self, method: str, params: Any) -> dict[str, Any]:
        return {"jsonrpc": "2.0", "id": next(_numbers), "method": method, "params": params}

    def spelled(self, operation: str, params: dict[str, Any], tenant: str = "") -> tuple[str, str, Any]:
        """An operation as verb, path and body."""
        if not self.rest:
            # Parameters of 0.3 have no place for a tenant: only the path does.
            path = "/" if self.modern else f"/{tenant}"
            return "POST", path, self.envelope(METHODS[operation][0 if self.modern else 1], params)
        id = quote(str(params.get("id", "")), safe="")
        query = urlencode({k: str(v).lower() if isinstance(v, bool) else v for k, v in params.items() if k != "id"})
        ask = f"?{query}" if query else ""
        spelled = {
            "send": ("POST", "/message:send", params),
            "stream": ("POST", "/message:stream", params),
            "get": ("GET", f"/tasks/{id}{ask}", None),
            "list": ("GET", f"/tasks{ask}", None),
            "cancel": ("POST", f"/tasks/{id}:cancel", {}),
            "subscribe": ("POST", f"/tasks/{id}:subscribe", None),
            "card": ("GET", "/extendedAgentCard" if self.modern else "/card", None),
            "push create": ("POST", f"/tasks/{id}/pushNotificationConfigs", {"url": "https://example.com/hook"}),
            "push get": ("GET", f"/tasks/{id}/pushNotificationConfigs/c", None),
            "push list": ("GET", f"/tasks/{id}/pushNotificationConfigs", None),
            "push delete": ("DELETE", f"/tasks/{id}/pushNotificationConfigs/c", None),
        }
        verb, path, body = spelled[operation]
        return (*self.target(verb, path, tenant), body)

    async def call(
        self, operation: str, params: dict[str, Any], headers: dict[str, str] | None = None, tenant: str = ""
    ) -> Any:
        """The result, as it is on the wire. Raises Refused."""
        verb, path, body = self.spelled(operation, params, tenant)
        response = await self.ask(verb, path, body, headers)
        self.last = response
        return self.result(response, None if body is None else body.get("id"))

    # --- answers

    def result(self, response: Response, id: Any = None) -> Any:
        if not self.rest:
            body = response.json()
            if "error" in body:
                self._refuse(body["error"], response)
            assert response.status == 200 and body["jsonrpc"] == "2.0" and body["id"] == id
            return body["result"]
        if response.status != 200:
            body = response.json()
            self._refuse(body["error"] if self.modern else body, response)
        return response.json()

    def _refuse(self, error: dict[str, Any], response: Response) -> None:
        details = error.get("details" if self.rest else "data")
        code = error["code"]
        if self.rest and self.modern:
            reasons = [each["reason"] for each in details or () if "reason" in each]
            code = CODES[reasons[0]] if reasons else {400: -32602, 404: -32601, 405: -32601}.get(code, -32603)
        raise Refused(code, error["message"], details, response)

    def read_result(self, result: dict[str, Any], *, bare: bool = False) -> Seen:
        if not self.modern and not self.rest:
            return Seen(result["kind"], result)
        if bare:
            return Seen("task", result)
        assert len(result) == 1, "exactly one of task and message"
        ((kind, value),) = result.items()
        return Seen(kind, value)

    def read_item(self, frame: Frame) -> Seen:
        body = json.loads(frame.data)
        if frame.event == "error":
            raise AssertionError(f"the stream failed: {body}")
        item: dict[str, Any] = body if self.rest else body["result"]
        if not self.modern and not self.rest:
            kind: str = item["kind"]
            return Seen(KINDS.get(kind, kind), item, frame.id, body)
        assert len(item) == 1, "exactly one member"
        ((kind, value),) = item.items()
        return Seen(KINDS.get(kind, kind), value, frame.id, body)

    # --- operations

    async def send(self, *content: str | dict[str, Any], headers: dict[str, str] | None = None, **how: Any) -> Seen:
        tenant = how.get("tenant", "")
        return self.read_result(await self.call("send", self.sending(*content, **how), headers, tenant))

    async def get(self, id: str, history: int | None = None, tenant: str = "") -> Seen:
        params: dict[str, Any] = {"id": id} | ({} if history is None else {"historyLength": history})
        return self.read_result(await self.call("get", self._in(params, tenant), None, tenant), bare=True)

    async def cancel(self, id: str, tenant: str = "") -> Seen:
        return self.read_result(await self.call("cancel", self._in({"id": id}, tenant), None, tenant), bare=True)

    async def list(self, tenant: str = "", **filters: Any) -> dict[str, Any]:
        return await self.call("list", self._in(filters, tenant), None, tenant)

    def _in(self, params: dict[str, Any], tenant: str) -> dict[str, Any]:
        return {"tenant": tenant, **params} if tenant and self.modern and not self.rest else params

    async def settled(self, id: str, *states: str) -> Seen:
        async with asyncio.timeout(BOUND):
            while True:
                seen = await self.get(id)
                if seen.state in (states or ("COMPLETED", "FAILED", "CANCELED", "REJECTED", "INPUT_REQUIRED")):
                    return seen
                await asyncio.sleep(0)

    @asynccontextmanager
    async def stream(
        self, *content: str | dict[str, Any], headers: dict[str, str] | None = None, **how: Any
    ) -> AsyncGenerator[Stream]:
        async with self._stream("stream", self.sending(*content, **how), headers) as stream:
            yield stream

    @asynccontextmanager
    async def subscribe(self, id: str, cursor: str = "") -> AsyncGenerator[Stream]:
        headers = {"last-event-id": cursor} if cursor else {}
        async with self._stream("subscribe", {"id": id}, headers) as stream:
            yield stream

    @asynccontextmanager
    async def _stream(
        self, operation: str, params: dict[str, Any], headers: dict[str, str] | None
    ) -> AsyncGenerator[Stream]:
        verb, path, body = self.spelled(operation, params)
        data = b"" if body is None else json.dumps(body).encode()
        exchange = Exchange(self.app, verb, path, self.headers(data, headers), data)
        async with asyncio.timeout(BOUND):
            await exchange.open()
        try:
            if not exchange.headers["content-type"].startswith("text/event-stream"):
                response = await exchange.whole()
                self.result(response)
                raise AssertionError("neither a stream nor an error")
            if exchange.status == 200 and (stream := Stream(self, exchange)):
                yield stream
        finally:
            await exchange.close()


def violations(refused: Refused) -> list[dict[str, str]]:
    """The fields an error names, each with what is wrong with it."""
    for detail in refused.details:
        assert detail["@type"].startswith("type.googleapis.com/google.rpc.")
    return [each for detail in refused.details for each in detail.get("fieldViolations", [])]


METHODS = {
    "send": ("SendMessage", "message/send"),
    "stream": ("SendStreamingMessage", "message/stream"),
    "get": ("GetTask", "tasks/get"),
    "list": ("ListTasks", "tasks/list"),
    "cancel": ("CancelTask", "tasks/cancel"),
    "subscribe": ("SubscribeToTask", "tasks/resubscribe"),
    "card": ("GetExtendedAgentCard", "agent/getAuthenticatedExtendedCard"),
    "push create": ("CreateTaskPushNotificationConfig", "tasks/pushNotificationConfig/set"),
    "push get": ("GetTaskPushNotificationConfig", "tasks/pushNotificationConfig/get"),
    "push list": ("ListTaskPushNotificationConfigs", "tasks/pushNotificationConfig/list"),
    "push delete": ("DeleteTaskPushNotificationConfig", "tasks/pushNotificationConfig/delete"),
}
SPEAKERS = [("1.0", "JSONRPC"), ("1.0", "HTTP+JSON"), ("0.3", "JSONRPC"), ("0.3", "HTTP+JSON")]


@asynccontextmanager
async def serving(stage: Stage | None = None, **settings: Any) -> AsyncGenerator[tuple[Stage, App]]:
    """The application around a stage, started and stopped as a server would."""
    stage = stage or Stage()
    given: dict[str, Any] = {"store": "memory://", "drain": 0, **settings}
    app = dragoman.asgi(stage.agent, **given)
    lifespan = Lifespan(app)
    await lifespan.start()
    try:
        yield stage, app
    finally:
        stage.gate.set()
        await lifespan.stop()
