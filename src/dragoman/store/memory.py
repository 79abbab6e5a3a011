"""A store for tests and throw-away agents: the same contract, kept in dictionaries, gone with the process."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from copy import copy
from functools import partial
from heapq import nlargest, nsmallest
from itertools import accumulate
from typing import TypeVar

from dragoman.core.heads import admits, advance, born
from dragoman.core.notices import notices
from dragoman.model.errors import Conflict, KeyTaken, OverBudget, StoreFull
from dragoman.model.facts import Entry
from dragoman.model.tasks import EVERYONE, TERMINAL, Head, Scope
from dragoman.ports import (
    BOUNDLESS,
    Append,
    Appended,
    Checkpoint,
    Clock,
    Delivery,
    Hook,
    KeyRecord,
    Loaded,
    New,
    Outcome,
    Page,
    Query,
    Segment,
    Snapshot,
    Tally,
    Told,
    Turn,
)
from dragoman.store.holding import Holding
from dragoman.store.keys import written
from dragoman.store.leases import Leases, claimed, deadline, unattended
from dragoman.store.promises import keep
from dragoman.store.tallies import admit

T = TypeVar("T")

HOUR = 3_600_000


def _within(task: Scope, asked: Scope) -> bool:
    """Whether the task is meant by who asks for that scope."""
    return task == (asked._replace(owner=task.owner) if asked.owner == EVERYONE else asked)


class _Log:
    """One task: its head, all its facts, and where folding may start."""

    __slots__ = ("entries", "head", "segments", "sizes", "snapshot")

    def __init__(self, head: Head) -> None:
        self.head = head
        self.entries: list[Entry] = []
        self.sizes: list[int] = []
        self.snapshot: Snapshot | None = None
        self.segments: tuple[Segment, ...] = ()

    def loaded(self, artifacts: bool = True) -> Loaded:
        return Loaded(
            head=self.head,
            snapshot=self.snapshot,
            segments=self.segments if artifacts else (),
            entries=tuple(self.entries[self.head.checkpoint_seq :]),
        )


class MemoryStore:
    """`ports.Store` and `ports.Hooks` in memory.

    A new task evicts what finished longer than `ttl` ms ago, then, at the limit, what finished first, preferably of
    those whose end every webhook has heard. Tasks that run or wait for somebody are never evicted: when only those are
    left, a new task is refused with StoreFull. For one conversation too many, the oldest in which nothing goes on is
    forgotten: its tasks stay, but a later one of that context does not know them. `calm_interval` is how many ms lie
    between two pieces of calm news to one webhook.
    """

    def __init__(
        self,
        *,
        max_tasks: int = 1_000,
        max_contexts: int = 500,
        ttl: int = HOUR,
        lease_ttl: int = 30_000,
        calm_interval: int = 1_500,
        clock: Clock | None = None,
    ) -> None:
        self._max_tasks = max_tasks
        self._max_contexts = max_contexts
        self._ttl = ttl
        self._clock = clock
        self._leases = Leases(lease_ttl)
        self._holding = Holding(calm_interval)
        self._logs: dict[str, _Log] = {}
        self._ids: dict[tuple[Scope, str], str] = {}
        self._keys: dict[tuple[Scope, str], KeyRecord] = {}
        self._keys_of: dict[str, list[tuple[Scope, str]]] = {}
        self._contexts: dict[tuple[Scope, str], set[str]] = {}  # conversations, oldest first, with the tasks they know
        self._finished: dict[str, None] = {}  # in the order they finished
        self._tallies: dict[str, list[int]] = {}  # unfinished tasks and bytes of each owner

    async def open(self) -> None:
        pass

    async def close(self) -> None:
        pass

    def now(self) -> int:
        return self._clock.now() if self._clock else time.time_ns() // 1_000_000

    # --- writing ---

    def append(self, append: Append) -> Awaitable[Appended]:
        done: asyncio.Future[Appended] = asyncio.get_running_loop().create_future()
        self.write(append, partial(keep, done))
        return done

    def write(self, append: Append, told: Told) -> None:
        try:
            outcome = self._append(append)
        except (Conflict, KeyTaken, OverBudget, StoreFull) as error:
            outcome = error
        asyncio.get_running_loop().call_soon(told, outcome)

    def _append(self, append: Append) -> Appended:
        log = self._logs.get(append.uid)
        key = None if isinstance(append.guard, Turn) else append.guard.key
        if key and (taken := self._keys.get((append.scope, key.key))):
            raise KeyTaken(taken)
        if isinstance(append.guard, New):
            self._admit(append)
            log = self._begin(append, append.guard, log)
        elif log is None or log.head.scope != append.scope:
            raise Conflict
        elif not admits(log.head, append.guard, append.facts):
            raise Conflict(log.head)
        else:
            self._admit(append)
        if key:
            self._use(append, key)
        before = log.head
        log.head = head = advance(before, append.facts, append.size)
        log.entries.extend(map(Entry, range(before.seq + 1, head.seq + 1), append.facts))
        share = append.size // max(1, len(append.facts))
        log.sizes.extend(share for _ in append.facts)
        now = self.now()
        self._leases.follow(append.uid, append.facts, now)
        began = isinstance(append.guard, New)
        if head.state in TERMINAL:
            self._finished[append.uid] = None
            self._count(head.scope.owner, began - 1, append.size)
        else:
            self._count(head.scope.owner, began, append.size)
        for hook in append.hooks:
            self._holding.keep(head, hook, now)
        if self._holding.hooked(append.uid) and (news := notices(before.seq + 1, append.facts)):
            self._holding.tell(append.uid, news, now)
            self._holding.lanes.ring()
        return Appended(head, before.seq + 1)

    def _count(self, owner: str, tasks: int, size: int) -> None:
        has = self._tallies.get(owner)
        if has is None:
            has = self._tallies[owner] = [0, 0]
        has[0] += tasks
        has[1] += size
        if not (has[0] or has[1]):
            del self._tallies[owner]

    def _admit(self, append: Append) -> None:
        guard = append.guard
        if not isinstance(guard, Turn) and guard.most is not BOUNDLESS:
            admit(append, *self._tallies.get(append.scope.owner, (0, 0)))

    def _begin(self, append: Append, guard: New, log: _Log | None) -> _Log:
        scope, uid = append.scope, append.uid
        if other := self._ids.get((scope, guard.id)):
            raise Conflict(self._logs[other].head)
        if log is not None:
            raise Conflict
        self._make_room((scope, guard.context_id))
        log = self._logs[uid] = _Log(born(uid, scope, guard))
        self._ids[scope, guard.id] = uid
        self._contexts.setdefault((scope, guard.context_id), set()).add(uid)
        return log

    def _use(self, append: Append, key: KeyRecord) -> None:
        self._keys_of.setdefault(append.uid, []).append((append.scope, key.key))
        self._keys[append.scope, key.key] = written(key, append.uid, self.now())

    def _make_room(self, context: tuple[Scope, str]) -> None:
        self._evict(self._lapsed(self.now() - self._ttl))
        if len(self._logs) >= self._max_tasks:
            oldest = next((uid for uid in self._finished if not self._holding.waits(uid)), None)
            oldest = oldest or next(iter(self._finished), None)
            if oldest is None:
                raise StoreFull(f"All {self._max_tasks} tasks kept here are unfinished; finish or cancel one first")
            self._evict([oldest])
        if context not in self._contexts and len(self._contexts) >= self._max_contexts:
            over = next((c for c, uids in self._contexts.items() if self._finished.keys() >= uids), None)
            if over is not None:  # else each has a task that goes on, and those are counted already
                del self._contexts[over]

    def _lapsed(self, before: int) -> list[str]:
        lapsed: list[str] = []
        for uid in self._finished:
            if self._logs[uid].head.status_at >= before:
                break
            lapsed.append(uid)
        return lapsed

    def _evict(self, uids: Iterable[str]) -> None:
        for uid in uids:
            head = self._logs.pop(uid).head
            del self._ids[head.scope, head.id]
            del self._finished[uid]
            self._leases.forget(uid)
            self._holding.forget(uid)
            self._count(head.scope.owner, 0, -head.size)
            for key in self._keys_of.pop(uid, ()):
                del self._keys[key]
            context = (head.scope, head.context_id)
            known = self._contexts.get(context, set())
            known.discard(uid)
            if not known:
                self._contexts.pop(context, None)

    async def checkpoint(self, checkpoint: Checkpoint) -> None:
        log = self._owned(checkpoint.scope, checkpoint.uid)
        if log is None or not log.head.checkpoint_seq < checkpoint.seq <= log.head.seq:
            return
        segments = log.segments
        for segment in checkpoint.segments:
            if segment.replace:
                segments = tuple(s for s in segments if s.artifact.artifact_id != segment.artifact.artifact_id)
            segments = (*segments, segment)
        log.segments = segments
        log.snapshot = checkpoint.snapshot
        log.head = copy(log.head)
        log.head.checkpoint_seq = checkpoint.seq

    async def keep_key(self, scope: Scope, record: KeyRecord) -> None:
        if taken := self._keys.get((scope, record.key)):
            raise KeyTaken(taken)
        self._keys[scope, record.key] = written(record, record.uid, self.now())

    async def sweep(self, *, terminal_before: int, limit: int = 500) -> Sequence[str]:
        lapsed = self._lapsed(max(terminal_before, self.now() - self._ttl))[:limit]
        self._evict(lapsed)
        for key, record in list(self._keys.items()):
            if not record.uid and record.at < terminal_before:
                del self._keys[key]
        return lapsed

    # --- reading ---

    def _owned(self, scope: Scope, uid: str) -> _Log | None:
        log = self._logs.get(uid)
        return log if log is not None and log.head.scope == scope else None

    async def find(self, scope: Scope, id: str) -> Head | None:
        if scope.owner == EVERYONE:
            named = [log.head for log in self._logs.values() if log.head.id == id and _within(log.head.scope, scope)]
            return max(named, key=lambda head: head.uid, default=None)
        uid = self._ids.get((scope, id))
        return self._logs[uid].head if uid else None

    async def head(self, scope: Scope, uid: str) -> Head | None:
        log = self._owned(scope, uid)
        return log.head if log else None

    async def load(self, scope: Scope, uid: str) -> Loaded | None:
        log = self._owned(scope, uid)
        return log.loaded() if log else None

    async def since(
        self, scope: Scope, uid: str, after: int, limit: int = 256, max_bytes: int = 262_144
    ) -> Sequence[Entry]:
        log = self._owned(scope, uid)
        if log is None:
            return ()
        after = max(0, after)
        end = min(after + limit, len(log.entries))
        if end - after > 1:
            room = max_bytes
            for at in range(after, end):
                room -= log.sizes[at]
                if room <= 0:
                    end = at + 1
                    break
        return log.entries[after:end]

    async def list(self, scope: Scope, query: Query) -> Page:
        # Filters that hold for every page first: they make the total.
        known = self._contexts.get((scope, query.context_id), ()) if query.known else None
        logs = [
            log
            for log in self._logs.values()
            if _within(log.head.scope, scope)
            and (not query.context_id or log.head.context_id == query.context_id)
            and (known is None or log.head.uid in known)
            and (query.state is None or log.head.state is query.state)
            and log.head.status_at >= query.since
        ]
        before = query.before
        rest = [log for log in logs if before is None or _rank(log) < before]
        page = nlargest(query.limit + 1, rest, key=_rank)
        some = page[: query.limit]
        if query.max_bytes:
            weights = accumulate(log.head.size for log in some)
            some = some[: next((count for count, so_far in enumerate(weights, 1) if so_far >= query.max_bytes), None)]
        return Page(
            items=tuple(log.loaded(query.artifacts) for log in some), total=len(logs), more=len(page) > len(some)
        )

    async def key(self, scope: Scope, key: str) -> KeyRecord | None:
        return self._keys.get((scope, key))

    async def tally(self, owner: str) -> Tally:
        return Tally(*self._tallies.get(owner, (0, 0)))

    # --- claims ---

    async def claim(self, scope: Scope, uid: str, replica: str, ttl: int) -> int | None:
        now = self.now()
        log = self._owned(scope, uid)
        if log is None or log.head.terminal or self._leases.held(uid, now):
            return None
        log.head = claimed(log.head)
        self._leases.take(uid, replica, now + ttl)
        return log.head.epoch

    async def heartbeat(self, replica: str, uids: Sequence[str], ttl: int) -> Sequence[str]:
        return self._leases.prolong(replica, uids, self.now() + ttl)

    async def release(self, replica: str, uids: Sequence[str]) -> None:
        self._leases.release(replica, uids)

    async def claimable(self, limit: int) -> Sequence[Head]:
        now = self.now()
        heads = (log.head for log in self._logs.values())
        free = (head for head in heads if unattended(head) and not self._leases.held(head.uid, now))
        return nsmallest(limit, free, key=lambda head: (head.created_at, head.uid))

    async def due(self, limit: int) -> Sequence[Head]:
        now = self.now()
        heads = (log.head for log in self._logs.values())
        over = (head for head in heads if 0 < deadline(head) <= now)
        return nsmallest(limit, over, key=deadline)

    async def recover(self) -> None:
        self._leases.clear()

    # --- webhooks

    def keep_hook(self, hook: Hook) -> Awaitable[Hook]:
        log = self._owned(hook.scope, hook.uid)
        if log is None:
            return _done(Conflict())
        end = log.entries[-1].fact if log.head.terminal else None
        kept = self._holding.keep(log.head, hook, self.now(), end)
        self._holding.lanes.ring()
        return _done(kept)

    async def hook(self, scope: Scope, uid: str, id: str) -> Hook | None:
        return self._holding.hook(scope, uid, id)

    async def hooks(self, scope: Scope, uid: str = "") -> Sequence[Hook]:
        return self._holding.hooks(scope, uid)

    async def count_hooks(self, owner: str, most: int) -> int:
        return min(most, self._holding.count(owner))

    def drop_hook(self, scope: Scope, uid: str, id: str) -> Awaitable[bool]:
        return _done(self._holding.drop(scope, uid, id))

    async def due_deliveries(self, limit: int, *, busy: Collection[str] = (), share: int = 32) -> Sequence[Delivery]:
        return self._holding.due(self.now(), limit, busy, share)

    def put_back(self, ids: Sequence[str]) -> None:
        self._holding.put_back(ids)

    async def next_delivery_at(self, *, busy: Collection[str] = ()) -> int:
        return self._holding.lanes.next_at(self.now(), busy)

    def record(self, outcomes: Sequence[Outcome]) -> Awaitable[None]:
        self._holding.record(outcomes, self.now())
        self._holding.lanes.ring()
        return _done(None)

    async def dead_deliveries(self, limit: int = 100, before: str = "") -> Sequence[Delivery]:
        return self._holding.dead(limit, before)

    async def delivery(self, id: str) -> Delivery | None:
        return self._holding.delivery(id)

    def resend(self, id: str) -> Awaitable[bool]:
        found = self._holding.resend(id, self.now())
        self._holding.lanes.ring()
        return _done(found)

    def listen_deliveries(self, wake: Callable[[], None]) -> Callable[[], None]:
        return self._holding.lanes.listen(wake)


def _done(answer: T | Exception) -> "asyncio.Future[T]":
    done: asyncio.Future[T] = asyncio.get_running_loop().create_future()
    keep(done, answer)
    return done


def _rank(log: _Log) -> tuple[int, str]:
    return (log.head.status_at, log.head.uid)
