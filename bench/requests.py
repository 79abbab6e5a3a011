"""The requests of the bench, in each dialect and binding: the same words, asked the same way of everyone."""

import json
from dataclasses import dataclass
from typing import cast

TEXT = "What will the weather be like in Lisbon on Thursday, and should we bring coats?"


@dataclass(frozen=True)
class Ask:
    """One HTTP request, before it knows its host."""

    method: str
    path: str
    headers: tuple[tuple[str, str], ...]
    body: str = ""

    def line(self) -> str:
        """As `lua/load.lua` reads it."""
        return f"{self.method} {self.path} {self.body}".rstrip()

    def wire(self, port: int, extra: tuple[tuple[str, str], ...] = ()) -> bytes:
        fields = (("Host", f"127.0.0.1:{port}"), *self.headers, *extra)
        body = self.body.encode()
        head = "".join(f"{name}: {value}\r\n" for name, value in fields)
        return f"{self.method} {self.path} HTTP/1.1\r\n{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


_JSON = ("Content-Type", "application/json")
_HEADERS = {
    "1.0": (_JSON, ("A2A-Version", "1.0")),
    "0.3": (_JSON,),
    "1.0-http": (_JSON, ("A2A-Version", "1.0")),
    "0.3-http": (_JSON, ("A2A-Version", "0.3")),
}
OFFICIAL = tuple(_HEADERS)
# The older ones and the five systems': where each is spoken, and how it sends.
SEEDS = {
    "0.1": ("/", "tasks/send"),
    "coding-agent": ("/a2a/jsonrpc", "message/send"),
    "Cortex": ("/a2a", "SendMessage"),
    "simple_a2a": ("/", "tasks/send"),
    "A2X": ("/api/a2a", "message/send"),
    "protoAgent": ("/a2a", "message/send"),
}
DIALECTS = (*OFFICIAL, *SEEDS)


def _message(dialect: str, text: str) -> dict[str, object]:
    """As each dialect's own clients write it."""
    if dialect == "0.1":
        return {"role": "user", "parts": [{"type": "text", "text": text}]}
    if dialect == "Cortex":
        return {"messageId": "bench", "role": "user", "parts": [{"text": text}]}
    if dialect in SEEDS:
        return {"messageId": "bench", "role": "user", "parts": [{"kind": "text", "text": text}]}
    if dialect == "0.3":
        return {"kind": "message", "messageId": "bench", "role": "user", "parts": [{"kind": "text", "text": text}]}
    content = "content" if dialect == "0.3-http" else "parts"
    return {"messageId": "bench", "role": "ROLE_USER", content: [{"text": text}]}


def _rpc(dialect: str, method: str, params: dict[str, object]) -> Ask:
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    path, _ = SEEDS.get(dialect, ("/", ""))
    return Ask("POST", path, _HEADERS.get(dialect, (_JSON,)), json.dumps(body, separators=(",", ":")))


def _http(dialect: str, path: str, body: dict[str, object]) -> Ask:
    prefix = "/v1" if dialect == "0.3-http" else ""
    return Ask("POST", prefix + path, _HEADERS[dialect], json.dumps(body, separators=(",", ":")))


def _hooked(webhook: str) -> dict[str, object]:
    """1.0's way to bring a webhook along."""
    return {"configuration": {"taskPushNotificationConfig": {"url": webhook}}} if webhook else {}


def send(dialect: str, text: str = TEXT, webhook: str = "") -> Ask:
    """A message whose answer is awaited. 1.0 waits by itself; 0.3 is told to, as its servers differ."""
    message = _message(dialect, text)
    if dialect in SEEDS:
        return _rpc(dialect, SEEDS[dialect][1], {"message": message})
    match dialect:
        case "1.0":
            return _rpc(dialect, "SendMessage", {"message": message, **_hooked(webhook)})
        case "0.3":
            return _rpc(dialect, "message/send", {"message": message, "configuration": {"blocking": True}})
        case "1.0-http":
            return _http(dialect, "/message:send", {"message": message})
        case _:
            return _http(dialect, "/message:send", {"message": message, "configuration": {"blocking": True}})


def stream(dialect: str, text: str, webhook: str = "") -> Ask:
    method = "message/stream" if dialect == "0.3" else "SendStreamingMessage"
    return _rpc(dialect, method, {"message": _message(dialect, text), **_hooked(webhook)})


def get(dialect: str, task_id: str) -> Ask:
    return _rpc(dialect, "tasks/get" if dialect == "0.3" else "GetTask", {"id": task_id})


def listing(**filters: object) -> Ask:
    return _rpc("1.0", "ListTasks", filters)


def subscribe(task_id: str) -> Ask:
    return _rpc("1.0", "SubscribeToTask", {"id": task_id})


def card() -> Ask:
    return Ask("GET", "/.well-known/agent-card.json", ())


def task_of(reply: bytes) -> dict[str, object]:
    """The task in a reply of any dialect; a reply without one is an error worth reading."""
    value: dict[str, object] = json.loads(reply)
    for wrapper in ("result", "task"):
        inner = value.get(wrapper)
        value = cast("dict[str, object]", inner) if isinstance(inner, dict) else value
    if "status" not in value:
        raise ValueError(f"no task in {reply[:300]!r}")
    return value
