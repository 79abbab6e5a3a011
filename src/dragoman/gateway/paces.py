"""Who came when: each caller's share of requests, as far as it matters still.

What a caller used is worth remembering only until it is paid back, so two generations of numbers are enough: when the
younger one is as old as anything needs to be remembered, the older one is let go. Memory is bounded however many
callers come: more of them than fit only make memory shorter.
"""

from collections.abc import Callable

from dragoman.core.rates import SECOND, Rate, rate, spent, wait

MOST = 50_000  # callers in one generation


class Paces:
    """Spaces the requests of each caller. `patience` is how long a request may be kept waiting for its turn."""

    def __init__(
        self, per_second: float, burst: int, patience: float, clock: Callable[[], int], most: int = MOST
    ) -> None:
        self._rate: Rate = rate(per_second, burst)
        self._patience = round(patience * SECOND)
        self._clock = clock
        self._most = most
        self._young: dict[str, int] = {}
        self._old: dict[str, int] = {}
        self._turns_at = 0

    def wait(self, caller: str) -> float:
        """Seconds until this request's turn, which it has now taken; or, longer than the patience, until it may come
        again, having taken none."""
        now = self._clock()
        if now >= self._turns_at or len(self._young) >= self._most:
            self._turn(now)
        used = self._young.get(caller)
        if used is None:
            used = self._old.get(caller, 0)
        early = wait(used, now, self._rate)
        if early <= self._patience:
            self._young[caller] = spent(used, now, self._rate)
        return early / SECOND

    def add(self, caller: str, times: int) -> None:
        """Their last request counts as so many more. It was let in, so the next one waits for it."""
        used = max(self._young.get(caller, self._old.get(caller, 0)), self._clock()) + times * self._rate.interval
        self._young[caller] = used
        self._turns_at = max(self._turns_at, used)  # longer than a request is remembered

    def give_back(self, caller: str) -> None:
        """That request did not count."""
        if caller in self._young:
            self._young[caller] -= self._rate.interval

    def __len__(self) -> int:
        return len(self._young) + len(self._old)

    def _turn(self, now: int) -> None:
        self._old, self._young = self._young, {}
        self._turns_at = now + self._rate.forgets + self._patience
