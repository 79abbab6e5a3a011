"""The stores the suite runs against. A new store joins by one more line in `ADAPTERS`."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from dragoman.ports import Clock, HookedStore
from dragoman.store.memory import MemoryStore
from dragoman.store.sqlite import SqliteStore


class HeldClock:
    """Time that moves when a test says so."""

    def __init__(self, at: int = 1_000_000) -> None:
        self.at = at

    def now(self) -> int:
        return self.at


class Adapter(NamedTuple):
    """How to make a store. `make` called twice with one folder gives the same logs again, if the store is durable."""

    name: str
    durable: bool
    make: Callable[[Path, Clock], HookedStore]


ADAPTERS = (
    Adapter("memory", False, lambda folder, clock: MemoryStore(clock=clock, max_contexts=10_000, max_tasks=10_000)),
    Adapter("sqlite", True, lambda folder, clock: SqliteStore(folder / "log.db", clock=clock)),
    # Nothing recent in memory: every read comes from the file.
    Adapter(
        "sqlite-cold",
        True,
        lambda folder, clock: SqliteStore(folder / "log.db", clock=clock, recent_tasks=1, recent_bytes=0),
    ),
    Adapter("sqlite-full", True, lambda folder, clock: SqliteStore(folder / "log.db", clock=clock, synchronous="FULL")),
)
