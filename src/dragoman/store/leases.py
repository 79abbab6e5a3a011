"""Who runs which task, in a store that only one process can hold.

Such leases need no table: they end with the process, and the process that opens the store next starts with none.
What must survive is the epoch, and that is in the task's head.
"""

from collections.abc import Sequence
from copy import copy
from typing import NamedTuple

from dragoman.model.facts import AnyFact, Asked, Settled, Started
from dragoman.model.tasks import Head


class Lease(NamedTuple):
    replica: str
    until: int


class Leases:
    """Claims by uid. Every method takes the store's time, so a test can hold it."""

    def __init__(self, ttl: int) -> None:
        self._ttl = ttl  # of a claim that came with an append; a heartbeat brings its own
        self._held: dict[str, Lease] = {}

    def follow(self, uid: str, facts: Sequence[AnyFact], now: int) -> None:
        """What committed facts mean for the claim; the last one counts. A start takes it, a park and an end free it."""
        for fact in reversed(facts):
            if isinstance(fact, Settled) or (isinstance(fact, Asked) and not fact.hold):
                self._held.pop(uid, None)
                return
            if isinstance(fact, Started) and fact.replica:
                self._held[uid] = Lease(fact.replica, now + self._ttl)
                return

    def held(self, uid: str, now: int) -> bool:
        lease = self._held.get(uid)
        return lease is not None and lease.until > now

    def all(self, now: int) -> set[str]:
        return {uid for uid, lease in self._held.items() if lease.until > now}

    def take(self, uid: str, replica: str, until: int) -> None:
        self._held[uid] = Lease(replica, until)

    def prolong(self, replica: str, uids: Sequence[str], until: int) -> list[str]:
        """Prolong what `replica` holds, also when it lapsed and nobody took it; answer the others."""
        lost: list[str] = []
        for uid in uids:
            lease = self._held.get(uid)
            if lease is None or lease.replica != replica:
                lost.append(uid)
            else:
                self._held[uid] = Lease(replica, until)
        return lost

    def release(self, replica: str, uids: Sequence[str]) -> None:
        for uid in uids:
            lease = self._held.get(uid)
            if lease is not None and lease.replica == replica:
                del self._held[uid]

    def forget(self, uid: str) -> None:
        self._held.pop(uid, None)

    def clear(self) -> None:
        self._held.clear()


def claimed(head: Head) -> Head:
    """The head after a claim: a new epoch, so whoever held the task before is refused from here on."""
    after = copy(head)
    after.epoch += 1
    after.version += 1
    return after


def unattended(head: Head) -> bool:
    """Whether somebody must hold this task: a handler is to run, or waits in memory for the answer to its question."""
    return not head.settled or (head.interrupted and head.held)


def deadline(head: Head) -> int:
    """When somebody has to act on a task that does not: its cancel deadline or its expiry, the earlier; 0 for never."""
    if head.terminal:
        return 0
    return min((at for at in (head.cancel_by, head.expires_at) if at), default=0)
