"""What a caller may ask for, whatever dialect the asking came in."""

from collections.abc import Mapping
from typing import Any, Literal

from msgspec import Struct

from dragoman.model.messages import Message
from dragoman.model.security import Terms
from dragoman.model.tasks import TERMINAL, Scope, TaskState, View


class PushConfig(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, forbid_unknown_fields=True):
    """Where and how to notify. `authentication` is {scheme, credentials}.

    Two members come from simple_a2a: `header_name` is the header its credentials travel in, instead of Authorization,
    and `event_types` what its owner wants to hear of, in the owner's words; only `wire` understands them, and none
    means everything. `origin` is filled on the way out, never kept: the label of the dialect that registered it.
    """

    tenant: str = ""
    id: str = ""
    task_id: str = ""
    url: str = ""
    token: str = ""
    authentication: dict[str, str] | None = None
    header_name: str = ""
    event_types: tuple[str, ...] = ()
    origin: str = ""


class Configuration(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, forbid_unknown_fields=True):
    accepted_output_modes: tuple[str, ...] = ()
    task_push_notification_config: PushConfig | None = None
    history_length: int | None = None
    return_immediately: bool = False
    idempotency_key: str = ""


class Operation(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, forbid_unknown_fields=True):
    tenant: str = ""


class SendMessage(Operation, frozen=True, kw_only=True):
    message: Message
    configuration: Configuration = Configuration()
    metadata: dict[str, Any] | None = None


class SendStreamingMessage(SendMessage, frozen=True, kw_only=True):
    pass


class GetTask(Operation, frozen=True, kw_only=True):
    id: str = ""
    history_length: int | None = None


class ListTasks(Operation, frozen=True, kw_only=True):
    context_id: str = ""
    status: TaskState | None = None
    page_size: int | None = None
    page_token: str = ""
    history_length: int | None = None
    status_timestamp_after: str = ""
    include_artifacts: bool = False


class CancelTask(Operation, frozen=True, kw_only=True):
    id: str = ""
    metadata: dict[str, Any] | None = None


class SubscribeToTask(Operation, frozen=True, kw_only=True):
    id: str = ""
    history_length: int | None = None


class CreatePush(Operation, frozen=True, kw_only=True):
    config: PushConfig


class GetPush(Operation, frozen=True, kw_only=True):
    task_id: str = ""
    id: str = ""


class ListPush(Operation, frozen=True, kw_only=True):
    task_id: str = ""
    page_size: int | None = None
    page_token: str = ""


class DeletePush(Operation, frozen=True, kw_only=True):
    task_id: str = ""
    id: str = ""


class PushPage(Struct, frozen=True, kw_only=True):
    """One page of a list of push configurations, without their secrets."""

    configs: tuple[PushConfig, ...] = ()
    next_page_token: str = ""


class GetExtendedCard(Operation, frozen=True, kw_only=True):
    pass


class GetCard(GetExtendedCard, frozen=True, kw_only=True):
    """The extended card for whom it may be shown, the public one for everybody else: never an error."""


class Policy(Struct, frozen=True, kw_only=True):
    """Where dialects differ in what happens, not in how it is spelled. `wire` fills it; the engine obeys it.

    `first` says whether a stream begins with a Task snapshot. `closes` are the states after which a sending
    stream ends, `follows` those after which a subscription ends; a stream that stays open over an interruption ends
    `patience_ms` after it (0: never). `cancel_again` are the terminal states on which a cancel answers the task
    instead of an error. `terminal`, `unknown` and `working` say what a message to such a task does, beside being
    refused, refused and queued: start a fresh task, or (for an unknown one) a task of that very id.
    `resume_by_context` lets a message without a task answer the only question open in its context.

    A task of a `single_hook` dialect has one push configuration whose id is the task's own; another one replaces it.
    Elsewhere a task has many, and one that comes without an id gets a new one, or with `own_hook` the task's, so that
    the next without an id replaces it. `missing_hook` says whether asking for a configuration that is not there is an
    error or answers nothing. `any_hook` lets a get or delete without the configuration's id mean the one that has the
    task's, or else the first.

    `by_origin` replaces the whole for tasks that carry that label: names shared by several dialects, where the task
    decides whose rules hold.
    """

    first: bool = True
    closes: frozenset[TaskState] = TERMINAL | {TaskState.INPUT_REQUIRED}
    follows: frozenset[TaskState] = TERMINAL
    patience_ms: int = 0
    cancel_again: frozenset[TaskState] = frozenset({TaskState.CANCELED})
    subscribe_terminal: bool = False
    terminal: Literal["refuse", "fresh"] = "refuse"
    unknown: Literal["refuse", "fresh", "adopt"] = "refuse"
    working: Literal["queue", "fresh"] = "queue"
    resume_by_context: bool = False
    single_hook: bool = False
    own_hook: bool = False
    missing_hook: Literal["refuse", "none"] = "refuse"
    any_hook: bool = False
    by_origin: Mapping[str, "Policy"] = {}

    def of(self, origin: str) -> "Policy":
        """The rules for a task of that origin."""
        return self.by_origin.get(origin, self) if self.by_origin else self


class Principal(Struct, frozen=True, kw_only=True):
    """Who is calling. `id` is stable (never a display name); empty means nobody in particular.

    `schemes` are the ways it was proved, by their names on the card; `expires` (milliseconds, 0: never) is when that
    proof stops counting, and `proof` what whoever checked it would know it by. `tenants` are those the caller may use,
    None means any. `admin` may see everybody's tasks.
    """

    id: str = ""
    scopes: frozenset[str] = frozenset()
    claims: dict[str, Any] = {}
    schemes: frozenset[str] = frozenset()
    tenants: frozenset[str] | None = None
    expires: int = 0
    proof: bytes = b""
    admin: bool = False


class Call(Struct, frozen=True, kw_only=True):
    """One caller's request around an operation: on whose behalf, by which rules."""

    scope: Scope
    principal: Principal = Principal()
    terms: Terms | None = None
    policy: Policy = Policy()
    origin: str = ""
    extensions: tuple[str, ...] = ()
    idempotency_key: str = ""
    cursor: str = ""


class TaskRef(Struct, frozen=True):
    """How a stream's frames name their task, and the label of the dialect that made it."""

    uid: str
    id: str
    context_id: str
    origin: str = ""


class TaskPage(Struct, frozen=True, kw_only=True):
    """One page of a list. `page_size` is the limit that applied, `total` counts before paging."""

    views: tuple[View, ...]
    next_page_token: str
    page_size: int
    total: int
    artifacts: bool = False
