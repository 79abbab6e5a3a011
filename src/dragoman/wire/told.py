"""What a webhook is told: one fact, and the task as that fact left it.

Bodies are bounded: receivers refuse large ones, and each is kept until it is delivered. What does not fit is left out,
the least telling first, and named in the metadata under `OMITTED`, so that a receiver knows to ask for the task.
"""

from collections.abc import Iterator
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from dragoman.model.facts import AnyFact, Asked, Resumed, Said, Settled, Started, StatusFact
from dragoman.model.messages import Artifact, Message
from dragoman.model.operations import TaskRef
from dragoman.model.tasks import TERMINAL, TaskState, TaskStatus, View

OMITTED = "dragoman.omitted"

Metadata = dict[str, Any] | None
AnyStatus = Started | Said | Asked | Resumed | Settled


class Told(Struct, frozen=True):
    """`view` is the task with the fact's own status, however late it was loaded. `omitted` is what was left out."""

    fact: AnyStatus
    view: View
    omitted: tuple[str, ...] = ()

    @property
    def state(self) -> TaskState | None:
        return self.fact.status.state

    @property
    def over(self) -> bool:
        return self.state in TERMINAL

    @property
    def ref(self) -> TaskRef:
        task = self.view.task
        return TaskRef(self.view.uid, task.id, task.context_id, self.view.origin)

    def whole(self) -> View:
        """The task, for bodies that are one."""
        task = self.view.task
        return replace(self.view, task=replace(task, metadata=marked(task.metadata, self.omitted)))

    def update(self, *shown: str) -> AnyStatus:
        """The fact, for bodies that are an update. Of what was left out only what such a body would show is named."""
        missing = tuple(name for name in self.omitted if name in ("message", "metadata", *shown))
        return replace(self.fact, metadata=marked(self.fact.metadata, missing))


def marked(metadata: Metadata, omitted: tuple[str, ...]) -> Metadata:
    return {**(metadata or {}), OMITTED: list(omitted)} if omitted else metadata


def tell(fact: AnyFact, view: View) -> Told:
    """The view may be later than the fact: then the status goes back to the fact's, and what it said is not history."""
    task = view.task
    if not isinstance(fact, StatusFact):
        fact = Said(at=fact.at, status=task.status or TaskStatus())
    history = _before(task.history, fact.status.message)
    told = replace(view, task=replace(task, status=fact.status, history=history))
    return Told(fact, told, ("artifacts",) if view.partial else ())


def _before(history: tuple[Message, ...], message: Message | None) -> tuple[Message, ...]:
    if message is None:
        return history
    places = (place for place, each in enumerate(history) if each.message_id == message.message_id)
    return history[: next(places, len(history))]


def lighter(told: Told) -> Iterator[Told]:
    """The same news with less and less around them: without the conversation, then without what was made, then without
    what was said. The last holds nothing whose size anybody else decides."""
    yield told
    view, omitted = told.view, told.omitted
    if view.task.history:
        omitted += ("history",)
        view = replace(view, task=replace(view.task, history=()))
        yield Told(told.fact, view, omitted)
    if view.task.artifacts:
        omitted += ("artifacts",)
        view = replace(view, task=replace(view.task, artifacts=()))
        yield Told(told.fact, view, omitted)
    bare = replace(told.fact.status, message=None)
    said = () if told.fact.status.message is None else ("message",)
    meant = ("metadata",) if told.fact.metadata or view.task.metadata else ()
    view = replace(view, task=replace(view.task, status=bare, metadata=None))
    yield Told(replace(told.fact, status=bare, metadata=None), view, (*omitted, *said, *meant))


def gathered(told: Told) -> Artifact | None:
    """All the task made as one artifact, for bodies that have room for one: the only one, or the parts of all under the
    task's id."""
    task = told.view.task
    if len(task.artifacts) <= 1:
        return task.artifacts[0] if task.artifacts else None
    metadata = {name: value for artifact in task.artifacts for name, value in (artifact.metadata or {}).items()}
    return Artifact(
        artifact_id=task.id,
        parts=tuple(part for artifact in task.artifacts for part in artifact.parts),
        metadata=metadata or None,
        extensions=tuple(dict.fromkeys(uri for artifact in task.artifacts for uri in artifact.extensions)),
    )
