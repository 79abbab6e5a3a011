"""What follows from a head and somebody's wish."""

import pytest

from dragoman.core import lifecycle
from dragoman.model.errors import Busy, InvalidParams, TaskNotCancelable, UnsupportedOperation
from dragoman.model.facts import Received, Resumed, Started
from dragoman.model.operations import Configuration, Policy, SendMessage
from dragoman.model.tasks import TERMINAL, TaskState
from tests.core.facts import head, message, received

WORKING = head(state=TaskState.WORKING, turn="one", epoch=2, attempt=1)
PARKED = head(state=TaskState.INPUT_REQUIRED, turn="one", epoch=2, attempt=1, asked=4)
MODES = SendMessage(
    message=message(), configuration=Configuration(accepted_output_modes=("text/plain",)), metadata={"k": 1}
)


def test_facts_of_a_message_carry_what_the_turn_will_need() -> None:
    first = lifecycle.created(MODES, message(), ("urn:x",), 5)
    further = lifecycle.received(MODES, message(), ("urn:x",), 5, answers=2)
    for fact in (first, further):
        assert (fact.at, fact.modes, fact.extensions, fact.metadata) == (5, ("text/plain",), ("urn:x",), {"k": 1})
    assert further.answers == 2


def test_a_word_of_our_own_names_its_task() -> None:
    said = lifecycle.told(WORKING, "m9", "Nobody answered.")
    assert (said.message_id, said.task_id, said.context_id) == ("m9", "t", "c")


def test_an_end_has_its_time() -> None:
    end = lifecycle.ended(TaskState.FAILED, 1_767_225_600_700, message("why"))
    assert end.status.timestamp == "2026-01-01T00:00:00.700Z"
    assert (end.status.state, end.status.message) == (TaskState.FAILED, message("why"))


def test_a_follow_up_may_name_its_context_or_leave_it_out_but_not_another() -> None:
    lifecycle.fits(WORKING, message())
    lifecycle.fits(WORKING, message(context_id="c"))
    with pytest.raises(InvalidParams, match=r"message\.contextId"):
        lifecycle.fits(WORKING, message(context_id="other"))


class TestPlacing:
    @pytest.mark.parametrize("state", sorted(TERMINAL))
    def test_a_finished_task_takes_no_message(self, state: TaskState) -> None:
        with pytest.raises(UnsupportedOperation):
            lifecycle.place(head(state=state), 8)

    @pytest.mark.parametrize("state", [TaskState.INPUT_REQUIRED, TaskState.AUTH_REQUIRED])
    def test_the_first_message_to_a_parked_task_is_its_answer(self, state: TaskState) -> None:
        assert lifecycle.place(head(state=state, asked=0), 8) == "answer"

    def test_later_ones_wait_in_the_inbox_until_it_is_full(self) -> None:
        assert lifecycle.place(head(state=TaskState.INPUT_REQUIRED, asked=-1), 8) == "inbox"
        assert lifecycle.place(head(state=TaskState.WORKING, queued=7), 8) == "inbox"
        with pytest.raises(Busy):
            lifecycle.place(head(state=TaskState.WORKING, queued=8), 8)


class TestAnswering:
    def test_a_held_handler_goes_on_in_place(self) -> None:
        fact = received(answers=4)
        held = head(state=TaskState.INPUT_REQUIRED, asked=4, held=True)
        first, second = lifecycle.answered(held, fact, 5, "r")
        assert first is fact and isinstance(second, Resumed)

    def test_a_parked_one_is_claimed_and_replayed(self) -> None:
        first, second = lifecycle.answered(PARKED, received(answers=4), 5, "r")
        assert isinstance(first, Received) and isinstance(second, Started)
        assert (second.turn, second.epoch, second.attempt, second.replica) == ("one", 3, 2, "r")


class TestCancelling:
    def test_a_canceled_task_may_be_canceled_again(self) -> None:
        assert lifecycle.cancelling(head(state=TaskState.CANCELED), Policy(), running=False) == "done"

    def test_another_end_came_first(self) -> None:
        with pytest.raises(TaskNotCancelable):
            lifecycle.cancelling(head(state=TaskState.COMPLETED), Policy(), running=False)
        tolerant = Policy(cancel_again=TERMINAL)
        assert lifecycle.cancelling(head(state=TaskState.COMPLETED), tolerant, running=False) == "done"

    def test_what_does_not_run_ends_at_once(self) -> None:
        assert lifecycle.cancelling(PARKED, Policy(), running=False) == "at once"

    def test_what_runs_is_asked_once(self) -> None:
        assert lifecycle.cancelling(WORKING, Policy(), running=True) == "by the turn"
        asked = head(state=TaskState.WORKING, cancel_by=9)
        assert lifecycle.cancelling(asked, Policy(), running=True) == "pending"

    def test_a_request_carries_its_deadline(self) -> None:
        assert lifecycle.cancel_requested(5, 100).deadline == 105
