"""Which facts webhooks hear of, and how soon.

The end of a task and its questions are urgent: each is told, at once. That it works, and what it says meanwhile, is
calm: only the latest matters, and a receiver hears of it now and then. What a task makes (artifacts, steps, usage) is
no news by itself; it is in the task that comes with the next one.
"""

from collections.abc import Sequence
from typing import NamedTuple

from dragoman.model.facts import AnyFact, Asked, Resumed, Said, Settled, Started

URGENT = (Settled, Asked)
CALM = (Started, Said, Resumed)


class Notice(NamedTuple):
    """A fact to be told, with its number in the log."""

    seq: int
    fact: AnyFact
    urgent: bool


def notices(first: int, facts: Sequence[AnyFact]) -> tuple[Notice, ...]:
    """What one append gives webhooks to tell, in order: all that is urgent, and the latest calm news unless something
    urgent came after it, which carries all that the calm would have said."""
    found: list[Notice] = []
    for seq, fact in enumerate(facts, first):
        if isinstance(fact, URGENT):
            urgent = True
        elif isinstance(fact, CALM):
            urgent = False
        else:
            continue
        if found and not found[-1].urgent:
            found.pop()
        found.append(Notice(seq, fact, urgent))
    return tuple(found)
