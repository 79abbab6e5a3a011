"""What the stores cost by themselves: python bench/micro_store.py [sqlite|memory] [scenario …]

short     tasks of two appends (2 and 3 facts), 16 or 256 at once
streams   1,000 tasks, each an event per round
replay    a log of 100,000 events, read from the file
lists     the first page with 100 and with 100,000 tasks
A `+busy` variant runs pure Python work on the loop between the appends, as a server does.
"""

import asyncio
import os
import sys
import tempfile
import time
from pathlib import Path

from dragoman.model.facts import AnyFact, Chunk, Created, Settled, Started
from dragoman.model.messages import Artifact, Message, Part, Role
from dragoman.model.tasks import Scope, TaskState, TaskStatus
from dragoman.ports import Append, New, Query, Store, Turn
from dragoman.store.memory import MemoryStore
from dragoman.store.sqlite import SqliteStore

SCOPE = Scope("bench")
STAMP = "2026-01-01T00:00:00.000Z"


def uid(n: int) -> str:
    return f"0198a1b2-c3d4-7000-8000-{n:012x}"


def message(text: str, role: Role) -> Message:
    return Message(message_id="3f1c7a52-8f0e-4b7e-9d52-0c5b8b6f1c11", role=role, parts=(Part(text=text),))


def begin(n: int, at: int) -> Append:
    facts: tuple[AnyFact, ...] = (
        Created(at=at, message=message("hello there", Role.USER)),
        Started(at=at, status=TaskStatus(state=TaskState.WORKING, timestamp=STAMP), turn=uid(n), epoch=1, replica="r1"),
    )
    return Append(uid(n), SCOPE, facts, New(uid(n), uid(n)), 300)


def chunk(text: str, at: int, append: bool = True) -> Chunk:
    return Chunk(at=at, artifact=Artifact(artifact_id="answer", parts=(Part(text=text),)), append=append, n=3)


def end(n: int, at: int) -> Append:
    facts: tuple[AnyFact, ...] = (
        chunk("hello there", at, False),
        chunk("", at),
        Settled(at=at, status=TaskStatus(state=TaskState.COMPLETED, timestamp=STAMP)),
    )
    return Append(uid(n), SCOPE, facts, Turn(uid(n), 1), 300)


def spin(seconds: float) -> None:
    until = time.perf_counter() + seconds
    x = 0
    while time.perf_counter() < until:
        x += 1


class Measure:
    def __enter__(self) -> "Measure":
        self.wall, self.cpu, self.loop = time.perf_counter(), time.process_time(), time.thread_time()
        return self

    def __exit__(self, *_: object) -> None:
        self.wall = time.perf_counter() - self.wall
        self.cpu = time.process_time() - self.cpu
        self.loop = time.thread_time() - self.loop

    def line(self, what: str, count: int, unit: str) -> None:
        each = 1e6 / count
        print(
            f"{what:34} {count / self.wall:>10,.0f} {unit}/s   cpu {self.cpu * each:7.2f} µs"
            f"   loop {self.loop * each:7.2f} µs   (per {unit})"
        )


async def short(store: Store, callers: int, total: int, busy: float, base: int = 0) -> None:
    numbers = iter(range(base, base + total))

    async def caller() -> None:
        for n in numbers:
            if busy:
                spin(busy)
            await store.append(begin(n, store.now()))
            if busy:
                spin(busy)
            await store.append(end(n, store.now()))

    with Measure() as took:
        await asyncio.gather(*(caller() for _ in range(callers)))
    took.line(f"short, {callers} callers" + (f" + {2 * busy * 1e6:.0f} µs busy" if busy else ""), total, "task")


