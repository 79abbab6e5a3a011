"""A request can be followed with a finger, in every dialect: few files, few calls between them, none that go back."""

from pathlib import Path

import pytest

from dragoman.wire.mounts import spoken
from dragoman.wire.settings import WireSettings
from tests.walk.page import PAGE, counted, lag, told
from tests.walk.tracing import ROOT
from tests.walk.walking import WAYS, Walk, Way, walks

MOST_FILES = 20
MOST_CALLS = 90
MOST_SWAPPED = 2
MOST_LINES = 700
MOST_LAG = 5  # so that not every function that is split elsewhere is a change of the page


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Walk]:
    return {walk.way.name: walk for walk in walks(tmp_path_factory.mktemp("walk") / "tasks.db")}


def test_every_dialect_there_is_is_walked(found: dict[str, Walk], capsys: pytest.CaptureFixture[str]) -> None:
    assert {way.origin for way in WAYS} == set(spoken(WireSettings()))
    with capsys.disabled():
        print("\n" + counted(list(found.values())))


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.name)
def test_a_request_passes_through_few_files(found: dict[str, Walk], way: Way) -> None:
    passed = found[way.name].passed
    assert len(passed) <= MOST_FILES, "\n".join(sorted(passed))


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.name)
def test_few_calls_lead_from_file_to_file(found: dict[str, Walk], way: Way) -> None:
    between = found[way.name].between
    assert len(between) <= MOST_CALLS, "\n".join(f"{one} {a} → {other} {b}" for one, a, other, b, _ in sorted(between))


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.name)
def test_no_two_files_call_each_other(found: dict[str, Walk], way: Way) -> None:
    walk = found[way.name]
    back = {pair: [call for call in walk.calls if {call.caller, call.callee} == {*pair}] for pair in walk.both_ways}
    assert not back, back


def test_a_walk_reaches_the_socket_the_file_and_the_agent(found: dict[str, Walk]) -> None:
    ends = {
        "server/connection.py",
        "server/cycle.py",
        "store/sqlite/writer.py",
        "agents/handler.py",
        "engine/follow.py",
    }
    for walk in found.values():
        assert ends <= walk.files, walk.way.name
        assert all((ROOT / name).is_file() for name in walk.files)


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.name)
def test_a_dialect_swaps_two_files_at_most(found: dict[str, Walk], way: Way) -> None:
    swapped = found[way.name].swapped(found[way.like])
    assert len(swapped) <= MOST_SWAPPED, swapped


@pytest.mark.parametrize("path", sorted((ROOT / "wire").glob("*.py")), ids=lambda path: path.stem)
def test_a_dialect_is_a_small_file(path: Path) -> None:
    assert len(path.read_text("utf-8").splitlines()) < MOST_LINES


def test_the_page_tells_the_walk_as_it_is(found: dict[str, Walk]) -> None:
    page = PAGE.read_text("utf-8")
    modern = found["1.0"]
    assert modern.passed <= set(told(page)), "the steps leave out files the request passes through"
    assert set(told(page)) <= modern.files, "the steps name files the request does not come to"
    assert lag(page, list(found.values())) <= MOST_LAG, "the walk has changed: python -m tests.walk.page"
