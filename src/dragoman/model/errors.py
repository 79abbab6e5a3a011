"""What can go wrong, by whose fault. Numbers, HTTP statuses and reasons live in `wire.errors`, nowhere else.

    DragomanError
    ├── CallerError            the request cannot be served as it is
    │   ├── ParseFailure, InvalidRequest, MethodNotFound, InvalidParams
    │   ├── TaskNotFound, TaskNotCancelable, PushNotSupported
    │   ├── UnsupportedOperation (TaskOver, StreamingNotSupported)
    │   ├── ContentTypeNotSupported, ExtendedCardNotConfigured
    │   ├── ExtensionRequired, VersionNotSupported
    │   ├── BodyTooLarge, Unauthenticated, Forbidden (MissingScope)
    │   └── Busy               more than one caller may have; try again later
    │       └── Overloaded     more than there is for all
    ├── Unavailable            something outside that we need cannot be had
    ├── AgentError             the agent behind us failed (InvalidAgentResponse)
    ├── AddressRefused         what we were asked to call may not be called
    ├── CardUntrusted          nobody we trust has signed a card as it is
    └── StoreError             we failed
        ├── StoreFull          nothing was written
        ├── OverBudget         nothing was written: its owner has as much as one may have
        └── OutcomeUnknown     the commit failed in a way that leaves open whether it happened

Errors carry facts; `str(error)` is a plain sentence a client may see. It never holds a path, SQL or a secret.
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple, Self


class Violation(NamedTuple):
    """Which field is wrong, and why. `field` is a dotted path in the caller's own dialect."""

    field: str
    description: str


class DragomanError(Exception):
    """Base of everything dragoman raises on purpose."""


class CallerError(DragomanError):
    """`origin` is the label of the task it is about, where that decides in whose words it is told."""

    facts: dict[str, str]
    origin: str = ""

    def __init__(self, message: str, **facts: str) -> None:
        super().__init__(message)
        self.facts = facts

    def about(self, origin: str) -> Self:
        """This error, of a task of that origin."""
        self.origin = origin
        return self


class ParseFailure(CallerError):
    def __init__(self, why: str = "The body is not valid JSON.") -> None:
        super().__init__(why)


class InvalidRequest(CallerError):
    pass


class MethodNotFound(CallerError):
    def __init__(self, method: str) -> None:
        super().__init__(f"Method not found: {method[:100]}" if method else "Method not found", method=method[:100])


class InvalidParams(CallerError):
    """One or more parameters are wrong; `violations` names each."""

    def __init__(self, violations: Sequence[Violation] | str, field: str = "") -> None:
        if isinstance(violations, str):
            violations = (Violation(field, violations),)
        self.violations = tuple(violations)
        first = self.violations[0]
        super().__init__(f"{first.field}: {first.description}" if first.field else first.description)


class TaskNotFound(CallerError):
    def __init__(self, task_id: str) -> None:
        super().__init__("Task not found", taskId=task_id)


class TaskNotCancelable(CallerError):
    def __init__(self, task_id: str, state: str) -> None:
        super().__init__("Task cannot be canceled: it is already finished", taskId=task_id, state=state)


class UnsupportedOperation(CallerError):
    pass


class TaskOver(UnsupportedOperation):
    """The task is finished: it takes no more messages and has no more events."""


class StreamingNotSupported(UnsupportedOperation):
    def __init__(self) -> None:
        super().__init__("This agent does not stream; send without streaming, or get the task")


class PushNotSupported(CallerError):
    def __init__(self) -> None:
        super().__init__("Push notifications are not supported by this agent")


class ContentTypeNotSupported(CallerError):
    pass


class ExtendedCardNotConfigured(CallerError):
    def __init__(self) -> None:
        super().__init__("No extended agent card is configured")


class ExtensionRequired(CallerError):
    """`uris` are those the caller left out."""

    def __init__(self, *uris: str) -> None:
        named = ", ".join(uris)
        what, it = ("extensions", "them") if len(uris) > 1 else ("extension", "it")
        where = "the header A2A-Extensions (X-A2A-Extensions before 1.0)"
        super().__init__(f"This agent requires the {what} {named}; name {it} in {where}", extension=named)


class VersionNotSupported(CallerError):
    def __init__(self, version: str, supported: Sequence[str]) -> None:
        self.supported = tuple(supported)
        known = ", ".join(supported)
        super().__init__(
            f"Protocol version {version[:20]} is not supported here; use {known}", version=version[:20], supported=known
        )


class BodyTooLarge(CallerError):
    def __init__(self, limit: int) -> None:
        super().__init__(f"The request body is larger than {limit:d} bytes", limit=f"{limit:d}")


class Unauthenticated(CallerError):
    """`challenge` says what would do; `why`, for our log alone, what was wrong with what was presented."""

    def __init__(self, challenge: str, message: str = "Authentication is required", why: str = "") -> None:
        super().__init__(message)
        self.challenge = challenge
        self.why = why


class Forbidden(CallerError):
    pass


class MissingScope(Forbidden):
    """The caller is known, and not allowed this. `scopes` are all that are needed."""

    def __init__(self, needed: Sequence[str], missing: Sequence[str]) -> None:
        self.scopes = tuple(needed)
        named = ", ".join(missing)
        super().__init__(f"This needs the scope {named}, which your credentials do not have", scope=named)


class Busy(CallerError):
    """This caller asks for more than one may have. `retry_after` is in seconds; `limit` names the setting that says how
    much that is, `most` its value."""

    def __init__(
        self, message: str, retry_after: int = 1, *, limit: str = "", most: float | str = "", **facts: str
    ) -> None:
        super().__init__(message, **facts)
        self.retry_after = retry_after
        self.limit = limit
        self.most = str(most)


class Overloaded(Busy):
    """All callers together ask for more than there is."""


class Unavailable(DragomanError):
    """Something outside that is needed cannot be had right now. `retry_after` is in seconds."""

    def __init__(self, message: str, retry_after: int = 1) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class AgentError(DragomanError):
    pass


class AddressRefused(DragomanError):
    """A URL we were given may not be called. The text goes on where the URL was named: "must begin with https://"."""


class CardUntrusted(DragomanError):
    """A card is not signed, or not by a key that is trusted, or not as it is now."""


class InvalidAgentResponse(AgentError):
    pass


class StoreError(DragomanError):
    pass


class StoreFull(StoreError):
    """The disk or the configured size is full. Nothing of the append was written."""


class OverBudget(StoreError):
    """The append would give its owner more than one may have. Nothing of it was written."""

    def __init__(self, what: Literal["tasks", "bytes"], most: int) -> None:
        super().__init__(f"The owner has {most} {what} already")
        self.what: Literal["tasks", "bytes"] = what
        self.most = most


class OutcomeUnknown(StoreError):
    """A commit failed and it is open whether it happened: read again, then decide."""


class Conflict(StoreError):
    """The guard refused the append: somebody else moved the task first. `head` is how it stands, if it exists."""

    def __init__(self, head: object = None) -> None:
        super().__init__("The task moved on")
        self.head = head


class KeyTaken(StoreError):
    """The idempotency key exists already; `record` says for what."""

    def __init__(self, record: object) -> None:
        super().__init__("This idempotency key was used before")
        self.record = record


class HandlerChanged(AgentError):
    """A replay did not meet what the journal remembers."""

    def __init__(self) -> None:
        super().__init__("the handler changed while it was parked")
