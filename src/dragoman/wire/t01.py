"""T01: protocol 0.1. `type` on parts, sessions for contexts, and tasks whose ids their clients make.

Spoken at `POST /` under names it shares with simple_a2a: a `type` part or a `sessionId` tells them apart, or the origin
of the task.
"""

from collections.abc import Mapping
from typing import Any, Literal, cast

import msgspec
from msgspec import UNSET, Struct
from msgspec.structs import replace

from dragoman.model import errors as e
from dragoman.model.facts import AnyFact, Chunk, StatusFact
from dragoman.model.messages import Artifact, Message, Part, Role
from dragoman.model.operations import (
    Configuration,
    Operation,
    Policy,
    PushConfig,
    SendMessage,
    SendStreamingMessage,
    TaskRef,
)
from dragoman.model.tasks import INTERRUPTED, TERMINAL, TaskState, TaskStatus, View
from dragoman.wire import cards, k03, liberal
from dragoman.wire.dialect import Encode
from dragoman.wire.errors import Words
from dragoman.wire.reading import Field, Sheet, finish, integer, parse, plain, record
from dragoman.wire.settings import WireSettings
from dragoman.wire.shapes03 import STATES, push_shape, wrap
from dragoman.wire.told import Told

_encode = msgspec.json.Encoder().encode

JsonObject = dict[str, Any]

METHODS = {
    "tasks/send": "SendMessage",
    "tasks/sendSubscribe": "SendStreamingMessage",
    "tasks/get": "GetTask",
    "tasks/cancel": "CancelTask",
    "tasks/resubscribe": "SubscribeToTask",
    "tasks/pushNotification/set": "CreateTaskPushNotificationConfig",
    "tasks/pushNotification/get": "GetTaskPushNotificationConfig",
}
# Its schema ends at -32004; above that its text numbers other things than later versions do.
WORDS = Words(
    {
        e.TaskOver: -32009,
        e.StreamingNotSupported: -32006,
        e.InvalidAgentResponse: -32603,
        e.ExtendedCardNotConfigured: -32603,
        e.ExtensionRequired: -32603,
        e.VersionNotSupported: -32603,
    }
)
_CLOSING = TERMINAL | INTERRUPTED
POLICY = Policy(
    first=False,
    closes=_CLOSING,
    cancel_again=frozenset(),
    unknown="adopt",
    single_hook=True,
    missing_hook="none",
)

# Two states came later; the word they had is kept with the message.
_NEWER = {TaskState.REJECTED: TaskState.FAILED, TaskState.AUTH_REQUIRED: TaskState.INPUT_REQUIRED}


def _meta(metadata: JsonObject | None) -> JsonObject:
    return {} if metadata is None else {"metadata": metadata}


def _part(part: Part) -> JsonObject:
    if part.text is not UNSET:
        return {"type": "text", "text": part.text, **_meta(part.metadata)}
    if part.data is not UNSET:
        if isinstance(part.data, list):
            return {"type": "data", "data": cast("list[Any]", part.data), **_meta(part.metadata)}
        data, metadata = wrap(part.data, part.metadata)
        return {"type": "data", "data": data, **_meta(metadata)}
    file: JsonObject = {"bytes": part.raw} if part.raw is not UNSET else {"uri": part.url}
    if part.filename:
        file["name"] = part.filename
    if part.media_type:
        file["mimeType"] = part.media_type
    return {"type": "file", "file": file, **_meta(part.metadata)}


def _message(message: Message) -> JsonObject:
    return {
        "role": "user" if message.role is Role.USER else "agent",
        "parts": [_part(part) for part in message.parts],
        **_meta(message.metadata),
    }


def _status(status: TaskStatus) -> JsonObject:
    state = status.state
    older = _NEWER.get(state, state) if state else state
    found: JsonObject = {"state": STATES[older], "timestamp": status.timestamp}
    said = status.message and _message(status.message)
    if older is not state:
        said = said or {"role": "agent", "parts": []}
        said["metadata"] = {**said.get("metadata", {}), "state": STATES[state]}
    return found | ({"message": said} if said else {})


def _artifact(artifact: Artifact, index: int) -> JsonObject:
    found: JsonObject = {"index": index, "parts": [_part(part) for part in artifact.parts]}
    if artifact.name:
        found["name"] = artifact.name
    if artifact.description:
        found["description"] = artifact.description
    return {**found, "metadata": {**(artifact.metadata or {}), "artifactId": artifact.artifact_id}}


def _task(view: View) -> JsonObject:
    task = view.task
    found: JsonObject = {
        "id": task.id,
        "sessionId": task.context_id,
        "status": _status(task.status or TaskStatus()),
        "artifacts": [_artifact(artifact, index) for index, artifact in enumerate(task.artifacts)],
    }
    if task.history:
        found["history"] = [_message(message) for message in task.history]
    return {**found, **_meta(task.metadata)}


