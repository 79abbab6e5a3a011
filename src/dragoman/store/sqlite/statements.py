"""The SQL of this package, by name, read once from `queries.sql`."""

from functools import cache
from pathlib import Path
from re import DOTALL, compile

_HEADING = compile(r"-- name: (\w+)\n-- [^\n]+\n(.*?);\n(?=\n|\Z)", DOTALL)
_ROW = compile(r"(\((?:\?, )*\?\))/\*rows\*/")

# Many rows go in few statements, what usually comes together in one: each costs the writer two turns at the
# interpreter's lock. That the sizes are fixed keeps the statements prepared.
SIZES = (64, 32, *range(16, 0, -1))


def _load() -> dict[str, str]:
    text = Path(__file__).with_name("queries.sql").read_text(encoding="utf-8")
    return dict(_HEADING.findall(text))


SQL = _load()


@cache
def rows(name: str, count: int) -> str:
    """The statement with its row list repeated."""
    return _ROW.sub(lambda row: ", ".join([row[1]] * count), SQL[name])
