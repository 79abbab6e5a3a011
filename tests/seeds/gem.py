"""simple_a2a's own client, by the rules its source reads answers with.

Members are looked up in camel case, then as Ruby spells them; null and false count as absent; an id that is missing is
made up, and shows here as `MADE_UP`. HTTP statuses are not looked at. A stream is cut at empty lines; of a block's
lines only the last that begins with `data: ` counts; what is no JSON is dropped; what has no known type stays raw.
"""

import http.client
import json
import uuid
from collections.abc import Generator, Iterator, Mapping
from contextlib import closing
from typing import Any, NamedTuple
from urllib.parse import urlsplit

WAIT = 20.0
JSON = dict[str, Any]
MADE_UP = "<made up>"


class GemError(Exception):
    """All its client tells of an error: the message."""


class Read(NamedTuple):
    """What was read, by the name of its class there. Members the class does not know are gone."""

    kind: str
    members: JSON

    def __getattr__(self, name: str) -> Any:
        return self.members[name]


class Shape:
    """A class of the gem's: its attributes, each with what it holds (a shape, or a list of one) and its default."""

    def __init__(self, kind: str, **attributes: Any) -> None:
        self.kind = kind
        self.attributes = attributes

    def read(self, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        members: JSON = {}
        for name, how in self.attributes.items():
            found = next((value[each] for each in (camel(name), name) if value.get(each) not in (None, False)), None)
            members[name] = taken(found, how)
        return Read(self.kind, members)


def camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(map(str.capitalize, others))


def taken(found: Any, how: Any) -> Any:
    """A value as its attribute holds it; its default where there is none."""
    match how:
        case Shape():
            return how.read(found) if found is not None else None
        case [Shape() as each]:
            return [each.read(item) for item in found] if isinstance(found, list) else ([] if found is None else found)
        case _:
            return how if found is None else found


PART = Shape("Part", text=None, raw=None, url=None, data=None, media_type=None, filename=None, metadata=None)
MESSAGE = Shape("Message", message_id=MADE_UP, role=None, parts=[PART], context_id=None, task_id=None, metadata=None)
ARTIFACT = Shape("Artifact", artifact_id=MADE_UP, name=None, description=None, parts=[PART], metadata=None)
STATUS = Shape("TaskStatus", state=None, message=MESSAGE, timestamp=MADE_UP)
TASK = Shape(
    "Task", id=MADE_UP, context_id=MADE_UP, status=STATUS, artifacts=[ARTIFACT], history=[MESSAGE], metadata=None
)
EVENTS = {
    "TaskStatusUpdateEvent": Shape("Status", task_id=None, context_id=None, status=STATUS, final=False, metadata=None),
    "TaskArtifactUpdateEvent": Shape(
        "Artifact", task_id=None, context_id=None, artifact=ARTIFACT, append=False, last_chunk=False, metadata=None
    ),
}
CARD = Shape(
    "AgentCard",
    name=None,
    description=None,
    version=None,
    provider=Shape("AgentProvider", name=None, url=None, description=None),
    capabilities=Shape("AgentCapabilities", streaming=False, push_notifications=False, extended_agent_card=False),
    skills=[Shape("AgentSkill", name=None, description=None, input_schema=None, output_schema=None)],
    interfaces=[Shape("AgentInterface", type=None, url=None, version=None)],
)


def user(text: str, **members: Any) -> JSON:
    """A message as its client makes one: no kind, a media type, and empty lists written out."""
    part = {"text": text, "mediaType": "text/plain"}
    message = {"messageId": str(uuid.uuid4()), "role": "user", "parts": [part]}
    return {**message, "referenceTaskIds": [], "extensions": [], **members}


def texts(parts: list[Read]) -> str:
    return "".join(part.text or "" for part in parts)


class Gem:
    def __init__(self, url: str, headers: Mapping[str, str] | None = None) -> None:
        self._url = url
        self._headers = dict(headers or {})

    def agent_card(self) -> Read:
        address = f"{self._url.removesuffix('/')}/agentCard"
        with closing(self._dial(address)) as connection:
            connection.request("GET", urlsplit(address).path, headers=self._headers)
            return CARD.read(json.loads(connection.getresponse().read()))

    def send_task(self, message: JSON, **beside: Any) -> Read:
        return TASK.read(self._call("tasks/send", _params(message, beside)))

    def get_task(self, id: str) -> Read:
        return TASK.read(self._call("tasks/get", {"id": id}))

    def list_tasks(self) -> list[Read]:
        return [TASK.read(each) for each in self._call("tasks/list", {})]

    def cancel_task(self, id: str) -> Read:
        return TASK.read(self._call("tasks/cancel", {"id": id}))

    def send_subscribe(self, message: JSON, **beside: Any) -> Generator[Any]:
        """The events, as they come. Closing the generator hangs up."""
        return self._stream("tasks/sendSubscribe", _params(message, beside))

    def resubscribe(self, id: str) -> Generator[Any]:
        return self._stream("tasks/resubscribe", {"id": id})

    # --- the wire

    def _dial(self, url: str) -> http.client.HTTPConnection:
        where = urlsplit(url)
        return http.client.HTTPConnection(where.hostname or "", where.port, timeout=WAIT)

    def _post(self, connection: http.client.HTTPConnection, method: str, params: JSON, **more: str) -> Any:
        envelope = {"jsonrpc": "2.0", "id": str(uuid.uuid4()), "method": method, "params": params}
        headers = {"content-type": "application/json", **more, **self._headers}
        connection.request("POST", urlsplit(self._url).path or "/", json.dumps(envelope), headers)
        return connection.getresponse()

    def _call(self, method: str, params: JSON) -> Any:
        with closing(self._dial(self._url)) as connection:
            parsed = json.loads(self._post(connection, method, params).read())
        if parsed.get("error"):
            raise GemError(parsed["error"]["message"])
        return parsed.get("result")

    def _stream(self, method: str, params: JSON) -> Generator[Any]:
        with closing(self._dial(self._url)) as connection:
            response = self._post(connection, method, params, accept="text/event-stream")
            with closing(response):
                yield from _events(iter(lambda: response.read1(65536), b""))


def _params(message: JSON, beside: JSON) -> JSON:
    return {"message": message, **beside}


def _events(pieces: Iterator[bytes]) -> Iterator[Any]:
    waiting = b""
    for piece in pieces:
        *blocks, waiting = (waiting + piece).split(b"\n\n")
        for block in blocks:
            event = _event(block.decode())
            if event is not None:
                yield event


def _event(block: str) -> Any:
    data = [line[6:] for line in block.split("\n") if line.startswith("data: ")]
    if not data:
        return None
    try:
        parsed = json.loads(data[-1])
    except ValueError:
        return None
    result = parsed.get("result") or parsed
    shape = EVENTS.get(result.get("type") or result.get("kind"))
    return result if shape is None else shape.read(result)
