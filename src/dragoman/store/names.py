"""Names of deliveries."""

from hashlib import blake2b

_MOST = 0xFFFF  # of one millisecond; further ones are named after the next


class Names:
    """Later names sort after earlier ones, also those of one millisecond; and nobody who gets one can tell from it how
    many others there are."""

    def __init__(self) -> None:
        self._at = 0
        self._nth = 0

    def name(self, now: int, hook: int, seq: int) -> str:
        """For news of that number for that hook. The same never comes twice, whatever the clock does."""
        self._nth += 1
        if now > self._at:
            self._at, self._nth = now, 0
        elif self._nth > _MOST:
            self._at, self._nth = self._at + 1, 0
        digest = blake2b(f"{self._at} {self._nth} {hook} {seq}".encode(), digest_size=6).hexdigest()
        return f"{self._at:012x}{self._nth:04x}{digest}"
