"""The real clock and the real identifiers; tests hold their own."""

import os
import time


class SystemClock:
    def now(self) -> int:
        return time.time_ns() // 1_000_000


class SortedIds:
    """UUIDv7s that sort in the order they were made, also within a millisecond and when the clock steps back.

    The 12 bits behind the milliseconds count up within one (RFC 9562, section 6.2, method 1); when they run out,
    the time part moves on by one, ahead of the clock.
    """

    def __init__(self) -> None:
        self._millis = 0
        self._time = ""  # the same, as ids begin
        self._count = 0
        self._noise: list[str] = []  # random ends not used yet: one system call serves hundreds of ids

    def uid(self) -> str:
        millis = time.time_ns() // 1_000_000
        if millis > self._millis:
            self._begin(millis)
        elif self._count < 0xFFF:
            self._count += 1
        else:
            self._begin(self._millis + 1)
        if not self._noise:
            self._noise = _noise(512)
        return f"{self._time}-7{self._count:03x}-{self._noise.pop()}"

    def _begin(self, millis: int) -> None:
        self._millis = millis
        self._count = 0
        text = f"{millis:012x}"
        self._time = f"{text[:8]}-{text[8:]}"


def _noise(count: int) -> list[str]:
    """The last two groups of so many ids: the variant and 62 random bits."""
    text = os.urandom(8 * count).hex()
    return [f"{_VARIANT[text[at]]}{text[at + 1 : at + 4]}-{text[at + 4 : at + 16]}" for at in range(0, 16 * count, 16)]


# The variant is the bits 10 in front of two random ones.
_VARIANT = {digit: "89ab"[int(digit, 16) % 4] for digit in "0123456789abcdef"}
