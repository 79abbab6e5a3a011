"""Retention: what goes, and that it goes whole."""

import pytest

from dragoman.model.messages import Artifact
from dragoman.model.tasks import Task, TaskState
from dragoman.ports import Checkpoint, KeyRecord, Query, Segment, Snapshot, Store
from tests.conformance.store.adapters import HeldClock
from tests.conformance.store.logs import OTHERS, OURS, asked, created, finished, new, output, started

pytestmark = pytest.mark.anyio


async def test_only_tasks_finished_before_the_time_are_deleted(store: Store, clock: HeldClock) -> None:
    at = clock.at
    await finished(store, "old", at - 10)
    await finished(store, "failed", at - 9, TaskState.FAILED)
    await finished(store, "foreign", at - 9, TaskState.CANCELED, scope=OTHERS[0])
    await finished(store, "young", at)
    await store.append(new("running", created(1), started(1)))
    await store.append(new("parked", created(1), started(1)))
    await store.append(output("parked", asked(1)))
    assert sorted(await store.sweep(terminal_before=at)) == ["failed", "foreign", "old"]
    assert sorted(item.head.uid for item in (await store.list(OURS, Query())).items) == ["parked", "running", "young"]
    assert list(await store.sweep(terminal_before=at)) == []


@pytest.mark.proves("S-2-21")
async def test_a_swept_task_leaves_nothing_behind(store: Store, clock: HeldClock) -> None:
    at = clock.at - 5
    await finished(store, "u", at, key=KeyRecord("k", "d"), id="mine")
    segment = Segment(seq=4, artifact=Artifact(artifact_id="a"))
    snapshot = Snapshot(task=Task(id="u"))
    await store.checkpoint(Checkpoint(uid="u", scope=OURS, seq=4, snapshot=snapshot, segments=(segment,)))
    assert await store.sweep(terminal_before=clock.at) == ["u"]
    assert await store.find(OURS, "mine") is None
    assert await store.head(OURS, "u") is None
    assert await store.load(OURS, "u") is None
    assert list(await store.since(OURS, "u", 0)) == []
    assert await store.key(OURS, "k") is None
    assert (await store.list(OURS, Query())).total == 0
    await finished(store, "u", at, key=KeyRecord("k", "d"), id="mine")
    loaded = await store.load(OURS, "u")
    assert loaded and loaded.snapshot is None and loaded.segments == () and len(loaded.entries) == 4


async def test_a_sweep_deletes_at_most_its_limit(store: Store, clock: HeldClock) -> None:
    for n in range(7):
        await finished(store, f"u{n}", clock.at - 10 + n)
    swept: list[int] = []
    while uids := await store.sweep(terminal_before=clock.at, limit=3):
        swept.append(len(uids))
    assert swept == [3, 3, 1]
