"""A2X: 0.3 whose answer stands in the status message (`POST /api/a2a`).

Its page streams the answer as messages. Official clients take the first message for the end of the exchange, so only
`literal` streams have them; elsewhere each piece comes as an artifact and again as a status update that says it.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

import msgspec
from msgspec import UNSET
from msgspec.structs import replace

from dragoman.model import errors as e
from dragoman.model.facts import AnyFact, Chunk, Said, StatusFact
from dragoman.model.messages import Message, Part, Role
from dragoman.model.operations import Policy, SendMessage, TaskRef
from dragoman.model.stamps import stamp
from dragoman.model.tasks import INTERRUPTED, TERMINAL, Task, TaskState, TaskStatus, View
from dragoman.wire import cards, k03, liberal
from dragoman.wire.coding import METHODS
from dragoman.wire.dialect import Dialect, Encode, beside
from dragoman.wire.errors import Words
from dragoman.wire.settings import Style, WireSettings
from dragoman.wire.shapes03 import STATES, artifact_shape, message_shape, part_shape
from dragoman.wire.told import Told

_encode = msgspec.json.Encoder().encode

JsonObject = dict[str, Any]


def _said(message: Message) -> JsonObject:
    return {
        "kind": "message",
        "messageId": message.message_id,
        "role": "user" if message.role is Role.USER else "agent",
        **({"taskId": message.task_id} if message.task_id else {}),
        **({"contextId": message.context_id} if message.context_id else {}),
        "parts": [part_shape(part) for part in message.parts],
        "metadata": message.metadata or {},
    }


def _status(status: TaskStatus) -> JsonObject:
    said = {"message": _said(status.message)} if status.message is not None else {}
    return {"state": STATES[status.state], "timestamp": status.timestamp, **said}


def _spoken(parts: Sequence[Part]) -> bytes:
    """What was said, as the page's streams show it."""
    shown = [part_shape(part) for part in parts if part.text != ""]
    return b'{"kind":"message","role":"agent","parts":%b}' % _encode(shown) if shown else b""


def _changed(task_id: str, status: TaskStatus) -> bytes:
    """A change of state, as the page's streams show it."""
    shown = _status(status)
    del shown["timestamp"]
    return _encode({"kind": "status-update", "taskId": task_id, "status": shown})


def _answered(view: View) -> TaskStatus:
    """The status of a completed task says what its artifacts say."""
    task = view.task
    status = task.status or TaskStatus()
    if status.message is not None or status.state is not TaskState.COMPLETED or not task.artifacts:
        return status
    parts = tuple(part for artifact in task.artifacts for part in artifact.parts)
    texts = tuple(part for part in parts if part.text not in (UNSET, ""))
    answer = Message(
        message_id=f"{view.uid}.answer",
        context_id=task.context_id,
        task_id=task.id,
        role=Role.AGENT,
        parts=texts or parts,
    )
    return replace(status, message=answer)


def write_task(view: View) -> bytes:
    task = view.task
    found: JsonObject = {
        "kind": "task",
        "id": task.id,
        "contextId": task.context_id,
        "status": _status(_answered(view)),
        "artifacts": [artifact_shape(artifact) for artifact in task.artifacts],
    }
    if task.history:
        found["history"] = [message_shape(message) for message in task.history]
    if task.metadata is not None:
        found["metadata"] = task.metadata
    return _encode(found)


def write_item(value: View | Message) -> bytes:
    return _encode(_said(value)) if isinstance(value, Message) else write_task(value)


def _first(style: Style, value: View | Message) -> bytes | tuple[bytes, ...]:
    """A stream begins with the status as it stands, or is the one message there will be. Who takes it up again while
    the task works is told what came before."""
    if isinstance(value, Message):
        return _spoken(value.parts) if style == "literal" else write_item(value) + b',"kind":"message"'
    state = _state(style, value)
    if value.task.status is None or value.task.status.state in TERMINAL | INTERRUPTED:
        return state
    ref = TaskRef(value.uid, value.task.id, value.task.context_id, value.origin)
    encode = _literal(ref) if style == "literal" else _superset(ref)
    delivered = (
        encode(Chunk(at=value.status_at, n=place, artifact=artifact), False)
        for place, artifact in enumerate(value.task.artifacts)
    )
    pieces = (piece if isinstance(piece, tuple) else (piece,) for piece in delivered)
    return (state, *(frame for piece in pieces for frame in piece if frame))


