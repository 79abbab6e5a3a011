"""Lists: order, filters, pages, totals."""

import asyncio

import pytest

from dragoman.model.messages import Artifact
from dragoman.model.tasks import Task, TaskState
from dragoman.ports import Checkpoint, Page, Query, Segment, Snapshot, Store
from tests.conformance.store.logs import OURS, asked, chunk, created, finished, more, new, output, said, started

pytestmark = pytest.mark.anyio


def uids(page: Page) -> list[str]:
    return [item.head.uid for item in page.items]


@pytest.mark.proves("W-016")
async def test_the_newest_status_comes_first_and_ties_by_uid_descending(store: Store) -> None:
    for uid, at in (("b", 5), ("a", 5), ("c", 9), ("d", 1)):
        await finished(store, uid, at)
    assert uids(await store.list(OURS, Query())) == ["c", "b", "a", "d"]


async def test_a_status_update_moves_a_task_to_the_front_but_output_does_not(store: Store) -> None:
    for n, uid in enumerate("abc"):
        await store.append(new(uid, created(n), started(n)))
    await store.append(output("a", said(10)))
    await store.append(output("b", chunk(20)))
    assert uids(await store.list(OURS, Query())) == ["a", "c", "b"]


@pytest.mark.proves("W-015")
@pytest.mark.parametrize("limit", [1, 2, 3, 10, 11])
async def test_pages_follow_each_other_without_gap_or_repeat(store: Store, limit: int) -> None:
    await asyncio.gather(*(finished(store, f"u{n:02}", n // 3) for n in range(10)))
    seen: list[str] = []
    before = None
    while True:
        page = await store.list(OURS, Query(limit=limit, before=before))
        assert page.total == 10 and len(page.items) <= limit
        seen += uids(page)
        if not page.more:
            break
        last = page.items[-1].head
        before = (last.status_at, last.uid)
    assert seen == [f"u{n:02}" for n in (9, 8, 7, 6, 5, 4, 3, 2, 1, 0)]


async def test_a_page_ends_with_the_task_that_makes_it_large_enough(store: Store) -> None:
    """Also when what makes it large came after the task's row was last written."""
    for n in range(5):
        await store.append(new(f"u{n}", created(n), started(n), size=100))
    await store.append(output("u3", chunk(20), size=10_000))

    async def paged(most: int) -> list[list[str]]:
        pages: list[list[str]] = []
        query = Query(max_bytes=most, artifacts=True)
        while True:
            page = await store.list(OURS, query)
            assert page.total == 5
            pages.append(uids(page))
            if not page.more:
                return pages
            last = page.items[-1].head
            query = Query(max_bytes=most, artifacts=True, before=(last.status_at, last.uid))

    assert await paged(0) == await paged(20_000) == [["u4", "u3", "u2", "u1", "u0"]]
    assert await paged(10_000) == [["u4", "u3"], ["u2", "u1", "u0"]]
    assert await paged(200) == [["u4", "u3"], ["u2", "u1"], ["u0"]]
    assert await paged(1) == [["u4"], ["u3"], ["u2"], ["u1"], ["u0"]]


async def test_filters_combine_and_totals_count_what_they_leave(store: Store) -> None:
    for n in range(12):
        state = TaskState.FAILED if n % 3 == 0 else TaskState.COMPLETED
        await finished(store, f"u{n:02}", n, state, context="even" if n % 2 == 0 else "odd")
    await store.append(new("w", created(20), started(20), context="even"))
    cases = {
        Query(limit=2): 13,
        Query(limit=2, state=TaskState.FAILED): 4,
        Query(limit=2, state=TaskState.WORKING): 1,
        Query(limit=2, state=TaskState.REJECTED): 0,
        Query(limit=2, context_id="even"): 7,
        Query(limit=2, context_id="even", state=TaskState.FAILED): 2,
        Query(limit=2, context_id="even", known=True): 7,
        Query(limit=2, context_id="nowhere"): 0,
        Query(limit=2, context_id="nowhere", known=True): 0,
        Query(limit=2, since=6): 7,
        Query(limit=2, since=6, state=TaskState.FAILED): 2,
        Query(limit=2, since=6, context_id="odd"): 3,
        Query(limit=2, since=6, context_id="odd", state=TaskState.FAILED): 1,
        Query(limit=2, since=21): 0,
    }
    for query, total in cases.items():
        page = await store.list(OURS, query)
        assert page.total == total, query
        assert len(page.items) == min(2, total)
        assert page.more == (total > 2)
        for head in (item.head for item in page.items):
            assert not query.context_id or head.context_id == query.context_id
            assert query.state in (None, head.state)
            assert head.status_at >= query.since


@pytest.mark.proves("S-11-3")
async def test_totals_follow_every_change_of_state(store: Store) -> None:
    async def totals() -> dict[TaskState, int]:
        pages = {state: await store.list(OURS, Query(state=state)) for state in TaskState}
        return {state: page.total for state, page in pages.items() if page.total}

    await store.append(new("u", created()))
    assert await totals() == {TaskState.SUBMITTED: 1}
    head = await store.head(OURS, "u")
    assert head
    await store.append(more(head, started()))
    assert await totals() == {TaskState.WORKING: 1}
    await store.append(output("u", asked()))
    assert await totals() == {TaskState.INPUT_REQUIRED: 1}


async def test_items_are_ready_to_fold_and_carry_segments_only_on_request(store: Store) -> None:
    await store.append(new("u"))
    await store.append(output("u", chunk(text="a"), chunk(text="b"), chunk(text="c"), chunk(text="d")))
    segment = Segment(seq=4, artifact=Artifact(artifact_id="a"))
    snapshot = Snapshot(task=Task(id="u"), segmented=True)
    await store.checkpoint(Checkpoint(uid="u", scope=OURS, seq=4, snapshot=snapshot, segments=(segment,)))
    await store.append(output("u", chunk(text="e")))
    for artifacts in (False, True):
        (item,) = (await store.list(OURS, Query(artifacts=artifacts))).items
        assert item.snapshot == snapshot
        assert item.segments == ((segment,) if artifacts else ())
        assert [entry.seq for entry in item.entries] == [5, 6, 7]
        assert (item.head.seq, item.head.checkpoint_seq) == (7, 4)
        assert item.head == await store.head(OURS, "u")
