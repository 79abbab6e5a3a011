"""The outbox: what is told to whom, in which order, how soon, and what becomes of it."""

import asyncio

import pytest

from dragoman.model.errors import Conflict
from dragoman.model.facts import AnyFact, Asked, Received, Resumed, Settled
from dragoman.model.tasks import TaskState, TaskStatus
from dragoman.ports import Delivery, HookedStore, Outcome
from tests.conformance.store.adapters import HeldClock
from tests.conformance.store.logs import (
    OURS,
    asked,
    cancel,
    chunk,
    created,
    finished,
    hook,
    message,
    more,
    new,
    output,
    received,
    said,
    settled,
    started,
)

pytestmark = pytest.mark.anyio

INTERVAL = 1_500
HOOKED = (hook("u"),)


def resumed(at: int = 1) -> Resumed:
    return Resumed(at=at, status=TaskStatus(state=TaskState.WORKING))


def answer(at: int = 1) -> Received:
    return Received(at=at, message=message("yes"), answers=1)


async def due(store: HookedStore, limit: int = 100) -> list[tuple[str, int]]:
    """Which hooks would hear of which facts now."""
    found = await store.due_deliveries(limit)
    store.put_back([each.id for each in found])
    return [(f"{each.hook.uid}.{each.hook.config.id}", each.seq) for each in found]


async def one(store: HookedStore) -> Delivery:
    (delivery,) = await store.due_deliveries(10)
    return delivery


async def deliver(store: HookedStore) -> Delivery:
    delivery = await one(store)
    await store.record([Outcome(id=delivery.id, delivered=True)])
    return delivery


async def fail(store: HookedStore, at: int = 0, dead: bool = False, error: str = "500") -> Delivery:
    delivery = await one(store)
    await store.record([Outcome(id=delivery.id, due=at, dead=dead, error=error)])
    return delivery


async def rest(store: HookedStore, uid: str, *facts: AnyFact) -> None:
    await store.append(output(uid, *facts))


# --- what is told -------------------------------------------------------------------------------------------


@pytest.mark.proves("S-8-1")
async def test_without_hooks_nothing_is_queued(store: HookedStore) -> None:
    await finished(store, "u")
    assert not await store.due_deliveries(10)
    assert await store.next_delivery_at() == 0


async def test_a_delivery_says_what_happened_to_which_task(store: HookedStore, clock: HeldClock) -> None:
    await store.append(new("u", id="theirs", context="c7", hooks=HOOKED))
    await rest(store, "u", chunk(), settled(at=9, state=TaskState.FAILED))
    delivery = await one(store)
    assert (delivery.task_id, delivery.context_id, delivery.hook.uid) == ("theirs", "c7", "u")
    assert delivery.hook == await store.hook(OURS, "u", "h")
    assert delivery.seq == 4 and delivery.fact == settled(at=9, state=TaskState.FAILED)
    assert (delivery.attempts, delivery.body, delivery.media_type, delivery.error) == (0, b"", "", "")
    assert (delivery.due, delivery.at, delivery.dead) == (clock.at, clock.at, False)


@pytest.mark.parametrize("fact", [chunk(), cancel(), received()])
async def test_what_is_no_news_is_not_told(store: HookedStore, fact: AnyFact) -> None:
    head = (await store.append(new("u", created(), hooks=HOOKED))).head
    await store.append(more(head, fact))
    assert await due(store) == []


@pytest.mark.parametrize("fact", [settled(), settled(state=TaskState.CANCELED), asked(), said(), started(epoch=2)])
async def test_what_shows_a_status_is_told_at_once(store: HookedStore, clock: HeldClock, fact: AnyFact) -> None:
    head = (await store.append(new("u", created(), hooks=HOOKED))).head
    await store.append(more(head, fact))
    assert await store.next_delivery_at() == clock.at
    delivery = await one(store)
    assert delivery.seq == 2 and delivery.fact == fact


@pytest.mark.proves("S-8-1")
async def test_the_facts_that_came_with_a_hook_are_told_to_it(store: HookedStore) -> None:
    await store.append(new("u", created(), started(), chunk(), settled(), hooks=HOOKED))
    assert await due(store) == [("u.h", 4)]


async def test_every_hook_is_told(store: HookedStore) -> None:
    await store.append(new("u", hooks=(hook("u", "a"), hook("u", "b", "two.example"))))
    await store.append(new("v", hooks=(hook("v"),)))
    assert sorted(await due(store)) == [("u.a", 2), ("u.b", 2), ("v.h", 2)]


