"""Hooks: kept with an append or by themselves, replaced, found by their owner only, forgotten."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from dragoman.model.errors import Conflict
from dragoman.model.tasks import Scope, TaskState
from dragoman.ports import HookedStore
from tests.conformance.store.adapters import Adapter, HeldClock
from tests.conformance.store.logs import (
    OTHERS,
    OURS,
    asked,
    chunk,
    created,
    finished,
    hook,
    more,
    new,
    output,
    received,
    settled,
    started,
)

pytestmark = pytest.mark.anyio


async def ids(store: HookedStore, uid: str = "") -> list[tuple[str, str]]:
    return [(each.uid, each.config.id) for each in await store.hooks(OURS, uid)]


async def test_a_hook_comes_back_as_it_was_kept_with_its_secrets(store: HookedStore, clock: HeldClock) -> None:
    await store.append(new("u"))
    wanted = hook(
        "u",
        token="s3cr3t",
        authentication={"scheme": "Bearer", "credentials": "hidden"},
        header_name="X-Auth",
        event_types=("status",),
    )
    kept = await store.keep_hook(wanted)
    assert kept.at == clock.at and kept.config == wanted.config and kept.origin == "1.0"
    assert await store.hook(OURS, "u", "h") == kept
    assert await store.hooks(OURS, "u") == [kept]


async def test_a_time_the_hook_names_is_kept(store: HookedStore) -> None:
    await store.append(new("u"))
    assert (await store.keep_hook(replace(hook("u"), at=7))).at == 7


async def test_hooks_come_with_an_append_or_not_at_all(store: HookedStore) -> None:
    head = (await store.append(new("u", hooks=(hook("u", "a"), hook("u", "b"))))).head
    await store.append(more(head, received(), hooks=(hook("u", "c"),)))
    assert await ids(store, "u") == [("u", "a"), ("u", "b"), ("u", "c")]
    with pytest.raises(Conflict):
        await store.append(more(head, received(), hooks=(hook("u", "late"),)))
    with pytest.raises(Conflict):
        await store.append(new("u", id="again", hooks=(hook("u", "stranger"),)))
    assert await ids(store, "u") == [("u", "a"), ("u", "b"), ("u", "c")]


async def test_a_hook_of_a_known_id_replaces_it_in_its_place(store: HookedStore) -> None:
    head = (await store.append(new("u", hooks=(hook("u", "a"), hook("u", "b"))))).head
    await store.keep_hook(hook("u", "a", "two.example"))
    await store.append(more(head, received(), hooks=(hook("u", "b", "three.example"),)))
    assert [each.config.url for each in await store.hooks(OURS, "u")] == [
        "https://two.example/a",
        "https://three.example/b",
    ]


async def test_the_same_id_is_another_hook_on_another_task(store: HookedStore) -> None:
    await store.append(new("u", hooks=(hook("u"),)))
    await store.append(new("v", hooks=(hook("v", host="two.example"),)))
    await store.drop_hook(OURS, "u", "h")
    assert await ids(store) == [("v", "h")]


async def test_all_hooks_of_a_scope_are_listed_oldest_first(store: HookedStore) -> None:
    for uid in ("v", "u"):
        await store.append(new(uid))
    await store.append(new("o", scope=OTHERS[0], hooks=(hook("o", scope=OTHERS[0]),)))
    for uid, id in (("u", "b"), ("v", "a"), ("u", "a")):
        await store.keep_hook(hook(uid, id))
    assert await ids(store) == [("u", "b"), ("v", "a"), ("u", "a")]
    assert await ids(store, "u") == [("u", "b"), ("u", "a")]
    assert [each.uid for each in await store.hooks(OTHERS[0])] == ["o"]


@pytest.mark.parametrize("scope", OTHERS)
async def test_what_is_not_yours_is_not_there(store: HookedStore, scope: Scope) -> None:
    await store.append(new("u", hooks=(hook("u"),)))
    assert await store.hook(scope, "u", "h") is None
    assert await store.hooks(scope, "u") == await store.hooks(scope) == []
    assert await store.drop_hook(scope, "u", "h") is False
    for uid in ("u", "nobody"):
        with pytest.raises(Conflict) as refused:
            await store.keep_hook(hook(uid, scope=scope))
        assert refused.value.head is None
    assert await ids(store, "u") == [("u", "h")]


async def test_what_is_unknown_is_not_there(store: HookedStore) -> None:
    await store.append(new("u"))
    assert await store.hook(OURS, "u", "h") is None
    assert await store.hook(OURS, "nobody", "h") is None
    assert await store.hooks(OURS, "nobody") == []
    assert await store.drop_hook(OURS, "u", "h") is False
    assert await store.drop_hook(OURS, "nobody", "h") is False


async def test_a_dropped_hook_is_gone_and_can_be_kept_again(store: HookedStore) -> None:
    await store.append(new("u", hooks=(hook("u"),)))
    assert await store.drop_hook(OURS, "u", "h") is True
    assert await store.drop_hook(OURS, "u", "h") is False
    assert await ids(store, "u") == []
    await store.keep_hook(hook("u"))
    assert await ids(store, "u") == [("u", "h")]


async def test_hooks_may_be_kept_whatever_the_task_does(store: HookedStore) -> None:
    await store.append(new("working"))
    await store.append(new("asking"))
    await store.append(output("asking", asked()))
    await finished(store, "failed", state=TaskState.FAILED)
    for uid in ("working", "asking", "failed"):
        await store.keep_hook(hook(uid))
        assert await ids(store, uid) == [(uid, "h")]


async def test_hooks_go_with_their_task(store: HookedStore, clock: HeldClock) -> None:
    await finished(store, "old", clock.at)
    await store.keep_hook(hook("old"))
    clock.at += 86_400_000
    await store.append(new("young", created(clock.at), started(clock.at), hooks=(hook("young"),)))
    await store.append(output("young", chunk(clock.at), settled(clock.at)))
    await store.sweep(terminal_before=clock.at - 1_000)
    assert await ids(store) == [("young", "h")]
    assert [each.hook.uid for each in await store.due_deliveries(10)] == ["young"]


async def test_hooks_survive_a_restart(durable: Adapter, clock: HeldClock, tmp_path: Path) -> None:
    first = durable.make(tmp_path, clock)
    await first.open()
    await first.append(new("u", hooks=(hook("u", "a", token="s3cr3t"),)))
    await first.keep_hook(hook("u", "b"))
    await first.drop_hook(OURS, "u", "b")
    kept = await first.keep_hook(hook("u", "c"))
    await first.close()
    second = durable.make(tmp_path, clock)
    await second.open()
    assert await ids(second, "u") == [("u", "a"), ("u", "c")]
    assert await second.hook(OURS, "u", "c") == kept
    await second.keep_hook(hook("u", "d"))
    await second.append(output("u", settled()))
    due = await second.due_deliveries(10)
    assert sorted(each.hook.config.id for each in due) == ["a", "c", "d"]
    assert {each.hook.config.token for each in due} == {"s3cr3t", ""}
    await second.close()


async def test_an_owners_hooks_are_counted_over_agents_and_tenants_up_to_a_number(store: HookedStore) -> None:
    elsewhere, stranger = Scope("other", "else", OURS.owner), Scope(OURS.agent, OURS.tenant, "stranger")
    assert await store.count_hooks(OURS.owner, 10) == 0
    await store.append(new("u", hooks=(hook("u", "a"), hook("u", "b"))))
    await store.append(new("v", scope=elsewhere, hooks=(hook("v", "a", scope=elsewhere),)))
    await store.append(new("w", scope=stranger, hooks=(hook("w", "a", scope=stranger),)))
    await store.keep_hook(hook("u", "b"))  # replaces
    assert await store.count_hooks(OURS.owner, 10) == 3
    assert await store.count_hooks(OURS.owner, 2) == 2
    await store.drop_hook(OURS, "u", "a")
    assert await store.count_hooks(OURS.owner, 10) == 2
