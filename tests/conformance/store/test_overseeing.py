"""Everybody's tasks, for who may see them: found and listed across owners, and never across agents and tenants."""

import asyncio

import pytest

from dragoman.model.tasks import EVERYONE, Scope, TaskState
from dragoman.ports import Query, Store
from tests.conformance.store.logs import OURS, finished

pytestmark = pytest.mark.anyio

ALL = OURS._replace(owner=EVERYONE)
OWNERS = ("ada", "bob", "eve")
ELSEWHERE = (ALL._replace(agent="other"), ALL._replace(tenant="other"), Scope("", "", EVERYONE))


async def some(store: Store) -> None:
    """Twelve tasks of three owners, a few failed, in two contexts; and two where nobody looks."""
    for n in range(12):
        state = TaskState.FAILED if n % 4 == 0 else TaskState.COMPLETED
        scope = OURS._replace(owner=OWNERS[n % 3])
        await finished(store, f"u{n:02}", n // 2, state, scope=scope, context="even" if n % 2 == 0 else "odd")
    for n, scope in enumerate(ELSEWHERE[:2]):
        await finished(store, f"e{n}", 50, scope=scope._replace(owner="ada"))


async def test_a_task_is_found_whoever_owns_it(store: Store) -> None:
    await some(store)
    for n in range(12):
        head = await store.find(ALL, f"u{n:02}")
        assert head is not None and head.scope == OURS._replace(owner=OWNERS[n % 3])
        assert head == await store.find(head.scope, f"u{n:02}")
    for scope in ELSEWHERE:
        assert await store.find(scope, "u01") is None
    assert await store.find(ALL, "e0") is None and await store.find(ALL, "nobody") is None


async def test_of_several_with_the_same_name_the_newest_is_found(store: Store) -> None:
    for uid, owner in (("u1", "ada"), ("u3", "bob"), ("u2", "eve")):
        await finished(store, uid, scope=OURS._replace(owner=owner), id="mine")
        assert (await store.find(OURS._replace(owner=owner), "mine")) is not None
    head = await store.find(ALL, "mine")
    assert head is not None and head.uid in ("u3", "u2"), "made last, or with the highest uid"


async def test_the_log_itself_takes_its_owners_name(store: Store) -> None:
    await some(store)
    for read in (store.head(ALL, "u01"), store.load(ALL, "u01")):
        assert await read is None
    assert list(await store.since(ALL, "u01", 0)) == []


@pytest.mark.parametrize("limit", [1, 2, 5, 12, 50])
async def test_lists_are_one_list_in_the_usual_order(store: Store, limit: int) -> None:
    await some(store)
    seen: list[str] = []
    before = None
    while True:
        page = await store.list(ALL, Query(limit=limit, before=before))
        assert page.total == 12 and len(page.items) <= limit
        seen += [item.head.uid for item in page.items]
        if not page.more:
            break
        last = page.items[-1].head
        before = (last.status_at, last.uid)
    assert seen == [f"u{n:02}" for n in reversed(range(12))]


async def test_filters_and_totals_hold_across_owners(store: Store) -> None:
    await some(store)
    cases = {
        Query(limit=2): 12,
        Query(limit=2, state=TaskState.FAILED): 3,
        Query(limit=2, state=TaskState.WORKING): 0,
        Query(limit=2, context_id="even"): 6,
        Query(limit=2, context_id="odd", state=TaskState.FAILED): 0,
        Query(limit=2, since=3): 6,
        Query(limit=2, since=3, state=TaskState.FAILED): 1,
        Query(limit=2, since=3, context_id="even"): 3,
    }
    for query, total in cases.items():
        page = await store.list(ALL, query)
        assert (page.total, len(page.items), page.more) == (total, min(total, 2), total > 2), query
    for scope in ELSEWHERE[2:]:
        assert (await store.list(scope, Query())).total == 0


async def test_an_owner_sees_none_of_it(store: Store) -> None:
    await some(store)
    assert (await store.list(OURS._replace(owner="ada"), Query())).total == 4
    assert (await store.list(OURS, Query())).total == 0


async def test_a_crowd_of_owners_fits_one_page(store: Store) -> None:
    await asyncio.gather(*(finished(store, f"u{n:04}", n, scope=OURS._replace(owner=f"o{n}")) for n in range(300)))
    page = await store.list(ALL, Query(limit=3))
    assert [item.head.uid for item in page.items] == ["u0299", "u0298", "u0297"]
    assert (page.total, page.more) == (300, True)
