"""What receivers of webhooks hear: a body of any dialect, read as the news it tells. The other half of `wire.told`.

Bodies are known by their members, not by who sends them: a stream response of 1.0, a task or an event of 0.3
(protoAgent adds an artifact to it), simple_a2a's events, a task of 0.1. A sender that wraps any of them into a JSON-RPC
response is understood too.
"""

from collections.abc import Callable, Mapping
from typing import Any, cast

from msgspec.structs import replace

from dragoman.model.errors import InvalidRequest, ParseFailure
from dragoman.model.messages import Artifact, Message, Part
from dragoman.model.news import News
from dragoman.model.tasks import Task, TaskStatus
from dragoman.wire import liberal
from dragoman.wire.nesting import strain
from dragoman.wire.reading import Field, Sheet, anything, finish, flag, many, mapping, parse, record, text
from dragoman.wire.settings import WireSettings
from dragoman.wire.shapes03 import WRAPPED, unwrap
from dragoman.wire.told import OMITTED

JsonObject = dict[str, Any]

_metadata = Field("metadata", "metadata", mapping)


def _part(sheet: Sheet, value: Any, path: str) -> Part | None:
    part = cast("Part | None", liberal.part(sheet, value, path))
    if part is None or not isinstance(part.data, dict) or not part.metadata or WRAPPED not in part.metadata:
        return part
    data, metadata = unwrap(cast("JsonObject", part.data), part.metadata)
    return replace(part, data=data, metadata=metadata)


_parts = many(_part)
_message = record(
    Message,
    Field("message_id", "messageId", text),
    Field("context_id", "contextId", text, also=("sessionId",)),
    Field("task_id", "taskId", text),
    Field("role", "role", liberal.role),
    Field("parts", "parts", _parts, also=("content",)),
    _metadata,
    Field("extensions", "extensions", many(text)),
    Field("reference_task_ids", "referenceTaskIds", many(text)),
)
_status = record(
    TaskStatus,
    Field("state", "state", liberal.state),
    Field("message", "message", _message),
    Field("timestamp", "timestamp", text),
)


def _build_artifact(index: Any = None, **found: Any) -> Artifact:
    """Before 0.2 an artifact is called by its place; ours say their name in the metadata."""
    if "artifact_id" not in found and index is not None:
        metadata = cast("JsonObject", found.get("metadata") or {})
        found["artifact_id"] = str(metadata.get("artifactId", index))
    return Artifact(**found)


_artifact = record(
    _build_artifact,
    Field("artifact_id", "artifactId", text),
    Field("index", "index", anything),
    Field("name", "name", text),
    Field("description", "description", text),
    Field("parts", "parts", _parts),
    _metadata,
    Field("extensions", "extensions", many(text)),
)
_task = record(
    Task,
    Field("id", "id", text, required=True),
    Field("context_id", "contextId", text, also=("sessionId",)),
    Field("status", "status", _status, required=True),
    Field("artifacts", "artifacts", many(_artifact)),
    Field("history", "history", many(_message)),
    _metadata,
)
_update = record(
    dict,
    Field("id", "taskId", text, required=True, also=("id",)),
    Field("context_id", "contextId", text, also=("sessionId",)),
    Field("status", "status", _status),
    Field("artifact", "artifact", _artifact),
    Field("artifacts", "artifacts", many(_artifact)),
    Field("append", "append", flag),
    _metadata,
)


def heard(body: bytes, wire: WireSettings | None = None) -> News:
    """The news in a webhook's body. Raises ParseFailure, InvalidRequest or InvalidParams for what tells none."""
    wire = wire or WireSettings()
    try:
        str(body, "utf-8")
    except UnicodeDecodeError:
        raise ParseFailure("The body is not UTF-8.") from None
    if why := strain(body, wire.max_depth, wire.max_containers):
        raise InvalidRequest(why)
    found: Any = parse(body)
    if isinstance(found, dict) and "jsonrpc" in found:
        found = cast("JsonObject", found).get("result")
    if not isinstance(found, dict):
        raise InvalidRequest("The body is no news of a task")
    sheet = Sheet(wire)
    return finish(sheet, _news(sheet, cast("JsonObject", found)))


def _news(sheet: Sheet, body: JsonObject) -> News | None:
    for name, read in _RESPONSES.items():
        if isinstance(body.get(name), dict):
            return read(sheet, body[name], name)
    kind = body.get("kind")
    if kind == "message" or "parts" in body:
        return _said(sheet, body, "")
    if kind == "task" or ("id" in body and "status" in body and "final" not in body):
        return _whole(sheet, body, "")
    return _part_of(sheet, body, "")


def _whole(sheet: Sheet, value: Any, path: str) -> News | None:
    task = cast("Task | None", _task(sheet, value, path))
    if task is None:
        return None
    metadata, omitted = _omitted(task.metadata)
    return News(task=replace(task, metadata=metadata), whole=True, omitted=omitted)


def _part_of(sheet: Sheet, value: Any, path: str) -> News | None:
    """A status, an artifact, or both at once."""
    found = cast("JsonObject | None", _update(sheet, value, path))
    if found is None:
        return None
    if "status" not in found and "artifact" not in found:
        raise InvalidRequest("The body is no news of a task")
    metadata, omitted = _omitted(found.get("metadata"))
    made = (found["artifact"],) if "artifact" in found else found.get("artifacts", ())
    task = Task(
        id=found["id"],
        context_id=found.get("context_id", ""),
        status=found.get("status"),
        artifacts=made,
        metadata=metadata,
    )
    return News(task=task, append=found.get("append", False), omitted=omitted)


def _said(sheet: Sheet, value: Any, path: str) -> News | None:
    """A message by itself, of a task if it names one."""
    message = cast("Message | None", _message(sheet, value, path))
    if message is None:
        return None
    return News(task=Task(id=message.task_id, context_id=message.context_id, status=TaskStatus(message=message)))


_RESPONSES: Mapping[str, Callable[[Sheet, Any, str], News | None]] = {
    "task": _whole,
    "statusUpdate": _part_of,
    "artifactUpdate": _part_of,
    "message": _said,
}


def _omitted(metadata: JsonObject | None) -> tuple[JsonObject | None, tuple[str, ...]]:
    """What the sender says it left out, and the metadata without that."""
    named = (metadata or {}).get(OMITTED)
    if metadata is None or not isinstance(named, list):
        return metadata, ()
    rest = {name: value for name, value in metadata.items() if name != OMITTED}
    return rest or None, tuple(str(each) for each in cast("list[Any]", named))
