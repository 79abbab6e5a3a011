"""P10: the JSON of protocol 1.0. The model speaks it, so encoding is nearly the identity."""

from collections.abc import Callable, Mapping
from typing import Any, cast

import msgspec
from msgspec import UNSET

from dragoman.model.facts import AnyFact, Chunk, StatusFact
from dragoman.model.messages import Message, Part, Role
from dragoman.model.operations import (
    CancelTask,
    Configuration,
    CreatePush,
    DeletePush,
    GetExtendedCard,
    GetPush,
    GetTask,
    ListPush,
    ListTasks,
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
from dragoman.model.tasks import Task, TaskState, View
from dragoman.wire import cards
from dragoman.wire.dialect import Dialect, Encode
from dragoman.wire.reading import (
    Field,
    Read,
    Sheet,
    anything,
    base64,
    choice,
    finish,
    flag,
    ident,
    instant,
    integer,
    many,
    mapping,
    one_content,
    parse,
    plain,
    record,
    text,
)
from dragoman.wire.settings import WireSettings
from dragoman.wire.told import Told

# --- reading ----------------------------------------------------------------------------------------------

role = choice(
    {"ROLE_UNSPECIFIED": None, **{member.value: member for member in Role}}, {0: None, 1: Role.USER, 2: Role.AGENT}
)
state = choice(
    {"TASK_STATE_UNSPECIFIED": None, **{member.value: member for member in TaskState}},
    {0: None, **dict(enumerate(TaskState, 1))},
)


part = record(
    Part,
    Field("text", "text", text),
    Field("raw", "raw", base64),
    Field("url", "url", text),
    Field("data", "data", anything, nullable=True),
    Field("media_type", "mediaType", text),
    Field("filename", "filename", text),
    Field("metadata", "metadata", mapping),
    check=one_content("text", "raw", "url", "data"),
)
message = record(
    Message,
    Field("message_id", "messageId", ident, required=True),
    Field("context_id", "contextId", ident),
    Field("task_id", "taskId", ident),
    Field("role", "role", role, required=True),
    Field("parts", "parts", many(part), required=True),
    Field("metadata", "metadata", mapping),
    Field("extensions", "extensions", many(text)),
    Field("reference_task_ids", "referenceTaskIds", many(ident)),
)
authentication = record(dict, Field("scheme", "scheme", text, required=True), Field("credentials", "credentials", text))
_push_fields = (
    Field("tenant", "tenant", ident),
    Field("id", "id", ident),
    Field("task_id", "taskId", ident),
    Field("url", "url", text, required=True),
    Field("token", "token", text),
    Field("authentication", "authentication", authentication),
)
push_inside = record(PushConfig, *_push_fields)
push_alone = record(
    PushConfig, *(field._replace(required=True) if field.attr == "task_id" else field for field in _push_fields)
)
history = Field("history_length", "historyLength", integer(0))
configuration = record(
    Configuration,
    Field("accepted_output_modes", "acceptedOutputModes", many(text)),
    Field("task_push_notification_config", "taskPushNotificationConfig", push_inside),
    history,
    Field("return_immediately", "returnImmediately", flag),
    Field("idempotency_key", "idempotencyKey", ident),
)
tenant = Field("tenant", "tenant", ident)
_id = Field("id", "id", ident, required=True)
_task_id = Field("task_id", "taskId", ident, required=True)
metadata = Field("metadata", "metadata", mapping)
_send = (
    tenant,
    Field("message", "message", message, required=True),
    Field("configuration", "configuration", configuration),
    metadata,
)


def _create_push(sheet: Sheet, value: Any, path: str) -> CreatePush | None:
    config = cast("PushConfig | None", push_alone(sheet, value, path))
    return config and CreatePush(tenant=config.tenant, config=config)


READERS: Mapping[str, Read] = {
    "SendMessage": record(SendMessage, *_send),
    "SendStreamingMessage": record(SendStreamingMessage, *_send),
    "GetTask": record(GetTask, tenant, _id, history),
    "ListTasks": record(
        ListTasks,
        tenant,
        Field("context_id", "contextId", ident),
        Field("status", "status", state),
        Field("page_size", "pageSize", integer(1, 100)),
        Field("page_token", "pageToken", text),
        history,
        Field("status_timestamp_after", "statusTimestampAfter", instant),
        Field("include_artifacts", "includeArtifacts", flag),
    ),
    "CancelTask": record(CancelTask, tenant, _id, metadata),
    "SubscribeToTask": record(SubscribeToTask, tenant, _id),
    "CreateTaskPushNotificationConfig": _create_push,
    "GetTaskPushNotificationConfig": record(GetPush, tenant, _task_id, _id),
    "ListTaskPushNotificationConfigs": record(
        ListPush,
        tenant,
        _task_id,
        Field("page_size", "pageSize", integer(0)),
        Field("page_token", "pageToken", text),
    ),
    "DeleteTaskPushNotificationConfig": record(DeletePush, tenant, _task_id, _id),
    "GetExtendedAgentCard": record(GetExtendedCard, tenant),
}


def _sound_send(operation: Any, wire: WireSettings) -> bool:
    """Is there nothing the tolerant reader would say about this? It phrases what is wrong, so False is only a hint."""
    said = cast("Message", operation.message)
    options = cast("Configuration", operation.configuration)
    if not said.message_id or said.role is None or not said.parts:
        return False
    if (
        max(map(len, (said.parts, said.reference_task_ids, said.extensions, options.accepted_output_modes)))
        > wire.max_parts
    ):
        return False
    for each in said.parts:
        if (each.text is UNSET) + (each.raw is UNSET) + (each.url is UNSET) + (each.data is UNSET) != 3:
            return False
    return (
        plain(said.message_id, said.context_id, said.task_id, operation.tenant, options.idempotency_key)
        and plain(*said.reference_task_ids)
        and (options.history_length is None or 0 <= options.history_length < 2**31)
        and options.task_push_notification_config is None
    )


def _sound_get(operation: Any, wire: WireSettings) -> bool:
    return (
        bool(operation.id)
        and plain(operation.id, operation.tenant)
        and (operation.history_length is None or 0 <= operation.history_length < 2**31)
    )


_FAST: Mapping[str, tuple[msgspec.json.Decoder[Any], Callable[[Any, WireSettings], bool]]] = {
    "SendMessage": (msgspec.json.Decoder(SendMessage), _sound_send),
    "SendStreamingMessage": (msgspec.json.Decoder(SendStreamingMessage), _sound_send),
    "GetTask": (msgspec.json.Decoder(GetTask), _sound_get),
}


def read(name: str, raw: bytes, wire: WireSettings) -> Operation:
    fast = _FAST.get(name)
    if fast:
        decoder, sound = fast
        try:
            operation = decoder.decode(raw)
            if sound(operation, wire):
                return operation
        except msgspec.DecodeError:
            pass  # The reader takes a second look, and names what is wrong.
    return read_fields(name, parse(raw), wire, False)


def read_fields(name: str, fields: Any, wire: WireSettings, query: bool) -> Operation:
    sheet = Sheet(wire, query=query)
    return finish(sheet, READERS[name](sheet, fields, ""))


# --- writing ----------------------------------------------------------------------------------------------

_encode = msgspec.json.Encoder().encode


def _task(task: Task) -> bytes:
    written = _encode(task)
    # The context is always printed, the one member the model leaves out when empty.
    return written if task.context_id else b'{"contextId":"",' + written[1:]


def write_item(value: View | Message) -> bytes:
    if isinstance(value, Message):
        return b'{"message":%b}' % _encode(value)
    return b'{"task":%b}' % _task(value.task)


def write_task(view: View) -> bytes:
    return _task(view.task)


def _listed(task: Task, artifacts: bool) -> bytes:
    written = _task(task if artifacts else msgspec.structs.replace(task, artifacts=()))
    if not artifacts or task.artifacts:
        return written
    return b'%b,"artifacts":[]}' % written[:-1]


def write_page(page: TaskPage) -> bytes:
    tasks = b",".join(_listed(view.task, page.artifacts) for view in page.views)
    return b'{"tasks":[%b],"nextPageToken":%b,"pageSize":%d,"totalSize":%d}' % (
        tasks,
        _encode(page.next_page_token),
        page.page_size,
        page.total,
    )


def _push(config: PushConfig) -> PushConfig:
    """Without the members that only others know."""
    return msgspec.structs.replace(config, header_name="", event_types=(), origin="")


def write_push(config: PushConfig) -> bytes:
    return _encode(_push(config))


def write_pushes(page: PushPage) -> bytes:
    shown: dict[str, Any] = {}
    if page.configs:
        shown["configs"] = [_push(config) for config in page.configs]
    if page.next_page_token:
        shown["nextPageToken"] = page.next_page_token
    return _encode(shown)


TAILS = {
    (False, False): b"}}",
    (True, False): b',"append":true}}',
    (False, True): b',"lastChunk":true}}',
    (True, True): b',"append":true,"lastChunk":true}}',
}


def events(ref: TaskRef) -> Encode:
    """An encoder of this task's facts. All that does not change from fact to fact is written once."""
    home = b'"taskId":%b,"contextId":%b' % (_encode(ref.id), _encode(ref.context_id))
    artifact_update = b'{"artifactUpdate":{%b,"artifact":' % home
    status_update = b'{"statusUpdate":{%b,"status":' % home

    def encode(fact: AnyFact, final: bool) -> bytes:
        if isinstance(fact, Chunk):
            tail = TAILS[fact.append, fact.last_chunk]
            if fact.metadata is not None:
                tail = b',"metadata":%b%b' % (_encode(fact.metadata), tail)
            return artifact_update + _encode(fact.artifact) + tail
        if isinstance(fact, StatusFact):
            tail = b"}}" if fact.metadata is None else b',"metadata":%b}}' % _encode(fact.metadata)
            return status_update + _encode(fact.status) + tail
        return b""

    return encode


def write_news(told: Told, types: tuple[str, ...]) -> bytes:
    """A stream response, of which any kind is allowed. In between it is the update; the end comes as the whole task:
    who only listens has the result then, without having seen the artifact updates, which are not sent one by one."""
    if told.over:
        return write_item(told.whole())
    written = events(told.ref)(told.update(), False)
    assert isinstance(written, bytes), "one frame each"
    return written


METHODS = {name: name for name in READERS}

P10 = Dialect(
    name="1.0",
    origin="1.0",
    version="1.0",
    versions=frozenset({"1.0"}),
    policy=Policy(),
    methods=METHODS,
    read=read,
    read_fields=read_fields,
    item=write_item,
    task=write_task,
    page=write_page,
    push=write_push,
    pushes=write_pushes,
    card=cards.pure_10,
    events=events,
    news=write_news,
    news_type="application/a2a+json",
    finals=False,
    details=True,
    extensions_header=b"a2a-extensions",
)
