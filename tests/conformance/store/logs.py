"""Facts and appends the suite writes."""

from typing import Any

from dragoman.model.facts import AnyFact, Asked, CancelRequested, Chunk, Created, Received, Said, Settled, Started
from dragoman.model.messages import Artifact, Message, Part, Role
from dragoman.model.operations import PushConfig
from dragoman.model.tasks import Head, Scope, TaskState, TaskStatus
from dragoman.ports import Append, Appended, Hook, KeyRecord, Lifecycle, New, Store, Turn

OURS = Scope("agent", "tenant", "owner")
OTHERS = (Scope("other", "tenant", "owner"), Scope("agent", "other", "owner"), Scope("agent", "tenant", "other"))


def message(text: str = "hello") -> Message:
    return Message(message_id="m", role=Role.USER, parts=(Part(text=text),))


def created(at: int = 1, text: str = "hello") -> Created:
    return Created(at=at, message=message(text))


def started(at: int = 1, turn: str = "t1", epoch: int = 1, **rest: Any) -> Started:
    return Started(at=at, status=TaskStatus(state=TaskState.WORKING), turn=turn, epoch=epoch, **rest)


def said(at: int = 1, text: str = "busy") -> Said:
    return Said(at=at, status=TaskStatus(state=TaskState.WORKING, message=message(text)))


def chunk(at: int = 1, text: str = "word ", append: bool = True, artifact: str = "a") -> Chunk:
    return Chunk(at=at, artifact=Artifact(artifact_id=artifact, parts=(Part(text=text),)), append=append)


def asked(at: int = 1, **rest: Any) -> Asked:
    return Asked(at=at, status=TaskStatus(state=TaskState.INPUT_REQUIRED), n=1, **rest)


def cancel(at: int = 1, deadline: int = 10) -> CancelRequested:
    return CancelRequested(at=at, deadline=deadline)


def received(at: int = 1, text: str = "more") -> Received:
    return Received(at=at, message=message(text))


def settled(at: int = 1, state: TaskState = TaskState.COMPLETED) -> Settled:
    return Settled(at=at, status=TaskStatus(state=state))


def new(
    uid: str,
    *facts: AnyFact,
    scope: Scope = OURS,
    id: str = "",
    context: str = "c",
    key: KeyRecord | None = None,
    size: int = 0,
    hooks: tuple[Hook, ...] = (),
) -> Append:
    return Append(uid, scope, facts or (created(), started()), New(id or uid, context, key=key), size, hooks)


def more(
    head: Head, *facts: AnyFact, key: KeyRecord | None = None, size: int = 0, hooks: tuple[Hook, ...] = ()
) -> Append:
    """An operation's append: it holds what it read."""
    return Append(head.uid, head.scope, facts, Lifecycle(head.version, key), size, hooks)


def output(uid: str, *facts: AnyFact, turn: str = "t1", epoch: int = 1, scope: Scope = OURS, size: int = 0) -> Append:
    return Append(uid, scope, facts, Turn(turn, epoch), size)


def hook(uid: str, id: str = "h", host: str = "one.example", scope: Scope = OURS, **rest: Any) -> Hook:
    config = PushConfig(id=id, task_id=uid, url=f"https://{host}/{id}", **rest)
    return Hook(uid=uid, scope=scope, config=config, origin="1.0")


async def finished(
    store: Store, uid: str, at: int = 1, state: TaskState = TaskState.COMPLETED, **rest: Any
) -> Appended:
    """A whole task in two appends."""
    await store.append(new(uid, created(at), started(at), **rest))
    return await store.append(output(uid, chunk(at), settled(at, state), scope=rest.get("scope", OURS)))
