"""Which facts webhooks hear of, and how soon."""

import pytest

from dragoman.core.notices import notices
from dragoman.model.facts import AnyFact
from dragoman.model.tasks import TERMINAL, TaskState
from tests.core.facts import asked, cancel, chunk, created, received, resumed, said, settled, started, stepped, used


def told(*facts: AnyFact, first: int = 1) -> list[tuple[int, bool]]:
    return [(notice.seq, notice.urgent) for notice in notices(first, facts)]


@pytest.mark.parametrize("state", sorted(TERMINAL))
def test_every_end_is_urgent(state: TaskState) -> None:
    assert told(settled(state), first=7) == [(7, True)]


def test_questions_are_urgent() -> None:
    assert told(asked()) == [(1, True)]


@pytest.mark.parametrize("fact", [started(), said(), resumed()])
def test_progress_is_calm(fact: AnyFact) -> None:
    assert told(fact, first=3) == [(3, False)]


@pytest.mark.parametrize("fact", [created(), received(), chunk("x"), stepped(), used(), cancel()])
def test_what_shows_no_status_is_no_news(fact: AnyFact) -> None:
    assert told(fact) == []


def test_of_calm_news_only_the_latest_is_told() -> None:
    assert told(created(), started(), chunk("x"), said(), said("again"), chunk("y")) == [(5, False)]


def test_urgent_news_carry_the_calm_ones_before_them() -> None:
    assert told(created(), started(), chunk("x"), settled()) == [(4, True)]
    assert told(asked(), received(answers=0), started(epoch=2), asked(1)) == [(1, True), (4, True)]


def test_calm_news_after_urgent_ones_are_told() -> None:
    assert told(asked(), received(answers=0), resumed()) == [(1, True), (3, False)]


def test_news_say_which_fact_they_are_of() -> None:
    (notice,) = notices(4, (chunk("x"), settled()))
    assert (notice.seq, notice.fact) == (5, settled())
