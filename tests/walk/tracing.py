"""Follows a request through our files: which function calls which across files, in every thread, as it happens."""

import ast
import re
import threading
from collections.abc import Generator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple

import dragoman

ROOT = Path(dragoman.__file__).parent
# Where a stack begins anew: what an event loop or a thread runs was not called by who started that.
LOOPS = (
    "asyncio/base_events.py",
    "asyncio/events.py",
    "asyncio/runners.py",
    "concurrent/futures/thread.py",
    "threading.py",
)
# What an author's code calls, no file of ours calls.
AUTHOR = "tests/walk/agent.py"
# What these do they do on their own time, whoever calls us meanwhile.
HOUSEKEEPING = frozenset({"engine/keeper.py", "push/sender.py"})


class Call(NamedTuple):
    """A function calls one in another file. `handed` says that it called what it had been given, not what its file has
    a name for: as a bell calls whoever listens."""

    caller: str
    calling: str
    callee: str
    called: str
    handed: bool


class Trace:
    """What happened while it was `on`."""

    def __init__(self) -> None:
        self.on = False
        self.files: set[str] = set()
        self.calls: set[Call] = set()

    def see(self, frame: FrameType, event: str, argument: Any) -> None:
        if not self.on or event != "call" or not (callee := ours(frame.f_code)):
            return
        caller = _stack(frame)
        if callee in HOUSEKEEPING or any(ours(each.f_code) in HOUSEKEEPING for each in caller):
            return
        self.files.add(callee)
        if not caller or (name := ours(caller[0].f_code)) == callee:
            return
        code = caller[0].f_code
        self.calls.add(Call(name, _named(code), callee, _named(frame.f_code), _handed(code, caller[0].f_lasti)))


def _stack(frame: FrameType) -> list[FrameType]:
    """Who called, nearest first: frames of ours only, up to the loop or the author."""
    found: list[FrameType] = []
    above = frame.f_back
    while above is not None and not above.f_code.co_filename.endswith((*LOOPS, AUTHOR)):
        if ours(above.f_code):
            found.append(above)
        above = above.f_back
    return found


@cache
def ours(code: CodeType) -> str:
    """The file below the package, or nothing. Data is carried along the walk, it is no place on it: files of `model`
    are nobody's."""
    path = Path(code.co_filename)
    name = path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else ""
    return "" if name.startswith("model/") else name


def _named(code: CodeType) -> str:
    """The function; a comprehension is part of the one it stands in, as newer Pythons have it."""
    return re.sub(r"\.<locals>\.<(list|set|dict)comp>", "", code.co_qualname)


@cache
def _handed(code: CodeType, at: int) -> bool:
    """Whether this instruction calls a parameter or a local variable."""
    node = _calls(code.co_filename).get(list(code.co_positions())[at // 2])
    while isinstance(node, ast.Await | ast.Call):
        node = node.value if isinstance(node, ast.Await) else node.func
    return isinstance(node, ast.Name) and node.id in (*code.co_varnames, *code.co_freevars, *code.co_cellvars)


@cache
def _calls(path: str) -> dict[tuple[int | None, ...], ast.expr]:
    nodes = ast.walk(ast.parse(Path(path).read_bytes()))
    found = [node for node in nodes if isinstance(node, ast.Await | ast.Call)]
    return {(node.lineno, node.end_lineno, node.col_offset, node.end_col_offset): node for node in found}


@contextmanager
def traced() -> Generator[Trace]:
    """Threads that start inside are watched."""
    trace = Trace()
    before = threading.getprofile()
    threading.setprofile(trace.see)
    try:
        yield trace
    finally:
        threading.setprofile(before)  # pyright: ignore[reportArgumentType]  # None takes it off
