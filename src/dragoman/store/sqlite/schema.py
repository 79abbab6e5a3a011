"""Brings a file to the schema this code knows. Each migration is one transaction, in the order of its number."""

from pathlib import Path
from sqlite3 import Connection, complete_statement

from dragoman.model.errors import StoreError

APPLICATION = 0x44524147  # "DRAG": what tells our files from others

_MIGRATIONS = Path(__file__).with_name("migrations")


def migrations() -> list[tuple[int, str]]:
    """Number and text of each migration, in order."""
    files = sorted(_MIGRATIONS.glob("[0-9]*.sql"))
    return [(int(file.name.split("_", 1)[0]), file.read_text(encoding="utf-8")) for file in files]


def migrate(connection: Connection, steps: list[tuple[int, str]] | None = None) -> None:
    """Run what is missing. Refuses files of other programs and of newer versions."""
    steps = migrations() if steps is None else steps
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    if application != APPLICATION and (application or tables):
        raise StoreError("The store's file belongs to another program; choose another file")
    if version > steps[-1][0]:
        raise StoreError("The store's file was written by a newer dragoman; upgrade dragoman or choose another file")
    for number, text in steps:
        if number > version:
            _run(connection, number, text)


def _run(connection: Connection, number: int, text: str) -> None:
    connection.execute("BEGIN IMMEDIATE")
    try:
        for statement in _statements(text):
            connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION}")
        connection.execute(f"PRAGMA user_version = {number}")
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def _statements(text: str) -> list[str]:
    statements: list[str] = []
    start = 0
    for end, sign in enumerate(text):
        if sign == ";" and complete_statement(text[start : end + 1]):
            statements.append(text[start : end + 1])
            start = end + 1
    return statements
