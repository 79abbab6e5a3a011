"""What an owner has is counted with every append, and no append gives one more than it says they may have."""

import asyncio
from pathlib import Path

import pytest
from msgspec.structs import replace

from dragoman.model.errors import Conflict, KeyTaken, OverBudget
from dragoman.model.tasks import Scope, Task, TaskState
from dragoman.ports import Append, Appended, Checkpoint, KeyRecord, Lifecycle, New, Snapshot, Store, Tally
from tests.conformance.store.adapters import Adapter, HeldClock, HookedStore
from tests.conformance.store.logs import OURS, asked, chunk, created, more, new, output, received, settled, started

pytestmark = pytest.mark.anyio

ELSEWHERE = Scope("other", "else", OURS.owner)
STRANGER = Scope(OURS.agent, OURS.tenant, "stranger")


def bounded(append: Append, tasks: int = 0, bytes: int = 0) -> Append:
    guard = append.guard
    assert isinstance(guard, New | Lifecycle)
    return replace(append, guard=replace(guard, most=Tally(tasks, bytes)))


async def over(store: Store, append: Append) -> OverBudget:
    with pytest.raises(OverBudget) as refused:
        await store.append(append)
    return refused.value


# --- counting


async def test_nobody_has_anything_at_first(store: HookedStore) -> None:
    assert await store.tally(OURS.owner) == Tally(0, 0)


async def test_unfinished_tasks_and_all_bytes_are_counted_over_agents_and_tenants(store: HookedStore) -> None:
    await store.append(new("a", size=100))
    await store.append(new("b", scope=ELSEWHERE, size=10))
    await store.append(new("s", scope=STRANGER, size=1_000))
    assert await store.tally(OURS.owner) == Tally(2, 110)
    await store.append(output("a", asked(), size=5))
    assert (await store.tally(OURS.owner)).tasks == 2  # who waits for an answer is not finished
    await store.append(output("b", settled(), scope=ELSEWHERE, size=5))
    assert await store.tally(OURS.owner) == Tally(1, 120)
    assert await store.tally(STRANGER.owner) == Tally(1, 1_000)


@pytest.mark.parametrize("state", [TaskState.COMPLETED, TaskState.FAILED, TaskState.CANCELED, TaskState.REJECTED])
async def test_however_a_task_ends_it_is_finished(store: HookedStore, state: TaskState) -> None:
    await store.append(new("a", size=3))
    await store.append(output("a", settled(state=state), size=4))
    assert await store.tally(OURS.owner) == Tally(0, 7)


async def test_output_is_counted_when_its_turn_ends_at_the_latest(store: HookedStore) -> None:
    await store.append(new("a", size=1))
    for _ in range(50):
        await store.append(output("a", chunk(), size=10))
    assert 1 <= (await store.tally(OURS.owner)).bytes <= 501
    await store.append(output("a", settled(), size=2))
    assert await store.tally(OURS.owner) == Tally(0, 503)


async def test_a_checkpoint_counts_what_it_covers(store: HookedStore) -> None:
    await store.append(new("a", size=1))
    await store.append(output("a", *[chunk() for _ in range(20)], size=200))
    await store.checkpoint(Checkpoint(uid="a", scope=OURS, seq=10, snapshot=Snapshot(task=Task(id="a"))))
    assert await store.tally(OURS.owner) == Tally(1, 201)
    await store.append(output("a", settled(), size=2))
    assert await store.tally(OURS.owner) == Tally(0, 203)


async def test_a_task_that_begins_and_ends_in_one_append_is_finished(store: HookedStore) -> None:
    await store.append(new("a", created(), started(), settled(), size=9))
    assert await store.tally(OURS.owner) == Tally(0, 9)


async def test_what_is_deleted_counts_no_longer(store: HookedStore, clock: HeldClock) -> None:
    clock.at = 10_000_000
    for uid in ("a", "b"):
        await store.append(new(uid, created(at=clock.at), started(at=clock.at), size=10))
        await store.append(output(uid, chunk(), size=90))
    await store.append(output("a", settled(at=clock.at), size=1))
    clock.at += 10_000_000
    assert await store.sweep(terminal_before=clock.at - 1) == ["a"]
    assert (await store.tally(OURS.owner)).tasks == 1
    await store.append(output("b", settled(at=clock.at), size=1))
    assert await store.tally(OURS.owner) == Tally(0, 101)
    clock.at += 10_000_000
    await store.sweep(terminal_before=clock.at - 1)
    assert await store.tally(OURS.owner) == Tally(0, 0)


