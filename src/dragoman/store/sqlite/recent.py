"""What was just written or read, kept in memory: heads, and stretches of logs that several readers go through.

It is right because the file has one owner: every head that changes passes here first, and a stretch is kept only when
nothing can be added to it any more.
"""

import sqlite3
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from sqlite3 import Connection
from typing import TypeVar

from dragoman.model.errors import StoreError
from dragoman.model.facts import Entry
from dragoman.model.tasks import TERMINAL, Head, Scope
from dragoman.ports import KeyRecord
from dragoman.store.sqlite import reading
from dragoman.store.sqlite.reading import Known

T = TypeVar("T")

# Logs are read in stretches of so many facts, so that readers with different cursors share them.
STRETCH = 256

# The states a task ends in, as the tables spell them.
FINISHED = frozenset(reading.STATES[state] for state in TERMINAL)

# What a decoded fact weighs, roughly: objects, its number, the frames encoded from it. Its own bytes come on top.
_WEIGHT = 700


class Heads:
    """The heads of the tasks used last."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._heads: OrderedDict[str, Known] = OrderedDict()

    def get(self, scope: Scope, uid: str) -> Known | None:
        task = self._heads.get(uid)
        return task if task is not None and task.head.scope == scope else None

    def keep(self, uid: str, task: Known) -> None:
        self._heads[uid] = task
        self._heads.move_to_end(uid)
        if len(self._heads) > self._limit:
            self._heads.popitem(last=False)

    def forget(self, uids: Iterable[str]) -> None:
        for uid in uids:
            self._heads.pop(uid, None)


class Tallies:
    """What the owners that came last have: read once, then moved by what is written."""

    def __init__(self, limit: int = 4_096) -> None:
        self._limit = limit
        self._tallies: OrderedDict[str, list[int]] = OrderedDict()

    def get(self, owner: str) -> list[int] | None:
        return self._tallies.get(owner)

    def keep(self, owner: str, tally: list[int]) -> None:
        self._tallies[owner] = tally
        if len(self._tallies) > self._limit:
            self._tallies.popitem(last=False)

    def move(self, counts: Mapping[tuple[Scope, str], Sequence[int]]) -> None:
        """So many tasks of each state and so many bytes more were written."""
        for (scope, state), (tasks, size) in counts.items():
            known = self._tallies.get(scope.owner)
            if known is not None:
                known[1] += size
                if state not in FINISHED:
                    known[0] += tasks

    def clear(self) -> None:
        self._tallies.clear()


class Committed:
    """What is in the file, asked one row at a time: from memory, or at once over a connection that only reads.

    Whoever decides on the loop asks here; what takes longer than handing it to a thread belongs to a reader's thread.
    """

    def __init__(self, connection: Connection, heads: Heads) -> None:
        self._connection = connection
        self._heads = heads
        self.tallies = Tallies()

    def close(self) -> None:
        self._connection.close()

    def task(self, scope: Scope, uid: str) -> Known | None:
        task = self._heads.get(scope, uid)
        if task is None and (task := self.look(lambda connection: reading.by_uid(connection, scope, uid))):
            self._heads.keep(uid, task)
        return task

    def named(self, scope: Scope, id: str) -> Known | None:
        task = self._heads.get(scope, id)
        if task is not None and task.head.id == id:
            return task
        return self.look(lambda connection: reading.by_id(connection, scope, id))

    def tally(self, owner: str) -> list[int]:
        """Unfinished tasks and bytes. Ask only when nothing is being written: what is read is kept."""
        tally = self.tallies.get(owner)
        if tally is None:
            tally = [*self.look(lambda connection: reading.tally(connection, owner))]
            self.tallies.keep(owner, tally)
        return tally

    def key(self, scope: Scope, key: str) -> KeyRecord | None:
        return self.look(lambda connection: reading.key(connection, scope, key))

    def look(self, read: Callable[[Connection], T]) -> T:
        """Raises StoreError."""
        try:
            return read(self._connection)
        except sqlite3.Error as error:
            raise StoreError("The store could not be read") from error


class Stretches:
    """Stretches of logs that somebody read from the file. The next reader gets the same entries, frames and all."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._bytes = 0
        self._kept: OrderedDict[tuple[str, int], tuple[list[Entry], int]] = OrderedDict()

    def since(self, head: Head, after: int, limit: int) -> Sequence[Entry] | None:
        """Entries after a number as far as their stretch goes, or None when it is not here."""
        key = (head.uid, after // STRETCH)
        kept = self._kept.get(key)
        if kept is None:
            return None
        self._kept.move_to_end(key)
        at = after % STRETCH
        return kept[0][at : at + limit]

    def keep(self, head: Head, number: int, entries: list[Entry]) -> None:
        """A stretch as it was read; ignored while facts may still be added to it."""
        start = number * STRETCH
        end = min(start + STRETCH, head.seq)
        if end < start + STRETCH and not head.terminal:
            return
        if not entries or entries[0].seq != start + 1 or entries[-1].seq != end:
            return
        share = head.size // max(1, head.seq) + _WEIGHT
        self._drop((head.uid, number))
        self._kept[head.uid, number] = (entries, share * len(entries))
        self._bytes += share * len(entries)
        while self._bytes > self._max_bytes:
            self._drop(next(iter(self._kept)))

    def _drop(self, key: tuple[str, int]) -> None:
        if kept := self._kept.pop(key, None):
            self._bytes -= kept[1]

    def forget(self, uids: Iterable[str]) -> None:
        """These logs are gone."""
        gone = set(uids)
        for key in [key for key in self._kept if key[0] in gone]:
            self._drop(key)
