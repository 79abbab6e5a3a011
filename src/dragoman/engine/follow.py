"""Reading a task's log as it grows: one cursor, one pending wait, nothing queued.

A follower takes what is recent from the live task and what is older from the store, so a slow reader costs
disk reads, never memory. It ends where its dialect says, or without a final marker when the server drains.
"""

import asyncio
from collections.abc import Callable, Sequence
from math import inf
from typing import NamedTuple

from dragoman.engine.limits import Limits
from dragoman.engine.live import Live, Lives
from dragoman.model.facts import Chunk, Entry, StatusFact
from dragoman.model.operations import TaskRef
from dragoman.model.tasks import TERMINAL, TaskState, View
from dragoman.ports import Bus, Store


class Batch(NamedTuple):
    """Entries in order. `closing`: the last status among them is the stream's final one. `ended`: nothing follows."""

    entries: Sequence[Entry]
    closing: bool
    ended: bool


class Follow:
    __slots__ = (
        "_bus",
        "_closes",
        "_cursor",
        "_draining",
        "_due",
        "_last",
        "_left",
        "_limits",
        "_live",
        "_lives",
        "_over",
        "_patience",
        "_refill",
        "_silence",
        "_since",
        "_store",
        "_timer",
        "_waiter",
        "first",
        "ref",
    )

    def __init__(
        self,
        live: Live,
        lives: Lives,
        store: Store,
        bus: Bus,
        limits: Limits,
        *,
        cursor: int,
        closes: frozenset[TaskState],
        first: View | None = None,
        over: bool = False,
        patience: float = 0,
        left: Callable[["Follow"], None] | None = None,
    ) -> None:
        """Takes over one pin of `live`. `over` says that nothing follows the first frame.

        `patience` is how many seconds a stream that goes on over an interruption waits for its end; 0: for ever.
        """
        head = live.head
        self.ref = TaskRef(uid=head.uid, id=head.id, context_id=head.context_id, origin=head.origin)
        self.first = first
        self._live = live
        self._lives = lives
        self._store = store
        self._bus = bus
        self._limits = limits
        self._cursor = cursor
        self._closes = closes
        self._over = over
        self._patience = patience
        self._since = 0.0  # since when the stream has shown nothing over an interruption
        self._last: Entry | None = None  # the status that interrupted it
        self._left = left
        self._refill = 0
        if first is not None and first.partial:
            self._refill, self._cursor = cursor, 0
        self._waiter: asyncio.Future[bool] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._due = 0.0
        self._draining = False
        self._silence: Callable[[], None] | None = bus.listen(head.uid, self._wake)

    async def batch(self, wait: float) -> Batch | None:
        """The next entries; None after `wait` seconds without any, so that the caller can send a keepalive."""
        while not self._over:
            entries = await self._read()
            if entries:
                batch = self._judge(entries)
                if batch is not None:
                    return batch
                continue
            if self._draining or entries is None:
                self._over = self._draining = True
                break
            left = self._patient()
            if left <= 0:
                self._over = True
                return Batch((self._last,) if self._last is not None else (), True, True)
            if not await self._bell(min(wait, left)):
                if left <= wait:
                    continue
                return None
        return Batch((), not self._draining, True)

    def drain(self) -> None:
        """End after what is committed, without a final marker."""
        self._draining = True
        self._wake()

    def close(self) -> None:
        """Let go of the task. Safe to call twice."""
        if self._silence is not None:
            self._silence()
            self._silence = None
            self._over = True
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None
            self._lives.unpin(self._live)
            if self._left is not None:
                self._left(self)

    async def _read(self) -> Sequence[Entry] | None:
        """What follows the cursor; None when the log has gone, as a finished task's does once it is past its time."""
        head = self._live.head
        if self._cursor >= head.seq:
            return ()
        recent = self._live.recent(self._cursor, self._limits.batch)
        if recent is not None:
            return recent
        return await self._store.since(head.scope, head.uid, self._cursor, self._limits.batch) or None

    def _judge(self, entries: Sequence[Entry]) -> Batch | None:
        """Keep what is public, and see whether the stream ends with it."""
        refilling = self._refill
        self._cursor = entries[-1].seq
        if refilling and entries[0].seq <= refilling:
            shown = [e for e in entries if e.fact.public and (e.seq > refilling or isinstance(e.fact, Chunk))]
            if self._cursor >= refilling:
                self._refill = 0
        else:
            shown = [e for e in entries if e.fact.public]
        if not shown:
            return None
        closing = self._closing(shown)
        self._over = closing
        if self._patience:
            status = next((e for e in reversed(shown) if isinstance(e.fact, StatusFact)), None)
            self._last, self._since = status or self._last, 0.0
        return Batch(shown, closing, closing)

    def _closing(self, shown: Sequence[Entry]) -> bool:
        head = self._live.head
        if head.state not in self._closes:
            return False
        if self._cursor < head.seq and head.state in TERMINAL:
            return False
        last = next((e.fact for e in reversed(shown) if isinstance(e.fact, StatusFact)), None)
        return last is not None and last.status.state is head.state

    def _patient(self) -> float:
        """How many seconds to wait for what comes after an interruption."""
        if not self._patience or not self._live.head.interrupted:
            return inf
        now = asyncio.get_running_loop().time()
        self._since = self._since or now
        return self._since + self._patience - now

    # --- waiting

    def _wake(self) -> None:
        waiter = self._waiter
        if waiter is not None and not waiter.done():
            waiter.set_result(True)

    async def _bell(self, wait: float) -> bool:
        """Wait for a ring; false when `wait` seconds went by. One timer per follower is armed lazily: it may go off
        early and look again, never late."""
        loop = asyncio.get_running_loop()
        self._waiter = loop.create_future()
        self._due = loop.time() + wait
        if self._timer is not None and self._timer.when() > self._due:
            self._timer.cancel()
            self._timer = None
        if self._timer is None:
            self._timer = loop.call_at(self._due, self._expire)
        try:
            return await self._waiter
        finally:
            self._waiter = None

    def _expire(self) -> None:
        loop = asyncio.get_running_loop()
        waiter = self._waiter
        if waiter is None or waiter.done():
            self._timer = None
        elif loop.time() < self._due - 0.001:
            self._timer = loop.call_at(self._due, self._expire)
        else:
            self._timer = None
            waiter.set_result(False)
