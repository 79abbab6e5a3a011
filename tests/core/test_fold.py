"""The task is the fold of its log, however the log was cut on the way."""

from collections.abc import Sequence
from typing import TypeVar

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec import UNSET

from dragoman.core.fold import Fold, add, folded, resume, trimmed, view
from dragoman.model.facts import AnyFact, Chunk, Entry
from dragoman.model.messages import Artifact, Part
from dragoman.model.tasks import Task, TaskState, Usage, View
from dragoman.ports import Loaded, Segment, Snapshot
from tests.core.facts import (
    asked,
    chunk,
    chunks,
    created,
    head,
    logs,
    message,
    received,
    said,
    settled,
    started,
    used,
)

T = TypeVar("T")


def fold(*facts: AnyFact) -> Fold:
    whole = Fold("t", "c")
    for seq, fact in enumerate(facts, 1):
        whole.apply(seq, fact)
    return whole


def task(*facts: AnyFact) -> Task:
    return fold(*facts).task()


def said_in(artifact: Artifact) -> list[object]:
    return [part.text if part.text is not UNSET else part.data for part in artifact.parts]


def stored(value: T) -> T:
    """As a store gives it back."""
    return msgspec.json.decode(msgspec.json.encode(value), type=type(value))


class Shelf:
    """What a store keeps of checkpoints, in the words of the port."""

    def __init__(self) -> None:
        self.seq = 0
        self.snapshot: Snapshot | None = None
        self.segments: list[Segment] = []

    def keep(self, seq: int, snapshot: Snapshot, segments: Sequence[Segment] = ()) -> None:
        self.seq, self.snapshot = seq, stored(snapshot)
        for segment in segments:
            if segment.replace:
                id = segment.artifact.artifact_id
                self.segments = [s for s in self.segments if s.artifact.artifact_id != id]
            self.segments.append(stored(segment))

    def loaded(self, facts: Sequence[AnyFact]) -> Loaded:
        entries = tuple(Entry(n, stored(fact)) for n, fact in enumerate(facts, 1) if n > self.seq)
        top = head(seq=len(facts), checkpoint_seq=self.seq)
        return Loaded(head=top, snapshot=self.snapshot, segments=tuple(self.segments), entries=entries)


def by_cuts(facts: Sequence[AnyFact], cuts: set[int]) -> Shelf:
    """Fold as a live task does: cutting after these numbers, and going on with the same fold."""
    shelf, live = Shelf(), Fold("t", "c")
    for seq, fact in enumerate(facts, 1):
        live.apply(seq, fact)
        if seq in cuts:
            shelf.keep(seq, *live.cut())
    return shelf


def whole(facts: Sequence[AnyFact]) -> View:
    return folded(head(seq=len(facts)), enumerate(facts, 1))