async def streams(store: Store, tasks: int, rounds: int, per_tick: int, busy: float) -> None:
    base = 10_000_000
    await asyncio.gather(*(store.append(begin(n, store.now())) for n in range(base, base + tasks)))
    text = "word " * 6
    waits: list[float] = []

    async def one(n: int, at: int) -> None:
        if busy:
            spin(busy)
        asked = time.perf_counter()
        await store.append(Append(uid(n), SCOPE, (chunk(text, at),), Turn(uid(n), 1), 150))
        waits.append(time.perf_counter() - asked)

    with Measure() as took:
        for _ in range(rounds):
            for start in range(base, base + tasks, per_tick):
                at = store.now()
                await asyncio.gather(*(one(n, at) for n in range(start, start + per_tick)))
    took.line(
        f"streams, {per_tick} at a time" + (f" + {busy * 1e6:.0f} µs busy" if busy else ""), rounds * tasks, "event"
    )
    waits.sort()
    print(f"{'':34} append p50 {waits[len(waits) // 2] * 1e3:.2f} ms, p99 {waits[len(waits) * 99 // 100] * 1e3:.2f} ms")


async def write_log(store: Store, n: int, count: int, per_append: int) -> None:
    await store.append(begin(n, 1))
    for _ in range(count // per_append):
        facts = tuple(chunk("a few words of an answer", 2) for _ in range(per_append))
        await store.append(Append(uid(n), SCOPE, facts, Turn(uid(n), 1), 100 * per_append))


async def replay(store: Store, n: int, what: str) -> None:
    with Measure() as took:
        seen = 0
        while entries := await store.since(SCOPE, uid(n), seen):
            seen = entries[-1].seq
    took.line(what, seen, "event")


async def lists(store: Store, have: int, what: str) -> None:
    best: list[float] = []
    for _ in range(30):
        started = time.perf_counter()
        page = await store.list(SCOPE, Query(limit=50))
        best.append(time.perf_counter() - started)
        assert len(page.items) == 50 and page.total == have, (page.total, have)
    print(f"{what:34} {sorted(best)[len(best) // 2] * 1e3:.3f} ms")


async def main(kind: str, wanted: set[str], folder: Path) -> None:
    def make() -> Store:
        mode = "FULL" if "full" in wanted else "NORMAL"
        if kind == "memory":
            return MemoryStore(max_tasks=1_000_000, max_contexts=1_000_000)
        return SqliteStore(folder / f"{time.time_ns()}.db", synchronous=mode)

    if wanted & {"short", "all"}:
        store = make()
        await store.open()
        await short(store, 16, 2_000, 0)
        await short(store, 16, 20_000, 0, 100_000)
        await short(store, 256, 20_000, 0, 200_000)
        await short(store, 16, 10_000, 50e-6, 300_000)
        await short(store, 256, 10_000, 50e-6, 400_000)
        await store.close()
    if wanted & {"streams", "all"}:
        store = make()
        await store.open()
        await streams(store, 1_000, 40, 1_000, 0)
        await store.close()
        store = make()
        await store.open()
        await streams(store, 1_000, 40, 100, 0)
        await store.close()
        store = make()
        await store.open()
        await streams(store, 1_000, 40, 100, 30e-6)
        await store.close()
    if wanted & {"replay", "all"}:
        store = make()
        await store.open()
        for n, per_append in ((1, 1), (2, 20), (3, 100)):
            await write_log(store, n, 100_000, per_append)
        await short(store, 16, 20_000, 0, 10_000)
        for n, per_append in ((1, 1), (2, 20), (3, 100)):
            await replay(store, n, f"replay, appended {per_append} at a time")
        await store.close()
    if wanted & {"lists", "all"}:
        store = make()
        await store.open()
        await short(store, 16, 100, 0)
        await lists(store, 100, "first page of 100")
        await short(store, 256, 99_900, 0, 1_000)
        await lists(store, 100_000, "first page of 100,000")
        await store.close()


if __name__ == "__main__":
    kind, *scenarios = sys.argv[1:] or ["sqlite"]
    with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_DIR")) as folder:
        asyncio.run(main(kind, set(scenarios) or {"all"}, Path(folder)))
