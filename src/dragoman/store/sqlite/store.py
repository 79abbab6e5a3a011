"""`ports.Store` on one SQLite file."""

import asyncio
import sqlite3
import time
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from sqlite3 import Connection
from typing import Any, NamedTuple, TypeVar

from msgspec.structs import replace

from dragoman.model.errors import Conflict, OutcomeUnknown, StoreError, StoreFull
from dragoman.model.facts import Entry
from dragoman.model.tasks import Head, Scope
from dragoman.ports import (
    Append,
    Appended,
    Checkpoint,
    Clock,
    Delivery,
    Hook,
    KeyRecord,
    Loaded,
    Outcome,
    Page,
    Query,
    Tally,
    Told,
)
from dragoman.store.lanes import Lanes, Taken
from dragoman.store.leases import Leases
from dragoman.store.promises import keep
from dragoman.store.sqlite import hooks, reading
from dragoman.store.sqlite.group import Claim, Group, Keep, Waiting, Webhooks, Wish
from dragoman.store.sqlite.outbox import DropHook, KeepHook, Numbers, Record, Resend
from dragoman.store.sqlite.ownership import Ownership
from dragoman.store.sqlite.recent import STRETCH, Committed, Heads, Stretches
from dragoman.store.sqlite.statements import SQL
from dragoman.store.sqlite.sweep import bury, dig
from dragoman.store.sqlite.writer import Clash, Pen, Synchronous, Work, Writer

T = TypeVar("T")

# UPDATE … FROM came with 3.33, RETURNING with 3.35; both are older than any supported Python's own copy.
_OLDEST = (3, 35, 0)

# What one transaction takes at most, so that deciding it never holds the loop for more than a few milliseconds.
_GROUP_WISHES = 512
_GROUP_BYTES = 4_194_304


# Up to here a log is read on the loop: it takes less than handing it to a reader's thread and back would.
_QUICK_FACTS = 256
_QUICK_BYTES = 65_536


def _quick(head: Head) -> bool:
    return head.seq <= _QUICK_FACTS and head.size <= _QUICK_BYTES


class _Job(NamedTuple):
    """Work that has the writer for itself. `settle` hears its result before anything else is decided."""

    work: Work[Any]
    settle: Callable[[Any], None]
    told: Callable[[Any], None]


