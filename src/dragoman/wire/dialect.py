"""What every dialect offers: the same few functions, as one value.

A further dialect is such a value with some of them replaced.
"""

from collections.abc import Callable, Mapping
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from dragoman.model.facts import AnyFact
from dragoman.model.messages import Message
from dragoman.model.operations import (
    GetTask,
    ListTasks,
    Operation,
    Policy,
    PushConfig,
    PushPage,
    SendMessage,
    SubscribeToTask,
    TaskPage,
    TaskRef,
)
from dragoman.model.tasks import Task, View
from dragoman.wire.cards import CardSource
from dragoman.wire.errors import PLAIN, Fault, Words, fault
from dragoman.wire.settings import WireSettings
from dragoman.wire.told import Told

Value = View | Message | TaskPage | PushConfig | PushPage | CardSource | None
Encode = Callable[[AnyFact, bool], bytes | tuple[bytes, ...]]
Events = Callable[[TaskRef], Encode]
Framing = Literal["wrapped", "nameless", "bare"]


class Dialect(Struct, frozen=True, kw_only=True):
    """How one version spells things.

    `versions` are the `A2A-Version` values it may be asked for, `version` is the one it says back; `origin` is kept
    with the tasks it makes. `methods` gives JSON-RPC names their operation.

    `read` takes an operation's name and its JSON object as bytes, `read_fields` as a dict (or a query's strings).
    `item` is what a send answers; `opening`, where it differs, what a stream begins with. `events` gives the encoder of
    a task's facts, which takes a fact and whether the stream closes after it, and answers b"" for what clients never
    see and a tuple where one fact becomes several frames. `finals` says whether that second argument matters.

    Over JSON-RPC a stream's frames are responses with the request's id ("wrapped"), without it ("nameless"), or nothing
    but the payload ("bare"); the opening one may differ. A payload may go on behind the result with further members of
    the response: `{…},"kind":"task"`.

    `news` is what a webhook of this dialect is told, of media type `news_type`: it takes what there is to tell and the
    hook's `event_types`, and answers b"" for what this hook is not told.

    `look` is how this dialect sees a task, where that is not as it stands; its second argument is how many messages of
    history were asked for. `details` says whether errors carry a list of them. `heirs` are the dialects that answer for
    tasks of their origin, where several share a method's name. `guest` makes the task that asks whoever sent a message
    to log in, from the message, why and an id, where that is not an error. `exact` compares `A2A-Version` as it stands.
    """

    name: str
    origin: str
    version: str
    versions: frozenset[str]
    policy: Policy
    methods: Mapping[str, str]
    read: Callable[[str, bytes, WireSettings], Operation]
    read_fields: Callable[[str, Mapping[str, Any], WireSettings, bool], Operation]
    item: Callable[[View | Message], bytes]
    task: Callable[[View], bytes]
    page: Callable[[TaskPage], bytes]
    push: Callable[[PushConfig], bytes]
    pushes: Callable[[PushPage], bytes]
    card: Callable[[CardSource], bytes]
    events: Events
    news: Callable[[Told, tuple[str, ...]], bytes]
    news_type: str = "application/json"
    opening: Callable[[View | Message], bytes | tuple[bytes, ...]] | None = None
    look: Callable[[View, int | None], View] | None = None
    finals: bool = True
    framing: Framing = "wrapped"
    first_framing: Framing = "wrapped"
    details: bool = False
    words: Words = PLAIN
    sse_errors: frozenset[str] = frozenset()  # methods whose callers read nothing but a stream, not even an error
    end: bytes = b""  # written after a stream's last frame
    extensions_header: bytes = b"x-a2a-extensions"
    heirs: Mapping[str, "Dialect"] = {}
    guest: Callable[[SendMessage, str, str], Task] | None = None
    exact: bool = False

    def fault(self, error: BaseException) -> Fault:
        return fault(error, self.words)

    def seen(self, operation: Operation, view: View) -> View:
        """The task as this dialect sees it."""
        return view if self.look is None else self.look(view, _wanted(operation))

    def encode(self, operation: Operation, value: Value) -> bytes:
        """A result. b"" stands for nothing, which each binding shows in its own way."""
        match value:
            case View():
                view = self.seen(operation, value)
                return self.item(view) if isinstance(operation, SendMessage) else self.task(view)
            case Message():
                return self.item(value)
            case TaskPage():
                if self.look is not None:
                    value = replace(value, views=tuple([self.seen(operation, view) for view in value.views]))
                return self.page(value)
            case PushConfig():
                return self.push(value)
            case PushPage():
                return self.pushes(value)
            case CardSource():
                return self.card(value)
            case None:
                return b""


def _wanted(operation: Operation) -> int | None:
    """How many messages of history were asked for."""
    if isinstance(operation, SendMessage):
        return operation.configuration.history_length
    return operation.history_length if isinstance(operation, GetTask | ListTasks | SubscribeToTask) else None


# --- superset frames --------------------------------------------------------------------------------------
# `literal` frames are those of a system's own page, `plain` ones are official, and `superset` ones are official
# responses with the literal members behind the result, so that either kind of client finds what it looks for:
# `{"jsonrpc":"2.0","id":1,"result":{…},"kind":"status-update",…}`.


def beside(result: bytes, literal: bytes) -> bytes:
    """The official payload, and behind it the members of the literal one."""
    return b"%b,%b" % (result, literal[1:-1]) if literal else result


def both(official: Events, literal: Events) -> Events:
    """Superset frames, of facts that are one frame in either look."""

    def events(ref: TaskRef) -> Encode:
        write, show = official(ref), literal(ref)

        def encode(fact: AnyFact, final: bool) -> bytes:
            result, shown = write(fact, final), show(fact, final)
            assert isinstance(result, bytes) and isinstance(shown, bytes), "one frame each"
            return beside(result, shown) if result else b""

        return encode

    return events
