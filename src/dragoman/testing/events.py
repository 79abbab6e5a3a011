"""What a server answers in protocol 1.0, as Structs. Unknown members are refused: a test should see them."""

from typing import Any

from msgspec import Struct

from dragoman.model.messages import Artifact, Message
from dragoman.model.tasks import Task, TaskState, TaskStatus


class StatusUpdate(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    task_id: str
    context_id: str
    status: TaskStatus
    metadata: dict[str, Any] | None = None


class ArtifactUpdate(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    task_id: str
    context_id: str
    artifact: Artifact
    append: bool = False
    last_chunk: bool = False
    metadata: dict[str, Any] | None = None


class Outcome(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """The result of a send: a task, or an agent's direct message."""

    task: Task | None = None
    message: Message | None = None


class Event(Outcome, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """One item of a stream; exactly one of its first four members is set. `cursor` is the SSE id it came with."""

    status_update: StatusUpdate | None = None
    artifact_update: ArtifactUpdate | None = None
    cursor: str = ""

    @property
    def state(self) -> TaskState | None:
        """The task's state, if this event tells it."""
        status = self.task.status if self.task else self.status_update.status if self.status_update else None
        return status.state if status else None

    @property
    def text(self) -> str:
        """The text this event carries: of its message, its status message or its artifact chunk."""
        if self.artifact_update:
            parts = self.artifact_update.artifact.parts
        elif self.status_update:
            said = self.status_update.status.message
            parts = said.parts if said else ()
        else:
            parts = self.message.parts if self.message else ()
        return "".join(part.text for part in parts if isinstance(part.text, str))


class TaskList(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    tasks: tuple[Task, ...]
    next_page_token: str
    page_size: int
    total_size: int


class RpcError(Exception):
    """The server refused. `code` is JSON-RPC's, `data` the details it gave."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message
        self.data = data
