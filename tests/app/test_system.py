"""The real clock and identifiers."""

import time
import uuid

import pytest

from dragoman.app.system import SortedIds, SystemClock


@pytest.mark.proves("S-1-1")
def test_ids_are_uuids_of_version_7_made_now() -> None:
    before = SystemClock().now()
    made = uuid.UUID(SortedIds().uid())
    assert (made.version, made.variant) == (7, uuid.RFC_4122)
    assert before <= made.int >> 80 <= SystemClock().now()


@pytest.mark.proves("S-1-1")
def test_ids_sort_in_the_order_they_were_made_and_never_repeat() -> None:
    ids = SortedIds()
    made = [ids.uid() for _ in range(20_000)]
    assert made == sorted(made)
    assert len(set(made)) == len(made)


def test_ids_sort_also_when_the_clock_steps_back(monkeypatch: pytest.MonkeyPatch) -> None:
    ids = SortedIds()
    first = ids.uid()
    past = time.time_ns() - 3_600_000_000_000
    monkeypatch.setattr(time, "time_ns", lambda: past)
    later = [ids.uid() for _ in range(5_000)]
    assert [first, *later] == sorted([first, *later])


def test_the_clock_counts_milliseconds_since_the_epoch() -> None:
    assert abs(SystemClock().now() - time.time() * 1000) < 5_000
