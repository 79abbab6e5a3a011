"""How facts move a head, and what its guard lets through."""

import pytest
from hypothesis import given

from dragoman.core.heads import admits, advance, born
from dragoman.model.facts import AnyFact
from dragoman.model.tasks import INTERRUPTED, TERMINAL, Head, TaskState
from dragoman.ports import Lifecycle, New, Turn
from tests.core.facts import (
    SCOPE,
    asked,
    cancel,
    chunk,
    created,
    head,
    logs,
    received,
    resumed,
    said,
    settled,
    started,
    stepped,
    used,
)

RUNNING = head(state=TaskState.WORKING, turn="one", epoch=3, version=7, seq=5)
ITS = Turn("one", 3)


def after(*facts: AnyFact, size: int = 0) -> Head:
    return advance(born("u", SCOPE, New("t", "c", "1.0")), facts, size)


class TestAdmitting:
    @pytest.mark.parametrize("state", sorted(TERMINAL))
    def test_a_terminal_task_admits_nothing(self, state: TaskState) -> None:
        over = head(state=state, turn="one", epoch=3, version=7)
        assert not admits(over, Lifecycle(7), (received(),))
        assert not admits(over, ITS, (chunk("late"),))

    def test_an_operation_must_have_seen_the_latest_version(self) -> None:
        assert admits(RUNNING, Lifecycle(7), (cancel(),))
        assert not admits(RUNNING, Lifecycle(6), (cancel(),))

    @pytest.mark.parametrize("guard", [Turn("other", 3), Turn("one", 2), Turn("one", 4)])
    def test_only_the_turn_that_holds_the_task_may_write_for_it(self, guard: Turn) -> None:
        assert admits(RUNNING, ITS, (chunk("x"),))
        assert not admits(RUNNING, guard, (chunk("x"),))

    def test_a_turn_cannot_complete_over_a_message_nobody_took(self) -> None:
        waiting = head(state=TaskState.WORKING, turn="one", epoch=3, queued=1)
        assert not admits(waiting, ITS, (chunk("x"), settled()))
        assert admits(waiting, ITS, (chunk("x"), settled(TaskState.FAILED)))
        assert admits(waiting, ITS, (chunk("x"), started("two", 4, took=1)))
        assert admits(waiting, ITS, ())
        assert admits(RUNNING, ITS, (settled(),))


class TestMoving:
    def test_a_task_is_born_submitted_and_knows_where_it_came_from(self) -> None:
        new = born("u", SCOPE, New("t", "c", "0.3"))
        assert (new.uid, new.id, new.context_id, new.origin, new.seq) == ("u", "t", "c", "0.3", 0)
        assert not (new.terminal or new.interrupted or new.settled)

    def test_creation_and_start_set_times_turn_and_epoch(self) -> None:
        moved = after(created(at=5), started(at=6, attempt=1), size=10)
        assert (moved.created_at, moved.status_at, moved.updated_at) == (5, 6, 6)
        assert (moved.state, moved.turn, moved.epoch, moved.turn_seq) == (TaskState.WORKING, "one", 1, 2)
        assert (moved.seq, moved.version, moved.size) == (2, 2, 10)

    def test_a_rerun_keeps_where_its_turn_began(self) -> None:
        moved = after(created(), started(), said(), started(epoch=2, attempt=2, reruns=1))
        assert (moved.turn_seq, moved.epoch, moved.attempt, moved.reruns) == (2, 2, 2, 1)

    @pytest.mark.proves("S-2-15")
    def test_output_moves_the_number_but_not_the_version(self) -> None:
        before = after(created(), started())
        moved = advance(before, (said(), chunk("x"), stepped(), used()), 4)
        assert (moved.seq, moved.version, moved.size) == (before.seq + 4, before.version, before.size + 4)

    def test_progress_is_a_new_status_but_no_new_state(self) -> None:
        before = after(created(), started())
        moved = advance(before, (said(),))
        assert moved.status_at == 1 and moved.state is TaskState.WORKING

    def test_a_question_is_remembered_until_it_is_answered(self) -> None:
        moved = after(created(), started(), asked(3, hold=True, expires=50))
        assert moved.interrupted and moved.settled and not moved.terminal
        assert (moved.asked, moved.held, moved.expires_at) == (3, True, 50)
        answered = advance(moved, (received(answers=3), resumed()))
        assert (answered.asked, answered.held, answered.expires_at) == (-1, False, 0)
        assert answered.state is TaskState.WORKING and answered.version == moved.version + 2

    def test_messages_queue_until_a_turn_takes_them(self) -> None:
        moved = after(created(), started(), received(), received())
        assert moved.queued == 2
        assert advance(moved, (started("two", 2, took=1),)).queued == 1

    def test_a_requested_cancel_has_a_deadline_and_the_end_clears_it(self) -> None:
        moved = after(created(), started(), received(), cancel(99))
        assert moved.cancel_by == 99
        over = advance(moved, (settled(TaskState.CANCELED),))
        assert over.terminal and over.settled and (over.cancel_by, over.queued) == (0, 0)

    def test_the_head_given_is_left_as_it_was(self) -> None:
        before = after(created())
        advance(before, (started(), settled()), 9)
        assert (before.seq, before.size, before.state) == (1, 0, TaskState.SUBMITTED)

    @given(logs())
    def test_one_by_one_or_all_at_once_makes_no_difference(self, facts: list[AnyFact]) -> None:
        step = born("u", SCOPE, New("t", "c", "1.0"))
        versions = [step.version]
        for fact in facts:
            step = advance(step, (fact,))
            versions.append(step.version)
        assert step == after(*facts)
        assert step.seq == len(facts)
        assert versions == sorted(versions)

    def test_terminal_and_interrupted_states_do_not_overlap(self) -> None:
        assert not TERMINAL & INTERRUPTED
