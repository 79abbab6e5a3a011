"""The counter itself: a wrong count would be believed."""

import importlib.util
import threading
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.walk import tracing
from tests.walk.tracing import Call, Trace, traced
from tests.walk.walking import WAYS, Walk

GUEST = """
def visit(host):
    host.greet(answer)
    host.show(guest)

def answer():
    return "hello"

class guest:
    @staticmethod
    def name():
        return "me"
"""
HOST = """
def greet(listener):
    listener()

def show(guest):
    guest.name()
    shelf()

def shelf():
    return [len(each) for each in ("a", "b")]
"""


def module(folder: Path, name: str, text: str) -> ModuleType:
    path = folder / f"{name}.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


@pytest.fixture
def party(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Any, Any]:
    monkeypatch.setattr(tracing, "ROOT", tmp_path)
    return module(tmp_path, "guest", GUEST), module(tmp_path, "host", HOST)


def watched(work: Callable[[], Any]) -> Trace:
    with traced() as trace:
        trace.on = True
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        trace.on = False
    return trace


def test_every_call_from_file_to_file_is_seen_once_and_what_was_handed_over_is_told_apart(party: Any) -> None:
    guest, host = party
    trace = watched(lambda: (guest.visit(host), guest.visit(host)))
    assert trace.files == {"guest.py", "host.py"}
    assert trace.calls == {
        Call("guest.py", "visit", "host.py", "greet", False),
        Call("guest.py", "visit", "host.py", "show", False),
        Call("host.py", "greet", "guest.py", "answer", True),
        Call("host.py", "show", "guest.py", "guest.name", False),
    }


def test_files_that_call_each_other_by_name_are_a_pair_both_ways(party: Any) -> None:
    guest, host = party
    walk = Walk(WAYS[0], watched(lambda: guest.visit(host)))
    assert walk.both_ways == [("guest.py", "host.py")]
    assert Walk(WAYS[0], watched(lambda: host.greet(guest.answer))).both_ways == []


def test_a_file_that_calls_nobody_is_asked_and_not_passed_through(party: Any) -> None:
    guest, host = party
    walk = Walk(WAYS[0], watched(lambda: host.greet(guest.answer)))
    assert (walk.passed, walk.asked) == (set(), {"guest.py", "host.py"})
