"""Every numbered promise, and the tests that prove it.

A test names what it proves: `@pytest.mark.proves("W-034")`. `tests/test_requirements.py` fails for a promise without a
test, for a test that names an unknown one, and for one that waits for something although a test proves it.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.manifest import a2x, coding, cortex, proto, semantics, simple, t01, wire
from tests.manifest.requirement import Requirement

TESTS = Path(__file__).resolve().parent
SOURCES = (wire, semantics, coding, cortex, simple, a2x, proto, t01)
ALL: tuple[Requirement, ...] = tuple(each for source in SOURCES for each in source.REQUIREMENTS)


def proofs() -> dict[str, list[str]]:
    """By id, the tests that say they prove it, as `path:line`."""
    found: dict[str, list[str]] = {}
    for path in sorted(TESTS.rglob("test_*.py")):
        for line, ids in _marks(ast.parse(path.read_text("utf-8"))):
            for each in ids:
                found.setdefault(each, []).append(f"{path.relative_to(TESTS)}:{line}")
    return found


def _marks(tree: ast.Module) -> Iterator[tuple[int, list[str]]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "proves":
            yield (
                node.lineno,
                [each.value for each in node.args if isinstance(each, ast.Constant) and isinstance(each.value, str)],
            )
