"""The SQL of this package, by name, read once from `queries.sql`."""

from functools import cache
from pathlib import Path
from re import DOTALL, compile

_HEADING = compile(r"-- name: (\w+)\n-- [^\n]+\n(.*?);\n(?=\n|\Z)", DOTALL)
_ROW = compile(r"(\((?:\?, )*\?\))/\*rows\*/")


def _load() -> dict[str, str]:
    text = Path(__file__).with_name("queries.sql").read_text(encoding="utf-8")
    return dict(_HEADING.findall(text))


SQL = _load()


def fitting(count: int) -> int:
    """How many of so many rows the next statement takes.

    What usually comes together goes in one: each statement costs the writer two turns at the interpreter's lock. That
    there are few sizes keeps the statements prepared.
    """
    return count if count <= 16 else 16 if count < 32 else 32 if count < 64 else 64


@cache
def rows(name: str, count: int) -> str:
    """The statement with its row list repeated."""
    return _ROW.sub(lambda row: ", ".join([row[1]] * count), SQL[name])
