"""What every bench agent does, in one place, so that no contender gets an easier job than another.

The first word of the message is for people; the second, when there is one, is how many chunks are wanted.
"""

from collections.abc import Iterator

TICK_SECONDS = 0.05
STATUS_EVERY = 20  # ticks: one status a second
NAP_SECONDS = 0.001
BLOB = "0123456789abcdef" * 64  # 1 KiB

BEHAVIOURS = ("echo", "nap", "stream", "tick", "idle", "blob")


def count(text: str) -> int:
    return int(text.split()[1])


def tokens(text: str) -> Iterator[str]:
    """About what a language model yields: a few characters at a time."""
    return (f"token {number:06d} " for number in range(count(text)))
