"""What was promised to somebody, who may have stopped waiting for it."""

from asyncio import Future
from typing import TypeVar

T = TypeVar("T")


def keep(promise: Future[T], outcome: T | BaseException) -> None:
    """Hand over the outcome, unless nobody waits for it any more."""
    if promise.done():
        return
    if isinstance(outcome, BaseException):
        promise.set_exception(outcome)
    else:
        promise.set_result(outcome)
