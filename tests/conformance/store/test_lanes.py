"""Lanes: what waits for one receiver never stands before what waits for another."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from dragoman.ports import Delivery, HookedStore, Outcome
from tests.conformance.store.adapters import Adapter, HeldClock
from tests.conformance.store.logs import OURS, asked, created, hook, more, new, output, said, settled

pytestmark = pytest.mark.anyio

ONE, TWO, THREE = "https://one.example", "https://two.example", "https://three.example"


def host(delivery: Delivery) -> str:
    return delivery.hook.config.url.rpartition("/")[0]


async def ended(store: HookedStore, uid: str, *hosts: str) -> None:
    """A task that ended, whose hooks call these hosts."""
    hooks = tuple(hook(uid, f"h{n}", name.removeprefix("https://")) for n, name in enumerate(hosts))
    await store.append(new(uid, hooks=hooks))
    await store.append(output(uid, settled()))


async def pile(store: HookedStore, name: str, count: int, of: str = "p") -> None:
    await asyncio.gather(*(ended(store, f"{of}{n}", name) for n in range(count)))


async def arrive(store: HookedStore, deliveries: Sequence[Delivery]) -> None:
    await store.record([Outcome(id=each.id, delivered=True) for each in deliveries])


async def test_a_call_answers_no_more_than_was_asked_for_and_a_share_of_each_lane(store: HookedStore) -> None:
    await pile(store, ONE, 10)
    await pile(store, TWO, 10, "q")
    first = await store.due_deliveries(8, share=3)
    assert Counter(map(host, first)) == {ONE: 3, TWO: 3}
    assert len(await store.due_deliveries(5)) == 5
    rest = await store.due_deliveries(100)
    assert len(rest) == 9
    assert len({each.id for each in (*first, *rest)}) == 15


async def test_a_pile_in_one_lane_does_not_stand_before_another(store: HookedStore, clock: HeldClock) -> None:
    await pile(store, ONE, 40)
    clock.at += 1_000
    await ended(store, "late", TWO)
    found: list[Delivery] = []
    for _ in range(2):
        batch = await store.due_deliveries(4, share=4)
        await arrive(store, batch)
        found += batch
    assert TWO in map(host, found)


async def test_lanes_are_served_in_turn_for_as_long_as_they_have_something(
    store: HookedStore, clock: HeldClock
) -> None:
    for place, name in enumerate((ONE, TWO, THREE)):
        await pile(store, name, 12, f"{place}.")
        clock.at += 100
    served: list[str] = []
    while batch := await store.due_deliveries(2, share=2):
        assert len(set(map(host, batch))) == 1
        served.append(host(batch[0]))
        await arrive(store, batch)
    for at in range(0, 18, 3):
        assert set(served[at : at + 3]) == {ONE, TWO, THREE}


async def test_busy_lanes_are_left_out_and_keep_what_waits(store: HookedStore, clock: HeldClock) -> None:
    await ended(store, "u", ONE, TWO)
    assert [host(each) for each in await store.due_deliveries(10, busy=[ONE])] == [TWO]
    assert not await store.due_deliveries(10, busy={ONE})
    assert await store.next_delivery_at(busy=(ONE,)) == 0
    assert await store.next_delivery_at() == clock.at
    assert [host(each) for each in await store.due_deliveries(10)] == [ONE]


async def test_the_next_time_leaves_out_busy_lanes(store: HookedStore, clock: HeldClock) -> None:
    start = clock.at
    await ended(store, "u", ONE, TWO, THREE)
    for each in await store.due_deliveries(10):
        wait = {ONE: 1_000, TWO: 2_000, THREE: 3_000}[host(each)]
        await store.record([Outcome(id=each.id, due=start + wait, error="x")])
    assert await store.next_delivery_at() == start + 1_000
    assert await store.next_delivery_at(busy=[ONE]) == start + 2_000
    assert await store.next_delivery_at(busy=[ONE, TWO]) == start + 3_000
    assert await store.next_delivery_at(busy=[ONE, TWO, THREE]) == 0
    clock.at = start + 2_000
    assert {host(each) for each in await store.due_deliveries(10)} == {ONE, TWO}
    assert await store.next_delivery_at() == start + 3_000


async def test_of_a_lane_what_is_due_first_comes_first(store: HookedStore, clock: HeldClock) -> None:
    order = ["c", "a", "b"]
    for uid in order:
        clock.at += 10
        await ended(store, uid, ONE)
    assert [each.hook.uid for each in await store.due_deliveries(10)] == order


async def test_ports_and_schemes_are_lanes_of_their_own_and_paths_are_not(store: HookedStore) -> None:
    hooks = [hook("u", "a", "one.example"), hook("u", "b", "one.example:444"), hook("u", "c", "ONE.example")]
    await store.append(new("u", hooks=tuple(hooks)))
    assert len(await store.due_deliveries(10, share=1)) == 2


async def test_hooks_that_move_to_another_receiver_wait_there(store: HookedStore, clock: HeldClock) -> None:
    await ended(store, "u", ONE)
    await store.keep_hook(hook("u", "h0", "two.example"))
    assert not await store.due_deliveries(10, busy=[TWO])
    (moved,) = await store.due_deliveries(10, busy=[ONE])
    assert host(moved) == TWO
    # The same while it is under way.
    await store.keep_hook(hook("u", "h0", "three.example"))
    assert not await store.due_deliveries(10)
    store.put_back([moved.id])
    (again,) = await store.due_deliveries(10, busy=[ONE, TWO])
    assert host(again) == THREE
    await store.record([Outcome(id=again.id, due=clock.at + 1, error="x")])
    assert await store.next_delivery_at(busy=[ONE, TWO]) == clock.at + 1


async def test_many_that_move_while_they_are_under_way_hide_nothing(store: HookedStore) -> None:
    await pile(store, ONE, 20)
    under_way = await store.due_deliveries(20)
    for each in under_way:
        await store.keep_hook(hook(each.hook.uid, "h0", "two.example"))
    await ended(store, "u", TWO)
    assert [each.hook.uid for each in await store.due_deliveries(10)] == ["u"]
    store.put_back([each.id for each in under_way])
    assert len(await store.due_deliveries(100)) == 20


async def test_a_lane_whose_hooks_were_dropped_is_empty(store: HookedStore, clock: HeldClock) -> None:
    await ended(store, "u", ONE, TWO)
    await store.drop_hook(OURS, "u", "h0")
    assert [host(each) for each in await store.due_deliveries(10)] == [TWO]
    assert await store.next_delivery_at() == 0
    await ended(store, "v", ONE)
    (delivery,) = await store.due_deliveries(10)
    await store.record([Outcome(id=delivery.id, due=clock.at + 5, error="x")])
    await store.drop_hook(OURS, "v", "h0")
    assert await store.next_delivery_at() == 0


async def test_what_waits_survives_a_restart_and_nothing_is_under_way_after_it(
    durable: Adapter, clock: HeldClock, tmp_path: Path
) -> None:
    first = durable.make(tmp_path, clock)
    await first.open()
    await ended(first, "sent", ONE)
    await ended(first, "failed", TWO)
    await ended(first, "dead", THREE)
    found = {each.hook.uid: each.id for each in await first.due_deliveries(10)}
    await first.record(
        [
            Outcome(id=found["failed"], due=clock.at + 3_000, error="it said 500", body=b"{}", media_type="x/y"),
            Outcome(id=found["dead"], dead=True, error="it said 404"),
        ]
    )
    head = (await first.append(new("u", created(), hooks=(hook("u"),)))).head
    head = (await first.append(more(head, asked()))).head
    await first.close()
    second = durable.make(tmp_path, clock)
    await second.open()
    assert await second.next_delivery_at() == clock.at
    again = await second.due_deliveries(10)
    assert {(each.id, each.hook.uid) for each in again} == {(found["sent"], "sent"), (again[-1].id, "u")}
    await arrive(second, again)
    assert await second.next_delivery_at() == clock.at + 3_000
    clock.at += 3_000
    (failed,) = await second.due_deliveries(10)
    assert (failed.id, failed.attempts, failed.error, failed.body) == (found["failed"], 1, "it said 500", b"{}")
    (dead,) = await second.dead_deliveries()
    assert (dead.id, dead.error, dead.dead) == (found["dead"], "it said 404", True)
    await second.close()


async def test_the_pause_between_calm_news_survives_a_restart(
    durable: Adapter, clock: HeldClock, tmp_path: Path
) -> None:
    first = durable.make(tmp_path, clock)
    await first.open()
    await first.append(new("u", hooks=(hook("u"),)))
    await arrive(first, await first.due_deliveries(10))
    await first.close()
    second = durable.make(tmp_path, clock)
    await second.open()
    clock.at += 100
    await second.append(output("u", said()))
    assert await second.next_delivery_at() == clock.at + 1_400
    await second.close()
