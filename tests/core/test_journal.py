"""What a turn already did is not done again."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.core.journal import Journal, digest
from dragoman.model.errors import HandlerChanged
from dragoman.model.facts import AnyFact, Chunk
from tests.core.facts import asked, cancel, chunk, message, received, resumed, said, started, stepped


def journal(*facts: AnyFact) -> Journal:
    made = Journal()
    made.remember(facts)
    return made


def text(made: Chunk) -> str:
    return "".join(str(part.text) for part in made.artifact.parts)


def test_digests_do_not_depend_on_the_order_of_members() -> None:
    assert digest({"a": 1, "b": [2]}) == digest({"b": [2], "a": 1})
    assert digest({"a": 1}) != digest({"a": 2})


def test_a_first_run_swallows_and_remembers_nothing() -> None:
    fresh = journal(started(of=4))
    assert fresh.of == 4
    assert not fresh.swallows(0)
    assert fresh.question(0, "q") is None
    assert fresh.step("s", 0, "d") is None


def test_a_rerun_still_answers_the_message_its_turn_began_with() -> None:
    assert journal(started(of=4), started(attempt=2, of=9)).of == 4


class TestQuestions:
    ANSWERED = (started(), said(n=0), asked(1, "q"), received("yes", answers=1), started(attempt=2))

    def test_what_came_before_the_question_is_swallowed_and_its_answer_returned(self) -> None:
        again = journal(*self.ANSWERED)
        assert again.swallows(0)
        known = again.question(1, "q")
        assert known is not None and known.answer == message("yes")
        assert not again.swallows(2)

    def test_authorization_may_pass_without_an_answer(self) -> None:
        known = journal(started(), asked(0, "q"), started(attempt=2)).question(0, "q")
        assert known is not None and known.answer is None

    @pytest.mark.proves("S-5-4")
    def test_another_question_in_its_place_is_a_changed_handler(self) -> None:
        with pytest.raises(HandlerChanged):
            journal(*self.ANSWERED).question(1, "other")

    def test_a_question_where_something_was_said_is_a_changed_handler(self) -> None:
        with pytest.raises(HandlerChanged):
            journal(*self.ANSWERED).question(0, "q")

    def test_something_said_where_a_question_stood_is_a_changed_handler(self) -> None:
        with pytest.raises(HandlerChanged):
            journal(*self.ANSWERED).swallows(1)

    def test_an_answer_to_nothing_and_private_facts_are_passed_over(self) -> None:
        again = journal(started(), received("stray", answers=7), received("inbox"), cancel(), asked(0, "q"))
        assert again.questions[0].answer is None

    def test_a_held_question_answered_in_place_is_passed(self) -> None:
        again = journal(started(), asked(0, "q", hold=True), received("yes", answers=0), resumed(), started(attempt=2))
        known = again.question(0, "q")
        assert known is not None and known.answer == message("yes")

    def test_a_held_authorization_that_came_by_itself_is_passed(self) -> None:
        known = journal(started(), asked(0, "q", hold=True), resumed(), started(attempt=2)).question(0, "q")
        assert known is not None and known.answer is None

    def test_a_held_question_nobody_answered_before_the_crash_is_asked_again(self) -> None:
        again = journal(started(), said(n=0), asked(1, "q", hold=True), started(attempt=2))
        assert again.swallows(0)
        assert again.question(1, "q") is None


class TestSteps:
    @pytest.mark.proves("S-5-6")
    def test_a_step_is_known_by_name_and_repetition(self) -> None:
        known = journal(started(), stepped("rate", 0, "d", 1), stepped("rate", 1, "d", 2))
        assert [getattr(known.step("rate", nth, "d"), "result", None) for nth in range(3)] == [1, 2, None]

    @pytest.mark.proves("S-5-4")
    def test_other_arguments_are_a_changed_handler(self) -> None:
        with pytest.raises(HandlerChanged):
            journal(stepped("rate", 0, "d", 1)).step("rate", 0, "e")


class TestRestartingArtifacts:
    def test_an_untouched_artifact_goes_on_as_it_is(self) -> None:
        piece = chunk("x", n=0)
        assert journal(started()).restart(piece) is piece

    @pytest.mark.proves("D-6-8")
    def test_an_artifact_cut_off_by_a_crash_is_begun_again_without_append(self) -> None:
        cut = journal(started(), chunk("one ", append=False, n=0), chunk("two", n=1), started(attempt=2))
        again = chunk("one ", append=False, n=0)
        assert cut.restart(again) is again
        follow = chunk("two", n=1)
        assert cut.restart(follow) is follow

    def test_what_was_delivered_before_a_question_is_part_of_the_restarted_artifact(self) -> None:
        facts = (
            started(),
            chunk("one ", append=False, n=0),
            asked(1, "q"),
            received("yes", answers=1),
            started(attempt=2),
            chunk("two ", n=2),
        )
        cut = journal(*facts)
        assert cut.swallows(0)
        cut.pile(chunk("one ", append=False, n=0))
        again = cut.restart(chunk("two ", n=2))
        assert (text(again), again.append) == ("one two ", False)
        assert cut.restart(chunk("three", n=3)).append

    def test_a_question_makes_what_came_before_it_safe(self) -> None:
        safe = journal(started(), chunk("one", append=False, n=0), asked(1), received(answers=1), started(attempt=2))
        safe.pile(chunk("one", append=False, n=0))
        follow = chunk("two", n=2)
        assert safe.restart(follow) is follow

    def test_a_first_chunk_that_appends_stands_alone_when_restarted(self) -> None:
        cut = journal(started(), chunk("one", n=0), started(attempt=2))
        again = cut.restart(chunk("one", n=0))
        assert (text(again), again.append) == ("one", False)

    @given(st.lists(st.text(max_size=3), min_size=1, max_size=8), st.integers(0, 8), st.integers(1, 8))
    def test_a_client_that_replaces_and_appends_ends_with_the_same_text(
        self, pieces: list[str], parked: int, crashed: int
    ) -> None:
        """Emit pieces, park after some, crash after some more, rerun: whoever followed it all has the text once."""
        parked = min(parked, len(pieces))
        emitted = [chunk(piece, append=n > 0, n=n if n < parked else n + 1) for n, piece in enumerate(pieces)]
        log = [started(), *emitted[:parked], asked(parked, "q"), received(answers=parked), started(attempt=2)]
        log += emitted[parked : parked + crashed]
        again = journal(*log, started(attempt=3))
        for piece in emitted:
            if again.swallows(piece.n):
                again.pile(piece)
            else:
                log.append(again.restart(piece))
        shown = ""
        for fact in log:
            if isinstance(fact, Chunk):
                shown = shown + text(fact) if fact.append else text(fact)
        assert shown == "".join(pieces)