def _state(style: Style, value: View) -> bytes:
    status = _answered(value)
    if style == "literal":
        return _changed(value.task.id, status)
    found: JsonObject = {
        "kind": "status-update",
        "taskId": value.task.id,
        "contextId": value.task.context_id,
        "status": _status(status),
        "final": status.state in TERMINAL | INTERRUPTED,
    }
    written = _encode(found)
    return beside(written, written)


def _literal(ref: TaskRef) -> Encode:
    def encode(fact: AnyFact, final: bool) -> bytes:
        if isinstance(fact, Chunk):
            return _spoken(fact.artifact.parts)
        if isinstance(fact, Said) and fact.status.message is not None:
            return _spoken(fact.status.message.parts)
        return _changed(ref.id, fact.status) if isinstance(fact, StatusFact) else b""

    return encode


def _superset(ref: TaskRef) -> Encode:
    official = k03.events(ref)
    said = Message(context_id=ref.context_id, task_id=ref.id, role=Role.AGENT)

    def encode(fact: AnyFact, final: bool) -> bytes | tuple[bytes, ...]:
        written = official(fact, final)
        assert isinstance(written, bytes), "one frame each"
        if not isinstance(fact, Chunk) or not any(part.text != "" for part in fact.artifact.parts):
            return beside(written, written) if written else b""
        message = replace(said, message_id=f"{ref.uid}.{fact.at}.{fact.n}", parts=fact.artifact.parts)
        status = TaskStatus(state=TaskState.WORKING, message=message, timestamp=stamp(fact.at))
        again = official(Said(at=fact.at, status=status), False)
        assert isinstance(again, bytes), "one frame each"
        return beside(written, written), beside(again, again)

    return encode


def write_news(told: Told, types: tuple[str, ...]) -> bytes:
    """The whole task, once there is something to act on: its end (all that this system tells) or a question."""
    return write_task(told.whole()) if told.state in TERMINAL | INTERRUPTED else b""


def _words(*, bare: bool, guests: bool) -> Words:
    codes: dict[type[BaseException], int] = {e.ExtensionRequired: -32600}
    return Words(
        codes | ({e.Unauthenticated: -32600} if guests else {}),
        phrases={e.InvalidRequest: "Invalid Request"} if bare else {},
        statuses={e.Unauthenticated: 200} if guests else {},
    )


def _guest(operation: SendMessage, why: str, id: str) -> Task:
    """Who has not logged in is told so by a task, and no trace of it stays."""
    context = operation.message.context_id or id
    message = Message(message_id=f"{id}.why", context_id=context, task_id=id, role=Role.AGENT, parts=(Part(text=why),))
    return Task(id=id, context_id=context, status=TaskStatus(state=TaskState.AUTH_REQUIRED, message=message))


def dialect(style: Style, wire: WireSettings) -> Dialect:
    looks = {"literal": _literal, "superset": _superset, "plain": k03.events}
    bare = style == "literal"
    return replace(
        k03.K03,
        name=f"a2x {style}",
        origin="a2x",
        policy=Policy(
            first=False,
            closes=TERMINAL | INTERRUPTED,
            follows=TERMINAL | INTERRUPTED,
            cancel_again=frozenset(),
            subscribe_terminal=True,
            terminal="fresh",
            unknown="fresh",
            own_hook=True,
            any_hook=True,
        ),
        methods=METHODS,
        read=liberal.read,
        read_fields=liberal.read_fields,
        item=write_item,
        task=write_task,
        opening=None if style == "plain" else partial(_first, style),
        card=cards.union,
        events=looks[style],
        news=write_news,
        framing="bare" if bare else "wrapped",
        first_framing="bare" if bare else "wrapped",
        details=style == "superset",
        words=_words(bare=bare, guests=wire.a2x_tasks),
        guest=_guest if wire.a2x_tasks else None,
    )
