"""Reading: scopes, cursors, loads."""

import asyncio

import pytest

from dragoman.model.facts import Chunk, Created, Stepped, Used
from dragoman.model.messages import Artifact, Message, Part
from dragoman.model.tasks import Scope, TaskState, Usage
from dragoman.ports import Append, New, Query, Store
from tests.conformance.store.logs import OTHERS, OURS, asked, chunk, created, finished, new, output, said, settled

pytestmark = pytest.mark.anyio


@pytest.mark.proves("S-1-5")
async def test_not_yours_and_unknown_are_one_answer(store: Store) -> None:
    await finished(store, "u", id="mine")
    for scope in (*OTHERS, Scope("agent"), Scope("")):
        assert await store.find(scope, "mine") is None
        assert await store.head(scope, "u") is None
        assert await store.load(scope, "u") is None
        assert list(await store.since(scope, "u", 0)) == []
        assert (await store.list(scope, Query())).total == 0
    assert await store.find(OURS, "nobody") is None
    assert await store.head(OURS, "nobody") is None
    assert await store.load(OURS, "nobody") is None
    assert list(await store.since(OURS, "nobody", 0)) == []


async def test_find_head_and_load_agree(store: Store) -> None:
    appended = await finished(store, "u", id="mine")
    loaded = await store.load(OURS, "u")
    assert loaded and await store.find(OURS, "mine") == await store.head(OURS, "u") == loaded.head == appended.head


async def test_since_continues_exactly_after_the_cursor(store: Store) -> None:
    await store.append(new("u"))
    for n in range(10):
        await store.append(output("u", chunk(text=f"{n}a"), said(text=f"{n}b"), chunk(text=f"{n}c")))
    everything = await store.since(OURS, "u", 0)
    assert [entry.seq for entry in everything] == list(range(1, 33))
    for after in range(33):
        rest = await store.since(OURS, "u", after)
        assert [(e.seq, e.fact) for e in rest] == [(e.seq, e.fact) for e in everything[after:]]


async def test_since_answers_nothing_at_and_after_the_end(store: Store) -> None:
    await store.append(new("u"))
    assert list(await store.since(OURS, "u", 2)) == []
    assert list(await store.since(OURS, "u", 99)) == []


async def test_a_cursor_before_the_start_means_the_start(store: Store) -> None:
    await store.append(new("u"))
    assert [entry.seq for entry in await store.since(OURS, "u", -5)] == [1, 2]


@pytest.mark.parametrize("limit", [1, 2, 3, 7, 64, 100])
async def test_paging_with_any_limit_gives_every_fact_once(store: Store, limit: int) -> None:
    await store.append(new("u"))
    for size in (1, 3, 64, 65, 2):
        await store.append(output("u", *(chunk(text=str(n)) for n in range(size))))
    seen: list[int] = []
    while entries := await store.since(OURS, "u", seen[-1] if seen else 0, limit):
        assert len(entries) <= limit
        seen += [entry.seq for entry in entries]
    assert seen == list(range(1, 138))


async def test_since_stops_near_the_byte_limit_but_gives_at_least_one(store: Store) -> None:
    await store.append(new("u"))
    for _ in range(10):
        await store.append(output("u", chunk(text="x" * 10_000), size=10_000))
    assert len(await store.since(OURS, "u", 2, max_bytes=1)) == 1
    assert 1 <= len(await store.since(OURS, "u", 2, max_bytes=35_000)) <= 4
    assert len(await store.since(OURS, "u", 2, max_bytes=1_000_000)) == 10


async def test_facts_come_back_as_they_were(store: Store) -> None:
    data = {"n": 12345678901234567, "f": 0.1, "one": 1.0, "deep": [{"x": [None, True, "ü\u2028\x00"]}], "neg": -1e-7}
    facts = (
        Created(at=1, message=Message(message_id="m", parts=(Part(data=data), Part(data=None), Part(raw=b"\x00\xff")))),
        Chunk(at=2, artifact=Artifact(artifact_id="a", parts=(Part(text=""),)), last_chunk=True, metadata={"k": []}),
        Stepped(at=3, turn="t", name="s", result=data),
        Used(at=4, usage=Usage(input_tokens=3, extra={"gpu": 0.5})),
    )
    await store.append(Append("u", OURS, facts, New("u", "c")))
    loaded = await store.load(OURS, "u")
    assert loaded
    got = tuple(entry.fact for entry in loaded.entries)
    assert got == facts
    assert repr(got) == repr(facts)  # 1 and 1.0 are equal, but not the same


async def test_load_gives_the_whole_log_of_a_task_without_checkpoint(store: Store) -> None:
    await store.append(new("u"))
    await store.append(output("u", *(chunk(text=str(n)) for n in range(150)), settled()))
    loaded = await store.load(OURS, "u")
    assert loaded and loaded.snapshot is None and loaded.segments == ()
    assert [entry.seq for entry in loaded.entries] == list(range(1, 154))
    assert loaded.head.seq == 153


@pytest.mark.proves("D-5-1")
async def test_a_reader_never_sees_half_an_append(store: Store) -> None:
    await store.append(new("u"))
    writes = asyncio.gather(*(store.append(output("u", chunk(), chunk(), chunk())) for _ in range(50)))
    while not writes.done():
        loaded = await store.load(OURS, "u")
        assert loaded and len(loaded.entries) == loaded.head.seq
        assert (loaded.head.seq - 2) % 3 == 0
        await asyncio.sleep(0)
    await writes


async def test_heads_are_not_changed_under_their_readers(store: Store) -> None:
    head = (await store.append(new("u"))).head
    seen = await store.head(OURS, "u")
    await store.append(output("u", asked(9)))
    assert head == seen and head.state is TaskState.WORKING


@pytest.mark.proves("S-4-3", "S-10-8")
async def test_time_is_the_stores(store: Store) -> None:
    assert store.now() == 1_000_000


@pytest.mark.proves("S-1-3")
async def test_tasks_of_many_scopes_do_not_mix(store: Store) -> None:
    for n, scope in enumerate((OURS, *OTHERS)):
        await store.append(new(f"u{n}", created(text=str(n)), scope=scope, id="same", context="same"))
    for n, scope in enumerate((OURS, *OTHERS)):
        page = await store.list(scope, Query(context_id="same"))
        assert [item.head.uid for item in page.items] == [f"u{n}"]
        found = await store.find(scope, "same")
        assert found and found.uid == f"u{n}"
