"""simple_a2a: method names older than 0.2 with parts newer than 0.3, underscored states, errors numbered its own way.

Spoken at `POST /`, where it shares `tasks/get`, `tasks/cancel` and `tasks/resubscribe` with others: there a task's
origin says whose words it is answered in.
"""

import re
from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec
from msgspec.structs import replace

from dragoman.model import errors as e
from dragoman.model.facts import AnyFact, Chunk, Settled, StatusFact
from dragoman.model.messages import Artifact, Message, Role
from dragoman.model.operations import ListPush, Operation, Policy, PushConfig, PushPage, TaskPage, TaskRef
from dragoman.model.tasks import INTERRUPTED, TERMINAL, TaskState, TaskStatus, View
from dragoman.wire import cards, k03, liberal
from dragoman.wire.dialect import Dialect
from dragoman.wire.errors import Words
from dragoman.wire.reading import parse
from dragoman.wire.settings import Style, WireSettings
from dragoman.wire.shapes03 import STATES
from dragoman.wire.told import Told, gathered

_encode = msgspec.json.Encoder().encode

JsonObject = dict[str, Any]
Write = Callable[[AnyFact, bool], bytes]  # an `Encode` of one frame for each fact
Look = Callable[[TaskRef], Write]

METHODS = {
    "tasks/send": "SendMessage",
    "tasks/sendSubscribe": "SendStreamingMessage",
    "tasks/get": "GetTask",
    "tasks/list": "ListTasks",
    "tasks/cancel": "CancelTask",
    "tasks/resubscribe": "SubscribeToTask",
    "tasks/pushNotification/set": "CreateTaskPushNotificationConfig",
    "tasks/pushNotification/get": "GetTaskPushNotificationConfig",
    "tasks/pushNotification/delete": "DeleteTaskPushNotificationConfig",
    "tasks/pushNotification/list": "ListTaskPushNotificationConfigs",
}
LIST_HOOKS = METHODS["tasks/pushNotification/list"]
_TASKS = {"id", "taskId", "task_id"}
OWN = {name: METHODS[name] for name in METHODS if name not in k03.METHODS}
WORDS = Words({e.ExtendedCardNotConfigured: -32004, e.ExtensionRequired: -32007, e.VersionNotSupported: -32008})
# Its example of a server that knows its callers answers everybody else so.
GUESTS = Words({**WORDS.codes, e.Unauthenticated: -32000}, WORDS.phrases, {**WORDS.statuses, e.Unauthenticated: 200})
POLICY = Policy(
    first=False,
    closes=TERMINAL | INTERRUPTED,
    cancel_again=frozenset(),
    resume_by_context=True,
    single_hook=True,
    missing_hook="none",
)

_STATES = {state: name.replace("-", "_") for state, name in STATES.items()}


def _said(message: Message) -> JsonObject:
    members: JsonObject = msgspec.to_builtins(message, builtin_types=(bytes,))
    return {**members, "role": "user" if message.role is Role.USER else "agent"}


def _status(status: TaskStatus) -> JsonObject:
    found: JsonObject = {"state": _STATES[status.state]}
    if status.timestamp:
        found["timestamp"] = status.timestamp
    if status.message is not None:
        found["message"] = _said(status.message)
    return found


def _task(view: View) -> JsonObject:
    task = view.task
    found: JsonObject = {
        "id": task.id,
        "contextId": task.context_id,
        "status": _status(task.status or TaskStatus()),
        "artifacts": task.artifacts,
    }
    if task.history:
        found["history"] = [_said(message) for message in task.history]
    if task.metadata is not None:
        found["metadata"] = task.metadata
    return found


def _done(message: Message) -> JsonObject:
    """A direct reply as the completed task this system expects; nothing else can be asked of it."""
    end = _status(TaskStatus(state=TaskState.COMPLETED, message=message))
    return {"id": message.message_id, "contextId": message.context_id, "status": end, "artifacts": [_made(message)]}


def _made(message: Message) -> Artifact:
    return Artifact(artifact_id=message.message_id, parts=message.parts)


def write_item(value: View | Message) -> bytes:
    return _encode(_done(value) if isinstance(value, Message) else _task(value))


def write_task(view: View) -> bytes:
    return _encode(_task(view))


def write_page(page: TaskPage) -> bytes:
    """All in one array, which has no place to say that there are more."""
    if page.next_page_token and (page.page_size == liberal.EVERYTHING or len(page.views) < page.page_size):
        raise e.UnsupportedOperation("There are more tasks than one answer holds; ask for fewer with limit")
    return _encode([_task(view) for view in page.views])


def _first(look: Look, value: View | Message) -> bytes | tuple[bytes, ...]:
    """A subscription begins with the task; a direct reply is delivered and done."""
    if not isinstance(value, Message):
        return write_task(value)
    encode = look(TaskRef("", value.message_id, value.context_id))
    end = Settled(status=TaskStatus(state=TaskState.COMPLETED, message=value))
    return encode(Chunk(artifact=_made(value), last_chunk=True), False), encode(end, True)


