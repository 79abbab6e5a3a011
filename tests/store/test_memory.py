"""What memory:// forgets, and what it never forgets."""

import pytest

from dragoman.model.errors import StoreFull
from dragoman.ports import KeyRecord, Outcome, Query
from dragoman.store.memory import HOUR, MemoryStore
from tests.conformance.store.adapters import HeldClock
from tests.conformance.store.logs import OURS, asked, created, finished, hook, new, output, started

pytestmark = pytest.mark.anyio


async def uids(store: MemoryStore) -> list[str]:
    return sorted(item.head.uid for item in (await store.list(OURS, Query(limit=10_000))).items)


async def test_one_task_too_many_evicts_the_one_that_finished_first() -> None:
    store = MemoryStore(max_tasks=3)
    at = store.now()
    await store.append(new("running", created(at), started(at)))
    await finished(store, "first", at, key=KeyRecord("k", "d"))
    await finished(store, "second", at)
    await store.append(new("third"))
    assert await uids(store) == ["running", "second", "third"]
    assert await store.key(OURS, "k") is None
    assert await store.find(OURS, "first") is None


async def test_a_task_of_whose_end_somebody_is_still_to_hear_goes_last_but_goes() -> None:
    store = MemoryStore(max_tasks=3)
    at = store.now()
    for uid in ("first", "second"):
        await finished(store, uid, at)
        await store.keep_hook(hook(uid))
    await finished(store, "third", at)
    await store.append(new("fourth", created(at), started(at)))
    assert await uids(store) == ["first", "fourth", "second"]
    (first, _) = await store.due_deliveries(10)
    await store.record([Outcome(id=first.id, delivered=True)])
    await store.append(new("fifth", created(at), started(at)))
    assert await uids(store) == ["fifth", "fourth", "second"]
    await store.append(new("sixth", created(at), started(at)))
    assert await uids(store) == ["fifth", "fourth", "sixth"]
    assert await store.next_delivery_at() == 0 and not await store.hooks(OURS)


@pytest.mark.proves("D-5-7")
async def test_the_default_limit_is_a_thousand_tasks() -> None:
    store = MemoryStore()
    at = store.now()
    for n in range(1_001):
        await finished(store, f"u{n:04}", at)
    kept = await uids(store)
    assert len(kept) == 1_000 and "u0000" not in kept and "u1000" in kept


@pytest.mark.proves("D-5-8", "S-5-17")
async def test_running_and_parked_tasks_are_never_evicted_the_new_one_is_refused() -> None:
    store = MemoryStore(max_tasks=2)
    await store.append(new("running"))
    await store.append(new("parked"))
    await store.append(output("parked", asked()))
    with pytest.raises(StoreFull, match="unfinished"):
        await store.append(new("third", key=KeyRecord("k", "d")))
    assert await uids(store) == ["parked", "running"]
    assert await store.key(OURS, "k") is None


async def conversation(store: MemoryStore, context: str) -> list[str]:
    page = await store.list(OURS, Query(context_id=context, known=True))
    return sorted(item.head.uid for item in page.items)


async def test_one_context_too_many_makes_it_forget_the_oldest_conversation_but_no_task() -> None:
    store = MemoryStore(max_contexts=2)
    at = store.now()
    await finished(store, "a1", at, context="a")
    await store.append(new("a2", created(at), started(at), context="a"))
    await finished(store, "b1", at, context="b")
    await finished(store, "b2", at, context="b")
    await store.append(new("c1", context="c"))
    assert await uids(store) == ["a1", "a2", "b1", "b2", "c1"]
    assert [await conversation(store, context) for context in "abc"] == [["a1", "a2"], [], ["c1"]]
    listed = await store.list(OURS, Query(context_id="b"))
    assert listed.total == len(listed.items) == 2
    await finished(store, "b3", at, context="b")
    assert await conversation(store, "b") == ["b3"]


async def test_contexts_in_which_something_goes_on_are_never_forgotten_and_keep_nobody_out() -> None:
    store = MemoryStore(max_tasks=4, max_contexts=2)
    for context in "abc":
        await store.append(new(f"{context}1", context=context))
    await finished(store, "b2", store.now(), context="b")
    assert [await conversation(store, context) for context in "abc"] == [["a1"], ["b1", "b2"], ["c1"]]
    await store.append(new("d1", context="d"))
    assert await uids(store) == ["a1", "b1", "c1", "d1"]
    assert await conversation(store, "b") == ["b1"]


async def test_a_conversation_is_forgotten_with_its_last_task() -> None:
    clock = HeldClock(10 * HOUR)
    store = MemoryStore(max_contexts=1, clock=clock)
    await finished(store, "a1", clock.at, context="a")
    await finished(store, "b1", clock.at, context="b")
    clock.at += HOUR + 1
    assert sorted(await store.sweep(terminal_before=0)) == ["a1", "b1"]
    assert store._contexts == {}


async def test_the_default_limit_is_five_hundred_conversations() -> None:
    store = MemoryStore()
    at = store.now()
    for n in range(501):
        await finished(store, f"u{n:03}", at, context=f"c{n:03}")
    assert len(await uids(store)) == 501
    assert await conversation(store, "c000") == []
    assert await conversation(store, "c001") == ["u001"] and await conversation(store, "c500") == ["u500"]


@pytest.mark.proves("D-5-7")
async def test_what_finished_an_hour_ago_goes_with_the_next_task() -> None:
    clock = HeldClock(10 * HOUR)
    store = MemoryStore(clock=clock)
    await finished(store, "old", clock.at)
    await store.append(new("running", created(clock.at), started(clock.at)))
    clock.at += HOUR
    await finished(store, "young", clock.at)
    assert await uids(store) == ["old", "running", "young"]
    clock.at += 1
    await store.append(new("next"))
    assert await uids(store) == ["next", "running", "young"]


async def test_a_sweep_keeps_to_the_shorter_of_both_times() -> None:
    clock = HeldClock(10 * HOUR)
    store = MemoryStore(clock=clock, ttl=1_000)
    await finished(store, "u", clock.at)
    assert await store.sweep(terminal_before=0) == []
    clock.at += 1_001
    assert await store.sweep(terminal_before=0) == ["u"]
