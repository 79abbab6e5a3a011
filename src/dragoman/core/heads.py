"""How facts move a task's head, and which appends its guard admits.

Both stores use these functions inside their commit, so the rules of the log exist once.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from dragoman.model.facts import (
    AnyFact,
    Asked,
    CancelRequested,
    Created,
    Received,
    Resumed,
    Said,
    Settled,
    Started,
    StatusFact,
)
from dragoman.model.tasks import TERMINAL, Head, Scope, TaskState
from dragoman.ports import Lifecycle, New, Turn


def born(uid: str, scope: Scope, guard: New) -> Head:
    """The head of a task that does not exist yet."""
    return Head(uid=uid, scope=scope, id=guard.id, context_id=guard.context_id, origin=guard.origin)


def admits(head: Head, guard: Lifecycle | Turn, facts: Sequence[AnyFact] = ()) -> bool:
    """Whether the guard lets these facts through.

    A terminal task admits nothing: terminal is final. A turn may not complete the task over messages nobody
    has taken from the inbox; it has to start the next turn instead.
    """
    if head.state in TERMINAL:
        return False
    if isinstance(guard, Lifecycle):
        return head.version == guard.version
    if head.turn != guard.turn or head.epoch != guard.epoch:
        return False
    return not (head.queued and facts and _completes(facts[-1]))


def _completes(fact: AnyFact) -> bool:
    return isinstance(fact, Settled) and fact.status.state is TaskState.COMPLETED


def advance(head: Head, facts: Sequence[AnyFact], size: int = 0) -> Head:
    """The head after these facts. The version moves only with state, message, cancel and claim facts."""
    after = replace(head)
    after.size += size
    for fact in facts:
        after.seq += 1
        move = _MOVES.get(type(fact))
        if move is not None:
            move(after, fact)
    if facts:
        after.updated_at = facts[-1].at
    return after


def _created(head: Head, fact: Created) -> None:
    head.created_at = head.status_at = fact.at
    head.version += 1


def _received(head: Head, fact: Received) -> None:
    head.version += 1
    if fact.answers < 0:
        head.queued += 1
    else:
        head.asked = -1


def _started(head: Head, fact: Started) -> None:
    head.turn = fact.turn
    head.epoch = fact.epoch
    head.attempt = fact.attempt
    head.reruns = fact.reruns
    head.queued -= fact.took
    if fact.attempt == 1:
        head.turn_seq = head.seq
    _goes_on(head, fact)


def _said(head: Head, fact: Said) -> None:
    head.status_at = fact.at


def _asked(head: Head, fact: Asked) -> None:
    _goes_on(head, fact)
    head.asked, head.held, head.expires_at = fact.n, fact.hold, fact.expires


def _settled(head: Head, fact: Settled) -> None:
    _goes_on(head, fact)
    head.cancel_by = head.queued = 0


def _goes_on(head: Head, fact: StatusFact) -> None:
    """Another state, and what was asked before is asked no longer."""
    head.status_at = fact.at
    head.version += 1
    head.state = fact.status.state or TaskState.WORKING
    head.asked, head.held, head.expires_at = -1, False, 0


def _cancel_requested(head: Head, fact: CancelRequested) -> None:
    head.version += 1
    head.cancel_by = fact.deadline


# What is not here is output: it makes the log longer and moves nothing.
_MOVES: Mapping[type[AnyFact], Callable[[Head, Any], None]] = {
    Created: _created,
    Received: _received,
    Started: _started,
    Said: _said,
    Asked: _asked,
    Resumed: _goes_on,
    Settled: _settled,
    CancelRequested: _cancel_requested,
}
