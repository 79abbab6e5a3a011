"""P03: protocol 0.3 over HTTP+JSON, the JSON of its gRPC file under `/v1/…`.

Strict readers live on the other side, so what is written holds only members that file knows. What is read may be P03
with either spelling of its names, or K03: both are in use, and no member means two things.

Some peers put base64 text where the bytes belong, so it arrives encoded twice; others do not. Who sends which is told
by the user agent, and by looking when that says nothing (`_doubled`).
"""

import re
from base64 import b64decode, b64encode
from collections.abc import Mapping
from typing import Any, Literal, cast

import msgspec
from msgspec import UNSET, Struct

from dragoman.model.facts import AnyFact, Chunk, StatusFact
from dragoman.model.messages import Artifact, Message, Part, Role
from dragoman.model.operations import (
    Configuration,
    CreatePush,
    GetTask,
    Operation,
    PushConfig,
    PushPage,
    SendMessage,
    SendStreamingMessage,
    TaskPage,
    TaskRef,
)
from dragoman.model.tasks import Task, TaskState, TaskStatus, View
from dragoman.wire import cards, k03, p10, shapes03
from dragoman.wire.dialect import Dialect, Encode
from dragoman.wire.errors import WORDS_03
from dragoman.wire.reading import (
    Field,
    Read,
    Sheet,
    choice,
    decode_base64,
    finish,
    flag,
    ident,
    integer,
    many,
    mapping,
    parse,
    plain,
    record,
    text,
)
from dragoman.wire.settings import WireSettings

# --- writing ----------------------------------------------------------------------------------------------

JsonObject = dict[str, Any]


def _filled(**members: Any) -> JsonObject:
    """Members that say something: this JSON leaves out what is empty."""
    return {name: value for name, value in members.items() if value or value == {}}


class Writer:
    """Writes P03. `double` encodes bytes twice, for peers that decode twice."""

    def __init__(self, *, double: bool) -> None:
        self._double = double

    def part(self, part: Part) -> JsonObject:
        if part.text is not UNSET:
            return {"text": part.text, **_meta(part.metadata)}
        if part.data is not UNSET:
            data, metadata = shapes03.wrap(part.data, part.metadata)
            return {"data": {"data": data}, **_meta(metadata)}
        if part.raw is not UNSET:
            file: JsonObject = {"fileWithBytes": b64encode(part.raw) if self._double else part.raw}
        else:
            file = {"fileWithUri": part.url}
        return {"file": file | _filled(name=part.filename, mimeType=part.media_type), **_meta(part.metadata)}

    def message(self, message: Message) -> JsonObject:
        return _filled(
            messageId=message.message_id,
            contextId=message.context_id,
            taskId=message.task_id,
            role=message.role or Role.AGENT,
            content=[self.part(part) for part in message.parts],
            metadata=message.metadata,
            extensions=message.extensions,
        )

    def artifact(self, artifact: Artifact) -> JsonObject:
        return _filled(
            artifactId=artifact.artifact_id,
            name=artifact.name,
            description=artifact.description,
            parts=[self.part(part) for part in artifact.parts],
            metadata=artifact.metadata,
            extensions=artifact.extensions,
        )

    def status(self, status: TaskStatus) -> JsonObject:
        said = status.message
        return _filled(state=_state(status.state), message=said and self.message(said), timestamp=status.timestamp)

    def task(self, task: Task) -> JsonObject:
        return {
            "id": task.id,
            "contextId": task.context_id,
            "status": self.status(task.status or TaskStatus()),
            **_filled(
                artifacts=[self.artifact(artifact) for artifact in task.artifacts],
                history=[self.message(message) for message in task.history],
                metadata=task.metadata,
            ),
        }

    def write_item(self, value: View | Message) -> bytes:
        if isinstance(value, Message):
            return _encode({"message": self.message(value)})
        return _encode({"task": self.task(value.task)})

    def write_task(self, view: View) -> bytes:
        return _encode(self.task(view.task))

    def write_page(self, page: TaskPage) -> bytes:
        return _encode(
            {
                "tasks": [self.task(view.task) for view in page.views],
                "nextPageToken": page.next_page_token,
                "pageSize": page.page_size,
                "totalSize": page.total,
            }
        )

    def events(self, ref: TaskRef) -> Encode:
        home = b'"taskId":%b,"contextId":%b' % (_encode(ref.id), _encode(ref.context_id))
        artifact_update = b'{"artifactUpdate":{%b,"artifact":' % home
        status_update = b'{"statusUpdate":{%b,"status":' % home

        def encode(fact: AnyFact, final: bool) -> bytes:
            if isinstance(fact, Chunk):
                tail = p10.TAILS[fact.append, fact.last_chunk]
                if fact.metadata is not None:
                    tail = b',"metadata":%b%b' % (_encode(fact.metadata), tail)
                return artifact_update + _encode(self.artifact(fact.artifact)) + tail
            if isinstance(fact, StatusFact):
                tail = b',"final":true}}' if final else b"}}"
                if fact.metadata is not None:
                    tail = b',"metadata":%b%b' % (_encode(fact.metadata), tail)
                return status_update + _encode(self.status(fact.status)) + tail
            return b""

        return encode


