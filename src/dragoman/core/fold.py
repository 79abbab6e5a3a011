"""The task is the fold of its log.

A `Fold` takes facts one by one and can say at any time what the task looks like. It may start from a
checkpoint, and it may be cut: the artifact bodies gathered so far leave as segments, so that neither memory
nor a reader ever folds more than one span of a long log.

Adjacent text chunks whose other members agree become one text part. Parts an author put into one chunk stay
apart: only a chunk's first part may continue what came before it. An empty text by itself adds nothing: it says
that the artifact is complete.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import ClassVar

from msgspec import UNSET
from msgspec.structs import replace

from dragoman.model.facts import (
    AnyFact,
    Asked,
    Chunk,
    Created,
    Received,
    Resumed,
    Said,
    Settled,
    Started,
    StatusFact,
    Used,
)
from dragoman.model.messages import Artifact, Message, Part
from dragoman.model.stamps import stamp
from dragoman.model.tasks import Head, Task, TaskState, TaskStatus, Usage, View
from dragoman.ports import Loaded, Segment, Snapshot

_NOTHING = Usage()
_NO_WORDS = (Part(text=""),)
_SUBMITTED = TaskStatus(state=TaskState.SUBMITTED)


class Pile:
    """One artifact while it grows: finished parts, and a run of text pieces not joined yet."""

    __slots__ = ("fresh", "origin", "parts", "run", "run_part")

    def __init__(self, artifact: Artifact, *, fresh: bool = True) -> None:
        self.origin = artifact if not artifact.parts else replace(artifact, parts=())
        self.parts: list[Part] = list(artifact.parts)
        self.run: list[str] = []
        self.run_part: Part | None = None
        self.fresh = fresh  # nothing of this artifact lies in an earlier segment

    def extend(self, artifact: Artifact) -> None:
        origin = self.origin
        if artifact.name or artifact.description or artifact.metadata or artifact.extensions:
            merged = {**(origin.metadata or {}), **artifact.metadata} if artifact.metadata else origin.metadata
            self.origin = replace(
                origin,
                name=artifact.name or origin.name,
                description=artifact.description or origin.description,
                metadata=merged,
                extensions=tuple(dict.fromkeys((*origin.extensions, *artifact.extensions))),
            )
        if artifact.parts:
            self._join(artifact.parts[0])
            if len(artifact.parts) > 1:
                self._close_run()
                self.parts += artifact.parts[1:]

    def _join(self, part: Part) -> None:
        last = self.run_part or (self.parts[-1] if self.parts else None)
        if last is not None and _joins(last, part):
            if self.run_part is None:
                self.run_part = last
                self.parts.pop()
                self.run = [last.text]  # pyright: ignore[reportAttributeAccessIssue, reportArgumentType]  # _joins saw text
            self.run.append(part.text)  # pyright: ignore[reportArgumentType]
            return
        self._close_run()
        self.parts.append(part)

    def _close_run(self) -> None:
        if self.run_part is not None:
            self.parts.append(replace(self.run_part, text="".join(self.run)))
            self.run_part = None
            self.run = []

    def artifact(self) -> Artifact:
        self._close_run()
        return replace(self.origin, parts=tuple(self.parts))

    def take(self) -> Artifact:
        """The body gathered so far; the pile starts over behind it."""
        body = self.artifact()
        self.parts = []
        self.fresh = False
        return body


def _joins(a: Part, b: Part) -> bool:
    return (
        b.text is not UNSET
        and a.text is not UNSET
        and a.media_type == b.media_type
        and a.filename == b.filename
        and a.metadata == b.metadata
    )


class Fold:
    __slots__ = ("_spent", "_uses", "context_id", "history", "id", "piles", "seq", "status", "turn", "whole")

    def __init__(self, id: str, context_id: str) -> None:
        self.id = id
        self.context_id = context_id
        self.seq = 0
        self.status = _SUBMITTED
        self.history: list[Message] = []
        self.piles: dict[str, Pile] = {}
        self.turn = ""
        self._spent: Usage | None = None  # by earlier turns
        self._uses: dict[int, Usage] = {}  # by this turn; a rerun tells the same ordinal again
        self.whole = True  # false once a cut moved bodies away

    def apply(self, seq: int, fact: AnyFact) -> None:
        if seq <= self.seq and seq:
            return  # already folded: a load may have overtaken the commit's own news
        self.seq = seq
        take = self._takes.get(type(fact))
        if take is not None:
            take(self, fact)

    def _created(self, fact: Created) -> None:
        self.status = TaskStatus(state=TaskState.SUBMITTED, timestamp=stamp(fact.at))
        self.history.append(fact.message)

    def _received(self, fact: Received) -> None:
        if self.status.message is not None:
            self.history.append(self.status.message)
            self.status = replace(self.status, message=None)
        self.history.append(fact.message)

    def _started(self, fact: Started) -> None:
        if fact.turn != self.turn:
            self._spent, self._uses, self.turn = self.usage, {}, fact.turn
        self._status(fact)

    def _status(self, fact: StatusFact) -> None:
        if self.status.message is not None:
            self.history.append(self.status.message)
        self.status = fact.status

    def _used(self, fact: Used) -> None:
        self._uses[fact.n] = fact.usage

    def _chunk(self, fact: Chunk) -> None:
        artifact = fact.artifact
        pile = self.piles.get(artifact.artifact_id)
        if pile is None or not fact.append:
            self.piles[artifact.artifact_id] = Pile(artifact)
        else:
            pile.extend(artifact if artifact.parts != _NO_WORDS else replace(artifact, parts=()))

    # What is not here shows in no task.
    _takes: ClassVar[Mapping[type[AnyFact], Callable[..., None]]] = {
        Created: _created,
        Received: _received,
        Started: _started,
        Said: _status,
        Asked: _status,
        Resumed: _status,
        Settled: _status,
        Chunk: _chunk,
        Used: _used,
    }

    def start_usage(self, snapshot: Snapshot) -> None:
        """What was used before the checkpoint."""
        self._spent, self._uses, self.turn = snapshot.usage, dict(snapshot.uses), snapshot.turn

    @property
    def usage(self) -> Usage | None:
        return self.usage_after(()) if self._uses else self._spent

    def usage_after(self, facts: Iterable[AnyFact]) -> Usage | None:
        """The usage once these facts of the current turn are folded too."""
        uses = self._uses
        if more := {fact.n: fact.usage for fact in facts if isinstance(fact, Used)}:
            uses = uses | more
        total = self._spent
        for usage in uses.values():
            total = add(total or _NOTHING, usage)
        return total

    def task(self) -> Task:
        """The task as it stands. Only right while the fold is whole."""
        return Task(
            id=self.id,
            context_id=self.context_id,
            status=self.status,
            artifacts=tuple([pile.artifact() for pile in self.piles.values()]),
            history=tuple(self.history),
        )

    def cut(self) -> tuple[Snapshot, tuple[Segment, ...]]:
        """Move the artifact bodies gathered so far into segments; the snapshot keeps their names and order."""
        segments = tuple(
            Segment(seq=self.seq, replace=pile.fresh, artifact=pile.take())
            for pile in self.piles.values()
            if pile.fresh or pile.parts or pile.run
        )
        self.whole = False
        uses = tuple(self._uses.items())
        return Snapshot(task=self.task(), usage=self._spent, turn=self.turn, uses=uses, segmented=True), segments


def add(a: Usage, b: Usage) -> Usage:
    extra = dict(a.extra)
    for name, value in b.extra.items():
        extra[name] = extra.get(name, 0) + value
    return Usage(
        input_tokens=a.input_tokens + b.input_tokens, output_tokens=a.output_tokens + b.output_tokens, extra=extra
    )


def resume(head: Head, snapshot: Snapshot | None, segments: Sequence[Segment] = ()) -> Fold:
    """A fold that stands where the checkpoint stands."""
    fold = Fold(head.id, head.context_id)
    if snapshot is None:
        return fold
    task = snapshot.task
    fold.seq = head.checkpoint_seq
    fold.status = task.status or fold.status
    fold.history = list(task.history)
    for artifact in task.artifacts:
        fold.piles[artifact.artifact_id] = Pile(artifact, fresh=not snapshot.segmented)
    for segment in segments:
        pile = fold.piles.get(segment.artifact.artifact_id)
        if pile is None:
            continue
        if segment.replace:
            pile.parts, pile.run, pile.run_part = [], [], None
        pile.extend(Artifact(parts=segment.artifact.parts))
    fold.start_usage(snapshot)
    return fold


def view(loaded: Loaded, *, partial: bool = False) -> View:
    """What was loaded, as clients see it. `partial` leaves artifact bodies out."""
    head = loaded.head
    fold = resume(head, loaded.snapshot, () if partial else loaded.segments)
    for entry in loaded.entries:
        fold.apply(entry.seq, entry.fact)
    return shown(head, fold, partial=partial)


def shown(head: Head, fold: Fold, *, partial: bool = False) -> View:
    task = fold.task()
    if partial and task.artifacts:
        task = replace(task, artifacts=())
    return View(
        uid=head.uid,
        seq=fold.seq,
        task=task,
        usage=fold.usage,
        created_at=head.created_at,
        status_at=head.status_at,
        origin=head.origin,
        partial=partial,
    )


def trimmed(view: View, history_length: int | None) -> View:
    """At most the most recent `history_length` messages; None keeps all, 0 keeps none."""
    history = view.task.history
    if history_length is None or len(history) <= history_length:
        return view
    kept = history[len(history) - history_length :] if history_length else ()
    return replace(view, task=replace(view.task, history=kept))


def folded(head: Head, entries: Iterable[tuple[int, AnyFact]]) -> View:
    """The view of a task from its first facts on."""
    fold = Fold(head.id, head.context_id)
    for seq, fact in entries:
        fold.apply(seq, fact)
    return shown(head, fold)