async def test_counters_survive(durable: Adapter, clock: HeldClock, tmp_path: Path) -> None:
    store = durable.make(tmp_path, clock)
    await store.open()
    await store.append(new("a", size=10))
    await store.append(output("a", chunk(), size=90))
    await store.append(new("b", size=1))
    await store.append(output("b", settled(), size=2))
    await store.close()
    store = durable.make(tmp_path, clock)
    await store.open()
    has = await store.tally(OURS.owner)
    assert has.tasks == 1
    assert 13 <= has.bytes <= 103
    await store.append(output("a", settled(), size=5))
    assert await store.tally(OURS.owner) == Tally(0, 108)
    assert (await over(store, bounded(new("c", size=1), bytes=108))).what == "bytes"
    await store.close()


# --- bounds


async def test_a_task_too_many_is_refused_and_leaves_nothing_behind(store: HookedStore) -> None:
    await store.append(bounded(new("a"), tasks=2))
    await store.append(bounded(new("b", scope=ELSEWHERE), tasks=2))
    refused = await over(store, bounded(new("c", key=KeyRecord("k", "d")), tasks=2))
    assert (refused.what, refused.most) == ("tasks", 2)
    assert await store.head(OURS, "c") is None
    assert await store.key(OURS, "k") is None
    await store.append(bounded(new("s", scope=STRANGER), tasks=2))
    await store.append(output("a", settled()))
    await store.append(bounded(new("c"), tasks=2))


async def test_bytes_too_many_are_refused_in_new_tasks_and_further_messages(store: HookedStore) -> None:
    head = (await store.append(bounded(new("a", size=60), bytes=100))).head
    assert (await over(store, bounded(new("b", size=41), bytes=100))).what == "bytes"
    assert (await over(store, bounded(more(head, received(), size=41), bytes=100))).most == 100
    await store.append(bounded(more(head, received(), size=40), bytes=100))
    assert await store.tally(OURS.owner) == Tally(1, 100)


async def test_a_further_message_is_no_further_task(store: HookedStore) -> None:
    head = (await store.append(new("a"))).head
    await store.append(bounded(more(head, received()), tasks=1))


async def test_output_is_never_refused(store: HookedStore) -> None:
    """Whoever was let in may end."""
    await store.append(bounded(new("a", size=10), tasks=1, bytes=10))
    await store.append(output("a", chunk(), size=1_000))
    await store.append(output("a", settled(), size=1_000))
    assert await store.tally(OURS.owner) == Tally(0, 2_010)


async def test_without_bounds_nobody_is_refused(store: HookedStore) -> None:
    for number in range(20):
        await store.append(bounded(new(str(number), size=1_000_000)))
    assert await store.tally(OURS.owner) == Tally(20, 20_000_000)


async def test_of_many_at_once_no_more_are_let_in_than_may_be(store: HookedStore) -> None:
    appends = [store.append(bounded(new(f"t{number}", size=10), tasks=5, bytes=1_000)) for number in range(20)]
    answers = await asyncio.gather(*appends, return_exceptions=True)
    assert sum(isinstance(each, Appended) for each in answers) == 5
    assert sum(isinstance(each, OverBudget) for each in answers) == 15
    assert await store.tally(OURS.owner) == Tally(5, 50)


async def test_a_repeat_and_a_taken_name_are_told_so_also_by_who_has_too_much(store: HookedStore) -> None:
    key = KeyRecord("k", "d")
    await store.append(bounded(new("a", id="mine", key=key), tasks=1))
    with pytest.raises(KeyTaken):
        await store.append(bounded(new("b", key=key), tasks=1))
    with pytest.raises((Conflict, OverBudget)):
        await store.append(bounded(new("c", id="mine"), tasks=1))


async def test_what_is_refused_for_another_reason_costs_nothing(store: HookedStore) -> None:
    head = (await store.append(bounded(new("a", size=1), tasks=3))).head
    await store.append(more(head, received(), size=1))
    with pytest.raises(Conflict):
        await store.append(bounded(more(head, received(), size=50), bytes=1_000))
    with pytest.raises(Conflict):
        await store.append(bounded(new("b", id="a", size=50), tasks=3))
    assert await store.tally(OURS.owner) == Tally(1, 2)
