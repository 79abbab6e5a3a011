"""Requests as clients word them, and values as the engine hands them over."""

import json
from collections.abc import Mapping
from typing import Any, TypeVar

from dragoman.model.messages import Artifact, Message, Part, Role
from dragoman.model.operations import Operation, TaskRef
from dragoman.model.tasks import Task, TaskState, TaskStatus, View
from dragoman.wire import classify
from dragoman.wire.exchange import Exchange, Inbound, Reply
from dragoman.wire.mounts import table
from dragoman.wire.settings import WireSettings

T = TypeVar("T", bound=Operation)
AT = "2026-05-06T07:08:09.100Z"
REF = TaskRef("0199-uid", "t-77", "c-5")
FAR = "🜨"
MOUNTS = table(WireSettings())


def receive(inbound: Inbound, wire: WireSettings) -> Exchange | Reply:
    return classify.receive(inbound, wire, table(wire))


def refuse(inbound: Inbound, error: BaseException) -> Reply:
    return classify.refuse(inbound, error, MOUNTS)


def inbound(
    method: str = "POST",
    path: str = "/",
    body: object = None,
    *,
    query: str = "",
    version: str = "",
    headers: Mapping[str, str] | None = None,
) -> Inbound:
    sent = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
    lines = {"content-type": "application/json"} if sent else {}
    if version:
        lines["a2a-version"] = version
    return Inbound(method, path, query, {**lines, **(headers or {})}, sent)


def call(
    method: str,
    params: object = None,
    *,
    id: object = "r-1",
    version: str = "",
    path: str = "/",
    wire: WireSettings | None = None,
    headers: Mapping[str, str] | None = None,
) -> Exchange | Reply:
    envelope: dict[str, Any] = {"jsonrpc": "2.0", "id": id, "method": method}
    if params is not None:
        envelope["params"] = params
    return receive(inbound("POST", path, envelope, version=version, headers=headers), wire or WireSettings())


def post(body: bytes, **more: Any) -> Exchange | Reply:
    return receive(inbound("POST", "/", body, **more), WireSettings())


def visit(method: str, path: str, body: object = None, **more: Any) -> Exchange | Reply:
    return receive(inbound(method, path, body, **more), WireSettings())


def understood(found: Exchange | Reply) -> Exchange:
    assert isinstance(found, Exchange), found
    return found


def asked(found: Exchange | Reply, kind: type[T]) -> T:
    operation = understood(found).operation
    assert type(operation) is kind, operation
    return operation


def refused(found: Exchange | Reply) -> Reply:
    assert isinstance(found, Reply), found
    return found


def body_of(reply: Exchange | Reply) -> Any:
    return json.loads(refused(reply).body)


def error_of(reply: Exchange | Reply) -> Any:
    """The error object of either envelope."""
    body = body_of(reply)
    return body.get("error", body)


def header(found: Reply, name: str) -> str | None:
    return next((value.decode() for key, value in found.headers if key == name.encode()), None)


def frames_of(stream: bytes) -> list[tuple[str, Any]]:
    """(id, data) of each frame; one data line each, as the simplest of readers expects."""
    found: list[tuple[str, Any]] = []
    for frame in stream.decode().split("\n\n")[:-1]:
        lines = dict(line.split(": ", 1) for line in frame.split("\n"))
        assert set(lines) <= {"id", "data", "event"}
        found.append((lines.get("id", ""), json.loads(lines["data"])))
    return found


def task(**more: Any) -> Task:
    told: dict[str, Any] = {
        "id": "t-77",
        "context_id": "c-5",
        "status": TaskStatus(state=TaskState.COMPLETED, timestamp=AT),
    }
    return Task(**{**told, **more})


def view(**more: Any) -> View:
    return View(uid="0199-uid", seq=9, task=task(**more))


def agent_says(*parts: Part, **more: Any) -> Message:
    return Message(message_id="m-9", role=Role.AGENT, parts=parts or (Part(text="done"),), **more)


def agent_reports() -> Message:
    """As a status message: the engine names the context and the task."""
    return agent_says(context_id="c-5", task_id="t-77")


def artifact(*parts: Part, **more: Any) -> Artifact:
    return Artifact(artifact_id="a-3", parts=parts, **more)


USER_10 = {"messageId": "u-8", "role": "ROLE_USER", "parts": [{"text": "Rotate it"}]}
USER_03 = {"kind": "message", "messageId": "u-8", "role": "user", "parts": [{"kind": "text", "text": "Rotate it"}]}
USER_P03 = {"messageId": "u-8", "role": "ROLE_USER", "content": [{"text": "Rotate it"}]}
