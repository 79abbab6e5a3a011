"""How facts move a task's head, and which appends its guard admits.

Both stores use these functions inside their commit, so the rules of the log exist once.
"""

from collections.abc import Sequence
from copy import copy

from dragoman.model.facts import (
    AnyFact,
    Asked,
    CancelRequested,
    Created,
    Received,
    Resumed,
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
    after = copy(head)
    after.size += size
    for fact in facts:
        after.seq += 1
        after.updated_at = fact.at
        if isinstance(fact, StatusFact):
            _move(after, fact)
        elif isinstance(fact, Created):
            after.created_at = after.status_at = fact.at
            after.version += 1
        elif isinstance(fact, Received):
            after.version += 1
            if fact.answers < 0:
                after.queued += 1
            else:
                after.asked = -1
        elif isinstance(fact, CancelRequested):
            after.version += 1
            after.cancel_by = fact.deadline
    return after


def _move(head: Head, fact: StatusFact) -> None:
    head.status_at = fact.at
    if isinstance(fact, Started):
        head.turn = fact.turn
        head.epoch = fact.epoch
        head.attempt = fact.attempt
        head.reruns = fact.reruns
        head.queued -= fact.took
        if fact.attempt == 1:
            head.turn_seq = head.seq
    elif not isinstance(fact, (Asked, Resumed, Settled)):
        return
    head.version += 1
    head.state = fact.status.state or TaskState.WORKING
    if isinstance(fact, Asked):
        head.asked, head.held, head.expires_at = fact.n, fact.hold, fact.expires
    else:
        head.asked, head.held, head.expires_at = -1, False, 0
    if isinstance(fact, Settled):
        head.cancel_by = head.queued = 0
