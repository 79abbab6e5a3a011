"""Tasks somebody is busy with: their recent facts, their fold, and who waits for them.

A `Live` is a cache of committed facts. Everything in it came from a commit's answer or from the store, so
dropping one loses nothing. `Lives` is the one place that appends: every commit's news passes through
`_told` in commit order before anybody who awaits the append goes on.
"""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import partial
from itertools import count
from typing import Any, Protocol

from dragoman.core.fold import Fold, resume, shown, view
from dragoman.core.heads import born
from dragoman.engine.limits import Limits
from dragoman.model.errors import TaskNotFound
from dragoman.model.facts import AnyFact, Entry, Received
from dragoman.model.messages import Message
from dragoman.model.tasks import Head, Scope, View
from dragoman.ports import (
    Append,
    Appended,
    Bus,
    Checkpoint,
    Hook,
    Lifecycle,
    Loaded,
    New,
    Query,
    Route,
    Snapshot,
    Store,
    Turn,
)

log = logging.getLogger("dragoman.turn")

Key = tuple[Scope, str]


class Running(Protocol):
    """The turn at work on a task, as others reach it."""

    @property
    def route(self) -> Route: ...
    def stop(self, why: str) -> None: ...
    def answer(self, message: Message | None) -> None: ...


class Live:
    __slots__ = (
        "base",
        "entries",
        "flights",
        "fold",
        "head",
        "inbox",
        "landings",
        "pins",
        "run",
        "seen",
        "settlers",
        "span",
        "tail",
        "weight",
    )

    def __init__(self, head: Head, fold: Fold | None) -> None:
        self.head = head
        self.fold = fold
        self.entries: list[Entry] = []
        self.base = head.seq  # entries[i] has the number base + 1 + i
        self.tail = 0  # bytes in entries, roughly
        self.span = 0  # facts since the last checkpoint
        self.weight = 0  # their bytes
        self.inbox: list[Entry] = []
        self.flights = 0  # appends under way
        self.landings: list[asyncio.Future[Any]] = []  # who waits until there are none
        self.run: Running | None = None
        self.settlers: list[asyncio.Future[Any]] = []
        self.pins = 0
        self.seen: View | None = None  # what the fold looked like when it was last shown

    def recent(self, after: int, limit: int) -> Sequence[Entry] | None:
        """Entries after that number, None when the tail no longer reaches back to it."""
        start = after - self.base
        if start < 0:
            return None
        if start == 0 and len(self.entries) <= limit:
            return self.entries.copy()
        return self.entries[start : start + limit]

    def trim(self) -> None:
        """Forget the older half of the entries."""
        drop = (len(self.entries) + 1) // 2
        del self.entries[:drop]
        self.base += drop
        self.tail //= 2