def _meta(metadata: JsonObject | None) -> JsonObject:
    return {} if metadata is None else {"metadata": metadata}


def _state(state: TaskState | None) -> str:
    """As in 1.0, but for one spelling."""
    if state is TaskState.CANCELED:
        return "TASK_STATE_CANCELLED"
    return state.value if state else ""


_encode = msgspec.json.Encoder().encode


def _push(config: PushConfig) -> JsonObject:
    name = f"tasks/{config.task_id}/pushNotificationConfigs/{config.id}"
    return {"name": name, "pushNotificationConfig": shapes03.push_shape(config)}


def write_push(config: PushConfig) -> bytes:
    return _encode(_push(config))


def write_pushes(page: PushPage) -> bytes:
    shown: JsonObject = {}
    if page.configs:
        shown["configs"] = [_push(config) for config in page.configs]
    if page.next_page_token:
        shown["nextPageToken"] = page.next_page_token
    return _encode(shown)


# --- reading ----------------------------------------------------------------------------------------------


_BASE64 = re.compile(rb"[A-Za-z0-9+/]+={0,2}")
_TELLING = 24  # so many characters without a space or a padding sign are hardly a short text


def _doubled(found: bytes, least: int) -> bytes:
    """The bytes inside, if what was decoded is itself clean base64, padded or at least so long."""
    if len(found) % 4 == 0 and _BASE64.fullmatch(found) and (len(found) >= least or found.endswith(b"=")):
        inner = b64decode(found)
        if b64encode(inner) == found:
            return inner
    return found


def _bytes_once(sheet: Sheet, value: Any, path: str) -> bytes | None:
    found = decode_base64(text(sheet, value, path))
    if found is None:
        sheet.wrong(path, "must be base64")
    return found


def _bytes_twice(sheet: Sheet, value: Any, path: str) -> bytes | None:
    found = _bytes_once(sheet, value, path)
    return None if found is None else _doubled(found, 4)


def _bytes_of_a_stranger(sheet: Sheet, value: Any, path: str) -> bytes | None:
    found = _bytes_once(sheet, value, path)
    return None if found is None else _doubled(found, _TELLING)


role = choice(
    {"ROLE_UNSPECIFIED": None, "ROLE_USER": Role.USER, "ROLE_AGENT": Role.AGENT, **shapes03.ROLES},
    {0: None, 1: Role.USER, 2: Role.AGENT},
)
_metadata = Field("metadata", "metadata", mapping)


def _one_source(sheet: Sheet, path: str, found: JsonObject) -> None:
    if ("raw" in found) == ("url" in found):
        have = "both" if "raw" in found else "none"
        sheet.wrong(path, f"must have exactly one of fileWithBytes and fileWithUri; has {have}")


