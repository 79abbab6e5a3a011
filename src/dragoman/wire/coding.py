"""coding-agent-a2a: 0.3 under other rules, with its own artifacts and bare frames (`POST /a2a/jsonrpc`).

An answer is the artifact `assistant-response`; what was used stands in the artifact `result`. A question leaves the
stream open, and its answer needs no more than the context.
"""

from functools import partial
from typing import Any

import msgspec
from msgspec.structs import replace

from dragoman.model import errors as e
from dragoman.model.facts import AnyFact, Chunk, Settled, StatusFact
from dragoman.model.messages import Artifact, Message, Part
from dragoman.model.operations import Policy, TaskRef
from dragoman.model.tasks import TERMINAL, Usage, View
from dragoman.wire import cards, k03, liberal
from dragoman.wire.dialect import Dialect, Encode, beside
from dragoman.wire.errors import Words
from dragoman.wire.settings import Style, WireSettings
from dragoman.wire.shapes03 import artifact_shape, message_shape, status_shape, task_shape
from dragoman.wire.told import Told

_encode = msgspec.json.Encoder().encode

ANSWER = "assistant-response"
RESULT = "result"
STATS = "stats"  # the id of ours: an agent may deliver a result of its own beside it
METHODS = {**k03.METHODS, "message/sendStream": "SendStreamingMessage"}
WORDS = Words(
    phrases={
        e.ParseFailure: "Parse error",
        e.InvalidRequest: "Invalid request",
        e.MethodNotFound: "Method not found",
        e.TaskNotFound: "TaskNotFound",
    }
)


def _named(artifact: Artifact) -> Artifact:
    """What an agent answers without a name for it is the answer."""
    if artifact.name or not any(isinstance(part.text, str) for part in artifact.parts):
        return artifact
    return replace(artifact, name=ANSWER)


def _result(usage: Usage) -> Artifact:
    """What was used, where this system's clients look for it."""
    stats: dict[str, Any] = {"inputTokens": usage.input_tokens, "outputTokens": usage.output_tokens, **usage.extra}
    return Artifact(artifact_id=STATS, name=RESULT, parts=(Part(data={"stats": stats}),))


def write_task(view: View) -> bytes:
    artifacts = [_named(artifact) for artifact in view.task.artifacts]
    if view.usage is not None:
        artifacts.append(_result(view.usage))
    return _encode(task_shape(replace(view.task, artifacts=tuple(artifacts))))


def write_item(value: View | Message) -> bytes:
    return _encode(message_shape(value)) if isinstance(value, Message) else write_task(value)


def _write_first(value: View | Message) -> bytes:
    return write_item(value) + (b',"kind":"message"' if isinstance(value, Message) else b',"kind":"task"')


def literal(ref: TaskRef) -> Encode:
    home = b'"taskId":%b,"contextId":%b' % (_encode(ref.id), _encode(ref.context_id))
    status_update = b'{"kind":"status-update",%b,"final":' % home
    artifact_update = b'{"kind":"artifact-update",%b' % home

    def encode(fact: AnyFact, final: bool) -> bytes:
        if isinstance(fact, Chunk):
            artifact = _named(fact.artifact)
            if fact.append and not any(part.text != "" for part in artifact.parts):
                return b""  # only says that the artifact is complete, which the end says too
            append = b',"append":true' if fact.append or artifact.name == ANSWER else b""
            return b'%b%b,"artifact":%b}' % (artifact_update, append, _encode(artifact_shape(artifact)))
        if isinstance(fact, StatusFact):
            status = _encode(status_shape(fact.status))
            return b'%b%b,"status":%b}' % (status_update, b"true" if final else b"false", status)
        return b""

    return encode


def _events(style: Style, ref: TaskRef) -> Encode:
    official, own = k03.events(ref), literal(ref)

    def frame(fact: AnyFact, final: bool) -> bytes:
        if style == "literal":
            return own(fact, final)  # pyright: ignore[reportReturnType]  # one frame each
        if isinstance(fact, Chunk):
            fact = replace(fact, artifact=_named(fact.artifact))
        result = official(fact, final)
        return beside(result, own(fact, final)) if style == "superset" and result else result  # pyright: ignore[reportArgumentType, reportReturnType]

    def encode(fact: AnyFact, final: bool) -> bytes | tuple[bytes, ...]:
        written = frame(fact, final)
        if isinstance(fact, Settled) and fact.usage is not None:
            used = Chunk(at=fact.at, artifact=_result(fact.usage))
            return frame(used, False), written
        return written

    return encode


def write_news(told: Told, types: tuple[str, ...]) -> bytes:
    return write_task(told.whole())


def dialect(style: Style, wire: WireSettings) -> Dialect:
    return replace(
        k03.K03,
        name=f"coding-agent {style}",
        origin="coding-agent",
        policy=Policy(
            first=False,
            closes=TERMINAL,
            patience_ms=int(wire.patience * 1000),
            cancel_again=TERMINAL,
            subscribe_terminal=True,
            resume_by_context=True,
            own_hook=True,
            any_hook=True,
        ),
        methods=METHODS,
        read=liberal.read,
        read_fields=liberal.read_fields,
        item=write_item,
        task=write_task,
        opening=_write_first if style == "superset" else None,
        card=cards.union,
        events=partial(_events, style),
        news=write_news,
        framing="bare" if style == "literal" else "wrapped",
        first_framing="bare" if style == "literal" else "wrapped",
        details=style == "superset",
        words=WORDS,
    )
