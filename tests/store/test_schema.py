"""Migrations: each once, in order, whole; strangers' files are left alone."""

import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from dragoman.model.errors import StoreError
from dragoman.ports import Query, Tally
from dragoman.store.sqlite import SqliteStore
from dragoman.store.sqlite.schema import migrate, migrations
from dragoman.store.sqlite.statements import SQL, rows
from tests.conformance.store.logs import OURS, chunk, finished, new, output, settled

pytestmark = pytest.mark.anyio


def tables(path: Path) -> set[str]:
    with closing(sqlite3.connect(path)) as connection:
        return {name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}


@pytest.mark.proves("D-5-3")
async def test_a_new_file_gets_every_migration_and_a_second_start_none(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    for _ in range(2):
        store = SqliteStore(path)
        await store.open()
        await store.close()
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (migrations()[-1][0],)
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert connection.execute("PRAGMA auto_vacuum").fetchone() == (2,)


def test_migrations_are_numbered_from_one_without_holes() -> None:
    assert [number for number, _ in migrations()] == list(range(1, len(migrations()) + 1))


def test_only_what_is_missing_runs(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "x.db", isolation_level=None)) as connection:
        steps = [
            (1, "CREATE TABLE one (x);"),
            (2, "-- two; with a sign\nCREATE TABLE two (x); INSERT INTO one VALUES (';');"),
        ]
        migrate(connection, steps[:1])
        migrate(connection, steps)
        migrate(connection, steps)
        assert connection.execute("SELECT x FROM one").fetchall() == [(";",)]
        assert connection.execute("PRAGMA user_version").fetchone() == (2,)


def test_a_migration_that_fails_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "x.db", isolation_level=None)) as connection:
        with pytest.raises(sqlite3.OperationalError):
            migrate(connection, [(1, "CREATE TABLE one (x); CREATE TABLE one (x);")])
        assert connection.execute("SELECT count(*) FROM sqlite_schema").fetchone() == (0,)
        assert connection.execute("PRAGMA user_version").fetchone() == (0,)


@pytest.mark.proves("D-5-3")
async def test_a_file_of_a_newer_version_is_refused_unchanged(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    store = SqliteStore(path)
    await store.open()
    await finished(store, "u")
    await store.close()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 999")
    with pytest.raises(StoreError, match="newer dragoman"):
        await SqliteStore(path).open()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA user_version = {migrations()[-1][0]}")
    store = SqliteStore(path)
    await store.open()
    assert await store.head(OURS, "u")
    await store.close()


@pytest.mark.proves("D-5-3")
async def test_another_programs_database_is_refused_unchanged(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE theirs (x)")
    with pytest.raises(StoreError, match="another program"):
        await SqliteStore(path).open()
    assert tables(path) == {"theirs"}


async def test_a_file_that_is_no_database_is_refused_unchanged(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    path.write_text("a diary, which is dear to somebody. " * 100)
    with pytest.raises(StoreError):
        await SqliteStore(path).open()
    assert path.read_text().startswith("a diary")


def values(statement: str) -> tuple[None, ...]:
    return (None,) * statement.count("?")


def test_no_statement_numbers_its_marks() -> None:
    """Python 3.12 before 3.12.4 takes `?1` for a name and warns."""
    assert not [name for name, text in SQL.items() if re.search(r"\?[0-9]", text)]


def test_every_statement_is_one_that_sqlite_understands(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "x.db", isolation_level=None)) as connection:
        migrate(connection)
        for name, text in SQL.items():
            statement = rows(name, 3) if "/*rows*/" in text else text
            connection.execute("EXPLAIN " + statement, values(statement))


@pytest.mark.proves("D-5-5")
def test_lists_and_reads_use_an_index_and_sort_nothing(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "x.db", isolation_level=None)) as connection:
        migrate(connection)
        names = ["states", "list_in_state", "list_in_context", "facts_after", "head_by_uid", "head_by_id", "key"]
        names += ["unattended", "due", "count_in_context", "count_in_state_since", "lapsed"]
        for name in names:
            plan = connection.execute("EXPLAIN QUERY PLAN " + SQL[name], values(SQL[name])).fetchall()
            steps = [step for *_, step in plan]
            # Only who recovers sorts: as many tasks as were running.
            assert name == "unattended" or not [step for step in steps if "TEMP B-TREE" in step], (name, steps)
            scans = [s for s in steps if s.startswith("SCAN") and "USING" not in s and "counts" not in s]
            assert not scans, (name, steps)


async def test_what_was_kept_before_it_was_counted_is_counted(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "log.db")
    await store.open()
    await store.append(new("a", size=10))
    await store.append(new("b", size=1))
    await store.append(output("b", settled(), size=2))
    await store.close()
    with closing(sqlite3.connect(tmp_path / "log.db")) as connection:
        connection.executescript(
            "DROP INDEX hooks_of_owner; DROP INDEX counts_of_owner; ALTER TABLE counts DROP COLUMN bytes;"
            "PRAGMA user_version = 2"
        )
    await store.open()
    assert await store.tally(OURS.owner) == Tally(1, 13)
    await store.append(output("a", settled(), size=5))
    assert await store.tally(OURS.owner) == Tally(0, 18)
    await store.close()


@pytest.mark.proves("D-5-4")
async def test_appending_to_an_artifact_writes_its_chunk_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    store = SqliteStore(path)
    await store.open()
    await store.append(new("u"))
    await store.append(output("u", chunk(text="x" * 1_000_000)))
    with closing(sqlite3.connect(path)) as connection:
        before = contents(connection)
        await store.append(output("u", chunk(text="y" * 10)))
        after = contents(connection)
    (row,) = after.pop("facts") - before.pop("facts")
    assert sum(len(value) for value in row if isinstance(value, bytes)) < 200
    assert len(after.pop("counts") - before.pop("counts")) <= 1, "the caller's counter"
    assert after == before, "neither the task's row nor anything folded"
    await store.close()


def contents(connection: sqlite3.Connection) -> dict[str, set[tuple[object, ...]]]:
    names = [name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
    return {name: set(connection.execute(f"SELECT * FROM {name}")) for name in names}


@pytest.mark.proves("S-1-4")
def test_every_row_that_is_somebodys_says_whose_from_the_first_migration_on(tmp_path: Path) -> None:
    whose = {"agent", "tenant", "owner"}
    with closing(sqlite3.connect(tmp_path / "x.db", isolation_level=None)) as connection:
        migrate(connection, migrations()[:1])
        for table in sorted(tables(tmp_path / "x.db")):
            columns = {name: needed for _, name, _, needed, _, _ in connection.execute(f"PRAGMA table_info({table})")}
            if "task" not in columns:  # of a task by its number, which only its owner can look up
                assert whose <= columns.keys(), table
                assert all(columns[name] for name in whose), table


@pytest.mark.proves("S-11-3")
async def test_totals_are_read_from_counters(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    store = SqliteStore(path)
    await store.open()
    for n in range(3):
        await finished(store, f"u{n}")
    assert (await store.list(OURS, Query())).total == 3
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE counts SET tasks = 1000 WHERE tasks > 0")
    assert (await store.list(OURS, Query())).total == 1000
    await store.close()