def write_task(view: View) -> bytes:
    return _encode(_task(view))


def write_item(value: View | Message) -> bytes:
    """Every answer is a task here: a direct reply is one that is over."""
    if not isinstance(value, Message):
        return write_task(value)
    status = {"state": "completed", "message": _message(value)}
    return _encode({"id": value.message_id, "sessionId": value.context_id, "status": status, "artifacts": []})


def _first(value: View | Message) -> bytes | tuple[bytes, ...]:
    """No task stands in a stream of 0.1: its status does, then what it has delivered."""
    if isinstance(value, Message):
        status = {"state": "completed", "message": _message(value)}
        return _encode({"id": value.message_id, "status": status, "final": True})
    task = value.task
    status = task.status or TaskStatus()
    delivered = [
        _encode({"id": task.id, "artifact": _artifact(artifact, index)})
        for index, artifact in enumerate(task.artifacts)
    ]
    stands = _encode({"id": task.id, "status": _status(status), "final": status.state in _CLOSING})
    return (*delivered, stands) if status.state in TERMINAL else (stands, *delivered)


def write_push(config: PushConfig) -> bytes:
    return _encode({"id": config.task_id, "pushNotificationConfig": push_shape(replace(config, id=""))})


def write_news(told: Told, types: tuple[str, ...]) -> bytes:
    return write_task(told.whole())


def events(ref: TaskRef) -> Encode:
    home = b'{"id":%b,' % _encode(ref.id)

    def encode(fact: AnyFact, final: bool) -> bytes:
        if isinstance(fact, Chunk):
            artifact = _artifact(fact.artifact, fact.index) | {"append": fact.append, "lastChunk": fact.last_chunk}
            return b'%b"artifact":%b}' % (home, _encode(artifact))
        if isinstance(fact, StatusFact):
            ends = b"true" if final or fact.status.state in _CLOSING else b"false"
            return b'%b"status":%b,"final":%b}' % (home, _encode(_status(fact.status)), ends)
        return b""

    return encode


_beside = record(
    dict,
    Field("history_length", "historyLength", integer(0)),
    Field("task_push_notification_config", "pushNotification", liberal.push),
)


def _seen(view: View, wanted: int | None) -> View:
    """History is shown to who asks for it."""
    task = view.task
    return replace(view, task=replace(task, history=task.history[-wanted:] if wanted else ()))


def read_fields(name: str, fields: Any, wire: WireSettings, query: bool) -> Operation:
    operation = liberal.read_fields(name, fields, wire, query)
    if not isinstance(operation, SendMessage):
        return operation
    # What later versions put into the configuration stands beside the message here.
    sheet = Sheet(wire, query=query)
    found = finish(sheet, _beside(sheet, fields, ""))
    return replace(operation, configuration=replace(operation.configuration, **found))


class _Text(Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    text: str
    type: Literal["text"]


class _Said(Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    """A message of nothing but text, which most are."""

    parts: tuple[_Text, ...]
    role: Literal["user"] = "user"


class _Sent(Struct, frozen=True, rename="camel", forbid_unknown_fields=True, gc=False):
    message: _Said
    id: str = ""
    session_id: str = ""
    history_length: int | None = None


_sent = msgspec.json.Decoder(_Sent)
_BUILDS: Mapping[str, type[SendMessage]] = {"SendMessage": SendMessage, "SendStreamingMessage": SendStreamingMessage}


def read(name: str, raw: bytes, wire: WireSettings) -> Operation:
    build = _BUILDS.get(name)
    if build is not None:
        try:
            sent = _sent.decode(raw)
        except msgspec.DecodeError:
            pass  # The reader takes a second look, and names what is wrong.
        else:
            parts, length = sent.message.parts, sent.history_length
            short = length is None or 0 <= length < 2**31
            if 0 < len(parts) <= wire.max_parts and short and plain(sent.id, sent.session_id):
                return build(
                    message=Message(
                        context_id=sent.session_id,
                        task_id=sent.id,
                        role=Role.USER,
                        parts=tuple([Part(text=each.text) for each in parts]),
                    ),
                    configuration=Configuration(history_length=length),
                )
    return read_fields(name, parse(raw), wire, False)


T01 = replace(
    k03.K03,
    name="0.1",
    origin="0.1",
    version="0.1",
    versions=frozenset({"0.1", "0.2", "0.3"}),
    policy=POLICY,
    methods=METHODS,
    read=read,
    read_fields=read_fields,
    item=write_item,
    task=write_task,
    opening=_first,
    look=_seen,
    card=cards.union,
    push=write_push,
    events=events,
    news=write_news,
    words=WORDS,
)
