"""Notices handlers that block the event loop: while one does, nobody else is served."""

import logging
from collections.abc import Awaitable, Coroutine, Generator
from time import perf_counter
from typing import Any, Generic, TypeVar

log = logging.getLogger("dragoman.turn")

T = TypeVar("T")


class Pace:
    """Reports who holds the loop up for longer than `patience` seconds: once, and again when it got twice as bad."""

    __slots__ = ("_longest", "patience")

    def __init__(self, patience: float) -> None:
        self.patience = patience
        self._longest: dict[str, float] = {}

    def watched(self, work: Coroutine[Any, Any, T], skill: str) -> Awaitable[T]:
        """The same work, timed between its awaits."""
        return _Watched(work, skill, self)

    def report(self, skill: str, seconds: float) -> None:
        if seconds >= 2 * self._longest.get(skill, 0):
            self._longest[skill] = seconds
            log.warning(
                "The skill %s blocked everybody else for %.2f s; await what takes time, or write the skill as a plain "
                "function, which runs in a thread",
                skill,
                seconds,
            )


class _Watched(Generic[T]):
    __slots__ = ("_pace", "_skill", "_work")

    def __init__(self, work: Coroutine[Any, Any, T], skill: str, pace: Pace) -> None:
        self._work = work
        self._skill = skill
        self._pace = pace

    def __await__(self) -> Generator[Any, Any, T]:
        work, patience = self._work, self._pace.patience
        answer: Any = None
        error: BaseException | None = None
        try:
            while True:
                began = perf_counter()
                try:
                    waits = work.send(answer) if error is None else work.throw(error)
                except StopIteration as end:
                    return end.value
                finally:
                    if (took := perf_counter() - began) > patience:
                        self._pace.report(self._skill, took)
                answer = error = None
                try:
                    answer = yield waits
                except GeneratorExit:
                    raise
                except BaseException as thrown:
                    error = thrown
        finally:
            work.close()
