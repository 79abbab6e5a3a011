"""The generic cell rate algorithm: bursts, the steady rate after them, and nothing left of who stayed away."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.core.rates import SECOND, Rate, rate, spent, wait

TENTH = SECOND // 10


def served(times: list[int], pace: Rate, patience: int = 0) -> list[int]:
    """When each request that comes at these times gets its turn; nobody waits longer than that."""
    used = 0
    found: list[int] = []
    for now in times:
        early = wait(used, now, pace)
        if early <= patience:
            used = spent(used, now, pace)
            found.append(now + early)
    return found


def test_a_burst_goes_through_and_then_one_per_interval() -> None:
    pace, now = rate(10, 3), 100 * SECOND
    assert served([now] * 5, pace) == [now] * 3
    assert served([now] * 5, pace, patience=SECOND) == [now, now, now, now + TENTH, now + 2 * TENTH]
    late = [now, now, now, now + TENTH, now + TENTH // 2 * 3, now + 2 * TENTH]
    assert served(late, pace) == [now, now, now, now + TENTH, now + 2 * TENTH]


@pytest.mark.parametrize("burst", [0, 1])
def test_one_at_least_may_come(burst: int) -> None:
    assert served([SECOND, SECOND, SECOND * 3 // 2], rate(2, burst)) == [SECOND, SECOND * 3 // 2]


def test_who_was_away_is_where_nobody_is_remembered() -> None:
    pace, now, used = rate(10, 5), 50 * SECOND, 0
    for _ in range(5):
        used = spent(used, now, pace)
    back = now + pace.forgets
    assert wait(used, back, pace) == wait(0, back, pace) == 0
    assert spent(used, back, pace) == spent(0, back, pace)


@given(
    st.lists(st.integers(0, 100 * SECOND), min_size=1, max_size=200).map(sorted),
    st.integers(1, 50),
    st.integers(1, 20),
    st.integers(0, 5 * SECOND),
)
def test_however_requests_come_no_span_holds_more_than_burst_and_rate_allow(
    times: list[int], per_second: int, burst: int, patience: int
) -> None:
    pace = rate(per_second, burst)
    found = served(times, pace, patience)
    for first, begin in enumerate(found):
        for last in range(first, len(found)):
            assert last - first <= burst + (found[last] - begin) // pace.interval
