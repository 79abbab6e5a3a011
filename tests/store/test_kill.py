"""kill -9 in mid-write: what was acknowledged is there, and the books balance."""

import os
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from dragoman.model.facts import Settled
from dragoman.model.tasks import TaskState
from dragoman.ports import Delivery, Query
from dragoman.store.sqlite import SqliteStore
from tests.conformance.store.logs import OURS
from tests.store.telling_until_killed import HOOKS

pytestmark = [pytest.mark.anyio, pytest.mark.chaos]

ROOT = Path(__file__).parents[2]
ROUNDS = int(os.environ.get("CHAOS_ROUNDS", "4"))


def said_until_killed(module: str, path: Path, round: int, lines: int) -> Iterator[list[str]]:
    """Start a process, read what it says, kill it after so many lines; also what it said meanwhile counts."""
    command = [sys.executable, "-m", f"tests.store.{module}", str(path), str(round)]
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT, env=environment) as process:
        assert process.stdout
        try:
            said = [process.stdout.readline() for _ in range(lines)]
        finally:
            process.kill()
        said += process.stdout.readlines()
        assert process.wait() == -9
    for line in said:
        if line.endswith(b"\n"):
            yield line.decode().split()


@pytest.mark.proves("D-2-2", "S-11-3")
async def test_every_acknowledged_append_survives_kill_minus_nine(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    promised: Counter[str] = Counter()
    for round in range(ROUNDS):
        for uid, first, count in said_until_killed("writing_until_killed", path, round, 300 + 400 * round):
            promised[uid] = max(promised[uid], int(first) + int(count) - 1)
        store = SqliteStore(path)
        await store.open()
        await store.recover()
        for uid, last in promised.items():
            loaded = await store.load(OURS, uid)
            assert loaded and loaded.head.seq >= last, uid
            assert [entry.seq for entry in loaded.entries] == list(range(1, loaded.head.seq + 1)), uid
        await check_counters(store, path)
        await store.close()


async def check_counters(store: SqliteStore, path: Path) -> None:
    with sqlite3.connect(path) as connection:
        recount = dict(connection.execute("SELECT state, count(*) FROM tasks GROUP BY state").fetchall())
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    connection.close()
    for state in TaskState:
        page = await store.list(OURS, Query(state=state, limit=1))
        assert page.total == recount.get(state.value.removeprefix("TASK_STATE_"), 0)


async def test_every_end_that_was_acknowledged_is_told_to_every_webhook_despite_kill_minus_nine(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    ended: set[str] = set()
    made: set[str] = set()
    told: dict[tuple[str, str], list[int]] = {}
    for round in range(ROUNDS):
        for word, *rest in said_until_killed("telling_until_killed", path, round, 400 + 500 * round):
            if word == "ended":
                ended.add(rest[0])
            elif word == "made":
                made.add(rest[0])
            else:
                told.setdefault((rest[1], rest[2]), []).append(int(rest[3]))
        store = SqliteStore(path, calm_interval=20)
        await store.open()
        await store.recover()
        waiting, dead = await outbox(store, path)
        assert not made & {*waiting, *dead}, "what was made is not made again"
        ends = {
            (each.hook.uid, each.hook.config.id) for each in await everything(store) if isinstance(each.fact, Settled)
        }
        for uid in ended:
            head = await store.head(OURS, uid)
            assert head and head.state is TaskState.COMPLETED
            for id in HOOKS:
                assert (uid, id) in ends or head.seq in told.get((uid, id), ()), (uid, id)
        for seqs in told.values():
            assert seqs == sorted(seqs), "in the order of the log"
        await store.close()
    assert ended and made


async def outbox(store: SqliteStore, path: Path) -> tuple[set[str], set[str]]:
    """The ids of what waits and of what is dead. What is said of hooks agrees with it, and nothing is left over."""
    with sqlite3.connect(path) as connection:
        rows = connection.execute("SELECT id, dead FROM deliveries").fetchall()
        heads = connection.execute(
            "SELECT due, coalesce("
            "(SELECT due FROM deliveries WHERE hook = hooks.n AND NOT dead ORDER BY seq LIMIT 1), 0) FROM hooks"
        ).fetchall()
        (strays,) = connection.execute(
            "SELECT (SELECT count(*) FROM deliveries WHERE hook NOT IN (SELECT n FROM hooks))"
            " + (SELECT count(*) FROM hooks WHERE task NOT IN (SELECT n FROM tasks))"
        ).fetchone()
    connection.close()
    assert [said for said, _ in heads] == [is_ for _, is_ in heads] and not strays
    return {id for id, dead in rows if not dead}, {id for id, dead in rows if dead}


async def everything(store: SqliteStore) -> list[Delivery]:
    """What waits, one of each hook, whenever it is due; and the dead letters."""
    with sqlite3.connect(store._path) as connection:
        ids = [id for (id,) in connection.execute("SELECT id FROM deliveries")]
    connection.close()
    found = [await store.delivery(id) for id in ids]
    return [each for each in found if each is not None]
