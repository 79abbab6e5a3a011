"""A line of news that wait for one hook: what gives way, when the next attempt may start, what is kept of what died."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from dragoman.core.notices import Notice
from dragoman.core.outbox import LONGEST, Line, Slip, afresh, ended, resent, told, tried
from dragoman.ports import Outcome
from tests.core.facts import asked, said

NOW, PAUSE = 10_000, 1_500


def calm(seq: int) -> Notice:
    return Notice(seq, said(), urgent=False)


def urgent(seq: int) -> Notice:
    return Notice(seq, asked(), urgent=True)


def line(*slips: Slip, calm_at: int = 0, dead: tuple[Slip, ...] = ()) -> Line:
    return Line(slips, dead, calm_at)


def after(before: Line, notice: Notice, id: str = "new", **rest: Any) -> Line:
    return told(before, notice, id, NOW, PAUSE, **rest)


def ends(before: Line, id: str, was_calm: bool = False, **outcome: Any) -> Line:
    return tried(before, Outcome(id=id, **outcome), was_calm, NOW, PAUSE)


WAITING = Slip("w", 3, 9_000, calm=True)
QUESTION = Slip("q", 2, 8_000)


class TestNews:
    def test_an_empty_line_is_due_never(self) -> None:
        assert Line().due == 0 and line(QUESTION, WAITING).due == 8_000

    def test_urgent_news_are_due_at_once(self) -> None:
        assert after(Line(), urgent(4)) == line(Slip("new", 4, NOW))

    def test_calm_news_are_due_a_pause_after_the_last(self) -> None:
        assert after(Line(), calm(4)).waiting == (Slip("new", 4, NOW, calm=True),)
        assert after(Line(calm_at=NOW - 500), calm(4)).due == NOW + 1_000
        assert after(Line(calm_at=NOW - PAUSE), calm(4)).due == NOW

    def test_calm_news_take_the_place_of_those_that_wait_and_begin_anew(self) -> None:
        tried_before = replace(WAITING, due=12_000, attempts=2)
        assert after(line(tried_before), calm(4)).waiting == (Slip("new", 4, 12_000, calm=True),)

    def test_urgent_news_take_calm_ones_out_of_the_line(self) -> None:
        assert after(line(QUESTION, WAITING), urgent(4)) == line(QUESTION, Slip("new", 4, NOW))

    def test_what_is_being_sent_stays(self) -> None:
        assert after(line(WAITING), calm(4), under_way="w").waiting[0] == WAITING
        assert after(line(WAITING), urgent(4), under_way="w") == line(WAITING, Slip("new", 4, NOW))
        again = after(after(line(WAITING), calm(4), "x", under_way="w"), calm(5), "y", under_way="w")
        assert [each.id for each in again.waiting] == ["w", "y"]

    def test_a_line_that_is_too_long_forgets_its_oldest_question_but_not_one_being_sent(self) -> None:
        full = line(*(Slip(f"q{n}", n, NOW) for n in range(LONGEST)))
        shorter = after(full, urgent(100))
        assert len(shorter.waiting) == LONGEST and shorter.waiting[0].id == "q1" and shorter.waiting[-1].id == "new"
        shorter = after(full, urgent(100), under_way="q0")
        assert [each.id for each in shorter.waiting[:2]] == ["q0", "q2"]

    def test_the_end_is_told_once_to_who_comes_after_it(self) -> None:
        late = ended(Line(), 7, "end", NOW)
        assert late == line(Slip("end", 7, NOW))
        assert ended(late, 7, "again", NOW + 1) is late


class TestAttempts:
    def test_what_arrived_leaves_the_line(self) -> None:
        assert ends(line(QUESTION, WAITING), "q", delivered=True) == line(WAITING)

    def test_what_failed_waits_in_its_place_until_the_next_attempt(self) -> None:
        end = Slip("e", 9, NOW)
        assert ends(line(QUESTION, end), "q", due=15_000) == line(replace(QUESTION, due=15_000, attempts=1), end)

    def test_what_died_is_kept_beside_the_line(self) -> None:
        assert ends(line(QUESTION, WAITING), "q", dead=True) == line(WAITING, dead=(Slip("q", 2, 0, attempts=1),))

    def test_after_calm_news_the_next_ones_wait_a_pause(self) -> None:
        newer = Slip("n", 4, 9_500, calm=True)
        sent = ends(line(WAITING, newer), "w", was_calm=True, delivered=True)
        assert sent == line(replace(newer, due=NOW + PAUSE), calm_at=NOW)
        retried = replace(newer, attempts=1)
        assert ends(line(WAITING, retried), "w", was_calm=True, delivered=True).waiting == (retried,)
        later = replace(newer, due=20_000)
        assert ends(line(WAITING, later), "w", was_calm=True, delivered=True).waiting == (later,)

    def test_after_urgent_news_calm_ones_do_not(self) -> None:
        assert ends(line(QUESTION, WAITING), "q", delivered=True).calm_at == 0

    def test_calm_news_that_failed_are_forgotten_where_newer_ones_wait(self) -> None:
        newer, end = Slip("n", 4, NOW, calm=True), Slip("e", 5, NOW)
        assert ends(line(WAITING, newer), "w", was_calm=True, due=19_000).waiting == (replace(newer, due=19_000),)
        assert ends(line(WAITING, end), "w", was_calm=True, due=19_000).waiting == (end,)
        alone = ends(line(WAITING), "w", was_calm=True, due=19_000)
        assert alone.waiting == (replace(WAITING, due=19_000, attempts=1),)

    def test_what_left_the_line_while_it_was_sent_still_sets_the_pause(self) -> None:
        newer = Slip("n", 4, NOW, calm=True)
        assert ends(line(newer), "gone", was_calm=True, due=5) == line(replace(newer, due=NOW + PAUSE), calm_at=NOW)
        assert ends(line(QUESTION), "gone", dead=True) == line(QUESTION)


class TestDeadLetters:
    def test_one_that_is_resent_comes_back_to_its_place_as_if_never_tried(self) -> None:
        dead = Slip("d", 2, 0, attempts=4)
        found = resent(line(WAITING, dead=(dead,)), "d", NOW)
        assert found == line(Slip("d", 2, NOW), WAITING)

    def test_one_that_waits_can_be_resent_too_and_nothing_else(self) -> None:
        waits = replace(QUESTION, due=99_000, attempts=3)
        assert resent(line(waits, WAITING), "q", NOW) == line(Slip("q", 2, NOW), WAITING)
        assert resent(line(waits), "x", NOW) is None

    def test_of_calm_ones_the_latest_is_kept(self) -> None:
        older = Slip("o", 1, 0, calm=True, attempts=1)
        kept = ends(line(WAITING, dead=(older, Slip("q", 2, 0, attempts=1))), "w", was_calm=True, dead=True)
        assert [each.id for each in kept.dead] == ["q", "w"]

    def test_of_too_many_the_oldest_go(self) -> None:
        many = tuple(Slip(f"d{n}", n, 0, attempts=1) for n in range(LONGEST))
        last = Slip("l", 500, NOW)
        kept = ends(line(last, dead=many), "l", dead=True).dead
        assert len(kept) == LONGEST and kept[0].id == "d1" and kept[-1].id == "l"

    def test_a_hook_that_is_replaced_tries_again_what_failed_and_hurries_nothing_else(self) -> None:
        failed = replace(QUESTION, due=50_000, attempts=2)
        assert afresh(line(failed, WAITING), NOW) == line(Slip("q", 2, NOW), WAITING)


@given(st.lists(st.tuples(st.sampled_from(("calm", "urgent", "sent", "failed", "dead", "gone")), st.booleans())))
def test_whatever_happens_a_line_is_short_and_in_the_order_of_the_log(steps: list[tuple[str, bool]]) -> None:
    """One attempt at a time, as the stores allow; the second value says whether one is begun before the step."""
    found, under_way, now = Line(), "", NOW
    for seq, (step, begin) in enumerate(steps, 1):
        now += 700
        if begin and not under_way and found.waiting and found.due <= now:
            under_way = found.waiting[0].id
        if step in ("calm", "urgent"):
            notice = calm(seq) if step == "calm" else urgent(seq)
            found = told(found, notice, str(seq), now, PAUSE, under_way)
            assert found.waiting[-1].seq == seq
        elif under_way:
            was = found.find(under_way)
            outcome = Outcome(id=under_way, delivered=step == "sent", dead=step == "dead", due=now + 1_000)
            found = tried(found, outcome, was is not None and was.calm, now, PAUSE)
            under_way = ""
        assert len(found.waiting) <= LONGEST + 1 and len(found.dead) <= LONGEST
        assert [each.seq for each in found.waiting] == sorted({each.seq for each in found.waiting})
        untried = [each for each in found.waiting if each.calm and each.id != under_way]
        assert len(untried) <= 1 and (not untried or found.waiting[-1] is untried[0])
