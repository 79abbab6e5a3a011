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
        self._count = 0
        self._pool = b""  # random bytes not used yet: one system call serves hundreds of ids
        self._used = 0

    def uid(self) -> str:
        millis = time.time_ns() // 1_000_000
        if millis > self._millis:
            self._millis = millis
            self._count = 0
        else:
            self._count += 1
            if self._count > 0xFFF:
                self._millis += 1
                self._count = 0
        if self._used == len(self._pool):
            self._pool = os.urandom(4096)
            self._used = 0
        noise = int.from_bytes(self._pool[self._used : self._used + 8]) & 0x3FFF_FFFF_FFFF_FFFF | 0x8000_0000_0000_0000
        self._used += 8
        text = f"{self._millis:012x}7{self._count:03x}{noise:016x}"
        return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