async def test_what_was_refused_is_not_told(store: HookedStore) -> None:
    head = (await store.append(new("u", created(), hooks=HOOKED))).head
    await store.append(more(head, cancel()))
    with pytest.raises(Conflict):
        await store.append(more(head, settled()))
    assert await due(store) == []


async def test_facts_before_the_hook_are_not_told(store: HookedStore) -> None:
    await store.append(new("u"))
    await rest(store, "u", said(), asked())
    await store.keep_hook(hook("u"))
    assert await due(store) == []


async def test_a_hook_kept_in_the_same_moment_hears_of_what_follows_it(store: HookedStore) -> None:
    await asyncio.gather(
        store.append(new("u", created())),
        store.keep_hook(hook("u")),
        store.append(output("u", chunk(), turn="")),
        return_exceptions=True,
    )
    head = await store.head(OURS, "u")
    assert head
    await asyncio.gather(store.append(more(head, started())), store.append(output("u", settled())))
    assert (await one(store)).fact == settled()


# --- order and pace -----------------------------------------------------------------------------------------


@pytest.mark.proves("S-8-2")
async def test_only_the_latest_calm_news_wait(store: HookedStore) -> None:
    await store.append(new("u", hooks=HOOKED))
    before = await one(store)
    store.put_back([before.id])
    for n in range(5):
        await rest(store, "u", said(text=str(n)))
    after = await one(store)
    assert after.fact == said(text="4") and after.seq == 7
    assert after.id != before.id, "other news are another delivery: receivers drop what comes twice"


async def test_calm_news_come_at_most_once_in_an_interval(store: HookedStore, clock: HeldClock) -> None:
    await store.append(new("u", hooks=HOOKED))
    await deliver(store)
    clock.at += 100
    await rest(store, "u", said(text="one"))
    assert await due(store) == [] and await store.next_delivery_at() == clock.at - 100 + INTERVAL
    clock.at += 1_000
    await rest(store, "u", said(text="two"))
    assert await due(store) == []
    clock.at += 399
    assert await due(store) == []
    clock.at += 1
    assert (await deliver(store)).fact == said(text="two")
    assert await store.next_delivery_at() == 0
    clock.at += INTERVAL
    await rest(store, "u", said(text="three"))
    assert await store.next_delivery_at() == clock.at


async def test_what_becomes_news_while_others_are_sent_waits_for_them_and_the_interval(
    store: HookedStore, clock: HeldClock
) -> None:
    await store.append(new("u", hooks=HOOKED))
    first = await one(store)
    await rest(store, "u", said(text="one"))
    await rest(store, "u", said(text="two"))
    assert not await store.due_deliveries(10)
    clock.at += 700
    await store.record([Outcome(id=first.id, delivered=True)])
    assert await due(store) == [] and await store.next_delivery_at() == clock.at + INTERVAL
    clock.at += INTERVAL
    assert (await deliver(store)).fact == said(text="two")


@pytest.mark.parametrize("fact", [settled(), asked()])
async def test_urgent_news_wait_for_nothing_and_take_calm_ones_with_them(
    store: HookedStore, clock: HeldClock, fact: AnyFact
) -> None:
    await store.append(new("u", hooks=HOOKED))
    await deliver(store)
    await rest(store, "u", said())
    await rest(store, "u", fact)
    assert await store.next_delivery_at() == clock.at
    assert (await deliver(store)).fact == fact
    assert await store.next_delivery_at() == 0


async def test_urgent_news_are_told_one_by_one_in_the_order_of_the_log(store: HookedStore, clock: HeldClock) -> None:
    head = (await store.append(new("u", hooks=HOOKED))).head
    for n in range(3):
        head = (await store.append(more(head, asked(at=n)))).head
        head = (await store.append(more(head, answer(), resumed()))).head
    await rest(store, "u", settled())
    told: list[AnyFact] = []
    while await store.next_delivery_at():
        delivery = await one(store)
        assert not await store.due_deliveries(10), "one at a time"
        told.append(delivery.fact)
        await store.record([Outcome(id=delivery.id, delivered=True)])
    assert told == [asked(at=0), asked(at=1), asked(at=2), settled()]


