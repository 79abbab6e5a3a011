"""K03: the JSON of protocol 0.3 and 0.2, with `kind` on everything, over JSON-RPC.

A request that is spelled exactly is decoded into the shapes of `shapes03`; what is not goes to the tolerant reader.
"""

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import UNSET

from dragoman.model.facts import AnyFact, Chunk, StatusFact
from dragoman.model.messages import Message, Part
from dragoman.model.operations import (
    CancelTask,
    Configuration,
    CreatePush,
    DeletePush,
    GetExtendedCard,
    GetPush,
    GetTask,
    ListPush,
    Operation,
    Policy,
    PushConfig,
    PushPage,
    SendMessage,
    SendStreamingMessage,
    SubscribeToTask,
    TaskPage,
    TaskRef,
)
from dragoman.model.tasks import View
from dragoman.wire import cards
from dragoman.wire.dialect import Dialect, Encode
from dragoman.wire.errors import WORDS_03
from dragoman.wire.reading import (
    Field,
    Read,
    Sheet,
    base64,
    choice,
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
from dragoman.wire.shapes03 import (
    ROLES,
    DataPart,
    FileContent,
    FilePart,
    Metadata,
    SendShape,
    TextPart,
    artifact_shape,
    message_shape,
    status_shape,
    task_push_shape,
    task_shape,
    unwrap,
)
from dragoman.wire.told import Told

# --- writing ----------------------------------------------------------------------------------------------

_encode = msgspec.json.Encoder().encode


def write_item(value: View | Message) -> bytes:
    return _encode(message_shape(value) if isinstance(value, Message) else task_shape(value.task))


def write_task(view: View) -> bytes:
    return _encode(task_shape(view.task))


def write_page(page: TaskPage) -> bytes:
    """0.3 has no list over JSON-RPC; dialects beside it that have one answer the bare tasks."""
    return _encode([task_shape(view.task) for view in page.views])


def write_push(config: PushConfig) -> bytes:
    return _encode(task_push_shape(config))


def write_pushes(page: PushPage) -> bytes:
    return _encode([task_push_shape(config) for config in page.configs])


TAILS = {
    (append, last): b',"append":%b,"lastChunk":%b}' % (_encode(append), _encode(last))
    for append in (False, True)
    for last in (False, True)
}


def events(ref: TaskRef) -> Encode:
    """An encoder of this task's facts. All that does not change from fact to fact is written once."""
    home = b'"taskId":%b,"contextId":%b' % (_encode(ref.id), _encode(ref.context_id))
    artifact_update = b'{"kind":"artifact-update",%b,"artifact":' % home
    status_update = b'{"kind":"status-update",%b,"status":' % home

    def encode(fact: AnyFact, final: bool) -> bytes:
        if isinstance(fact, Chunk):
            tail = TAILS[fact.append, fact.last_chunk]
            if fact.metadata is not None:
                tail = b',"metadata":%b%b' % (_encode(fact.metadata), tail)
            return artifact_update + _encode(artifact_shape(fact.artifact)) + tail
        if isinstance(fact, StatusFact):
            tail = b',"final":true}' if final else b',"final":false}'
            if fact.metadata is not None:
                tail = b',"metadata":%b%b' % (_encode(fact.metadata), tail)
            return status_update + _encode(status_shape(fact.status)) + tail
        return b""

    return encode


def write_news(told: Told, types: tuple[str, ...]) -> bytes:
    """The whole task, whatever happened to it: what receivers of 0.3 and 0.2 were written for."""
    return write_task(told.whole())


# --- reading ----------------------------------------------------------------------------------------------


def build_text(text: str, metadata: Metadata = None) -> Part:
    return Part(text=text, metadata=metadata)


def build_file(file: dict[str, Any], metadata: Metadata = None) -> Part:
    return Part(**file, metadata=metadata)


def build_data(data: dict[str, Any], metadata: Metadata = None) -> Part:
    value, rest = unwrap(data, metadata)
    return Part(data=value, metadata=rest)


def _one_source(sheet: Sheet, path: str, found: dict[str, Any]) -> None:
    if ("raw" in found) == ("url" in found):
        sheet.wrong(path, f"must have exactly one of bytes and uri; has {'both' if 'raw' in found else 'none'}")


_metadata = Field("metadata", "metadata", mapping)
file_content = record(
    dict,
    Field("raw", "bytes", base64),
    Field("url", "uri", text),
    Field("filename", "name", text),
    Field("media_type", "mimeType", text),
    check=_one_source,
)
_PARTS: Mapping[str, Read] = {
    "text": record(build_text, Field("text", "text", text, required=True, empty=True), _metadata),
    "file": record(build_file, Field("file", "file", file_content, required=True), _metadata),
    "data": record(build_data, Field("data", "data", mapping, required=True, empty=True), _metadata),
}


def part(sheet: Sheet, value: Any, path: str) -> Part | None:
    """One part. Which it is says its kind, which is required here."""
    members = mapping(sheet, value, path)
    if members is None:
        return None
    kind = members.get("kind")
    if isinstance(kind, str) and kind in _PARTS:
        if other := next((name for name in _PARTS if name != kind and members.get(name) is not None), ""):
            sheet.wrong(path, f"must have exactly one of text, file and data; has {kind} and {other}")
        return _PARTS[kind](sheet, members, path)
    sheet.wrong(
        f"{path}.kind", "is required" if kind is None else f"{str(kind)[:50]!r} is not known; use text, file or data"
    )
    return None


def kind_of(expected: str) -> Read:
    """A discriminator: may be left out where the place says it, but not contradict it."""

    def read(sheet: Sheet, value: Any, path: str) -> None:
        if value != expected:
            sheet.wrong(path, f"must be {expected!r}")

    return read


role = choice(ROLES, {})
message = record(
    Message,
    Field("", "kind", kind_of("message")),
    Field("message_id", "messageId", ident, required=True),
    Field("context_id", "contextId", ident),
    Field("task_id", "taskId", ident),
    Field("role", "role", role, required=True),
    Field("parts", "parts", many(part), required=True),
    _metadata,
    Field("extensions", "extensions", many(text)),
    Field("reference_task_ids", "referenceTaskIds", many(ident)),
)


def _build_authentication(schemes: tuple[str, ...] = (), credentials: str = "") -> dict[str, str] | None:
    """The model keeps one scheme, the first: that is the one a sender would try."""
    if not schemes:
        return None
    return {"scheme": schemes[0], **({"credentials": credentials} if credentials else {})}


def push_reader(*, schemes: bool) -> Read:
    """`schemes` says whether an authentication has to name any."""
    named = Field("schemes", "schemes", many(text), required=schemes)
    authentication = record(_build_authentication, named, Field("credentials", "credentials", text))
    return record(
        PushConfig,
        Field("id", "id", ident),
        Field("url", "url", text, required=True),
        Field("token", "token", text),
        Field("authentication", "authentication", authentication),
    )


push = push_reader(schemes=True)
history = Field("history_length", "historyLength", integer(0))


def _build_configuration(blocking: bool = True, **found: Any) -> Configuration:
    return Configuration(return_immediately=not blocking, **found)


configuration = record(
    _build_configuration,
    Field("accepted_output_modes", "acceptedOutputModes", many(text)),
    Field("blocking", "blocking", flag),
    history,
    Field("task_push_notification_config", "pushNotificationConfig", push),
    Field("idempotency_key", "idempotencyKey", ident),
)


def _build_create(task_id: str, config: PushConfig) -> CreatePush:
    return CreatePush(config=msgspec.structs.replace(config, task_id=task_id))


_id = Field("id", "id", ident, required=True)
_task_id = Field("task_id", "id", ident, required=True)


def _send(build: type[SendMessage]) -> Read:
    return record(
        build,
        Field("message", "message", message, required=True),
        Field("configuration", "configuration", configuration),
        _metadata,
    )


READERS: Mapping[str, Read] = {
    "SendMessage": _send(SendMessage),
    "SendStreamingMessage": _send(SendStreamingMessage),
    "GetTask": record(GetTask, _id, history),
    "CancelTask": record(CancelTask, _id, _metadata),
    "SubscribeToTask": record(SubscribeToTask, _id),
    "CreateTaskPushNotificationConfig": record(
        _build_create,
        Field("task_id", "taskId", ident, required=True),
        Field("config", "pushNotificationConfig", push, required=True),
    ),
    # Here `id` is the task's; 1.0 uses the same word for the config's.
    "GetTaskPushNotificationConfig": record(GetPush, _task_id, Field("id", "pushNotificationConfigId", ident)),
    "ListTaskPushNotificationConfigs": record(ListPush, _task_id),
    "DeleteTaskPushNotificationConfig": record(
        DeletePush, _task_id, Field("id", "pushNotificationConfigId", ident, required=True)
    ),
    "GetExtendedAgentCard": record(GetExtendedCard),
}
_FAST: Mapping[str, type[SendMessage]] = {"SendMessage": SendMessage, "SendStreamingMessage": SendStreamingMessage}
_sends = msgspec.json.Decoder(SendShape)


def _part(shape: TextPart | FilePart | DataPart) -> Part:
    if isinstance(shape, TextPart):
        return build_text(shape.text, shape.metadata)
    if isinstance(shape, DataPart):
        return build_data(shape.data, shape.metadata)
    file = shape.file
    return Part(raw=file.content, url=file.uri, filename=file.name, media_type=file.mime_type, metadata=shape.metadata)


def _sound(shape: SendShape, wire: WireSettings) -> bool:
    """Is there nothing the tolerant reader would say about this?"""
    said = shape.message
    length = shape.configuration.history_length
    modes = shape.configuration.accepted_output_modes
    return (
        bool(said.message_id)
        and bool(said.parts)
        and max(map(len, (said.parts, said.reference_task_ids, said.extensions, modes))) <= wire.max_parts
        and plain(said.message_id, said.context_id, said.task_id, *said.reference_task_ids)
        and (length is None or 0 <= length < 2**31)
        and all(_one(each.file) for each in said.parts if isinstance(each, FilePart))
    )


def _one(file: FileContent) -> bool:
    return (file.content is UNSET) != (file.uri is UNSET)


def _operation(build: type[SendMessage], shape: SendShape) -> SendMessage:
    said = shape.message
    options = shape.configuration
    return build(
        message=Message(
            message_id=said.message_id,
            context_id=said.context_id,
            task_id=said.task_id,
            role=ROLES[said.role],
            parts=tuple(_part(part) for part in said.parts),
            metadata=said.metadata,
            extensions=said.extensions,
            reference_task_ids=said.reference_task_ids,
        ),
        configuration=Configuration(
            accepted_output_modes=options.accepted_output_modes,
            history_length=options.history_length,
            return_immediately=not options.blocking,
        ),
        metadata=shape.metadata,
    )


def read(name: str, raw: bytes, wire: WireSettings) -> Operation:
    build = _FAST.get(name)
    if build:
        try:
            shape = _sends.decode(raw)
            if _sound(shape, wire):
                return _operation(build, shape)
        except msgspec.DecodeError:
            pass  # The reader takes a second look, and names what is wrong.
    return read_fields(name, parse(raw), wire, False)


def read_fields(name: str, fields: Any, wire: WireSettings, query: bool) -> Operation:
    sheet = Sheet(wire, query=query)
    return finish(sheet, READERS[name](sheet, fields, ""))


METHODS: Mapping[str, str] = {
    "message/send": "SendMessage",
    "message/stream": "SendStreamingMessage",
    "tasks/get": "GetTask",
    "tasks/cancel": "CancelTask",
    "tasks/resubscribe": "SubscribeToTask",
    "tasks/pushNotificationConfig/set": "CreateTaskPushNotificationConfig",
    "tasks/pushNotificationConfig/get": "GetTaskPushNotificationConfig",
    "tasks/pushNotificationConfig/list": "ListTaskPushNotificationConfigs",
    "tasks/pushNotificationConfig/delete": "DeleteTaskPushNotificationConfig",
    "agent/getAuthenticatedExtendedCard": "GetExtendedAgentCard",
    "agent/authenticatedExtendedCard": "GetExtendedAgentCard",
}
# What 0.3 left open about subscribing to a finished task its interface definition answers: the task once, then the end.
# Its table of errors counts canceled among the states in which a task cannot be canceled (again).
POLICY = Policy(subscribe_terminal=True, cancel_again=frozenset(), any_hook=True)

K03 = Dialect(
    name="0.3",
    origin="0.3",
    version="0.3",
    versions=frozenset({"0.3", "0.2"}),
    policy=POLICY,
    methods=METHODS,
    read=read,
    read_fields=read_fields,
    item=write_item,
    task=write_task,
    page=write_page,
    push=write_push,
    pushes=write_pushes,
    card=cards.pure_03,
    events=events,
    news=write_news,
    words=WORDS_03,
    sse_errors=frozenset({"tasks/resubscribe"}),
)
