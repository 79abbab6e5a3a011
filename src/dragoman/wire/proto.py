"""protoAgent: 0.3 whose results carry what they cost (`POST /a2a`, slash names; HTTP+JSON under `/a2a/…`).

A message to a task that does not wait for one starts a fresh task; canceling a finished task changes nothing.
"""

from typing import Any

import msgspec
from msgspec.structs import replace

from dragoman.model.messages import Message
from dragoman.model.operations import CreatePush, Operation, Policy, PushConfig, SendMessage, TaskPage
from dragoman.model.tasks import TERMINAL, TaskState, Usage, View
from dragoman.wire import cards, k03, liberal
from dragoman.wire.coding import METHODS
from dragoman.wire.dialect import Dialect, both
from dragoman.wire.errors import PLAIN
from dragoman.wire.settings import Style, WireSettings
from dragoman.wire.shapes03 import artifact_shape, message_shape, status_shape
from dragoman.wire.told import Told, gathered

_encode = msgspec.json.Encoder().encode
_NOTHING = Usage()


def _cost(view: View) -> bytes:
    """The block beside the artifacts: tokens (zeros when nobody counted) and how long it took so far."""
    usage = view.usage or _NOTHING
    total = usage.input_tokens + usage.output_tokens
    tokens = {"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens, "total_tokens": total}
    took = max(view.status_at - view.created_at, 1)  # what took no measurable time took some
    return _encode({"usage": tokens | usage.extra, "durationMs": took})


def write_task(view: View) -> bytes:
    task = view.task
    out = b'{"kind":"task","id":%b,"contextId":%b,"status":%b,"artifacts":%b,"data":%b' % (
        _encode(task.id),
        _encode(task.context_id),
        _encode(status_shape(task.status)) if task.status else b"{}",
        _encode([artifact_shape(artifact) for artifact in task.artifacts]),
        _cost(view),
    )
    if task.history:
        out += b',"history":%b' % _encode([message_shape(message) for message in task.history])
    if task.metadata is not None:
        out += b',"metadata":%b' % _encode(task.metadata)
    return out + b"}"


def write_item(value: View | Message) -> bytes:
    return _encode(message_shape(value)) if isinstance(value, Message) else write_task(value)


def write_page(page: TaskPage) -> bytes:
    return b"[%b]" % b",".join(map(write_task, page.views))


def _write_first(value: View | Message) -> bytes:
    return write_item(value) + (b',"kind":"message"' if isinstance(value, Message) else b',"kind":"task"')


POLICY = Policy(
    cancel_again=TERMINAL,
    subscribe_terminal=True,
    terminal="fresh",
    unknown="fresh",
    working="fresh",
    missing_hook="none",
    own_hook=True,
    any_hook=True,
)


def write_news(told: Told, types: tuple[str, ...]) -> bytes:
    """The status frame its streams have; what was made comes with completion."""
    written = k03.events(told.ref)(told.update("artifacts"), told.state in POLICY.closes)
    assert isinstance(written, bytes), "one frame each"
    artifact = gathered(told) if told.state is TaskState.COMPLETED else None
    if artifact is None:
        return written
    made = _encode(artifact_shape(artifact))
    return b'%b,"artifact":%b,"append":false,"lastChunk":true}}' % (written[:-1], made[:-1])


# --- reading ----------------------------------------------------------------------------------------------


def _settled(config: PushConfig) -> PushConfig:
    """Of a token given both ways the one at the top counts. Both of its headers then say it."""
    given = config.authentication or {}
    if not config.token or given.get("scheme", "").lower() != "bearer":
        return config
    return replace(config, authentication={**given, "credentials": config.token})


def _of_this_system(operation: Operation) -> Operation:
    if isinstance(operation, CreatePush):
        return replace(operation, config=_settled(operation.config))
    if isinstance(operation, SendMessage) and (config := operation.configuration.task_push_notification_config):
        inside = replace(operation.configuration, task_push_notification_config=_settled(config))
        return replace(operation, configuration=inside)
    return operation


def read(name: str, raw: bytes, wire: WireSettings) -> Operation:
    return _of_this_system(liberal.read(name, raw, wire))


def read_fields(name: str, fields: Any, wire: WireSettings, query: bool) -> Operation:
    return _of_this_system(liberal.read_fields(name, fields, wire, query))


def dialect(style: Style, wire: WireSettings) -> Dialect:
    superset = style == "superset"
    return replace(
        k03.K03,
        name=f"proto {style}",
        origin="proto",
        policy=POLICY,
        methods=METHODS,
        read=read,
        read_fields=read_fields,
        item=write_item,
        task=write_task,
        page=write_page,
        opening=_write_first if superset else None,
        card=cards.union,
        # Its own frames are official ones: what the superset adds is for clients of its neighbours.
        events=both(k03.events, k03.events) if superset else k03.events,
        news=write_news,
        details=superset,
        words=PLAIN,
    )
