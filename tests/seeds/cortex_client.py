"""Cortex's client, with its rules of reading and no kindness beyond them.

It asks for the card in 1.0's name below the endpoint, calls the first interface whose protocol is json-rpc (else the
first there is), takes any error member for a failure and whatever else there is for the result. A stream it reads line
by line: what begins with `data: ` and is JSON counts, `result.task` is the task, a `type` says what an event is.
"""

import json
from collections.abc import Callable, Iterator
from typing import Any
from uuid import uuid4

from tests.seeds.calling import JSON, ask, opened

VERSION = {"A2A-Version": "1.0"}
Heard = Callable[[str], None]
Seen = Callable[[str, str, bool], None]


class CortexError(Exception):
    pass


def fetch_agent_card(endpoint: str) -> JSON:
    base, path = _split(f"{endpoint.removesuffix('/')}/.well-known/agent-card.json")
    answer = ask(base, "GET", path, headers={"Accept": "application/json", **VERSION})
    if not 200 <= answer.status < 300:
        raise CortexError(f"Failed to fetch agent card: {answer.status}")
    return answer.json()


def interface(card: JSON) -> JSON:
    found = card["interfaces"]
    return next((each for each in found if each.get("protocol") == "json-rpc"), found[0])


def rpc(card: JSON, method: str, params: JSON) -> Any:
    base, path = _split(interface(card)["url"])
    answer = ask(base, "POST", path, _request(method, params), VERSION).json()
    if answer.get("error"):
        raise CortexError(f"A2A RPC error {answer['error']['code']}: {answer['error']['message']}")
    return answer["result"]


def send_message(card: JSON, request: JSON) -> JSON:
    return rpc(card, "SendMessage", request)


def send_streaming_message(card: JSON, request: JSON, on_chunk: Heard, on_status: Seen) -> JSON:
    """The task of the first frame; everything later goes to the callbacks."""
    base, path = _split(interface(card)["url"])
    found: JSON | None = None
    with opened(base, "POST", path, _request("SendStreamingMessage", request), VERSION) as stream:
        if stream.status != 200:
            raise CortexError(f"A2A streaming error: {stream.status}")
        for event in _events(line for frame in stream.rest() for line in frame.lines):
            result = event.get("result") or {}
            found = result.get("task") or found
            for part in (result.get("message") or {}).get("parts", ()):
                if part.get("text"):
                    on_chunk(part["text"])
            if event.get("type") == "TaskArtifactUpdateEvent":
                for part in event["artifact"]["parts"]:
                    if part.get("text"):
                        on_chunk(part["text"])
            if event.get("type") == "TaskStatusUpdateEvent":
                on_status(event["taskId"], (event.get("status") or {}).get("state", "unknown"), event["final"])
    if found is None:
        raise CortexError("Stream ended without task result")
    return found


def get_task(card: JSON, id: str) -> JSON:
    return rpc(card, "GetTask", {"id": id})


def list_tasks(card: JSON, request: JSON) -> JSON:
    return rpc(card, "ListTasks", request)


def cancel_task(card: JSON, id: str) -> JSON:
    return rpc(card, "CancelTask", {"id": id})


def _events(lines: Iterator[str]) -> Iterator[JSON]:
    for line in lines:
        data = line.strip().removeprefix("data: ")
        if data == line.strip() or data == "[DONE]":
            continue
        try:
            yield json.loads(data)
        except ValueError:
            continue


def _request(method: str, params: JSON) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "method": method, "params": params, "id": str(uuid4())}).encode()


def _split(url: str) -> tuple[str, str]:
    """What is dialled, and the path."""
    scheme, _, rest = url.partition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme}://{host}", slash + path
