"""kill -9 in mid-write: what was acknowledged is there, and the books balance."""

import os
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from dragoman.model.tasks import TaskState
from dragoman.ports import Query
from dragoman.store.sqlite import SqliteStore
from tests.conformance.store.logs import OURS

pytestmark = [pytest.mark.anyio, pytest.mark.chaos]

ROOT = Path(__file__).parents[2]
ROUNDS = int(os.environ.get("CHAOS_ROUNDS", "4"))


def acknowledged_until_killed(path: Path, round: int, lines: int) -> Iterator[tuple[str, int, int]]:
    """Start a writer, read what it acknowledges, kill it after so many lines; also what it said meanwhile counts."""
    command = [sys.executable, "-m", "tests.store.writing_until_killed", str(path), str(round)]
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
            uid, first, count = line.split()
            yield uid.decode(), int(first), int(count)


@pytest.mark.proves("D-2-2", "S-11-3")
async def test_every_acknowledged_append_survives_kill_minus_nine(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    promised: Counter[str] = Counter()
    for round in range(ROUNDS):
        for uid, first, count in acknowledged_until_killed(path, round, 300 + 400 * round):
            promised[uid] = max(promised[uid], first + count - 1)
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
