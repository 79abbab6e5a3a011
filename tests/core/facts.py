"""Facts and logs for tests of the pure core, and strategies that make them up."""

from typing import Any

from hypothesis import strategies as st

from dragoman.model.facts import (
    AnyFact,
    Asked,
    CancelRequested,
    Chunk,
    Created,
    Received,
    Resumed,
    Said,
    Settled,
    Started,
    Stepped,
    Used,
)
from dragoman.model.messages import Artifact, Message, Part, Role
from dragoman.model.tasks import Head, Scope, TaskState, TaskStatus, Usage

SCOPE = Scope("agent")


def head(**members: Any) -> Head:
    return Head(uid="u", scope=SCOPE, id="t", context_id="c", **members)


def message(text: str = "hello", **members: Any) -> Message:
    return Message(message_id="m", role=Role.USER, parts=(Part(text=text),), **members)


def status(state: TaskState = TaskState.WORKING, text: str = "") -> TaskStatus:
    return TaskStatus(state=state, message=message(text) if text else None)


def created(text: str = "hello", at: int = 1) -> Created:
    return Created(at=at, message=message(text))


def received(text: str = "more", answers: int = -1, at: int = 1) -> Received:
    return Received(at=at, message=message(text), answers=answers)


def started(turn: str = "one", epoch: int = 1, at: int = 1, **members: Any) -> Started:
    return Started(at=at, status=status(), turn=turn, epoch=epoch, **members)


def said(text: str = "busy", n: int = 0) -> Said:
    return Said(at=1, status=status(text=text), n=n)


def asked(n: int = 0, digest: str = "", *, hold: bool = False, expires: int = 0, text: str = "which?") -> Asked:
    waits = status(TaskState.INPUT_REQUIRED, text)
    return Asked(at=1, status=waits, n=n, digest=digest, hold=hold, expires=expires)


def resumed() -> Resumed:
    return Resumed(at=1, status=status())


def settled(state: TaskState = TaskState.COMPLETED, text: str = "") -> Settled:
    return Settled(at=1, status=status(state, text))


def chunk(*texts: str, id: str = "a", append: bool = True, n: int = 0, **members: Any) -> Chunk:
    parts = tuple([Part(text=text) for text in texts])
    return Chunk(at=1, artifact=Artifact(artifact_id=id, parts=parts, **members), append=append, n=n)


def used(tokens: int = 1, n: int = 0, **extra: float) -> Used:
    return Used(at=1, usage=Usage(input_tokens=tokens, output_tokens=2 * tokens, extra=extra), n=n)


def stepped(name: str = "step", nth: int = 0, digest: str = "", result: Any = None) -> Stepped:
    return Stepped(at=1, turn="one", name=name, nth=nth, digest=digest, result=result)


def cancel(deadline: int = 9) -> CancelRequested:
    return CancelRequested(at=1, deadline=deadline)


# --- made up

_words = st.sampled_from(["", "a", "b ", "\n", "ü", "\U0001f600", "long " * 9])
_metadata = st.sampled_from([None, {"k": 1}, {"k": 2, "l": "m"}])

parts = st.one_of(
    st.builds(
        Part,
        text=_words,
        media_type=st.sampled_from(["", "text/markdown"]),
        filename=st.sampled_from(["", "f.txt"]),
        metadata=_metadata,
    ),
    st.builds(Part, data=st.sampled_from([None, 1, "x", {"y": [1, 2]}])),
    st.builds(Part, raw=st.binary(max_size=4)),
)

chunks = st.builds(
    Chunk,
    artifact=st.builds(
        Artifact,
        artifact_id=st.sampled_from(["a", "b", "c"]),
        name=st.sampled_from(["", "name", "other"]),
        description=st.sampled_from(["", "words"]),
        parts=st.lists(parts, max_size=4).map(tuple),
        metadata=_metadata,
        extensions=st.sampled_from([(), ("urn:x",), ("urn:y", "urn:x")]),
    ),
    append=st.booleans(),
)

_others = st.one_of(
    st.builds(said, _words.filter(bool), st.integers(0, 3)),
    st.builds(received, _words),
    st.builds(started, st.sampled_from(["one", "two"]), st.integers(1, 3)),
    st.builds(asked, st.integers(0, 3)),
    st.builds(used, st.integers(0, 5), st.integers(0, 3), calls=st.floats(0, 1, width=16)),
    st.builds(stepped),
    st.builds(resumed),
    st.builds(cancel),
)


@st.composite
def logs(draw: st.DrawFn) -> list[AnyFact]:
    """A log's facts as far as folding cares: turns come one after the other and never come back."""
    facts: list[AnyFact] = [created()]
    turn = 0
    for fact in draw(st.lists(st.one_of(chunks, chunks, _others), max_size=30)):
        if isinstance(fact, Started):
            turn += fact.turn == "two"
            fact = started(f"turn {turn}", fact.epoch)
        facts.append(fact)
    if draw(st.booleans()):
        facts.append(settled(text=draw(_words)))
    return facts