def events(ref: TaskRef) -> Write:
    """The page's members first, then those its own server adds to them."""
    home = b'"taskId":%b' % _encode(ref.id)
    context = b',"contextId":%b' % _encode(ref.context_id)

    def encode(fact: AnyFact, final: bool) -> bytes:
        if isinstance(fact, Chunk):
            artifact = _encode(fact.artifact)
            tail = context + k03.TAILS[fact.append, fact.last_chunk]
            return b'{"type":"TaskArtifactUpdateEvent",%b,"artifact":%b,"final":false%b' % (home, artifact, tail)
        if isinstance(fact, StatusFact):
            tail = (b"true" if final else b"false") + context
            status = _encode(_status(fact.status))
            return b'{"type":"TaskStatusUpdateEvent",%b,"status":%b,"final":%b}' % (home, status, tail)
        return b""

    return encode


def literal(ref: TaskRef) -> Write:
    home = b'"taskId":%b' % _encode(ref.id)

    def encode(fact: AnyFact, final: bool) -> bytes:
        if isinstance(fact, Chunk):
            if fact.append and not any(part.text != "" for part in fact.artifact.parts):
                return b""  # only says that the artifact is complete, for which the page has no member
            artifact = _encode(fact.artifact)
            return b'{"type":"TaskArtifactUpdateEvent",%b,"artifact":%b,"final":false}' % (home, artifact)
        if isinstance(fact, StatusFact):
            status = _encode(_status(replace(fact.status, timestamp="")))
            ends = b"true" if final else b"false"
            return b'{"type":"TaskStatusUpdateEvent",%b,"status":%b,"final":%b}' % (home, status, ends)
        return b""

    return encode


# --- webhooks ---------------------------------------------------------------------------------------------


def _push(config: PushConfig) -> JsonObject:
    found: JsonObject = {"webhookUrl": config.url}
    if config.authentication:
        found["authenticationInfo"] = dict(config.authentication)
        if config.header_name:
            found["authenticationInfo"]["headerName"] = config.header_name
    if config.event_types:
        found["eventTypes"] = config.event_types
    return {"id": config.task_id, "pushNotificationConfig": found}


def write_push(config: PushConfig) -> bytes:
    return _encode(_push(config))


def write_pushes(page: PushPage) -> bytes:
    return _encode([_push(config) for config in page.configs])


_UPDATES = frozenset({"statusupdateevent", "statusupdate", "status"})
_PIECES = frozenset({"artifactupdateevent", "artifactupdate", "artifact", "artifacts"})
_MOMENTS = {state: name.replace("-", "") for state, name in STATES.items()}
_KNOWN = _UPDATES | _PIECES | frozenset(_MOMENTS.values())


def _heard(types: tuple[str, ...]) -> frozenset[str]:
    """What a hook's event types name, however they spell it: kinds of events, or states. Nobody ever wrote down what
    may stand there, so what means nothing is passed over."""
    plain = (re.sub(r"[^a-z]", "", each.lower()) for each in types)
    return frozenset(each.removeprefix("task").removeprefix("state") for each in plain) & _KNOWN


def write_news(told: Told, types: tuple[str, ...]) -> bytes:
    """The bare event. A hook that wants artifacts and no states gets those at the end."""
    heard = _heard(types)
    task = told.view.task
    if heard and not heard & _UPDATES and _MOMENTS[told.state] not in heard:
        made = gathered(told) if heard & _PIECES and told.over else None
        if made is None:
            return b""
        piece = {"artifact": made, "append": False, "lastChunk": True}
        return _encode({"type": "TaskArtifactUpdateEvent", "taskId": task.id, "contextId": task.context_id, **piece})
    fact = told.update("artifacts")
    found: JsonObject = {
        "type": "TaskStatusUpdateEvent",
        "taskId": task.id,
        "contextId": task.context_id,
        "status": _status(fact.status),
        "final": told.state in POLICY.closes,
    }
    if fact.metadata is not None:
        found["metadata"] = fact.metadata
    if told.state is TaskState.COMPLETED and task.artifacts:
        found["artifacts"] = task.artifacts
    return _encode(found)


# --- reading ----------------------------------------------------------------------------------------------


def read_fields(name: str, fields: Any, wire: WireSettings, query: bool) -> Operation:
    if name == LIST_HOOKS and isinstance(fields, dict) and not _TASKS & fields.keys():
        return ListPush()  # of all tasks
    return liberal.read_whole_fields(name, fields, wire, query)


def read(name: str, raw: bytes, wire: WireSettings) -> Operation:
    if name == LIST_HOOKS:
        return read_fields(name, parse(raw), wire, False)
    return liberal.read_whole(name, raw, wire)


def dialect(style: Style, wire: WireSettings, methods: dict[str, str] = METHODS) -> Dialect:
    look = literal if style == "literal" else events
    return replace(
        k03.K03,
        name=f"simple {style}",
        origin="simple",
        version="1.0",
        versions=frozenset({"1.0", "0.3"}),
        exact=True,
        policy=POLICY,
        methods=methods,
        read=read,
        read_fields=read_fields,
        item=write_item,
        task=write_task,
        page=write_page,
        push=write_push,
        pushes=write_pushes,
        opening=partial(_first, look),
        card=cards.union,
        events=look,
        news=write_news,
        framing="nameless",
        first_framing="nameless",
        details=style == "superset",
        words=GUESTS if wire.simple_errors else WORDS,
    )
