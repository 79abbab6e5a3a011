"""Cortex: 1.0's names with flat answers and frames, and `[DONE]` behind a stream (`POST /a2a`, Pascal names).

An answer is the union of Cortex's bare task and 1.0's wrapped one, so that clients of either find theirs.
"""

from typing import Any

import msgspec
from msgspec.structs import replace

from dragoman.model import errors as e
from dragoman.model.facts import AnyFact, Chunk, StatusFact
from dragoman.model.messages import Message, Role
from dragoman.model.operations import TaskRef
from dragoman.model.tasks import Task, TaskState, TaskStatus, View
from dragoman.wire import cards, liberal, p10
from dragoman.wire.dialect import Dialect, Encode
from dragoman.wire.errors import PLAIN, TABLE, Words
from dragoman.wire.settings import Style, WireSettings
from dragoman.wire.styles import both

_encode = msgspec.json.Encoder().encode

METHODS = {**p10.METHODS, "GetAgentCard": "GetExtendedAgentCard"}
# Its server answers whatever goes wrong with 500, but for a name it does not know.
STATUSES = {**dict.fromkeys(TABLE, 500), e.MethodNotFound: 404}


def _seen(view: View) -> View:
    """A task nobody works on yet is working here, and what it answered stands in the conversation too."""
    task = view.task
    status = task.status or TaskStatus()
    if status.state is TaskState.SUBMITTED:
        task = replace(task, status=replace(status, state=TaskState.WORKING))
    elif answer := _unsaid(view.uid, task):
        task = replace(task, history=(*task.history, answer))
    return view if task is view.task else replace(view, task=task)


def _unsaid(uid: str, task: Task) -> Message | None:
    """What a completed task answered in artifacts only, as a message."""
    if task.status is None or task.status.state is not TaskState.COMPLETED:
        return None
    if not task.history or task.history[-1].role is not Role.USER:
        return None
    texts = tuple(part for artifact in task.artifacts for part in artifact.parts if isinstance(part.text, str))
    if not texts:
        return None
    return Message(
        message_id=f"{uid}.answer", context_id=task.context_id, task_id=task.id, role=Role.AGENT, parts=texts
    )


def write_item(value: View | Message) -> bytes:
    written = p10.write_item(value if isinstance(value, Message) else _seen(value))
    inner = written[written.index(b":") + 1 : -1]
    return b"%b,%b" % (written[:-1], inner[1:])


def _write_first(value: View | Message) -> bytes:
    return p10.write_item(value if isinstance(value, Message) else _seen(value))


def write_task(view: View) -> bytes:
    return p10.write_task(_seen(view))


# --- to the letter ----------------------------------------------------------------------------------------


def _lowered(message: Message) -> dict[str, Any]:
    members: dict[str, Any] = msgspec.to_builtins(message, builtin_types=(bytes,))
    return {**members, "role": "user" if message.role is Role.USER else "agent"}


def _status(status: TaskStatus) -> dict[str, Any]:
    members: dict[str, Any] = msgspec.to_builtins(status, builtin_types=(bytes,))
    return members | ({"message": _lowered(status.message)} if status.message is not None else {})


def _bare(view: View) -> bytes:
    task = _seen(view).task
    return _encode(
        {
            "id": task.id,
            "contextId": task.context_id,
            "status": _status(task.status or TaskStatus()),
            "artifacts": task.artifacts,
            "history": [_lowered(message) for message in task.history],
        }
    )


def _literal_item(value: View | Message) -> bytes:
    return _encode(_lowered(value)) if isinstance(value, Message) else _bare(value)


def _literal_first(value: View | Message) -> bytes:
    if isinstance(value, Message):
        return b'{"message":%b}' % _encode(_lowered(value))
    return b'{"task":%b}' % _bare(value)


def literal(ref: TaskRef) -> Encode:
    task = _encode(ref.id)

    def encode(fact: AnyFact, final: bool) -> bytes:
        if isinstance(fact, Chunk):
            append = b',"append":true' if fact.append else b""
            last = b',"lastChunk":true' if fact.last_chunk else b""
            artifact = _encode(fact.artifact)
            return b'{"type":"TaskArtifactUpdateEvent","taskId":%b,"artifact":%b%b%b}' % (task, artifact, append, last)
        if isinstance(fact, StatusFact):
            ends = b"true" if final else b"false"
            status = _encode(_status(fact.status))
            return b'{"type":"TaskStatusUpdateEvent","taskId":%b,"status":%b,"final":%b}' % (task, status, ends)
        return b""

    return encode


def dialect(style: Style, wire: WireSettings) -> Dialect:
    union = style == "superset"
    exact = style == "literal"
    return replace(
        p10.P10,
        name=f"cortex {style}",
        origin="cortex",
        methods=METHODS,
        read=liberal.read,
        read_fields=liberal.read_fields,
        item=write_item if union else _literal_item if exact else p10.write_item,
        task=_bare if exact else write_task,
        opening=_literal_first if exact else _write_first,
        card=cards.union,
        events=both(p10.events, literal) if union else literal if exact else p10.events,
        finals=style != "plain",
        framing="bare" if exact else "wrapped",
        end=b"" if style == "plain" else b"[DONE]\n\n",
        words=Words(statuses=STATUSES) if wire.cortex_statuses else PLAIN,
    )
