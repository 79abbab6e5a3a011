"""How often somebody may come: the generic cell rate algorithm, one number per caller.

The number says until when a caller's requests have used up their share. A request moves it by one interval; how far it
may lie ahead of now is the burst. Whoever has been away is where they would be if they had never come, so a number that
has passed can be forgotten. Times are whole nanoseconds: sums of them are exact.
"""

from typing import NamedTuple

SECOND = 1_000_000_000


class Rate(NamedTuple):
    """`interval` is the share of one request, `slack` how far ahead of now those of a burst may run."""

    interval: int
    slack: int

    @property
    def forgets(self) -> int:
        """After so long without a request nothing is left to remember."""
        return self.interval + self.slack


def rate(per_second: float, burst: int) -> Rate:
    """`burst` requests may come at once, at least one."""
    interval = round(SECOND / per_second)
    return Rate(interval, max(0, burst - 1) * interval)


def wait(used: int, now: int, rate: Rate) -> int:
    """How long a request that comes now has to wait for its turn."""
    return max(0, used - now - rate.slack)


def spent(used: int, now: int, rate: Rate) -> int:
    """Until when the caller's share is used up once a request that comes now is let in."""
    return max(used, now) + rate.interval
