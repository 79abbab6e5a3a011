"""What each layer may know: held by the import contracts, and by what no import shows."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from dragoman.model.tasks import TERMINAL
from dragoman.wire.mounts import spoken, table
from dragoman.wire.settings import WireSettings

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "dragoman"
# Who serves and shows things names versions and profiles; whoever decides what happens knows neither.
UNKNOWING = ("model", "core", "engine", "store", "bus", "push", "agents", "client", "ports.py")


def trees(*names: str) -> Iterator[tuple[str, ast.Module]]:
    for name in names:
        place = PACKAGE / name
        for path in sorted(place.rglob("*.py")) if place.is_dir() else [place]:
            yield str(path.relative_to(PACKAGE)), ast.parse(path.read_text("utf-8"))


@pytest.mark.proves("S-11-1")
def test_the_import_contracts_hold() -> None:
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout
    for contract in ("Imports go down only", "The pure middle does no I/O", "No cycles"):
        assert contract in " ".join(ran.stdout.split())


@pytest.mark.proves("D-2-10", "S-6-3")
def test_nothing_outside_wire_knows_a_dialect() -> None:
    wire = WireSettings()
    labels = {*spoken(wire), *(name for mount in table(wire).values() for name in mount.methods)}
    assert {"1.0", "0.3", "simple", "message/send", "SendMessage"} <= labels
    known = [
        f"{path}:{node.lineno} {node.value!r}"
        for path, tree in trees(*UNKNOWING)
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and node.value in labels
    ]
    assert not known, known


@pytest.mark.proves("D-2-10")
def test_error_numbers_stand_in_one_place() -> None:
    others = [each.name for each in PACKAGE.iterdir() if each.name not in ("wire", "__pycache__")]
    numbers = [
        f"{path}:{node.lineno}"
        for path, tree in trees(*others)
        for node in ast.walk(tree)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and _is_error(node.operand)
    ]
    assert not numbers, numbers


def _is_error(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, int) and 32_000 <= node.value <= 32_768


@pytest.mark.proves("D-2-10")
def test_the_terminal_states_are_listed_in_one_place() -> None:
    names = {state.name for state in TERMINAL}
    lists = [
        f"{path}:{node.lineno}"
        for path, tree in trees(*(each.name for each in PACKAGE.iterdir() if each.name != "__pycache__"))
        for node in ast.walk(tree)
        if isinstance(node, ast.Set | ast.Tuple | ast.List) and names <= {_attribute(each) for each in node.elts}
    ]
    assert [each.partition(":")[0] for each in lists] == ["model/tasks.py"], lists


def _attribute(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else ""