class TestSplitting:
    @given(logs(), st.sets(st.integers(1, 32)))
    @example([created(), chunk("a", "b", append=False)], {2})
    @example([created(), chunk("a", append=False), chunk("b")], {2, 3})
    @example([created(), started(), used(1, 0), used(1, 0)], {3})
    def test_a_checkpoint_and_the_rest_fold_to_the_same_task(self, facts: list[AnyFact], cuts: set[int]) -> None:
        assert view(by_cuts(facts, cuts).loaded(facts)) == whole(facts)

    @given(logs(), st.integers(1, 32))
    def test_a_whole_snapshot_and_the_rest_fold_to_the_same_task(self, facts: list[AnyFact], at: int) -> None:
        at = min(at, len(facts))
        live = fold(*facts[:at])
        shelf = Shelf()
        shelf.keep(at, msgspec.structs.replace(live.cut()[0], task=fold(*facts[:at]).task(), segmented=False))
        assert view(shelf.loaded(facts)) == whole(facts)

    @given(logs(), st.sets(st.integers(1, 32), min_size=2))
    def test_a_fold_resumed_from_a_checkpoint_can_be_cut_again(self, facts: list[AnyFact], cuts: set[int]) -> None:
        """As after a restart: another process goes on where the last checkpoint stands."""
        first, *later = sorted(cuts)
        shelf = by_cuts(facts, {first})
        loaded = shelf.loaded(facts)
        live = resume(loaded.head, loaded.snapshot)
        for entry in loaded.entries:
            live.apply(entry.seq, entry.fact)
            if entry.seq in later:
                shelf.keep(entry.seq, *live.cut())
        assert view(shelf.loaded(facts)) == whole(facts)

    @given(logs(), st.sets(st.integers(1, 32)))
    def test_partial_views_agree_in_everything_but_artifacts(self, facts: list[AnyFact], cuts: set[int]) -> None:
        seen = view(by_cuts(facts, cuts).loaded(facts), partial=True)
        other = whole(facts)
        assert seen.partial and seen.task.artifacts == ()
        assert (seen.task.status, seen.task.history, seen.usage) == (
            other.task.status,
            other.task.history,
            other.usage,
        )

    @given(logs(), st.integers(0, 32))
    def test_facts_that_come_twice_are_folded_once(self, facts: list[AnyFact], again: int) -> None:
        once = fold(*facts)
        for seq, fact in list(enumerate(facts, 1))[:again]:
            once.apply(seq, fact)
        assert once.task() == task(*facts)

    def test_a_segment_of_an_artifact_the_snapshot_does_not_know_is_left_out(self) -> None:
        stray = Segment(seq=1, artifact=Artifact(artifact_id="gone", parts=(Part(text="x"),)))
        assert resume(head(), Snapshot(task=Task(id="t"), segmented=True), (stray,)).task().artifacts == ()

    def test_a_cut_leaves_nothing_to_cut_until_more_comes(self) -> None:
        live = fold(created(), chunk("a", append=False))
        assert len(live.cut()[1]) == 1
        assert not live.whole
        assert live.cut()[1] == ()
        live.apply(3, chunk("b"))
        (segment,) = live.cut()[1]
        assert not segment.replace and said_in(segment.artifact) == ["b"]


class TestChunks:
    @pytest.mark.proves("S-2-19")
    def test_adjacent_text_chunks_become_one_part(self) -> None:
        (artifact,) = task(created(), chunk("a", append=False), chunk("b"), chunk("c")).artifacts
        assert said_in(artifact) == ["abc"]

    def test_parts_an_author_put_into_one_chunk_stay_apart(self) -> None:
        (artifact,) = task(created(), chunk("a", "b", append=False), chunk("c", "d")).artifacts
        assert said_in(artifact) == ["a", "bc", "d"]

    @pytest.mark.proves("S-2-19")
    def test_text_of_another_kind_starts_a_part_of_its_own(self) -> None:
        def of(**members: object) -> Chunk:
            part = msgspec.structs.replace(Part(text="x"), **members)
            return Chunk(artifact=Artifact(artifact_id="a", parts=(part,)), append=True)

        kinds = (of(), of(media_type="text/markdown"), of(filename="f"), of(metadata={"k": 1}), of(text=UNSET, data=1))
        (artifact,) = task(created(), *kinds, *kinds).artifacts
        assert len(artifact.parts) == 2 * len(kinds)

    def test_a_chunk_without_append_starts_over(self) -> None:
        (artifact,) = task(created(), chunk("a"), chunk("b", append=False), chunk("c")).artifacts
        assert said_in(artifact) == ["bc"]

    @pytest.mark.proves("S-12-7")
    def test_the_chunk_that_says_an_artifact_is_complete_adds_no_part(self) -> None:
        data = Chunk(artifact=Artifact(artifact_id="a", parts=(Part(data=1),)))
        ends = (chunk(""), chunk("", metadata={"k": 1}))
        (artifact,) = task(created(), data, *ends).artifacts
        assert said_in(artifact) == [1] and artifact.metadata == {"k": 1}
        assert view(by_cuts((created(), data, *ends), {2}).loaded((created(), data, *ends))).task.artifacts == (
            artifact,
        )
        (artifact,) = task(created(), chunk("", append=False), chunk("")).artifacts
        assert said_in(artifact) == [""], "an empty answer is an answer"

    def test_artifacts_keep_the_order_they_began_in(self) -> None:
        found = task(created(), chunk("1", id="x"), chunk("2", id="y"), chunk("3", id="x")).artifacts
        assert [(a.artifact_id, said_in(a)) for a in found] == [("x", ["13"]), ("y", ["2"])]

    def test_names_and_metadata_of_later_chunks_are_taken_in(self) -> None:
        (artifact,) = task(
            created(),
            chunk("a", name="one", metadata={"k": 1, "l": 1}, extensions=("urn:a",)),
            chunk("b", description="words"),
            chunk("c", name="two", metadata={"k": 2}, extensions=("urn:b", "urn:a")),
        ).artifacts
        assert (artifact.name, artifact.description) == ("two", "words")
        assert artifact.metadata == {"k": 2, "l": 1}
        assert artifact.extensions == ("urn:a", "urn:b")

    @given(st.lists(chunks, max_size=20))
    def test_merging_never_loses_nor_moves_a_byte(self, given: list[Chunk]) -> None:
        expected: dict[str, list[object]] = {}
        for fact in given:
            body = expected.setdefault(fact.artifact.artifact_id, [])
            if not fact.append:
                body.clear()
            for part in fact.artifact.parts:
                kind = (part.media_type, part.filename, part.metadata)
                if isinstance(part.text, str):
                    body += [(letter, kind) for letter in part.text]
                else:
                    body.append((part.raw, part.data))
        found = {
            artifact.artifact_id: [
                item
                for part in artifact.parts
                for item in (
                    [(letter, (part.media_type, part.filename, part.metadata)) for letter in part.text]
                    if isinstance(part.text, str)
                    else [(part.raw, part.data)]
                )
            ]
            for artifact in task(created(), *given).artifacts
        }
        assert found == expected

    def test_looking_at_a_growing_artifact_changes_nothing(self) -> None:
        live = fold(created(), chunk("a"))
        before = live.task()
        live.apply(3, chunk("b"))
        assert said_in(before.artifacts[0]) == ["a"]
        assert said_in(live.task().artifacts[0]) == ["ab"]


