"""Times go out with milliseconds in UTC and come back the same."""

import contextlib
from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.model.stamps import moment, stamp

FAR = 253_402_300_799_999  # the last millisecond of the year 9999


@given(st.integers(0, FAR))
def test_stamps_round_trip(ms: int) -> None:
    assert moment(stamp(ms)) == ms


@given(st.integers(0, FAR), st.integers(0, FAR))
def test_stamps_sort_as_their_times_do(a: int, b: int) -> None:
    assert (stamp(a) < stamp(b)) == (a < b)


@pytest.mark.proves("W-117", "W-119")
def test_a_stamp_has_three_digits_and_a_z() -> None:
    assert stamp(1_767_225_600_700) == "2026-01-01T00:00:00.700Z"
    assert stamp(0) == "1970-01-01T00:00:00.000Z"


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("2026-01-01T00:00:00Z", 1_767_225_600_000),
        ("2026-01-01T02:00:00.7+02:00", 1_767_225_600_700),
        ("2026-01-01t00:00:00z", 1_767_225_600_000),
        ("2026-01-01T00:00:00.000001Z", 1_767_225_600_001),  # up: an earlier millisecond must not get in
        ("1969-12-31T23:59:59.9999Z", 0),
        ("1969-12-31T23:59:59Z", -1_000),
    ],
)
def test_any_zone_and_precision_is_understood(text: str, ms: int) -> None:
    assert moment(text) == ms


@pytest.mark.parametrize(
    "text",
    [
        "",
        "now",
        "1767225600",
        "2026-01-01",
        "2026-01-01T00:00:00",
        "2026-13-01T00:00:00Z",
        "2026-01-01 00:00:00Z",
        "2026-01-01T00Z",
        "20260101T000000Z",
        "2026-W01-1T00:00:00Z",
        "٢٠٢٦-01-01T00:00:00Z",
        "2026-01-01T00:00:00." + "0" * 40 + "Z",
    ],
)
def test_what_has_no_zone_or_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="time"):
        moment(text)


@given(st.one_of(st.text(max_size=45), st.datetimes().map(lambda at: at.isoformat() + "Z")))
def test_any_text_is_a_time_or_a_value_error(text: str) -> None:
    with contextlib.suppress(ValueError):
        assert isinstance(moment(text), int)


def test_the_clock_of_the_standard_library_agrees() -> None:
    text = "2031-07-04T10:20:30.456+05:30"
    assert moment(text) == round(datetime.fromisoformat(text).timestamp() * 1000)
