"""The thread that owns the writing connection. It executes what the loop decided, one piece of work at a time."""

import asyncio
import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from queue import SimpleQueue
from sqlite3 import Connection
from threading import Thread
from typing import Any, Literal, TypeVar

from dragoman.model.errors import OutcomeUnknown, StoreError, StoreFull
from dragoman.store.sqlite.backfill import Backfill
from dragoman.store.sqlite.schema import migrate

T = TypeVar("T")

Synchronous = Literal["NORMAL", "FULL"]
Work = Callable[["Pen"], T]
Done = Callable[[Any, BaseException | None], None]

# Roughly how many pages of 4 KiB are in the write-ahead log before they are moved into the file beside the writer, and
# exactly how many before the writer itself stops to move them: 16 and 128 MiB, so that the fsyncs this costs are rare.
# Everybody waits for the writer's own, some 15 ms: with half as many pages they were a hundredth of a busy second.
_MOVE_PAGES = 4_000
_STOP_PAGES = 32_000

# Room that only facts which end a task may use, when the file is full for everything else.
_HEADROOM_PAGES = 256


class Clash(Exception):
    """A unique index objected: an id or key of this group is taken. Nothing was written."""


class Pen:
    """The writing connection and what may go wrong with it."""

    def __init__(self, path: Path, synchronous: Synchronous, max_bytes: int) -> None:
        self.connection = sqlite3.connect(path, isolation_level=None, cached_statements=256)
        try:
            self._prepare(self.connection, synchronous, max_bytes)
        except BaseException:
            self.connection.close()
            raise

    def _prepare(self, connection: Connection, synchronous: Synchronous, max_bytes: int) -> None:
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
        (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
        if mode != "wal":
            raise StoreError("The place of the store's file does not support shared memory; choose a local disk")
        connection.execute("PRAGMA synchronous = " + synchronous)
        connection.execute(f"PRAGMA wal_autocheckpoint = {_STOP_PAGES}")
        connection.execute("PRAGMA cache_size = -8000")
        migrate(connection)
        (page,) = connection.execute("PRAGMA page_size").fetchone()
        self._durable = synchronous == "FULL"
        self.unmoved = 0
        self._pages = max_bytes // page
        self._limit(0)

    def _limit(self, extra: int) -> None:
        if self._pages:
            headroom = min(_HEADROOM_PAGES, self._pages // 4)
            self.connection.execute(f"PRAGMA max_page_count = {self._pages - headroom + extra * headroom}")

    def write(self, statements: Sequence[tuple[str, Sequence[Any]]], headroom: bool = False) -> None:
        """One transaction. Raises Clash or StoreFull when nothing was written, OutcomeUnknown when nobody knows."""
        if headroom:
            self._limit(1)
        try:
            self._transaction(statements)
        finally:
            if headroom:
                self._limit(0)

    def _transaction(self, statements: Sequence[tuple[str, Sequence[Any]]]) -> None:
        execute = self.connection.execute
        try:
            execute("BEGIN IMMEDIATE")
            for sql, values in statements:
                execute(sql, values)
        except BaseException as error:
            # Also text that SQLite cannot take; whatever it is, the transaction must not stay open.
            self._roll_back()
            raise _refusal(error) from error
        try:
            execute("COMMIT")
        except sqlite3.Error as error:
            self._roll_back()
            raise self._verdict(error) from error
        # A row has about six values and dirties about a page.
        self.unmoved += 2 + sum(len(values) for _, values in statements) // 6

    def _roll_back(self) -> None:
        # Some errors end the transaction by themselves.
        if self.connection.in_transaction:
            self.connection.execute("ROLLBACK")

    def _verdict(self, error: sqlite3.Error) -> StoreError:
        """Whether a commit that failed left nothing behind.

        A full disk stops the write of the frame that would have made it a commit, so nothing happened; with FULL, what
        stopped may have been the padding after that frame, which a crash would bring back. Moving the whole
        write-ahead log into the file and truncating it removes the doubt, if it succeeds.
        """
        if _code(error) != sqlite3.SQLITE_FULL:
            return OutcomeUnknown("The store could not finish writing; look before trying again")
        if self._durable:
            try:
                (busy, _, _) = self.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            except sqlite3.Error:
                busy = 1
            if busy:
                return OutcomeUnknown("The disk is full; look before trying again")
        return _full()

    def close(self) -> None:
        self.connection.close()


def _full() -> StoreFull:
    return StoreFull("The store is full; delete tasks or give it more room")


def _code(error: sqlite3.Error) -> int:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


def _refusal(error: BaseException) -> Exception:
    code = _code(error) if isinstance(error, sqlite3.Error) else 0
    if code == sqlite3.SQLITE_CONSTRAINT:
        return Clash()
    if code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_TOOBIG):
        return _full()
    return StoreError("The store could not write; nothing was changed")


def _unusable(error: sqlite3.Error) -> StoreError:
    """Why a file could not be opened, as the operator needs to hear it."""
    code = _code(error)
    if code in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT):
        return StoreError("The store's file is damaged or no database; restore it or choose another file")
    if code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR):
        return StoreError("The disk of the store's file is full or failing; free some room and start again")
    return StoreError("The store's file cannot be opened; may this user read and write it and its directory?")


class Writer:
    """Runs work on the pen, in order, and reports each outcome to the loop with one call."""

    def __init__(self, path: Path, synchronous: Synchronous, max_bytes: int) -> None:
        self._loop = asyncio.get_running_loop()
        self._work: SimpleQueue[tuple[Work[Any], Done] | None] = SimpleQueue()
        self._thread = Thread(target=self._run, args=(path, synchronous, max_bytes), name="store-writer", daemon=True)
        self._ready: asyncio.Future[None] = self._loop.create_future()

    async def start(self) -> None:
        """Open the file. Raises StoreError when it cannot be used."""
        self._thread.start()
        await self._ready

    def submit(self, work: Work[Any], done: Done) -> None:
        self._work.put((work, done))

    async def stop(self) -> None:
        """After what was submitted."""
        self._work.put(None)
        await self._loop.run_in_executor(None, self._thread.join)

    def _run(self, path: Path, synchronous: Synchronous, max_bytes: int) -> None:
        try:
            pen = Pen(path, synchronous, max_bytes)
        except sqlite3.Error as error:
            self._tell(self._opened, None, _unusable(error))
            return
        except BaseException as error:
            self._tell(self._opened, None, error)
            return
        self._tell(self._opened, None, None)
        backfill = Backfill(path)
        try:
            while item := self._work.get():
                work, done = item
                try:
                    result = work(pen)
                except BaseException as error:
                    self._tell(done, None, error)
                else:
                    self._tell(done, result, None)
                if pen.unmoved >= _MOVE_PAGES:
                    pen.unmoved = 0
                    backfill.nudge()
        finally:
            backfill.stop()
            pen.close()

    def _tell(self, done: Done, result: Any, error: BaseException | None) -> None:
        try:
            self._loop.call_soon_threadsafe(done, result, error)
        except RuntimeError:
            # The loop ended without closing the store: what was acknowledged is kept, nobody waits for the rest.
            self._work.put(None)

    def _opened(self, _: None, error: BaseException | None) -> None:
        if self._ready.done():
            return
        if error is None:
            self._ready.set_result(None)
        else:
            self._ready.set_exception(error)
