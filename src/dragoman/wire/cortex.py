"""Cortex: 1.0's names with flat answers and frames, and `[DONE]` behind a stream (`POST /a2a`, Pascal names).

An answer is the union of Cortex's bare task and 1.0's wrapped one, so that clients of either find theirs.
"""

from typing import Any

import msgspec
from msgspec.structs import replace

from dragoman.model import errors as e
from dragoman.model.facts import AnyFact, Chunk, StatusFact
from dragoman.model.messages import Artifact, Message, Role
from dragoman.model.operations import TaskPage, TaskRef
from dragoman.model.tasks import TaskState, TaskStatus, View
from dragoman.wire import cards, liberal, p10
from dragoman.wire.dialect import Dialect, Encode, both
from dragoman.wire.errors import PLAIN, TABLE, Words
from dragoman.wire.settings import Style, WireSettings

_encode = msgspec.json.Encoder().encode

METHODS = {**p10.METHODS, "GetAgentCard": "GetExtendedAgentCard"}
# Its server answers whatever goes wrong with 500, but for a name it does not know.
STATUSES = {**dict.fromkeys(TABLE, 500), e.MethodNotFound: 404}


def _seen(view: View, wanted: int | None) -> View:
    """A task nobody works on yet is working here, and what it answered stands in the conversation too."""
    task = view.task
    status = task.status or TaskStatus()
    if status.state is TaskState.SUBMITTED:
        return replace(view, task=replace(task, status=replace(status, state=TaskState.WORKING)))
    answer = view.answer() if wanted != 0 else None
    if answer is None:
        return view
    history = (*task.history, answer)
    return replace(view, task=replace(task, history=history[-wanted:] if wanted else history))


def _members(message: Message) -> dict[str, Any]:
    return msgspec.to_builtins(message, builtin_types=(bytes,))


def _done(message: Message, shown: dict[str, Any]) -> dict[str, Any]:
    """A direct reply as the completed task this system expects; nothing else can be asked of it."""
    return {
        "id": message.message_id,
        "contextId": message.context_id,
        "status": {"state": TaskState.COMPLETED, "message": shown},
        "artifacts": [Artifact(artifact_id=message.message_id, parts=message.parts)],
        "history": [shown],
    }


def write_item(value: View | Message) -> bytes:
    written = p10.write_item(value)
    if isinstance(value, Message):
        return b"%b,%b" % (written[:-1], _encode(_done(value, _members(value)))[1:])
    inner = written[written.index(b":") + 1 : -1]
    return b"%b,%b" % (written[:-1], inner[1:])


# --- to the letter ----------------------------------------------------------------------------------------


def _lowered(message: Message) -> dict[str, Any]:
    return {**_members(message), "role": "user" if message.role is Role.USER else "agent"}


def _status(status: TaskStatus) -> dict[str, Any]:
    members: dict[str, Any] = msgspec.to_builtins(status, builtin_types=(bytes,))
    return members | ({"message": _lowered(status.message)} if status.message is not None else {})


def _bare(view: View) -> bytes:
    task = view.task
    found: dict[str, Any] = {
        "id": task.id,
        "contextId": task.context_id,
        "status": _status(task.status or TaskStatus()),
        "artifacts": task.artifacts,
        "history": [_lowered(message) for message in task.history],
    }
    return _encode(found if task.metadata is None else {**found, "metadata": task.metadata})


def _literal_item(value: View | Message) -> bytes:
    return _encode(_done(value, _lowered(value))) if isinstance(value, Message) else _bare(value)


def _literal_first(value: View | Message) -> bytes:
    return b'{"task":%b}' % _literal_item(value)


def _literal_page(page: TaskPage) -> bytes:
    return b'{"tasks":[%b],"nextPageToken":%b}' % (b",".join(map(_bare, page.views)), _encode(page.next_page_token))


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
        read=liberal.read_whole,
        read_fields=liberal.read_whole_fields,
        item=write_item if union else _literal_item if exact else p10.write_item,
        task=_bare if exact else p10.write_task,
        page=_literal_page if exact else p10.write_page,
        opening=_literal_first if exact else p10.write_item,
        look=_seen,
        card=cards.union,
        events=both(p10.events, literal) if union else literal if exact else p10.events,
        finals=style != "plain",
        framing="bare" if exact else "wrapped",
        end=b"" if style == "plain" else b"[DONE]\n\n",
        words=Words(statuses=STATUSES) if wire.cortex_statuses else PLAIN,
    )