async def test_calm_news_after_a_question_follow_it(store: HookedStore, clock: HeldClock) -> None:
    head = (await store.append(new("u", hooks=HOOKED))).head
    await deliver(store)
    head = (await store.append(more(head, asked()))).head
    await store.append(more(head, answer(), resumed()))
    assert (await deliver(store)).fact == asked()
    clock.at += INTERVAL
    assert (await deliver(store)).fact == resumed()


async def test_what_waits_for_one_hook_stays_bounded(store: HookedStore, clock: HeldClock) -> None:
    head = (await store.append(new("u", hooks=HOOKED))).head
    for n in range(100):
        head = (await store.append(more(head, asked(at=n)))).head
        head = (await store.append(more(head, answer(), resumed()))).head
    await rest(store, "u", settled())
    told: list[AnyFact] = []
    while await store.next_delivery_at():
        told.append((await deliver(store)).fact)
    assert len(told) <= 50 and told[-1] == settled()
    assert told[:-1] == [asked(at=n) for n in range(101 - len(told), 100)], "the oldest questions give way"


# --- attempts -----------------------------------------------------------------------------------------------


async def test_what_was_answered_is_not_answered_again_until_it_is_settled(store: HookedStore) -> None:
    await store.append(new("u", hooks=HOOKED))
    delivery = await one(store)
    assert not await store.due_deliveries(10)
    assert await store.next_delivery_at() == 0
    store.put_back([delivery.id])
    assert await one(store) == delivery
    await store.record([Outcome(id=delivery.id, delivered=True)])
    assert not await store.due_deliveries(10)


async def test_what_failed_waits_as_long_as_its_outcome_says(store: HookedStore, clock: HeldClock) -> None:
    await finished(store, "u")
    await store.keep_hook(hook("u"))
    first = await fail(store, at=clock.at + 1_000, error="it said 500")
    assert await due(store) == [] and await store.next_delivery_at() == clock.at + 1_000
    clock.at += 1_000
    second = await one(store)
    assert (second.id, second.seq, second.attempts, second.error) == (first.id, first.seq, 1, "it said 500")
    await store.record([Outcome(id=second.id, due=clock.at + 3_000, error="it said 503")])
    clock.at += 3_000
    third = await one(store)
    assert (third.id, third.attempts, third.error) == (first.id, 2, "it said 503")


async def test_the_body_of_the_first_attempt_is_kept(store: HookedStore, clock: HeldClock) -> None:
    await finished(store, "u")
    await store.keep_hook(hook("u"))
    first = await one(store)
    await store.record([Outcome(id=first.id, due=clock.at, error="x", body=b'{"a":1}', media_type="application/json")])
    second = await one(store)
    assert (second.body, second.media_type) == (b'{"a":1}', "application/json")
    await store.record([Outcome(id=first.id, due=clock.at, error="y")])
    assert (await one(store)).body == b'{"a":1}'


async def test_later_news_of_a_hook_wait_until_the_ones_before_them_arrived_or_died(
    store: HookedStore, clock: HeldClock
) -> None:
    head = (await store.append(new("u", hooks=HOOKED))).head
    await store.append(more(head, asked()))
    await fail(store, at=clock.at + 1_000)
    await store.append(more((await store.head(OURS, "u")) or head, settled()))
    assert await due(store) == []
    clock.at += 1_000
    assert (await fail(store, dead=True)).fact == asked()
    assert (await deliver(store)).fact == settled()


@pytest.mark.parametrize("fact", [settled(), asked()])
async def test_calm_news_that_failed_never_hold_up_urgent_ones(
    store: HookedStore, clock: HeldClock, fact: AnyFact
) -> None:
    await store.append(new("u", hooks=HOOKED))
    await fail(store, at=clock.at + 9_000)
    await rest(store, "u", fact)
    assert (await deliver(store)).fact == fact
    assert await store.next_delivery_at() == 0


async def test_calm_news_that_fail_while_newer_ones_wait_are_forgotten(store: HookedStore, clock: HeldClock) -> None:
    await store.append(new("u", hooks=HOOKED))
    first = await one(store)
    await rest(store, "u", said(text="newer"))
    await store.record([Outcome(id=first.id, due=clock.at + 9_000, error="500")])
    assert await store.delivery(first.id) is None
    assert await store.next_delivery_at() == clock.at + 9_000
    clock.at += 9_000
    delivery = await one(store)
    assert (delivery.fact, delivery.attempts) == (said(text="newer"), 0)
    await rest(store, "u", settled())
    await store.record([Outcome(id=delivery.id, due=clock.at + 9_000, error="500")])
    assert (await one(store)).fact == settled()


