"""Facts: what a task's log is made of.

A fact is public when some dialect shows it to clients, private otherwise. Facts are appended and never
changed. One number sequence per task numbers all of them, in all turns; the store assigns it at commit.

Field names are short because a fact is one small row; `n` is the ordinal of an emission within its turn, by
which a replay recognises what was already delivered.
"""

from typing import Any, ClassVar

from msgspec import Struct

from dragoman.model.messages import Artifact, Message
from dragoman.model.tasks import TaskStatus, Usage


class Fact(Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="k", gc=False):
    public: ClassVar[bool] = False
    at: int = 0


class StatusFact(Fact, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """A fact that shows itself as a status update."""

    public: ClassVar[bool] = True
    status: TaskStatus
    metadata: dict[str, Any] | None = None


class Created(Fact, frozen=True, kw_only=True, omit_defaults=True, tag="created", gc=False):
    """The task began with this message. The state is submitted until a turn starts."""

    message: Message
    metadata: dict[str, Any] | None = None
    modes: tuple[str, ...] = ()
    extensions: tuple[str, ...] = ()


class Received(Fact, frozen=True, kw_only=True, omit_defaults=True, tag="received", gc=False):
    """A further message. `answers` is the ordinal of the question it answers, or -1: it waits in the inbox."""

    message: Message
    metadata: dict[str, Any] | None = None
    answers: int = -1
    modes: tuple[str, ...] = ()
    extensions: tuple[str, ...] = ()


class Started(StatusFact, frozen=True, kw_only=True, omit_defaults=True, tag="started", gc=False):
    """A turn runs (again): working. `took` counts inbox messages this turn takes over.

    The claim is part of it: from here on only this turn at this epoch may append the turn's output. `of` is the
    number of the message fact the turn answers; `reruns` counts starts after a crash.
    """

    turn: str
    epoch: int
    attempt: int = 1
    replica: str = ""
    took: int = 0
    of: int = 1
    reruns: int = 0


class Said(StatusFact, frozen=True, kw_only=True, omit_defaults=True, tag="said", gc=False):
    """Progress: a status message while working."""

    n: int = 0


class Asked(StatusFact, frozen=True, kw_only=True, omit_defaults=True, tag="asked", gc=False):
    """The turn parked on a question (input-required) or on authorization (auth-required)."""

    n: int
    digest: str = ""
    hold: bool = False
    expires: int = 0


class Resumed(StatusFact, frozen=True, kw_only=True, omit_defaults=True, tag="resumed", gc=False):
    """A held question was answered, or a held authorization arrived: the same turn works on."""


class Settled(StatusFact, frozen=True, kw_only=True, omit_defaults=True, tag="settled", gc=False):
    """The end. Nothing follows it. `usage` is what all turns used, if any said."""

    usage: Usage | None = None


class Chunk(Fact, frozen=True, kw_only=True, omit_defaults=True, tag="chunk", gc=False):
    """A piece of an artifact; without `append` it creates or replaces the artifact of that id. `index` is its place
    among the task's artifacts."""

    public: ClassVar[bool] = True
    artifact: Artifact
    append: bool = False
    last_chunk: bool = False
    metadata: dict[str, Any] | None = None
    n: int = 0
    index: int = 0


class Stepped(Fact, frozen=True, kw_only=True, omit_defaults=True, tag="stepped", gc=False):
    """A step's remembered result. `nth` tells apart several steps of one name in one turn."""

    turn: str
    name: str
    nth: int = 0
    digest: str = ""
    result: Any = None


class CancelRequested(Fact, frozen=True, kw_only=True, omit_defaults=True, tag="cancel", gc=False):
    deadline: int


class Used(Fact, frozen=True, kw_only=True, omit_defaults=True, tag="used", gc=False):
    usage: Usage
    n: int = 0


AnyFact = Created | Received | Started | Said | Asked | Resumed | Settled | Chunk | Stepped | CancelRequested | Used


class Entry(Struct, gc=False):
    """A committed fact with its number. `frames` caches its encodings, one per codec, however many read it."""

    seq: int
    fact: AnyFact
    frames: dict[Any, bytes | tuple[bytes, ...]] | None = None
