"""Claims: who may run a task, what is left for others, what is overdue."""

import asyncio

import pytest

from dragoman.model.errors import Conflict
from dragoman.model.tasks import TaskState
from dragoman.ports import Store
from tests.conformance.store.adapters import HeldClock
from tests.conformance.store.logs import (
    OTHERS,
    OURS,
    asked,
    cancel,
    chunk,
    created,
    finished,
    more,
    new,
    output,
    settled,
    started,
)

pytestmark = pytest.mark.anyio


async def claimable(store: Store, limit: int = 10) -> list[str]:
    return [head.uid for head in await store.claimable(limit)]


@pytest.mark.proves("S-4-5")
async def test_a_claim_gives_a_new_epoch_and_outdates_everybody_else(store: Store) -> None:
    before = (await store.append(new("u"))).head
    epoch = await store.claim(OURS, "u", "r2", 1_000)
    assert epoch == 2
    head = await store.head(OURS, "u")
    assert head and head.epoch == 2 and head.version > before.version and head.seq == before.seq
    with pytest.raises(Conflict):
        await store.append(output("u", chunk()))
    with pytest.raises(Conflict):
        await store.append(more(before, cancel()))
    await store.append(output("u", chunk(), epoch=2))


@pytest.mark.proves("S-4-3")
async def test_a_held_task_cannot_be_claimed_until_its_claim_lapses(store: Store, clock: HeldClock) -> None:
    await store.append(new("u", created(), started(replica="r1")))
    assert await store.claim(OURS, "u", "r2", 1_000) is None
    clock.at += 60_000
    assert await store.claim(OURS, "u", "r2", 1_000) == 2
    assert await store.claim(OURS, "u", "r3", 1_000) is None
    clock.at += 1_000
    assert await store.claim(OURS, "u", "r3", 1_000) == 3


async def test_only_one_of_many_claims_at_once_wins(store: Store) -> None:
    await store.append(new("u"))
    epochs = await asyncio.gather(*(store.claim(OURS, "u", f"r{n}", 1_000) for n in range(5)))
    assert sorted(epochs, key=lambda epoch: epoch or 0) == [None, None, None, None, 2]


async def test_finished_foreign_and_unknown_tasks_cannot_be_claimed(store: Store) -> None:
    await finished(store, "done")
    await store.append(new("u"))
    assert await store.claim(OURS, "done", "r", 1_000) is None
    assert await store.claim(OTHERS[0], "u", "r", 1_000) is None
    assert await store.claim(OURS, "nobody", "r", 1_000) is None


@pytest.mark.proves("S-4-3")
async def test_a_heartbeat_prolongs_what_is_held_and_tells_what_is_lost(store: Store, clock: HeldClock) -> None:
    await store.append(new("mine", created(), started(replica="r1")))
    await store.append(new("theirs", created(), started(replica="r2")))
    await store.append(new("gone", created(), started(replica="r1")))
    await store.append(output("gone", settled()))
    assert sorted(await store.heartbeat("r1", ["mine", "theirs", "gone", "nobody"], 100_000)) == [
        "gone",
        "nobody",
        "theirs",
    ]
    clock.at += 90_000
    assert await store.claim(OURS, "mine", "r3", 1_000) is None
    assert await claimable(store) == ["theirs"]


@pytest.mark.proves("S-4-3")
async def test_a_released_task_is_free_at_once_but_only_its_holder_can_release_it(store: Store) -> None:
    await store.append(new("u", created(), started(replica="r1")))
    await store.release("r2", ["u"])
    assert await claimable(store) == []
    await store.release("r1", ["u"])
    assert await claimable(store) == ["u"]


@pytest.mark.proves("S-4-3")
async def test_claimable_are_tasks_nobody_runs_oldest_first(store: Store) -> None:
    await store.append(new("queued", created(3)))
    await store.append(new("unclaimed", created(2), started(4)))
    await store.append(new("running", created(1), started(1, replica="r1")))
    await store.append(new("parked", created(1), started(1)))
    await store.append(output("parked", asked()))
    await finished(store, "done")
    assert await claimable(store) == ["unclaimed", "queued"]
    assert await claimable(store, 1) == ["unclaimed"]


async def test_a_held_question_must_be_held_by_somebody(store: Store, clock: HeldClock) -> None:
    await store.append(new("u", created(), started(replica="r1")))
    await store.append(output("u", asked(hold=True)))
    assert await claimable(store) == []
    clock.at += 60_000
    assert await claimable(store) == ["u"]


async def test_parking_lets_the_claim_go(store: Store) -> None:
    await store.append(new("u", created(), started(replica="r1")))
    await store.append(output("u", asked()))
    assert await store.heartbeat("r1", ["u"], 1_000) == ["u"]
    assert await store.claim(OURS, "u", "r2", 1_000) == 2


@pytest.mark.proves("S-4-3")
async def test_due_are_passed_cancel_deadlines_and_expiries(store: Store, clock: HeldClock) -> None:
    now = clock.at
    for uid, deadline in (("past", now - 5), ("now", now), ("future", now + 1)):
        await store.append(more((await store.append(new(uid))).head, cancel(deadline=deadline)))
    for uid, expires in (("expired", now - 1), ("waits", now + 50), ("forever", 0)):
        await store.append(new(uid))
        await store.append(output(uid, asked(expires=expires)))
    await store.append(more((await store.append(new("ended"))).head, cancel(deadline=1), settled()))
    assert [head.uid for head in await store.due(10)] == ["past", "expired", "now"]
    assert [head.uid for head in await store.due(1)] == ["past"]
    clock.at += 50
    assert {head.uid for head in await store.due(10)} == {"past", "now", "future", "expired", "waits"}


@pytest.mark.proves("S-4-6")
async def test_recovery_lapses_every_claim(store: Store) -> None:
    await store.append(new("u", created(), started(replica="r1")))
    await store.recover()
    assert await claimable(store) == ["u"]
    assert await store.heartbeat("r1", ["u"], 1_000) == ["u"]
    head = await store.head(OURS, "u")
    assert head and head.state is TaskState.WORKING