async def test_calm_news_that_wait_for_another_attempt_give_way_but_the_attempt_is_not_made_earlier(
    store: HookedStore, clock: HeldClock
) -> None:
    await store.append(new("u", hooks=HOOKED))
    await fail(store, at=clock.at + 5_000)
    await rest(store, "u", said(text="newer"))
    assert await store.next_delivery_at() == clock.at + 5_000
    clock.at += 5_000
    assert (await one(store)).fact == said(text="newer")


async def test_an_outcome_of_what_is_gone_changes_nothing(store: HookedStore) -> None:
    await store.append(new("u", hooks=HOOKED))
    delivery = await one(store)
    await store.drop_hook(OURS, "u", "h")
    await store.record([Outcome(id=delivery.id, due=1, error="500"), Outcome(id="nothing", delivered=True)])
    store.put_back(["nothing", delivery.id])
    assert await store.next_delivery_at() == 0 and await store.delivery(delivery.id) is None


async def test_nothing_waits_for_a_dropped_hook(store: HookedStore) -> None:
    await store.append(new("u", hooks=(hook("u", "a"), hook("u", "b"))))
    await rest(store, "u", settled())
    await store.drop_hook(OURS, "u", "a")
    assert await due(store) == [("u.b", 3)]


# --- ends ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", [TaskState.COMPLETED, TaskState.CANCELED])
async def test_a_hook_kept_after_the_end_is_told_the_end_once(
    store: HookedStore, clock: HeldClock, state: TaskState
) -> None:
    await finished(store, "u", state=state)
    await store.keep_hook(hook("u"))
    delivery = await deliver(store)
    assert delivery.fact == settled(state=state) and delivery.seq == 4 and delivery.due == clock.at
    assert await store.next_delivery_at() == 0


async def test_a_hook_kept_again_after_the_end_is_told_again_under_another_id(store: HookedStore) -> None:
    await finished(store, "u")
    await store.keep_hook(hook("u"))
    first = await deliver(store)
    await store.keep_hook(hook("u"))
    second = await deliver(store)
    assert (second.fact, second.seq) == (first.fact, first.seq) and second.id != first.id


async def test_a_hook_replaced_while_the_end_waits_is_told_it_once(store: HookedStore, clock: HeldClock) -> None:
    await store.append(new("u", hooks=HOOKED))
    await rest(store, "u", settled())
    first = await one(store)
    await store.record([Outcome(id=first.id, due=clock.at + 9_000, error="500", body=b"old", media_type="x/y")])
    await store.keep_hook(hook("u", host="two.example"))
    second = await deliver(store)
    assert second.hook.config.url == "https://two.example/h"
    assert (second.attempts, second.body) == (0, b""), "for another receiver everything begins anew"
    assert await store.next_delivery_at() == 0


async def test_a_hook_kept_while_its_task_ends_is_told_the_end_once(store: HookedStore) -> None:
    head = (await store.append(new("u"))).head
    await asyncio.gather(store.append(more(head, settled())), store.keep_hook(hook("u")))
    assert (await deliver(store)).fact == settled()
    assert await store.next_delivery_at() == 0


async def test_the_end_is_found_however_long_the_log(store: HookedStore) -> None:
    await store.append(new("u"))
    for n in range(5):
        await rest(store, "u", *(chunk(text=f"{n}.{k}") for k in range(70)))
    await rest(store, "u", *(chunk(text="x" * 40_000) for _ in range(3)), said(), settled(at=77))
    await store.keep_hook(hook("u"))
    assert (await one(store)).fact == settled(at=77)


# --- dead letters -------------------------------------------------------------------------------------------


async def test_what_died_is_kept_with_its_reason_until_somebody_resends_it(
    store: HookedStore, clock: HeldClock
) -> None:
    await finished(store, "u")
    await store.keep_hook(hook("u"))
    first = await one(store)
    await store.record([Outcome(id=first.id, dead=True, error="it said 404", body=b"{}", media_type="x/y")])
    assert await store.next_delivery_at() == 0
    (letter,) = await store.dead_deliveries()
    assert letter == await store.delivery(first.id)
    assert letter.dead and letter.attempts == 1 and letter.error == "it said 404"
    assert (letter.fact, letter.body, letter.task_id) == (settled(), b"{}", "u")
    clock.at += 5_000
    assert await store.resend(first.id) is True
    assert not await store.dead_deliveries()
    again = await deliver(store)
    assert (again.id, again.attempts, again.dead, again.body, again.due) == (first.id, 0, False, b"{}", clock.at)
    assert await store.delivery(first.id) is None
    assert await store.resend(first.id) is False


