"""The shapes of 0.3's JSON, and the model in them. Every dialect before 1.0 is some variation of these.

Members stand in the order in which the seed systems' pages show them.
"""

from collections.abc import Mapping
from typing import Any, Literal, cast

import msgspec
from msgspec import UNSET, Struct, UnsetType

from dragoman.model.messages import Artifact, Message, Part, Role
from dragoman.model.operations import PushConfig
from dragoman.model.tasks import Task, TaskState, TaskStatus

STATES: Mapping[TaskState | None, str] = {
    None: "unknown",
    TaskState.SUBMITTED: "submitted",
    TaskState.WORKING: "working",
    TaskState.COMPLETED: "completed",
    TaskState.FAILED: "failed",
    TaskState.CANCELED: "canceled",
    TaskState.INPUT_REQUIRED: "input-required",
    TaskState.REJECTED: "rejected",
    TaskState.AUTH_REQUIRED: "auth-required",
}
ROLES: Mapping[str, Role] = {"user": Role.USER, "agent": Role.AGENT}
# What a role reads as: only users speak as users.
_SPEAKERS: Mapping[Role | None, Literal["user", "agent"]] = {Role.USER: "user", Role.AGENT: "agent", None: "agent"}
Metadata = dict[str, Any] | None

# --- shapes -----------------------------------------------------------------------------------------------


class Shape(Struct, frozen=True, rename="camel", omit_defaults=True, forbid_unknown_fields=True, gc=False):
    pass


class TextPart(Shape, frozen=True, tag_field="kind", tag="text"):
    text: str
    metadata: Metadata = None


class FileContent(Shape, frozen=True):
    content: bytes | UnsetType = msgspec.field(default=UNSET, name="bytes")
    uri: str | UnsetType = UNSET
    name: str = ""
    mime_type: str = ""


class FilePart(Shape, frozen=True, tag_field="kind", tag="file"):
    file: FileContent
    metadata: Metadata = None


class DataPart(Shape, frozen=True, tag_field="kind", tag="data"):
    data: dict[str, Any]
    metadata: Metadata = None


class MessageShape(Shape, frozen=True, tag_field="kind", tag="message"):
    message_id: str
    role: Literal["user", "agent"]
    parts: list[TextPart | FilePart | DataPart]
    context_id: str = ""
    task_id: str = ""
    metadata: Metadata = None
    extensions: tuple[str, ...] = ()
    reference_task_ids: tuple[str, ...] = ()


class ArtifactShape(Shape, frozen=True, kw_only=True):
    artifact_id: str
    name: str = ""
    parts: list[TextPart | FilePart | DataPart]
    description: str = ""
    metadata: Metadata = None
    extensions: tuple[str, ...] = ()


class StatusShape(Shape, frozen=True):
    state: str
    timestamp: str = ""
    message: MessageShape | None = None


class TaskShape(Shape, frozen=True, tag_field="kind", tag="task"):
    id: str
    context_id: str
    status: StatusShape
    artifacts: list[ArtifactShape] = []
    history: list[MessageShape] = []
    metadata: Metadata = None


class AuthenticationShape(Shape, frozen=True):
    schemes: tuple[str, ...]
    credentials: str = ""


class PushShape(Shape, frozen=True):
    url: str
    id: str = ""
    token: str = ""
    authentication: AuthenticationShape | None = None


class TaskPushShape(Shape, frozen=True):
    task_id: str
    push_notification_config: PushShape


class ConfigurationShape(Shape, frozen=True):
    accepted_output_modes: tuple[str, ...] = ()
    blocking: bool = True
    history_length: int | None = None


class SendShape(Shape, frozen=True):
    message: MessageShape
    configuration: ConfigurationShape = ConfigurationShape()
    metadata: Metadata = None


# --- writing ----------------------------------------------------------------------------------------------

WRAPPED = "data_part_compat"  # says that a data part's value was no object and stands under "value"


def wrap(data: Any, metadata: Metadata) -> tuple[dict[str, Any], Metadata]:
    """Data must be an object before 1.0; anything else is put into one, marked so that it can be taken out again."""
    if isinstance(data, dict):
        return cast("dict[str, Any]", data), metadata
    return {"value": data}, {**(metadata or {}), WRAPPED: True}


def unwrap(data: dict[str, Any], metadata: Metadata) -> tuple[Any, Metadata]:
    if metadata and metadata.get(WRAPPED) is True and "value" in data:
        return data["value"], {key: value for key, value in metadata.items() if key != WRAPPED} or None
    return data, metadata


def part_shape(part: Part) -> TextPart | FilePart | DataPart:
    if part.text is not UNSET:
        return TextPart(part.text, part.metadata)
    if part.data is not UNSET:
        return DataPart(*wrap(part.data, part.metadata))
    return FilePart(FileContent(part.raw, part.url, part.filename, part.media_type), part.metadata)


def message_shape(message: Message) -> MessageShape:
    return MessageShape(
        message.message_id,
        _SPEAKERS[message.role],
        [part_shape(part) for part in message.parts],
        message.context_id,
        message.task_id,
        message.metadata,
        message.extensions,
        message.reference_task_ids,
    )


def artifact_shape(artifact: Artifact) -> ArtifactShape:
    return ArtifactShape(
        artifact_id=artifact.artifact_id,
        name=artifact.name,
        parts=[part_shape(part) for part in artifact.parts],
        description=artifact.description,
        metadata=artifact.metadata,
        extensions=artifact.extensions,
    )


def status_shape(status: TaskStatus) -> StatusShape:
    said = status.message
    return StatusShape(STATES[status.state], status.timestamp, message_shape(said) if said else None)


def task_shape(task: Task) -> TaskShape:
    return TaskShape(
        task.id,
        task.context_id,
        status_shape(task.status or TaskStatus()),
        [artifact_shape(artifact) for artifact in task.artifacts],
        [message_shape(message) for message in task.history],
        task.metadata,
    )


def push_shape(config: PushConfig) -> PushShape:
    auth = config.authentication
    return PushShape(
        config.url,
        config.id,
        config.token,
        AuthenticationShape((auth["scheme"],), auth.get("credentials", "")) if auth else None,
    )


def task_push_shape(config: PushConfig) -> TaskPushShape:
    return TaskPushShape(config.task_id, push_shape(config))
