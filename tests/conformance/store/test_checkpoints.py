"""Checkpoints: where folding may start."""

import pytest

from dragoman.model.messages import Artifact, Part
from dragoman.model.tasks import Task, Usage
from dragoman.ports import Checkpoint, Segment, Snapshot, Store
from tests.conformance.store.logs import OTHERS, OURS, chunk, finished, new, output

pytestmark = pytest.mark.anyio


def snapshot(n: int) -> Snapshot:
    return Snapshot(task=Task(id="u", metadata={"n": n}), usage=Usage(input_tokens=n), segmented=True)


def segment(seq: int, artifact: str, text: str, replace: bool = False) -> Segment:
    return Segment(seq=seq, artifact=Artifact(artifact_id=artifact, parts=(Part(text=text),)), replace=replace)


async def make(store: Store, seq: int, n: int, *segments: Segment) -> None:
    await store.checkpoint(Checkpoint(uid="u", scope=OURS, seq=seq, snapshot=snapshot(n), segments=segments))


@pytest.mark.proves("S-2-21")
async def test_load_starts_after_the_checkpoint_and_the_log_stays_whole(store: Store) -> None:
    await store.append(new("u"))
    await store.append(output("u", *(chunk(text=str(n)) for n in range(8))))
    before = await store.head(OURS, "u")
    await make(store, 6, 1)
    loaded = await store.load(OURS, "u")
    assert loaded and before
    assert loaded.snapshot == snapshot(1)
    assert [entry.seq for entry in loaded.entries] == [7, 8, 9, 10]
    assert (loaded.head.checkpoint_seq, loaded.head.seq, loaded.head.version) == (6, 10, before.version)
    assert len(await store.since(OURS, "u", 0)) == 10


async def test_a_checkpoint_at_the_end_leaves_no_entries_until_more_come(store: Store) -> None:
    await store.append(new("u"))
    await make(store, 2, 1)
    loaded = await store.load(OURS, "u")
    assert loaded and loaded.entries == () and loaded.head.seq == 2
    await store.append(output("u", chunk()))
    loaded = await store.load(OURS, "u")
    assert loaded and [entry.seq for entry in loaded.entries] == [3]


async def test_a_later_checkpoint_replaces_an_earlier_one_and_an_older_one_is_ignored(store: Store) -> None:
    await store.append(new("u"))
    await store.append(output("u", chunk(), chunk(), chunk()))
    await make(store, 3, 1)
    await make(store, 5, 2)
    await make(store, 4, 3)
    await make(store, 99, 4)
    loaded = await store.load(OURS, "u")
    assert loaded and loaded.snapshot == snapshot(2) and loaded.head.checkpoint_seq == 5


async def test_segments_come_back_in_order_and_replace_drops_those_of_their_artifact(store: Store) -> None:
    await store.append(new("u"))
    await store.append(output("u", *(chunk() for _ in range(8))))
    first = (segment(3, "a", "a1"), segment(3, "b", "b1"), segment(4, "a", "a2"))
    await make(store, 4, 1, *first)
    loaded = await store.load(OURS, "u")
    assert loaded and loaded.segments == first
    second = (segment(6, "a", "new", replace=True), segment(6, "b", "b2"))
    await make(store, 6, 2, *second)
    loaded = await store.load(OURS, "u")
    assert loaded and loaded.segments == (first[1], *second)


async def test_a_foreign_or_unknown_task_gets_no_checkpoint(store: Store) -> None:
    await store.append(new("u"))
    for scope in OTHERS:
        await store.checkpoint(Checkpoint(uid="u", scope=scope, seq=1, snapshot=snapshot(1)))
    await store.checkpoint(Checkpoint(uid="nobody", scope=OURS, seq=1, snapshot=snapshot(1)))
    loaded = await store.load(OURS, "u")
    assert loaded and loaded.snapshot is None and loaded.head.checkpoint_seq == 0


async def test_a_finished_task_can_be_checkpointed(store: Store) -> None:
    await finished(store, "u")
    await make(store, 4, 1)
    loaded = await store.load(OURS, "u")
    assert loaded and loaded.snapshot == snapshot(1) and loaded.entries == ()
