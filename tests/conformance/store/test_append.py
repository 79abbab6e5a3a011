"""Appending: numbers, guards, conflicts."""

import asyncio

import pytest

from dragoman.model.errors import Conflict
from dragoman.model.facts import AnyFact
from dragoman.model.tasks import TaskState
from dragoman.ports import Append, Appended, Lifecycle, New, Query, Store, Turn
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
    received,
    said,
    settled,
    started,
)

pytestmark = pytest.mark.anyio


@pytest.mark.proves("D-5-2", "S-2-2")
async def test_a_first_append_numbers_its_facts_from_one(store: Store) -> None:
    appended = await store.append(new("u", created(5), started(6)))
    assert (appended.first, appended.head.seq) == (1, 2)
    assert appended.head.uid == "u" and appended.head.scope == OURS and appended.head.context_id == "c"
    assert (appended.head.created_at, appended.head.status_at, appended.head.updated_at) == (5, 6, 6)


@pytest.mark.proves("S-2-2")
async def test_later_appends_continue_the_numbers_across_turns(store: Store) -> None:
    await store.append(new("u"))
    second = await store.append(output("u", chunk(), chunk()))
    third = await store.append(more(second.head, started(turn="t2", epoch=2)))
    fourth = await store.append(output("u", chunk(), turn="t2", epoch=2))
    assert [second.first, third.first, fourth.first] == [3, 5, 6]
    assert [entry.seq for entry in await store.since(OURS, "u", 0)] == [1, 2, 3, 4, 5, 6]


async def test_append_answers_only_after_control_went_back_to_the_caller(store: Store) -> None:
    pending = store.append(new("u"))
    assert asyncio.isfuture(pending)
    await pending


async def test_appends_of_one_tick_keep_their_order(store: Store) -> None:
    await store.append(new("u"))
    pending = [store.append(output("u", chunk(text=str(n)))) for n in range(300)]
    assert [(await appended).first for appended in pending] == list(range(3, 303))


async def test_a_task_can_begin_and_end_within_one_tick(store: Store) -> None:
    await asyncio.gather(
        store.append(new("u")), store.append(output("u", chunk())), store.append(output("u", settled()))
    )
    head = await store.head(OURS, "u")
    assert head and head.state is TaskState.COMPLETED and head.seq == 4
    assert (await store.list(OURS, Query())).total == 1


async def test_many_tasks_at_once_all_get_their_own_numbers(store: Store) -> None:
    await asyncio.gather(*(store.append(new(f"u{n}")) for n in range(200)))
    answers = await asyncio.gather(*(store.append(output(f"u{n}", chunk(), said())) for n in range(200)))
    assert {appended.first for appended in answers} == {3}


@pytest.mark.proves("S-2-15")
async def test_an_operation_with_an_old_version_is_refused_and_sees_the_head(store: Store) -> None:
    head = (await store.append(new("u"))).head
    await store.append(more(head, cancel()))
    with pytest.raises(Conflict) as refused:
        await store.append(more(head, received()))
    assert refused.value.head == await store.head(OURS, "u")


@pytest.mark.proves("S-2-15")
async def test_output_does_not_outdate_an_operation(store: Store) -> None:
    head = (await store.append(new("u"))).head
    await store.append(output("u", chunk(), said()))
    assert (await store.append(more(head, cancel()))).first == 5


@pytest.mark.proves("S-2-16")
@pytest.mark.parametrize("guard", [Turn("t0", 1), Turn("t1", 0), Turn("t1", 2)])
async def test_output_of_another_turn_or_epoch_is_refused(store: Store, guard: Turn) -> None:
    await store.append(new("u"))
    with pytest.raises(Conflict):
        await store.append(Append("u", OURS, (chunk(),), guard))
    assert len(await store.since(OURS, "u", 0)) == 2


@pytest.mark.proves("D-2-4", "S-2-16")
@pytest.mark.parametrize("fact", [chunk(), said(), settled(state=TaskState.FAILED), asked()])
async def test_nothing_follows_the_end(store: Store, fact: AnyFact) -> None:
    head = (await finished(store, "u")).head
    for guard in (Turn("t1", 1), Lifecycle(head.version)):
        with pytest.raises(Conflict):
            await store.append(Append("u", OURS, (fact,), guard))
    assert await store.head(OURS, "u") == head


async def test_a_turn_cannot_complete_over_an_untaken_message(store: Store) -> None:
    head = (await store.append(new("u"))).head
    await store.append(more(head, received()))
    with pytest.raises(Conflict):
        await store.append(output("u", settled()))
    assert (await store.append(output("u", started(turn="t2", epoch=2, took=1)))).head.queued == 0


@pytest.mark.proves("S-4-13")
async def test_the_first_of_two_ends_wins(store: Store) -> None:
    head = (await store.append(new("u"))).head
    one, two = await asyncio.gather(
        store.append(output("u", settled())),
        store.append(more(head, settled(state=TaskState.CANCELED))),
        return_exceptions=True,
    )
    assert not isinstance(one, BaseException) and isinstance(two, Conflict)
    assert one.head.state is TaskState.COMPLETED