async def test_what_waits_can_be_resent_earlier(store: HookedStore, clock: HeldClock) -> None:
    await finished(store, "u")
    await store.keep_hook(hook("u"))
    first = await fail(store, at=clock.at + 9_000)
    assert await store.resend(first.id) is True
    assert (await one(store)).attempts == 0


async def test_what_is_resent_comes_before_later_news_of_its_hook(store: HookedStore, clock: HeldClock) -> None:
    head = (await store.append(new("u", hooks=HOOKED))).head
    head = (await store.append(more(head, asked()))).head
    question = await fail(store, dead=True)
    await store.append(more(head, settled()))
    await store.resend(question.id)
    assert (await deliver(store)).id == question.id
    assert isinstance((await deliver(store)).fact, Settled)


async def test_dead_letters_are_listed_newest_first_in_pages(store: HookedStore, clock: HeldClock) -> None:
    for n in range(5):
        clock.at += 10
        await finished(store, f"u{n}")
        await store.keep_hook(hook(f"u{n}"))
        await fail(store, dead=True)
    first = await store.dead_deliveries(2)
    second = await store.dead_deliveries(2, before=first[-1].id)
    third = await store.dead_deliveries(2, before=second[-1].id)
    assert [each.hook.uid for each in (*first, *second, *third)] == ["u4", "u3", "u2", "u1", "u0"]
    await store.resend(first[-1].id)
    assert [each.hook.uid for each in await store.dead_deliveries(2, before=first[-1].id)] == ["u2", "u1"]


async def test_of_calm_news_that_died_only_the_latest_are_kept(store: HookedStore, clock: HeldClock) -> None:
    await store.append(new("u", hooks=HOOKED))
    for n in range(4):
        await fail(store, dead=True)
        clock.at += INTERVAL
        await rest(store, "u", said(text=str(n)))
    (letter,) = await store.dead_deliveries()
    assert letter.fact == said(text="2")


async def test_dead_letters_of_one_hook_stay_bounded(store: HookedStore) -> None:
    head = (await store.append(new("u", hooks=HOOKED))).head
    for n in range(60):
        head = (await store.append(more(head, asked(at=n)))).head
        await fail(store, dead=True)
        head = (await store.append(more(head, answer(), resumed()))).head
    letters = await store.dead_deliveries(100)
    assert len(letters) <= 50
    assert next(each.fact for each in letters if isinstance(each.fact, Asked)) == asked(at=59)


async def test_dead_letters_go_with_their_hook_and_with_their_task(store: HookedStore, clock: HeldClock) -> None:
    for uid in ("u", "v"):
        await finished(store, uid, clock.at)
        await store.keep_hook(hook(uid))
        await fail(store, dead=True)
    await store.drop_hook(OURS, "u", "h")
    assert [each.hook.uid for each in await store.dead_deliveries()] == ["v"]
    clock.at += 86_400_000
    await store.sweep(terminal_before=clock.at)
    assert not await store.dead_deliveries()


# --- who wakes ----------------------------------------------------------------------------------------------


async def test_who_listens_hears_of_commits_that_made_something_due(store: HookedStore, clock: HeldClock) -> None:
    heard: list[str] = []
    leave = store.listen_deliveries(lambda: heard.append("x"))
    await store.append(new("silent"))
    assert not heard
    head = (await store.append(new("u", hooks=HOOKED))).head
    assert len(heard) == 1
    await store.append(more(head, cancel()))
    assert len(heard) == 1, "no news"
    await fail(store, at=clock.at + 1_000)
    assert len(heard) == 2, "due later"
    clock.at += 1_000
    await fail(store, dead=True)
    assert len(heard) == 2, "nothing waits"
    (letter,) = await store.dead_deliveries()
    await store.resend(letter.id)
    assert len(heard) == 3
    await deliver(store)
    await rest(store, "u", settled())
    assert len(heard) == 4
    await deliver(store)
    await store.keep_hook(hook("u", "late"))
    assert len(heard) == 5
    leave()
    leave()
    await store.keep_hook(hook("u", "later"))
    assert len(heard) == 5