class Lives:
    def __init__(self, store: Store, bus: Bus, limits: Limits) -> None:
        self._store = store
        self._bus = bus
        self._limits = limits
        # With fewer facts and bytes since the last checkpoint none is due, ended or not.
        self._few = min(limits.span_facts, limits.brief_facts)
        self._light = min(limits.span_bytes, limits.brief_bytes)
        self._by_key: dict[Key, Live] = {}
        self._births: dict[Key, Live] = {}  # whose first append is under way
        self._woken = False
        self._finding: dict[Key, asyncio.Future[None]] = {}  # looks into the store under way
        self._finished: OrderedDict[Key, tuple[View, int]] = OrderedDict()
        self._finished_bytes = 0

    # --- finding

    def get(self, scope: Scope, id: str) -> Live | None:
        return self._by_key.get((scope, id))

    async def open(self, scope: Scope, id: str) -> Live | None:
        """The live task, pinned; from the store when nobody is busy with it. Call `unpin` when done."""
        if (unborn := self._births.get((scope, id))) is not None:
            # The store may know it already; whoever makes it does not yet, and a task must not be live twice.
            await self.landed(unborn)
        while (finding := self._finding.get((scope, id))) is not None:
            # One looks at a time: what another read may have moved on, live and gone again, before they enter it.
            await asyncio.wait((finding,))
        live = self._by_key.get((scope, id))
        if live is None:
            head = await self._find(scope, id)
            if head is None:
                return None
            live = self._by_key.get((scope, id)) or self._enter(Live(head, None))
        live.pins += 1
        return live

    async def _find(self, scope: Scope, id: str) -> Head | None:
        looked = self._finding[scope, id] = asyncio.get_running_loop().create_future()
        try:
            return await self._store.find(scope, id)
        finally:
            del self._finding[scope, id]
            looked.set_result(None)

    async def landed(self, live: Live) -> None:
        """Wait for what is being appended: the store may know it already, and the live task a moment later."""
        if live.flights:
            landing = asyncio.get_running_loop().create_future()
            live.landings.append(landing)
            await landing

    async def folded(self, live: Live) -> Fold:
        """The live task's fold, loaded when it was opened without one."""
        while (fold := live.fold) is None:
            loaded = await self._load(live)
            if live.fold is not None:
                continue
            fold = resume(loaded.head, loaded.snapshot)
            fold.whole = loaded.snapshot is None or not loaded.snapshot.segmented
            for entry in loaded.entries:
                fold.apply(entry.seq, entry.fact)
            if fold.seq >= live.head.seq:  # else it moved on while it was read
                live.fold = fold
                live.span = len(loaded.entries)
        while len(live.inbox) != (head := live.head).queued:
            waiting = await self._unread(head)
            if live.head.version == head.version:  # else it moved on while it was read
                live.inbox = waiting
        return fold

    async def _load(self, live: Live) -> Loaded:
        """What the store has of a live task. Raises TaskNotFound when that is nothing any more."""
        loaded = await self._store.load(live.head.scope, live.head.uid)
        if loaded is None:
            raise TaskNotFound(live.head.id)
        return loaded

    async def _unread(self, head: Head) -> list[Entry]:
        """Messages nobody has taken yet, found again in the log."""
        waiting: list[Entry] = []
        after = 0
        while entries := await self._store.since(head.scope, head.uid, after):
            waiting += [e for e in entries if isinstance(e.fact, Received) and e.fact.answers < 0]
            after = entries[-1].seq
        return waiting[len(waiting) - head.queued :]

    def unpin(self, live: Live) -> None:
        live.pins -= 1
        if not (live.pins or live.flights):
            self._leave(live)

    def _leave(self, live: Live) -> None:
        """Nobody is busy with it any more."""
        head = live.head
        key = (head.scope, head.id)
        if self._by_key.get(key) is live:
            del self._by_key[key]
        if head.terminal and live.fold is not None and live.fold.whole:
            self._keep(key, _show(live, live.fold), head)

    async def view(self, scope: Scope, id: str) -> View | None:
        """The task as it stands, from memory when all of it is there."""
        live = self._by_key.get((scope, id))
        if live is not None:
            return await self.view_of(live)
        kept = self._finished.get((scope, id))
        if kept is not None:
            self._finished.move_to_end((scope, id))
            return kept[0]
        head = await self._store.find(scope, id)
        loaded = await self._store.load(scope, head.uid) if head is not None else None
        if loaded is None:
            return None
        seen = view(loaded)
        if loaded.head.terminal:
            self._keep((scope, id), seen, loaded.head)
        return seen

    async def view_of(self, live: Live) -> View:
        if live.fold is not None and live.fold.whole:
            return _show(live, live.fold)
        return view(await self._load(live))

    async def conversation(self, scope: Scope, context_id: str, but: str, limit: int) -> tuple[Message, ...]:
        """The last `limit` messages of the context's other tasks: what was asked, said and delivered."""
        page = await self._store.list(
            scope,
            Query(
                context_id=context_id, known=True, limit=limit + 1, max_bytes=self._limits.page_bytes, artifacts=True
            ),
        )
        messages: list[Message] = []
        for loaded in reversed(page.items):
            if loaded.head.uid != but:
                seen = view(loaded)
                task = seen.task
                messages += task.history
                if (answer := seen.answer()) is not None:
                    messages.append(answer)
                if task.status is not None and task.status.message is not None:
                    messages.append(task.status.message)
        return tuple(messages[max(0, len(messages) - limit) :])

    # --- the cache of finished tasks

    def _keep(self, key: Key, seen: View, head: Head) -> None:
        limits, finished = self._limits, self._finished
        size = head.size + 1024
        if not limits.cached_tasks or size > limits.cached_bytes // 16:
            return
        self.forget(key)
        finished[key] = (seen, size)
        self._finished_bytes += size
        while len(finished) > limits.cached_tasks or self._finished_bytes > limits.cached_bytes:
            _, (_, freed) = finished.popitem(last=False)
            self._finished_bytes -= freed

    def forget(self, key: Key) -> None:
        kept = self._finished.pop(key, None)
        if kept is not None:
            self._finished_bytes -= kept[1]

    def expire(self, before: int) -> None:
        """Drop cached tasks that ended before that time."""
        for key in [key for key, (seen, _) in self._finished.items() if seen.status_at < before]:
            self.forget(key)

    def forget_uids(self, uids: Sequence[str]) -> None:
        gone = set(uids)
        for key in [key for key, (seen, _) in self._finished.items() if seen.uid in gone]:
            self.forget(key)

    # --- appending

    def begin(self, uid: str, scope: Scope, guard: New) -> Live:
        """A task about to be created, pinned; it is found by others once its first append is committed."""
        live = Live(born(uid, scope, guard), Fold(guard.id, guard.context_id))
        live.pins = 1
        return live

    def append(
        self,
        live: Live,
        facts: tuple[AnyFact, ...],
        guard: New | Lifecycle | Turn,
        size: int,
        then: Callable[[], None] | None = None,
        hooks: tuple[Hook, ...] = (),
        failed: Callable[[BaseException], None] | None = None,
        *,
        settles: bool = False,
    ) -> asyncio.Future[Appended]:
        """Append; once committed, take the facts in, do what follows, and ring. Awaiting the future comes after that,
        and with `settles` after the task has settled (or everybody is to look again).

        Whoever awaits it may be cancelled (its client left): the append happens all the same, and what follows from it,
        or from its failure.
        """
        head = live.head
        answer: asyncio.Future[Appended] = asyncio.get_running_loop().create_future()
        append = Append(uid=head.uid, scope=head.scope, facts=facts, guard=guard, size=size, hooks=hooks)
        live.flights += 1
        if not head.seq:
            self._births[head.scope, head.id] = live
        self._store.write(append, partial(self._told, live, append, then, failed, answer, settles))
        return answer

    def _told(
        self,
        live: Live,
        append: Append,
        then: Callable[[], None] | None,
        failed: Callable[[BaseException], None] | None,
        answer: asyncio.Future[Appended],
        settles: bool,
        outcome: Appended | Exception,
    ) -> None:
        if not live.head.seq and self._births.get(key := (live.head.scope, live.head.id)) is live:
            del self._births[key]
        if isinstance(outcome, Appended):
            try:
                self._commit(live, append, outcome)
                if then is not None:
                    then()
            except Exception as error:  # the store has others to tell
                log.exception("what follows from a commit failed", extra={"a2a.task.id": live.head.id})
                outcome = error
        elif failed is not None:
            failed(outcome)
        live.flights -= 1
        if not live.flights:
            if live.landings:
                _release(live.landings)
            if not live.pins:
                self._leave(live)
        if answer.done():
            return
        if isinstance(outcome, Exception):
            answer.set_exception(outcome)
        elif settles and not live.head.settled and not self._woken:
            live.settlers.append(answer)
        else:
            answer.set_result(outcome)

    def _commit(self, live: Live, append: Append, done: Appended) -> None:
        head, facts, size = done.head, append.facts, append.size
        if live.head.seq == 0:
            self._enter(live)
        if done.first != live.head.seq + 1:  # somebody else wrote in between: what is cached has a hole
            live.entries, live.base, live.tail, live.fold = [], done.first - 1, 0, None
        live.head = head
        entries = list(map(Entry, count(done.first), facts))
        live.entries += entries
        fold = live.fold
        if fold is not None:
            for entry in entries:
                fold.apply(entry.seq, entry.fact)
        if head.queued:
            live.inbox += [entry for entry in entries if isinstance(entry.fact, Received) and entry.fact.answers < 0]
        live.tail += size
        live.span += len(facts)
        live.weight += size
        limits = self._limits
        if live.tail > limits.tail_bytes or len(live.entries) > limits.tail_facts:
            live.trim()
        if fold is not None and (live.span >= self._few or live.weight >= self._light):
            self._check(live, fold)
        if live.settlers and head.settled:
            _release(live.settlers)
        self._bus.ring(head.uid)

    def overtake(self, live: Live, head: Head) -> None:
        """Somebody else moved the task: nothing cached about it holds any more."""
        moved = head.seq > live.head.seq
        if not moved and head.version <= live.head.version:
            return
        live.head = head
        if moved:
            live.fold = None
            live.entries, live.base, live.tail = [], head.seq, 0
            if head.settled:
                _release(live.settlers)
            self._bus.ring(head.uid)

    def wake(self) -> None:
        """Let everybody who waits for a task to settle look again, now and from now on."""
        self._woken = True
        for live in self._by_key.values():
            _release(live.settlers)

    def _enter(self, live: Live) -> Live:
        self._by_key[live.head.scope, live.head.id] = live
        return live

    def _check(self, live: Live, fold: Fold) -> None:
        """Write a checkpoint when a span is full, or the task ended with more than a brief log since the last one.

        Nobody waits for it: it only saves folding. A brief log is folded as quickly as a snapshot is read.
        """
        head, limits = live.head, self._limits
        ended = head.terminal
        facts, weight = (limits.brief_facts, limits.brief_bytes) if ended else (limits.span_facts, limits.span_bytes)
        if live.span < facts and live.weight < weight:
            return
        if fold.whole and ended and head.size <= limits.whole_bytes:
            snapshot, segments = Snapshot(task=fold.task(), usage=fold.usage), ()
        else:
            snapshot, segments = fold.cut()
        live.span = live.weight = 0
        written = asyncio.ensure_future(
            self._store.checkpoint(
                Checkpoint(uid=head.uid, scope=head.scope, seq=fold.seq, snapshot=snapshot, segments=segments)
            )
        )
        written.add_done_callback(_noted)


def _show(live: Live, fold: Fold) -> View:
    """The fold as a view, made once however many ask between two facts."""
    if live.seen is None or live.seen.seq != fold.seq:
        live.seen = shown(live.head, fold)
    return live.seen


def _release(waiters: list[asyncio.Future[Any]]) -> None:
    for waiter in waiters:
        if not waiter.done():
            waiter.set_result(None)
    waiters.clear()


def _noted(future: "asyncio.Future[None]") -> None:
    """A checkpoint that failed is made up for by folding more; the error was logged by the store."""
    if not future.cancelled():
        future.exception()