@pytest.mark.proves("S-2-17")
async def test_a_conflict_touches_nobody_else_in_its_group(store: Store) -> None:
    await store.append(new("u"))
    answers = await asyncio.gather(
        *(store.append(output("u", chunk(), turn="t1" if n % 3 else "late")) for n in range(30)),
        *(store.append(new(f"n{n % 5}")) for n in range(10)),
        return_exceptions=True,
    )
    refused = [n for n, answer in enumerate(answers) if isinstance(answer, Conflict)]
    assert refused == [*range(0, 30, 3), *range(35, 40)]
    assert [entry.seq for entry in await store.since(OURS, "u", 0)] == list(range(1, 23))
    assert (await store.list(OURS, Query())).total == 6


@pytest.mark.proves("S-1-2")
async def test_an_id_is_given_once_per_scope(store: Store) -> None:
    first = await store.append(new("u1", id="mine"))
    with pytest.raises(Conflict) as refused:
        await store.append(new("u2", id="mine"))
    assert refused.value.head == first.head
    for n, scope in enumerate(OTHERS):
        await store.append(new(f"o{n}", id="mine", scope=scope))


async def test_of_two_first_appends_with_one_id_in_a_tick_one_wins(store: Store) -> None:
    answers = await asyncio.gather(
        *(store.append(new(f"u{n}", id="mine")) for n in range(4)), store.append(new("v")), return_exceptions=True
    )
    assert [isinstance(answer, Conflict) for answer in answers] == [False, True, True, True, False]


@pytest.mark.proves("S-1-2")
async def test_an_id_equal_to_another_tasks_uid_is_refused_only_if_it_is_that_tasks_id(store: Store) -> None:
    await store.append(new("u1", id="mine"))
    assert (await store.append(new("u2", id="u1"))).head.id == "u1"
    found = await store.find(OURS, "u1")
    assert found and found.uid == "u2"


async def test_a_uid_is_given_once(store: Store) -> None:
    await store.append(new("u", id="one"))
    for scope in (OURS, *OTHERS):
        with pytest.raises(Conflict):
            await store.append(new("u", id="two", scope=scope))
    assert len(await store.since(OURS, "u", 0)) == 2


@pytest.mark.proves("S-1-5")
async def test_appending_to_an_unknown_or_foreign_task_is_the_same_conflict(store: Store) -> None:
    head = (await store.append(new("u"))).head
    for scope in OTHERS:
        for guard in (Lifecycle(head.version), Turn("t1", 1)):
            with pytest.raises(Conflict) as refused:
                await store.append(Append("u", scope, (chunk(),), guard))
            assert refused.value.head is None
    with pytest.raises(Conflict) as refused:
        await store.append(Append("nobody", OURS, (chunk(),), Lifecycle(1)))
    assert refused.value.head is None


async def test_a_caller_who_goes_away_does_not_undo_the_append(store: Store) -> None:
    await store.append(new("u"))
    pending = asyncio.ensure_future(store.append(output("u", chunk())))
    pending.cancel()
    await store.append(output("u", chunk()))
    assert len(await store.since(OURS, "u", 0)) in (3, 4)  # memory had it done, SQLite may have; nobody else is hurt


async def test_who_writes_hears_every_outcome_later_and_in_the_order_of_the_commits(store: Store) -> None:
    heard: list[Appended | Exception] = []
    for append in (
        new("u"),
        output("u", chunk()),
        new("u"),
        output("u", chunk(), turn="other"),
        output("u", settled()),
    ):
        store.write(append, heard.append)
    assert heard == []
    last = await store.append(new("v"))
    assert [each.first if isinstance(each, Appended) else type(each) for each in heard] == [1, 3, Conflict, Conflict, 4]
    assert last.first == 1


async def test_the_head_adds_up_sizes(store: Store) -> None:
    await store.append(new("u", size=100))
    head = (await store.append(output("u", chunk(), size=40))).head
    assert head.size == 140
    read = await store.head(OURS, "u")
    assert read == head


async def test_ten_thousand_facts_fit_in_one_append(store: Store) -> None:
    await store.append(new("u"))
    appended = await store.append(output("u", *(chunk(text=str(n)) for n in range(10_000))))
    assert (appended.first, appended.head.seq) == (3, 10_002)
    last = await store.since(OURS, "u", 10_000)
    assert [entry.fact for entry in last] == [chunk(text="9998"), chunk(text="9999")]


@pytest.mark.proves("S-6-3")
async def test_origin_and_guard_words_are_kept(store: Store) -> None:
    await store.append(Append("u", OURS, (created(),), New("id", "ctx", origin="0.3")))
    head = await store.find(OURS, "id")
    assert head and (head.origin, head.id, head.context_id, head.state) == ("0.3", "id", "ctx", TaskState.SUBMITTED)