def _data(sheet: Sheet, value: Any, path: str) -> JsonObject | None:
    """The object, which P03 nests once more."""
    outer = mapping(sheet, value, path)
    if outer is not None and isinstance(outer.get("data"), dict) and len(outer) == 1:
        return cast("JsonObject", outer["data"])
    return outer


def _one_content(sheet: Sheet, path: str, found: JsonObject) -> None:
    chosen = [name for name in ("text", "file", "data") if name in found]
    if len(chosen) != 1:
        given = " and ".join(chosen) or "none"
        sheet.wrong(path, f"must have exactly one of text, file and data; has {given}")


def _build_part(
    text: str | None = None,
    file: JsonObject | None = None,
    data: JsonObject | None = None,
    metadata: JsonObject | None = None,
) -> Part:
    if text is not None:
        return k03.build_text(text, metadata)
    if file is not None:
        return k03.build_file(file, metadata)
    return k03.build_data(data or {}, metadata)


def _message(read_bytes: Read) -> Read:
    file = record(
        dict,
        Field("raw", "fileWithBytes", read_bytes, also=("bytes",)),
        Field("url", "fileWithUri", text, also=("uri",)),
        Field("filename", "name", text),
        Field("media_type", "mimeType", text),
        check=_one_source,
    )
    nested = record(
        _build_part,
        Field("text", "text", text),
        Field("file", "file", file),
        Field("data", "data", _data),
        _metadata,
        check=_one_content,
    )

    def part(sheet: Sheet, value: Any, path: str) -> Part | None:
        # A kind marks the shapes of K03, where data is not nested.
        if isinstance(value, dict) and cast("JsonObject", value).get("kind") == "data":
            return k03.part(sheet, value, path)
        return nested(sheet, value, path)

    return record(
        Message,
        Field("message_id", "messageId", ident, required=True),
        Field("context_id", "contextId", ident),
        Field("task_id", "taskId", ident),
        Field("role", "role", role, required=True),
        Field("parts", "content", many(part), required=True, also=("parts",)),
        _metadata,
        Field("extensions", "extensions", many(text)),
        Field("reference_task_ids", "referenceTaskIds", many(ident)),
    )


def _unlimited(sheet: Sheet, value: Any, path: str) -> int | None:
    """Zero is what a sender writes who has nothing to say: no limit."""
    return integer(0)(sheet, value, path) or None


_history = Field("history_length", "historyLength", _unlimited)


def _build_configuration(blocking: bool = False, **found: Any) -> Configuration:
    return Configuration(return_immediately=not blocking, **found)


# ProtoJSON writes what is empty or leaves it out: an authentication without anything in it is none.
_push_inside = k03.push_reader(schemes=False)
_configuration = record(
    _build_configuration,
    Field("accepted_output_modes", "acceptedOutputModes", many(text)),
    Field("blocking", "blocking", flag),
    _history,
    Field(
        "task_push_notification_config",
        "pushNotification",
        _push_inside,
        also=("pushNotificationConfig",),
    ),
    Field("idempotency_key", "idempotencyKey", ident),
)


def _send(build: type[SendMessage], message: Read) -> Read:
    return record(
        build,
        Field("message", "message", message, required=True, also=("request",)),
        Field("configuration", "configuration", _configuration),
        _metadata,
    )


def _create_push(sheet: Sheet, value: Any, path: str) -> CreatePush | None:
    """The config, in whichever of its wrappings; the task is the path's."""
    body = cast("JsonObject", value)
    place, inner = "", body
    for names in (("config",), ("pushNotificationConfig", "push_notification_config")):
        name = next((name for name in names if isinstance(inner.get(name), dict)), None)
        if name is not None:
            place, inner = f"{place}.{name}".lstrip("."), cast("JsonObject", inner[name])
    config = cast("PushConfig | None", _push_inside(sheet, inner, place))
    named = body.get("configId") or body.get("config_id") or ""
    return config and CreatePush(
        config=msgspec.structs.replace(
            config,
            task_id=ident(sheet, body["taskId"], "taskId"),
            id=config.id or ident(sheet, named, "configId"),
        )
    )


# --- the quick way ----------------------------------------------------------------------------------------


