"""Idempotency keys."""

import asyncio

import pytest

from dragoman.model.errors import Conflict, KeyTaken
from dragoman.model.tasks import TaskState
from dragoman.ports import KeyRecord, Query, Store
from tests.conformance.store.adapters import HeldClock
from tests.conformance.store.logs import OTHERS, OURS, finished, message, more, new, output, received, settled

pytestmark = pytest.mark.anyio


@pytest.mark.proves("S-7-1")
async def test_a_key_is_written_with_the_task_it_made(store: Store) -> None:
    await store.append(new("u", key=KeyRecord("k", "digest")))
    assert await store.key(OURS, "k") == KeyRecord("k", "digest", uid="u", at=1_000_000)


async def test_a_second_use_is_refused_with_the_first_and_makes_no_task(store: Store) -> None:
    await store.append(new("u", key=KeyRecord("k", "one")))
    with pytest.raises(KeyTaken) as refused:
        await store.append(new("v", key=KeyRecord("k", "two")))
    assert refused.value.record == await store.key(OURS, "k")
    assert await store.head(OURS, "v") is None
    assert (await store.list(OURS, Query())).total == 1


@pytest.mark.proves("S-7-8")
async def test_of_two_uses_in_one_tick_the_first_wins_and_others_are_untouched(store: Store) -> None:
    answers = await asyncio.gather(
        store.append(new("u", key=KeyRecord("k", "d"))),
        store.append(new("v", key=KeyRecord("k", "d"))),
        store.append(new("w")),
        return_exceptions=True,
    )
    assert [type(answer).__name__ for answer in answers] == ["Appended", "KeyTaken", "Appended"]


@pytest.mark.proves("S-7-5")
async def test_a_refused_append_does_not_use_up_its_key(store: Store) -> None:
    await store.append(new("u", id="mine"))
    with pytest.raises(Conflict):
        await store.append(new("v", id="mine", key=KeyRecord("k", "d")))
    assert await store.key(OURS, "k") is None
    await store.append(new("v", key=KeyRecord("k", "d")))


async def test_a_taken_key_is_told_before_a_taken_id(store: Store) -> None:
    await store.append(new("u", id="mine", key=KeyRecord("k", "d")))
    with pytest.raises(KeyTaken):
        await store.append(new("v", id="mine", key=KeyRecord("k", "d")))


@pytest.mark.proves("S-7-1")
async def test_a_key_is_written_with_the_message_it_came_with(store: Store) -> None:
    head = (await store.append(new("u", key=KeyRecord("first", "d")))).head
    head = (await store.append(more(head, received(), key=KeyRecord("k", "d")))).head
    assert await store.key(OURS, "k") == KeyRecord("k", "d", uid="u", at=1_000_000)
    with pytest.raises(KeyTaken):
        await store.append(more(head, received(), key=KeyRecord("k", "d")))
    with pytest.raises(KeyTaken):
        await store.append(new("v", key=KeyRecord("k", "d")))
    assert (await store.append(more(head, received()))).first == head.seq + 1, "what was refused wrote nothing"


@pytest.mark.proves("S-7-5")
async def test_a_refused_message_does_not_use_up_its_key(store: Store) -> None:
    head = (await store.append(new("u"))).head
    await store.append(more(head, received()))
    with pytest.raises(Conflict):
        await store.append(more(head, received(), key=KeyRecord("k", "d")))
    assert await store.key(OURS, "k") is None


@pytest.mark.proves("S-7-8")
async def test_of_two_messages_with_one_key_in_one_tick_one_is_kept(store: Store) -> None:
    one, two = (await store.append(new("u"))).head, (await store.append(new("v"))).head
    answers = await asyncio.gather(
        store.append(more(one, received(), key=KeyRecord("k", "d"))),
        store.append(more(two, received(), key=KeyRecord("k", "d"))),
        return_exceptions=True,
    )
    assert [type(answer).__name__ for answer in answers] == ["Appended", "KeyTaken"]


async def test_a_taken_key_is_told_before_a_finished_task(store: Store) -> None:
    head = (await finished(store, "u", key=KeyRecord("k", "d"))).head
    with pytest.raises(KeyTaken):
        await store.append(more(head, received(), key=KeyRecord("k", "d")))


@pytest.mark.proves("S-7-7")
async def test_all_keys_of_a_task_go_with_it(store: Store, clock: HeldClock) -> None:
    head = (await store.append(new("u", key=KeyRecord("k", "d")))).head
    await store.append(more(head, received(), key=KeyRecord("l", "d")))
    await store.append(output("u", settled(state=TaskState.FAILED)))
    clock.at += 1_000
    await store.sweep(terminal_before=clock.at)
    assert await store.key(OURS, "k") is None and await store.key(OURS, "l") is None
    await store.append(new("v", key=KeyRecord("l", "d")))


@pytest.mark.proves("S-7-1")
async def test_keys_belong_to_their_scope(store: Store) -> None:
    await store.append(new("u", key=KeyRecord("k", "d")))
    for n, scope in enumerate(OTHERS):
        assert await store.key(scope, "k") is None
        await store.append(new(f"o{n}", scope=scope, key=KeyRecord("k", "d")))


async def test_a_direct_reply_is_kept_under_its_key_once(store: Store) -> None:
    record = KeyRecord("k", "d", message=message("the reply"))
    await store.keep_key(OURS, record)
    kept = await store.key(OURS, "k")
    assert kept == KeyRecord("k", "d", message=message("the reply"), at=1_000_000)
    with pytest.raises(KeyTaken) as refused:
        await store.keep_key(OURS, KeyRecord("k", "other"))
    assert refused.value.record == kept
    with pytest.raises(KeyTaken):
        await store.append(new("u", key=KeyRecord("k", "d")))


async def test_two_direct_replies_in_one_tick_keep_one(store: Store) -> None:
    answers = await asyncio.gather(
        *(store.keep_key(OURS, KeyRecord("k", str(n))) for n in range(3)), return_exceptions=True
    )
    assert [answer is None for answer in answers] == [True, False, False]
    kept = await store.key(OURS, "k")
    assert kept and kept.digest == "0"


@pytest.mark.proves("S-7-7")
async def test_a_sweep_frees_old_keys_of_replies_but_not_of_tasks_that_stay(store: Store, clock: HeldClock) -> None:
    await store.append(new("u", key=KeyRecord("task", "d")))
    await store.keep_key(OURS, KeyRecord("old", "d"))
    clock.at += 1_000
    await store.keep_key(OURS, KeyRecord("young", "d"))
    await store.sweep(terminal_before=clock.at)
    assert await store.key(OURS, "old") is None
    assert await store.key(OURS, "young") is not None
    assert await store.key(OURS, "task") is not None
