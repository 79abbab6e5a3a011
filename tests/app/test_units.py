"""Durations and sizes, read and shown."""

import pytest

from dragoman.app.units import Bytes, Seconds


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90", 90.0),
        ("90s", 90.0),
        ("15m", 900.0),
        ("24h", 86_400.0),
        ("30d", 2_592_000.0),
        ("250ms", 0.25),
        (" 1.5 H ", 5_400.0),
        (0, 0.0),
        (2.5, 2.5),
    ],
)
def test_a_duration_is_read(text: object, seconds: float) -> None:
    assert Seconds.read(text) == seconds


@pytest.mark.parametrize("text", ["", "soon", "-1", "1w", -1, True, None, float("inf"), float("nan"), [1]])
def test_what_is_no_duration_is_refused(text: object) -> None:
    with pytest.raises(ValueError, match="duration"):
        Seconds.read(text)


@pytest.mark.parametrize(
    ("text", "size"),
    [("8MiB", 8 * 1024**2), ("64k", 65_536), ("64kB", 64_000), ("1.5 KiB", 1536), ("1GB", 10**9), ("7", 7), (7, 7)],
)
def test_a_size_is_read(text: object, size: int) -> None:
    assert Bytes.read(text) == size


@pytest.mark.parametrize("text", ["", "big", "-1", -1, 1.5, True, None])
def test_what_is_no_size_is_refused(text: object) -> None:
    with pytest.raises(ValueError, match="size"):
        Bytes.read(text)


@pytest.mark.parametrize("text", ["0s", "250ms", "15s", "5m", "24h", "30d", "90m"])
def test_a_duration_is_shown_as_it_would_be_written(text: str) -> None:
    assert str(Seconds.read(text)) == text


@pytest.mark.parametrize("text", ["8MiB", "64KiB", "2GiB", "1000"])
def test_a_size_is_shown_as_it_would_be_written(text: str) -> None:
    assert str(Bytes.read(text)) == text