class _Text(Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    text: str


class _Said(Struct, frozen=True, rename="camel", forbid_unknown_fields=True, gc=False):
    """A message of nothing but text, which most are."""

    message_id: str
    role: Literal["ROLE_USER"]
    content: tuple[_Text, ...]
    context_id: str = ""
    task_id: str = ""


class _Choices(Struct, frozen=True, rename="camel", forbid_unknown_fields=True, gc=False):
    accepted_output_modes: tuple[str, ...] = ()
    blocking: bool = False


class _Sent(Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    message: _Said
    configuration: _Choices = _Choices(blocking=True)


_sent = msgspec.json.Decoder(_Sent)
_BUILDS: Mapping[str, type[SendMessage]] = {"SendMessage": SendMessage, "SendStreamingMessage": SendStreamingMessage}


def _quickly(name: str, raw: bytes, wire: WireSettings) -> SendMessage | None:
    """The operation, unless the reader must take a second look."""
    build = _BUILDS.get(name)
    if build is None:
        return None
    try:
        sent = _sent.decode(raw)
    except msgspec.DecodeError:
        return None
    said, choices = sent.message, sent.configuration
    sound = said.message_id and said.content and plain(said.message_id, said.context_id, said.task_id)
    if not sound or max(len(said.content), len(choices.accepted_output_modes)) > wire.max_parts:
        return None
    return build(
        message=Message(
            message_id=said.message_id,
            context_id=said.context_id,
            task_id=said.task_id,
            role=Role.USER,
            parts=tuple([Part(text=each.text) for each in said.content]),
        ),
        configuration=Configuration(
            accepted_output_modes=choices.accepted_output_modes, return_immediately=not choices.blocking
        ),
    )


def _readers(read_bytes: Read) -> Mapping[str, Read]:
    message = _message(read_bytes)
    return {
        **p10.READERS,
        "SendMessage": _send(SendMessage, message),
        "SendStreamingMessage": _send(SendStreamingMessage, message),
        "GetTask": record(GetTask, Field("id", "id", ident, required=True), _history),
        "CreateTaskPushNotificationConfig": _create_push,
    }


def _dialect(name: str, *, read_bytes: Read, double: bool) -> Dialect:
    readers = _readers(read_bytes)
    writer = Writer(double=double)

    def read_fields(operation: str, fields: Any, wire: WireSettings, query: bool) -> Operation:
        sheet = Sheet(wire, query=query)
        return finish(sheet, readers[operation](sheet, fields, ""))

    def read(operation: str, raw: bytes, wire: WireSettings) -> Operation:
        return _quickly(operation, raw, wire) or read_fields(operation, parse(raw), wire, False)

    return Dialect(
        name=name,
        origin="0.3",
        version="0.3",
        versions=frozenset({"0.3", "0.2"}),
        policy=k03.POLICY,
        methods={},
        read=read,
        read_fields=read_fields,
        item=writer.write_item,
        task=writer.write_task,
        page=writer.write_page,
        push=write_push,
        pushes=write_pushes,
        card=cards.pure_03,
        events=writer.events,
        news=k03.write_news,  # webhooks hear the same whatever binding they were registered over
        words=WORDS_03,
    )


# By who asks: peers that encode bytes once, peers that do it twice, and strangers, whose bytes are looked at.
P03 = _dialect("0.3-rest", read_bytes=_bytes_of_a_stranger, double=False)
P03_ONCE = _dialect("0.3-rest-once", read_bytes=_bytes_once, double=False)
P03_TWICE = _dialect("0.3-rest-twice", read_bytes=_bytes_twice, double=True)

_TWICE = re.compile(r"python|a2a-sdk|httpx|aiohttp|go-http|a2a-go|grpc", re.IGNORECASE)
_ONCE = re.compile(r"node|undici|deno|bun|mozilla|axios|a2a-js", re.IGNORECASE)


def for_peer(user_agent: str) -> Dialect:
    if _TWICE.search(user_agent):
        return P03_TWICE
    return P03_ONCE if _ONCE.search(user_agent) else P03
