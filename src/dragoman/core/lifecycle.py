"""Decisions: which facts follow from a task's head and what somebody wants of it.

Each function answers with facts to append or raises the error the caller gets. None of them looks at a clock,
makes an id or touches a store; the caller hands those in.
"""

from typing import Literal

from dragoman.model.errors import Busy, InvalidParams, TaskNotCancelable, TaskOver
from dragoman.model.facts import AnyFact, CancelRequested, Created, Received, Resumed, Settled, Started
from dragoman.model.messages import Message, Part, Role
from dragoman.model.operations import Policy, SendMessage
from dragoman.model.stamps import stamp
from dragoman.model.tasks import Head, TaskState, TaskStatus, Usage

INTERRUPTED_BY_RESTART = "interrupted by server restart"
RERUNS = 3


def status(state: TaskState, now: int, message: Message | None = None) -> TaskStatus:
    return TaskStatus(state=state, message=message, timestamp=stamp(now))


def told(head: Head, message_id: str, text: str) -> Message:
    """An agent message of our own, about the task."""
    return Message(
        message_id=message_id,
        context_id=head.context_id,
        task_id=head.id,
        role=Role.AGENT,
        parts=(Part(text=text),),
    )


def created(op: SendMessage, message: Message, extensions: tuple[str, ...], now: int) -> Created:
    return Created(
        at=now,
        message=message,
        metadata=op.metadata,
        modes=op.configuration.accepted_output_modes,
        extensions=extensions,
    )


def started(
    now: int, turn: str, epoch: int, *, of: int = 1, attempt: int = 1, took: int = 0, replica: str = "", reruns: int = 0
) -> Started:
    return Started(
        at=now,
        status=status(TaskState.WORKING, now),
        turn=turn,
        epoch=epoch,
        attempt=attempt,
        took=took,
        of=of,
        replica=replica,
        reruns=reruns,
    )


def ended(state: TaskState, now: int, message: Message | None = None, usage: Usage | None = None) -> Settled:
    return Settled(at=now, status=status(state, now, message), usage=usage)


def fits(head: Head, message: Message) -> None:
    """A follow-up must not name another context than the task's."""
    if message.context_id and message.context_id != head.context_id:
        raise InvalidParams(f"does not match the context of task {head.id}; leave it out", "message.contextId")


def over(head: Head) -> TaskOver:
    return TaskOver("The task is finished and takes no more messages; send a new one without taskId", taskId=head.id)


Placement = Literal["answer", "inbox"]


def place(head: Head, inbox: int) -> Placement:
    """What a further message is to the task. Raises when the task is over or its inbox is full."""
    if head.terminal:
        raise over(head)
    if head.interrupted and head.asked >= 0:
        return "answer"
    if head.queued >= inbox:
        raise Busy(
            f"{inbox} messages already wait for this task; wait for it to catch up",
            limit="limits.inbox",
            most=inbox,
            taskId=head.id,
        )
    return "inbox"


def received(op: SendMessage, message: Message, extensions: tuple[str, ...], now: int, answers: int = -1) -> Received:
    return Received(
        at=now,
        message=message,
        metadata=op.metadata,
        answers=answers,
        modes=op.configuration.accepted_output_modes,
        extensions=extensions,
    )


def answered(head: Head, fact: Received, now: int, replica: str) -> tuple[AnyFact, ...]:
    """The answer goes in, and the turn goes on."""
    return (fact, authorized(head, now, replica))


def authorized(head: Head, now: int, replica: str) -> Started | Resumed:
    """What the turn waited for is there: it goes on in place when its handler is held, by a replay otherwise."""
    if head.held:
        return Resumed(at=now, status=status(TaskState.WORKING, now))
    return started(
        now,
        head.turn,
        head.epoch + 1,
        attempt=head.attempt + 1,
        replica=replica,
        reruns=head.reruns,
    )


Cancelling = Literal["done", "at once", "by the turn", "pending"]


def cancelling(head: Head, policy: Policy, *, running: bool) -> Cancelling:
    """How a cancel proceeds. Raises TaskNotCancelable when it is too late and the dialect minds."""
    if head.terminal:
        if head.state not in policy.of(head.origin).cancel_again:
            raise TaskNotCancelable(head.id, head.state.value).about(head.origin)
        return "done"
    if not running:
        return "at once"
    return "pending" if head.cancel_by else "by the turn"


def cancel_requested(now: int, patience: int) -> CancelRequested:
    return CancelRequested(at=now, deadline=now + patience)
