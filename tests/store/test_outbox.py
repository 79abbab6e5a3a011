"""The outbox in SQLite: what it costs, what fits when the file is full, and what several decide in one moment."""

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from dragoman.model.errors import StoreError, StoreFull
from dragoman.ports import KeyRecord, Outcome
from dragoman.store.sqlite import SqliteStore
from dragoman.store.sqlite.schema import migrate
from dragoman.store.sqlite.statements import SQL, rows
from tests.conformance.store.adapters import HeldClock
from tests.conformance.store.logs import OURS, asked, created, hook, new, output, said, settled
from tests.store.test_full import LIMIT, fill
from tests.store.test_schema import values

pytestmark = pytest.mark.anyio

# What runs while deliveries are made, whose cost must not grow with what waits.
READS = (
    *("due_in_lane", "places", "first_deliveries", "hook", "hooks_of_task", "lines_of_task", "lines_of_hooks"),
    *("hook_of_delivery", "delivery", "dead_deliveries", "hooks_of_scope", "head_by_uid"),
)
WRITES = (
    *("move_hooks", "drop_hooks", "drop_deliveries_of", "forget_bodies", "drop_deliveries", "move_deliveries"),
    *("note_errors", "keep_bodies", "drop_deliveries_of_tasks", "drop_hooks_of_tasks"),
)


def plan(connection: sqlite3.Connection, name: str) -> list[str]:
    statement = rows(name, 3) if "/*rows*/" in SQL[name] else SQL[name]
    return [step for *_, step in connection.execute("EXPLAIN QUERY PLAN " + statement, values(statement))]


@pytest.mark.parametrize("name", READS + WRITES)
def test_whatever_waits_is_found_by_an_index(tmp_path: Path, name: str) -> None:
    with closing(sqlite3.connect(tmp_path / "x.db", isolation_level=None)) as connection:
        migrate(connection)
        steps = plan(connection, name)
    assert not [
        step for step in steps if step.startswith(("SCAN hooks", "SCAN deliveries", "SCAN facts", "SCAN tasks"))
    ]
    # Only a task's few hooks are sorted.
    assert name == "hooks_of_task" or not [step for step in steps if "TEMP B-TREE" in step], steps
    # A task's hooks are found through the task, not among all of its owner's.
    assert name == "hooks_of_scope" or not [step for step in steps if "hooks_of_scope" in step], steps


async def test_asking_and_recording_touch_what_they_are_about_and_no_more(tmp_path: Path) -> None:
    """A hundred times as much waiting must not be a hundred times as much work."""
    steps: dict[int, tuple[int, int]] = {}
    for count in (30, 3_000):
        store = SqliteStore(tmp_path / f"{count}.db")
        await store.open()
        for start in range(0, count, 500):
            some = range(start, min(start + 500, count))
            await asyncio.gather(*(store.append(new(f"u{n}", hooks=(hook(f"u{n}"),))) for n in some))
        connection = store._committed._connection
        looked = written = 0

        def look() -> None:
            nonlocal looked
            looked += 1

        connection.set_progress_handler(look, 10)
        found = await store.due_deliveries(10)
        assert len(found) == 10
        before, pages = looked, _pages(tmp_path / f"{count}.db")
        await store.record([Outcome(id=each.id, delivered=True) for each in found])
        written = _pages(tmp_path / f"{count}.db") - pages
        steps[count] = (before, written)
        connection.set_progress_handler(None, 0)
        await store.close()
    assert steps[3_000][0] <= 2 * steps[30][0] + 10, steps
    assert steps[3_000][1] <= 3 * steps[30][1] + 20, steps


def _pages(path: Path) -> int:
    """How many pages the write-ahead log holds."""
    return path.with_name(path.name + "-wal").stat().st_size // 4_096