class SqliteStore:
    """`ports.Store` and `ports.Hooks`: durable, in one file, for one process.

    `synchronous="FULL"` also survives power loss; "NORMAL" survives every crash of the process. `max_bytes` bounds the
    file, keeping some of it for facts that end tasks; 0 leaves it to the disk. `recent_bytes` bounds the stretches of
    logs kept in memory for readers who come one after the other. `calm_interval` is how many ms lie between two pieces
    of calm news to one webhook.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        synchronous: Synchronous = "NORMAL",
        max_bytes: int = 0,
        recent_tasks: int = 8_192,
        recent_bytes: int = 8 * 1_048_576,
        lease_ttl: int = 30_000,
        calm_interval: int = 1_500,
        clock: Clock | None = None,
    ) -> None:
        self._path = Path(path)
        self._synchronous: Synchronous = synchronous
        self._max_bytes = max_bytes
        self._clock = clock
        self._ownership = Ownership(self._path)
        self._heads = Heads(recent_tasks)
        self._stretches = Stretches(recent_bytes)
        self._leases = Leases(lease_ttl)
        self._calm_interval = calm_interval
        self._lanes = Lanes(lambda lane, count: self._committed.look(lambda open: hooks.peek(open, lane, count)))
        self._queue: deque[Waiting | _Job] = deque()
        self._alone: deque[Waiting] = deque()  # of groups that failed: decided again, one at a time
        self._scheduled = self._busy = self._open = False
        self._idle: asyncio.Future[None] | None = None
        self._next_n = 1

    # --- life ---

    async def open(self) -> None:
        """Take the file, bring it up to date. Raises StoreError with the reason when it cannot be used."""
        if sqlite3.sqlite_version_info < _OLDEST:
            raise StoreError("This Python's SQLite is too old; 3.35 or newer is needed")
        try:
            self._ownership.take()
        except OSError:
            raise StoreError("The store's file cannot be opened; does its directory exist, and may we write?") from None
        self._loop = asyncio.get_running_loop()
        self._writer = Writer(self._path, self._synchronous, self._max_bytes)
        try:
            await self._writer.start()
        except BaseException:
            self._ownership.give_up()
            raise
        self._committed = Committed(self._connect(), self._heads)
        self._spare: list[Connection] = []
        self._pool = ThreadPoolExecutor(2, thread_name_prefix="store-reader")
        self._next_n = 1 + self._committed.look(lambda connection: connection.execute(SQL["last_number"]).fetchone()[0])
        numbers = Numbers(self._committed.look(lambda connection: connection.execute(SQL["last_hook"]).fetchone()[0]))
        self._webhooks = Webhooks(numbers, self._lanes.under_way, self._calm_interval)
        for lane, due in self._committed.look(hooks.lanes):
            self._lanes.queue(lane, due)
        self._open = True

    async def close(self) -> None:
        """Write what waits, then let the file go."""
        if not self._open:
            return
        self._open = False
        if self._busy or self._queue or self._alone:
            self._idle = self._loop.create_future()
            await self._idle
        await self._loop.run_in_executor(None, self._pool.shutdown)
        for connection in (self._committed, *self._spare):
            connection.close()
        await self._writer.stop()
        self._ownership.give_up()

    def _connect(self) -> Connection:
        connection = sqlite3.connect(self._path, isolation_level=None, check_same_thread=False)
        connection.execute("PRAGMA query_only = ON")
        return connection

    def now(self) -> int:
        return self._clock.now() if self._clock else time.time_ns() // 1_000_000

    # --- writing ---

    def append(self, append: Append) -> Awaitable[Appended]:
        return self._wish(append)

    def write(self, append: Append, told: Told) -> None:
        self._enqueue(Waiting(append, told))

    def checkpoint(self, checkpoint: Checkpoint) -> Awaitable[None]:
        return self._wish(checkpoint)

    async def keep_key(self, scope: Scope, record: KeyRecord) -> None:
        await self._wish(Keep(scope, record))

    def _wish(self, wish: Wish) -> "asyncio.Future[Any]":
        done: asyncio.Future[Any] = self._loop.create_future()
        self._enqueue(Waiting(wish, partial(keep, done)))
        return done

    async def _job(self, work: Work[T], settle: Callable[[T], None] = lambda _: None) -> T:
        done: asyncio.Future[T] = self._loop.create_future()
        self._enqueue(_Job(work, settle, partial(keep, done)))
        return await done

    def _enqueue(self, item: "Waiting | _Job") -> None:
        if not self._open:
            self._loop.call_soon(item.told, StoreError("The store is closed"))
            return
        self._queue.append(item)
        if not self._busy and not self._scheduled:
            # At the end of this tick, so that everybody who appends in it shares the transaction.
            self._scheduled = True
            self._loop.call_soon(self._launch)

    def _launch(self) -> None:
        """Give the writer its next work, if it is free and there is any."""
        self._scheduled = False
        while not self._busy and (self._alone or self._queue):
            if not self._alone and isinstance(job := self._queue[0], _Job):
                self._queue.popleft()
                self._busy = True
                self._run(job)
                break
            group = self._group()
            try:
                statements = group.statements()
            except Exception as error:
                self._refuse(group, error)
                continue
            if statements:
                self._busy = True
                self._write(group, statements, headroom=False)
            else:
                self._queue_deliveries(group)
                group.answer()
        if not self._busy and self._idle is not None and not self._idle.done():
            self._idle.set_result(None)

    def _group(self) -> Group:
        """Decide what waits up to the next job, or one of those that are to be decided alone."""
        if self._alone:
            group = Group(self._committed, self._webhooks, self._next_n, self.now(), careful=True)
            group.take(self._alone.popleft())
            return group
        group = Group(self._committed, self._webhooks, self._next_n, self.now())
        queue = self._queue
        while queue and len(group.waiting) < _GROUP_WISHES and group.size < _GROUP_BYTES:
            waiting = queue[0]
            if isinstance(waiting, _Job):
                break
            group.take(waiting)
            queue.popleft()
        return group

    def _write(self, group: Group, statements: list[tuple[str, Sequence[Any]]], headroom: bool) -> None:
        def written(_: None, error: BaseException | None) -> None:
            if error is None:
                self._wrote(group)
            elif isinstance(error, StoreFull) and len(group.waiting) == 1 and group.vital and not headroom:
                self._write(group, statements, headroom=True)
            else:
                self._failed(group, error)

        self._writer.submit(partial(Pen.write, statements=statements, headroom=headroom), written)

    def _wrote(self, group: Group) -> None:
        now = self.now()
        self._next_n = group.next_n
        for uid, task in group.heads.items():
            self._heads.keep(uid, task)
        for uid, facts in group.extensions:
            self._leases.follow(uid, facts, now)
        self._committed.tallies.move(group.counts)
        self._queue_deliveries(group)
        self._busy = False
        self._launch()
        group.answer()

    def _failed(self, group: Group, error: BaseException) -> None:
        self._busy = False
        self._heads.forget(group.heads)
        if isinstance(error, OutcomeUnknown):
            # All of it may be in the file: numbers it took are taken, and what it put in line is looked for.
            self._next_n = group.next_n
            self._committed.tallies.clear()
            self._queue_deliveries(group)
        self._refuse(group, error)
        self._launch()

    def _refuse(self, group: Group, error: BaseException) -> None:
        """Tell everybody. If nothing was written and one of several may be to blame, each is tried alone instead."""
        if isinstance(error, OutcomeUnknown):
            group.refuse(error)
        elif len(group.waiting) > 1:
            self._alone.extend(group.waiting)
        elif isinstance(error, Clash):
            group.refuse(Conflict())
        elif isinstance(error, StoreError):
            group.refuse(error)
        else:
            group.refuse(StoreError("The store could not write this; nothing was changed"))

    def _run(self, job: _Job) -> None:
        def ran(result: Any, error: BaseException | None) -> None:
            self._busy = False
            if error is None:
                job.settle(result)
            job.told(result if error is None else error)
            self._launch()

        self._writer.submit(job.work, ran)

    # --- reading ---

    async def find(self, scope: Scope, id: str) -> Head | None:
        task = self._committed.named(scope, id)
        return task.head if task else None

    async def head(self, scope: Scope, uid: str) -> Head | None:
        task = self._committed.task(scope, uid)
        return task.head if task else None

    async def load(self, scope: Scope, uid: str) -> Loaded | None:
        task = self._committed.task(scope, uid)
        if task is None:
            return None
        if _quick(task.head):
            return self._committed.look(lambda connection: reading.load(connection, scope, uid))
        return await self._read(lambda connection: reading.load(connection, scope, uid))

    async def since(
        self, scope: Scope, uid: str, after: int, limit: int = 256, max_bytes: int = 262_144
    ) -> Sequence[Entry]:
        task = self._committed.task(scope, uid)
        after = max(0, after)
        if task is None or after >= task.head.seq:
            return ()
        head = task.head
        if entries := self._stretches.since(head, after, limit):
            return entries
        number, skip = divmod(after, STRETCH)
        start = after - skip

        def read(connection: Connection) -> list[Entry]:
            return reading.since(connection, scope, uid, start, STRETCH, max_bytes)

        stretch = self._committed.look(read) if _quick(head) else await self._read(read)
        self._stretches.keep(head, number, stretch)
        if skip < len(stretch):
            return stretch[skip : skip + limit]
        # So large that the bytes ran out before the cursor was reached.
        return await self._read(lambda connection: reading.since(connection, scope, uid, after, limit, max_bytes))

    async def list(self, scope: Scope, query: Query) -> Page:
        return await self._read(lambda connection: reading.page(connection, scope, query))

    async def tally(self, owner: str) -> Tally:
        # Not kept: a group may be in the file already whose answer has not come yet, and would be counted twice.
        known = self._committed.tallies.get(owner)
        return Tally(*known) if known else self._committed.look(lambda connection: reading.tally(connection, owner))

    async def key(self, scope: Scope, key: str) -> KeyRecord | None:
        return self._committed.key(scope, key)

    async def _read(self, read: Callable[[Connection], T]) -> T:
        """On a reader's thread: for what may take longer than the loop should wait."""

        def run() -> T:
            connection = self._spare.pop() if self._spare else self._connect()
            try:
                return read(connection)
            except sqlite3.Error as error:
                raise StoreError("The store could not be read") from error
            finally:
                self._spare.append(connection)

        return await self._loop.run_in_executor(self._pool, run)

    # --- claims ---

    async def claim(self, scope: Scope, uid: str, replica: str, ttl: int) -> int | None:
        now = self.now()
        task = self._committed.task(scope, uid)
        if task is None or task.head.terminal or self._leases.held(uid, now):
            return None
        # Taken before it is written, so that of several who ask at once only one is let through.
        self._leases.take(uid, replica, now + ttl)
        epoch: int | None = None
        try:
            epoch = await self._wish(Claim(scope, uid))
        finally:
            if epoch is None:
                self._leases.release(replica, [uid])
        return epoch

    async def heartbeat(self, replica: str, uids: Sequence[str], ttl: int) -> Sequence[str]:
        return self._leases.prolong(replica, uids, self.now() + ttl)

    async def release(self, replica: str, uids: Sequence[str]) -> None:
        self._leases.release(replica, uids)

    async def claimable(self, limit: int) -> Sequence[Head]:
        now = self.now()
        held = self._leases.all(now)

        def read(connection: Connection) -> list[Head]:
            free: list[Head] = []
            for head in reading.heads(connection, "unattended"):
                if head.uid not in held:
                    free.append(head)
                    if len(free) >= limit:
                        break
            return free

        return await self._read(read)

    async def due(self, limit: int) -> Sequence[Head]:
        now = self.now()
        # Asked every second; the index holds only what has a deadline.
        return self._committed.look(lambda connection: list(reading.heads(connection, "due", (now, limit))))

    # --- housekeeping ---

    async def sweep(self, *, terminal_before: int, limit: int = 500) -> Sequence[str]:
        uids = await self._job(lambda pen: bury(pen, terminal_before, limit), self._forget)
        while await self._job(dig):
            pass
        return uids

    def _forget(self, uids: Sequence[str]) -> None:
        self._heads.forget(uids)
        self._stretches.forget(uids)
        self._committed.tallies.clear()
        for uid in uids:
            self._leases.forget(uid)

    async def recover(self) -> None:
        self._leases.clear()

    # --- webhooks ---

    def keep_hook(self, hook: Hook) -> Awaitable[Hook]:
        return self._wish(KeepHook(hook))

    async def hook(self, scope: Scope, uid: str, id: str) -> Hook | None:
        return self._committed.look(lambda connection: hooks.hook(connection, scope, uid, id))

    async def hooks(self, scope: Scope, uid: str = "") -> Sequence[Hook]:
        if uid:
            return self._committed.look(lambda connection: hooks.hooks(connection, scope, uid))
        return await self._read(lambda connection: hooks.hooks(connection, scope, uid))

    async def count_hooks(self, owner: str, most: int) -> int:
        return self._committed.look(lambda connection: hooks.count(connection, owner, most))

    def drop_hook(self, scope: Scope, uid: str, id: str) -> Awaitable[bool]:
        return self._wish(DropHook(scope, uid, id))

    async def due_deliveries(self, limit: int, *, busy: Collection[str] = (), share: int = 32) -> Sequence[Delivery]:
        taken = dict(self._lanes.take(self.now(), limit, busy, share))
        if not taken:
            return ()
        found: list[Delivery] = []
        for hook, calm, delivery in self._committed.look(lambda connection: hooks.first_deliveries(connection, taken)):
            self._lanes.send(delivery.id, Taken(hook, taken.pop(hook), calm))
            found.append(delivery)
        for hook, lane in taken.items():  # dropped by the writer in this moment
            self._lanes.miss(lane, hook)
        return found

    def put_back(self, ids: Sequence[str]) -> None:
        freed = self._lanes.release(ids)
        for lane, due in self._committed.look(lambda connection: hooks.places(connection, freed)):
            self._lanes.queue(lane, due)

    async def next_delivery_at(self, *, busy: Collection[str] = ()) -> int:
        return self._lanes.next_at(self.now(), busy)

    def record(self, outcomes: Sequence[Outcome]) -> Awaitable[None]:
        under_way = self._lanes.under_way
        taken = {outcome.id: under_way[outcome.id] for outcome in outcomes if outcome.id in under_way}
        written = self._wish(Record(outcomes, taken))
        return self._loop.create_task(self._recorded(written, outcomes, taken))

    async def _recorded(
        self, written: "asyncio.Future[None]", outcomes: Sequence[Outcome], taken: dict[str, Taken]
    ) -> None:
        try:
            await written
        except StoreFull:
            # What was made of the news can be made again; what became of them is known only here.
            await self._wish(Record([replace(each, body=b"", media_type="") for each in outcomes], taken))

    async def dead_deliveries(self, limit: int = 100, before: str = "") -> Sequence[Delivery]:
        return await self._read(lambda connection: hooks.dead_deliveries(connection, limit, before))

    async def delivery(self, id: str) -> Delivery | None:
        return await self._read(lambda connection: hooks.delivery(connection, id))

    def resend(self, id: str) -> Awaitable[bool]:
        return self._wish(Resend(id))

    def listen_deliveries(self, wake: Callable[[], None]) -> Callable[[], None]:
        return self._lanes.listen(wake)

    def _queue_deliveries(self, group: Group) -> None:
        """What a group has put in line or tried is committed."""
        if group.outbox is not None:
            self._lanes.release(group.outbox.recorded)
            for lane, due in group.outbox.waiting():
                self._lanes.queue(lane, due)
            self._lanes.ring()
