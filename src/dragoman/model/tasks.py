"""The task as clients see it, and as lists and guards see it."""

from enum import Enum
from typing import Any, NamedTuple

from msgspec import UNSET, Struct

from dragoman.model.messages import Artifact, Message, Role


class TaskState(str, Enum):
    SUBMITTED = "TASK_STATE_SUBMITTED"
    WORKING = "TASK_STATE_WORKING"
    COMPLETED = "TASK_STATE_COMPLETED"
    FAILED = "TASK_STATE_FAILED"
    CANCELED = "TASK_STATE_CANCELED"
    INPUT_REQUIRED = "TASK_STATE_INPUT_REQUIRED"
    REJECTED = "TASK_STATE_REJECTED"
    AUTH_REQUIRED = "TASK_STATE_AUTH_REQUIRED"


TERMINAL = frozenset({TaskState.COMPLETED, TaskState.FAILED, TaskState.CANCELED, TaskState.REJECTED})
INTERRUPTED = frozenset({TaskState.INPUT_REQUIRED, TaskState.AUTH_REQUIRED})


class TaskStatus(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, forbid_unknown_fields=True):
    state: TaskState | None = None
    message: Message | None = None
    timestamp: str = ""


class Task(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, forbid_unknown_fields=True):
    id: str = ""
    context_id: str = ""
    status: TaskStatus | None = None
    artifacts: tuple[Artifact, ...] = ()
    history: tuple[Message, ...] = ()
    metadata: dict[str, Any] | None = None


class Usage(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a task consumed, summed over its turns. `extra` holds the author's own counters."""

    input_tokens: int = 0
    output_tokens: int = 0
    extra: dict[str, float] = {}


EVERYONE = "*"
"""In place of an owner, where somebody may see everybody's tasks. No owner is ever called so."""


class Scope(NamedTuple):
    """Whose task it is. Every read and write names its scope: «not yours» and «unknown» are one answer."""

    agent: str
    tenant: str = ""
    owner: str = ""


class Head(Struct, kw_only=True, omit_defaults=True, gc=False):
    """The task's row: what guards, lists and recovery need without folding the log.

    `version` counts lifecycle moves (state, message, cancel, claim); `seq` counts facts. `turn_seq` is where the
    current turn first started, `held` whether its question keeps a handler waiting in memory.
    Times are milliseconds since the epoch; 0 means never.
    """

    uid: str
    scope: Scope
    id: str
    context_id: str
    origin: str = ""
    state: TaskState = TaskState.SUBMITTED
    status_at: int = 0
    created_at: int = 0
    updated_at: int = 0
    seq: int = 0
    version: int = 0
    turn: str = ""
    epoch: int = 0
    attempt: int = 0
    queued: int = 0
    asked: int = -1
    held: bool = False
    turn_seq: int = 0
    reruns: int = 0
    cancel_by: int = 0
    expires_at: int = 0
    checkpoint_seq: int = 0
    size: int = 0

    @property
    def terminal(self) -> bool:
        return self.state in TERMINAL

    @property
    def interrupted(self) -> bool:
        return self.state in INTERRUPTED

    @property
    def settled(self) -> bool:
        """Nothing moves until somebody outside acts: the task ended or waits for a person."""
        return self.state in TERMINAL or self.state in INTERRUPTED


class View(Struct, frozen=True, kw_only=True, gc=False):
    """A task as it stood at `seq`, ready for an encoder.

    `partial` is true when artifact bodies were left out because the snapshot would be too large;
    whoever shows it replays the artifact facts instead.
    """

    uid: str
    seq: int
    task: Task
    usage: Usage | None = None
    created_at: int = 0
    status_at: int = 0
    origin: str = ""
    partial: bool = False

    def answer(self) -> Message | None:
        """What a completed task delivered, as the message it would be in a conversation: words and data, no files."""
        task = self.task
        if task.status is None or task.status.state is not TaskState.COMPLETED:
            return None
        parts = tuple(
            part
            for artifact in task.artifacts
            for part in artifact.parts
            if part.text not in (UNSET, "") or part.data is not UNSET
        )
        if not parts:
            return None
        return Message(
            message_id=f"{self.uid}.answer", context_id=task.context_id, task_id=task.id, role=Role.AGENT, parts=parts
        )