@pytest.mark.proves("S-8-1")
async def test_a_task_without_hooks_never_meets_the_outbox(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(*_: object) -> None:
        raise AssertionError("nobody is to hear of this task")

    store = SqliteStore(tmp_path / "log.db", recent_tasks=1, recent_bytes=0)
    await store.open()
    await store.append(new("hooked", hooks=(hook("hooked"),)))
    monkeypatch.setattr("dragoman.store.sqlite.group.Outbox", forbidden)
    await store.append(new("u"))
    await store.append(output("u", said(), asked()))
    await store.append(new("v"))
    await store.append(output("u", settled()))
    with pytest.raises(StoreError):
        await store.append(output("hooked", settled()))
    await store.close()


async def test_when_full_an_end_still_fits_with_all_it_has_to_tell(tmp_path: Path) -> None:
    clock = HeldClock()
    store = SqliteStore(tmp_path / "log.db", max_bytes=LIMIT, clock=clock)
    await store.open()
    await store.append(new("filler"))
    for n in range(20):
        await store.append(new(f"u{n}", created(), hooks=tuple(hook(f"u{n}", f"h{k}") for k in range(8))))
    await fill(store, "filler")
    with pytest.raises(StoreFull):
        await store.append(new("late", created(text="x" * 50_000), hooks=(hook("late"),)))
    for n in range(20):
        await store.append(output(f"u{n}", settled(), turn="", epoch=0))
    found = await store.due_deliveries(1_000, share=1_000)
    assert len(found) == 160
    # What became of them can be written down, though their bodies have no room.
    big = b"x" * 20_000
    await store.record([Outcome(id=each.id, due=clock.at + 1_000, error="500", body=big) for each in found[:80]])
    await store.record([Outcome(id=each.id, delivered=True) for each in found[80:]])
    clock.at += 1_000
    again = await store.due_deliveries(1_000, share=1_000)
    assert {each.id for each in again} == {each.id for each in found[:80]}
    assert {each.attempts for each in again} == {1}
    for n in range(20):
        for k in range(8):
            assert await store.drop_hook(OURS, f"u{n}", f"h{k}"), "making room always works"
    await store.close()
    assert (tmp_path / "log.db").stat().st_size <= LIMIT


async def test_what_happens_in_one_moment_is_one_story(tmp_path: Path) -> None:
    """Everything about one hook in one transaction: kept, told, replaced, tried, resent, dropped and kept again."""
    store = SqliteStore(tmp_path / "log.db")
    await store.open()
    await store.append(new("u", hooks=(hook("u"),)))
    (first,) = await store.due_deliveries(10)
    await asyncio.gather(
        store.append(output("u", said())),
        store.keep_hook(hook("u", host="two.example")),
        store.append(output("u", asked())),
        store.record([Outcome(id=first.id, dead=True, error="404")]),
        store.resend(first.id),
        store.resend("nothing"),
        store.keep_hook(hook("u", "b")),
        store.drop_hook(OURS, "u", "b"),
        store.keep_hook(hook("u", "b")),
        store.append(output("u", settled())),
    )
    assert [each.config.id for each in await store.hooks(OURS, "u")] == ["h", "b"]
    told: list[tuple[str, int]] = []
    while found := await store.due_deliveries(10):
        told += [(each.hook.config.id, each.seq) for each in found]
        await store.record([Outcome(id=each.id, delivered=True) for each in found])
    assert sorted(told) == [("b", 5), ("h", 4), ("h", 5)]
    assert not await store.dead_deliveries() and await store.next_delivery_at() == 0
    await store.drop_hook(OURS, "u", "h")
    with closing(sqlite3.connect(tmp_path / "log.db")) as connection:
        assert connection.execute("SELECT count(*) FROM deliveries").fetchone() == (0,)
    await store.close()


async def test_a_hook_dropped_by_the_writer_at_this_moment_is_not_answered(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "log.db")
    await store.open()
    await store.append(new("u", hooks=(hook("u"),)))
    with closing(sqlite3.connect(tmp_path / "log.db")) as writer:
        peek = store._lanes._peek

        def peeked(lane: str, count: int) -> object:
            found = peek(lane, count)
            writer.execute("DELETE FROM hooks")
            writer.commit()
            return found

        store._lanes._peek = peeked  # pyright: ignore[reportAttributeAccessIssue]
        assert not await store.due_deliveries(10)
    assert await store.next_delivery_at() == 0
    await store.close()


@pytest.mark.proves("S-8-4")
async def test_secrets_are_kept_with_the_hook_and_nowhere_else(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "log.db")
    await store.open()
    secrets: dict[str, Any] = {"token": "hush-1", "authentication": {"scheme": "Bearer", "credentials": "hush-2"}}
    await store.append(new("u", key=KeyRecord("k", "digest"), hooks=(hook("u", **secrets),)))
    await store.append(output("u", asked()))
    (question,) = await store.due_deliveries(10)
    await store.record([Outcome(id=question.id, dead=True, error="it said 500", body=b"{}")])
    await store.append(output("u", settled()))
    assert "hush" in str(await store.due_deliveries(10)), "who delivers them needs them"
    await store.close()
    holds: set[str] = set()
    with closing(sqlite3.connect(tmp_path / "log.db")) as connection:
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        for table in tables:
            for row in connection.execute(f"SELECT * FROM {table}"):
                if b"hush" in repr(row).encode():
                    holds.add(table)
    assert holds == {"hooks"}