class TestHistory:
    def test_a_new_task_is_submitted_with_its_message(self) -> None:
        found = task(created("hi", at=1_767_225_600_700))
        assert found.status is not None and found.status.state is TaskState.SUBMITTED
        assert found.status.timestamp == "2026-01-01T00:00:00.700Z"
        assert found.history == (message("hi"),)

    def test_a_status_message_moves_to_history_once_the_status_changes(self) -> None:
        facts = (created("hi"), started(), said("one"), said("two"))
        found = task(*facts)
        assert found.history == (message("hi"), message("one"))
        assert found.status is not None and found.status.message == message("two")
        assert task(*facts, settled()).history == (message("hi"), message("one"), message("two"))

    def test_a_question_stands_before_its_answer(self) -> None:
        found = task(created("hi"), started(), asked(text="which?"), received("that", answers=0))
        assert found.history == (message("hi"), message("which?"), message("that"))
        assert found.status is not None and found.status.message is None

    def test_a_message_to_a_silent_task_is_just_one_more(self) -> None:
        assert task(created("hi"), started(), received("more")).history == (message("hi"), message("more"))

    def test_history_is_cut_from_the_front(self) -> None:
        seen = whole([created("1"), received("2"), received("3")])
        assert trimmed(seen, None) is seen
        assert trimmed(seen, 3) is seen
        assert trimmed(seen, 2).task.history == (message("2"), message("3"))
        assert trimmed(seen, 0).task.history == ()


class TestUsage:
    def test_nothing_used_is_nothing_told(self) -> None:
        assert fold(created()).usage is None

    def test_usage_adds_up_over_turns(self) -> None:
        facts = (created(), started("one"), used(1, 0), used(2, 1), started("two"), used(3, 0))
        assert fold(*facts).usage == Usage(input_tokens=6, output_tokens=12)

    @pytest.mark.proves("S-5-8")
    def test_a_rerun_counts_its_usage_once(self) -> None:
        facts = (created(), started("one"), used(1, 0), started("one", 2), used(1, 0), used(2, 1))
        assert fold(*facts).usage == Usage(input_tokens=3, output_tokens=6)

    def test_authors_counters_add_up_too(self) -> None:
        total = add(Usage(extra={"calls": 1, "images": 2}), Usage(extra={"calls": 3}))
        assert total.extra == {"calls": 4, "images": 2}
