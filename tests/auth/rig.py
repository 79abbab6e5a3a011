"""A clock the tests hold, and requests that bring credentials."""

from typing import Any

from dragoman.ports import Presented

START = 1_800_000_000_000


class Clock:
    """Milliseconds, moved by hand."""

    def __init__(self, now: int = START) -> None:
        self.at = now

    def now(self) -> int:
        return self.at

    def advance(self, seconds: float) -> None:
        self.at += round(seconds * 1000)


def presented(**headers: str) -> Presented:
    return Presented({name.replace("_", "-"): value for name, value in headers.items()})


def bearing(token: str, **more: Any) -> Presented:
    return Presented({"authorization": f"Bearer {token}"}, **more)
