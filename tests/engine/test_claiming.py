"""Who runs a task: claims, what a lost one means, and what any replica does when nobody runs it any more."""

import asyncio

import pytest

from dragoman.core.cursors import cursor
from dragoman.model.facts import CancelRequested, Chunk, Settled
from dragoman.model.tasks import TaskState
from dragoman.ports import TurnHandle
from dragoman.store.memory import MemoryStore
from tests.engine.rig import SCOPE, Clock, chunk, rest, rig, state_of, text_of, texts, until
from tests.engine.test_replaying import crash

pytestmark = pytest.mark.anyio


async def forever(turn: TurnHandle) -> None:
    await chunk(turn, "begun", append=False)
    await asyncio.Event().wait()


@pytest.mark.proves("S-4-4")
async def test_who_accepts_a_message_holds_its_task_from_the_same_append_on() -> None:
    store = MemoryStore()
    async with rig(forever, store=store) as r:
        view = await r.begin()
        head = await store.head(SCOPE, view.uid)
        assert head is not None and head.epoch == 1
        assert await store.claim(SCOPE, view.uid, "another", 1_000) is None
        assert not await store.claimable(10)


async def test_running_turns_keep_their_claims() -> None:
    clock = Clock()
    store = MemoryStore(clock=clock, lease_ttl=1_000)
    async with rig(forever, store=store) as r:
        view = await r.begin()
        for _ in range(3):
            clock.ms += 900
            await r.engine.keeper._beat()
        assert await store.claim(SCOPE, view.uid, "another", 1_000) is None


@pytest.mark.proves("S-4-5")
async def test_a_lost_claim_stops_the_turn_here_and_nothing_it_says_counts_any_more() -> None:
    clock, stopped = Clock(), asyncio.Event()
    store = MemoryStore(clock=clock, lease_ttl=1_000)

    async def late(turn: TurnHandle) -> None:
        await chunk(turn, "mine", append=False)
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            assert turn.cancelled
            stopped.set()
            await chunk(turn, " late")
            raise

    async with rig(late, store=store) as r:
        view = await r.begin()
        async with asyncio.timeout(5):
            while not texts(await r.get(view.task.id)):
                await asyncio.sleep(0)
        clock.ms += 60_000
        assert await store.claim(SCOPE, view.uid, "another", 1_000) == 2
        await r.engine.keeper._beat()
        await until(lambda: not r.engine.turns.runs)
        assert stopped.is_set()
        entries = await store.since(SCOPE, view.uid, 0)
        assert [str(e.fact.artifact.parts[0].text) for e in entries if isinstance(e.fact, Chunk)] == ["mine"]
        assert not isinstance(entries[-1].fact, Settled), "whoever holds it now decides how it ends"


@pytest.mark.proves("S-4-5")
async def test_an_append_that_is_refused_stops_the_turn_too() -> None:
    """Nobody has to wait for the next heartbeat: the store says no to the first word."""
    clock, go_on = Clock(), asyncio.Event()
    store = MemoryStore(clock=clock, lease_ttl=1_000)

    async def speaks(turn: TurnHandle) -> None:
        await go_on.wait()
        await chunk(turn, "late", append=False)
        await asyncio.Event().wait()

    async with rig(speaks, store=store) as r:
        view = await r.begin()
        clock.ms += 60_000
        await store.claim(SCOPE, view.uid, "another", 1_000)
        go_on.set()
        await until(lambda: not r.engine.turns.runs)
        assert not [e for e in await store.since(SCOPE, view.uid, 0) if isinstance(e.fact, Chunk)]


@pytest.mark.proves("S-4-14")
async def test_a_cancel_outlives_the_process_that_took_it() -> None:
    store = MemoryStore()
    async with rig(forever, store=store, cancel_ms=3_600_000, on_restart="rerun") as r:
        view = await r.begin()
        run = next(iter(r.engine.turns.runs))
        run.stop = lambda why: None  # the code does not hear of it before the process is gone
        cancelling = asyncio.ensure_future(r.cancel(view.task.id))
        async with asyncio.timeout(5):
            while not (head := await store.head(SCOPE, view.uid)) or not head.cancel_by:
                await asyncio.sleep(0)
        cancelling.cancel()
        r.engine.turns.stopping = True
        del run.stop
        await crash(r)
        assert state_of(await r.get(view.task.id)) is TaskState.WORKING
    async with rig(forever, store=store, on_restart="rerun") as r:
        assert state_of(await r.get(view.task.id)) is TaskState.CANCELED and not r.agent.runs


@pytest.mark.proves("S-4-14")
async def test_any_replica_cancels_a_task_whose_deadline_has_passed() -> None:
    clock = Clock()
    store = MemoryStore(clock=clock)

    async with rig(forever, store=store, cancel_ms=10_000) as r, rig(forever, store=store) as other:
        view = await r.begin()
        run = next(iter(r.engine.turns.runs))
        run.stop = lambda why: None  # this replica hangs: neither the cancel nor its deadline do anything here
        cancelling = asyncio.ensure_future(r.cancel(view.task.id))
        async with asyncio.timeout(5):
            while not (head := await store.head(SCOPE, view.uid)) or not head.cancel_by:
                await asyncio.sleep(0)
        await other.engine.keeper.expire()
        assert state_of(await other.get(view.task.id)) is TaskState.WORKING, "not before its deadline"
        clock.ms += 60_000
        await other.engine.keeper.expire()
        assert state_of(await other.get(view.task.id)) is TaskState.CANCELED
        cancelling.cancel()
        del run.stop
        await crash(r)


@pytest.mark.proves("S-2-1", "S-4-12")
async def test_a_request_to_cancel_is_a_private_fact_with_its_deadline() -> None:
    async with rig(forever, cancel_ms=1_234) as r:
        follow = await r.stream()
        async with asyncio.timeout(5):
            while not texts(await r.get(follow.ref.id)):
                await asyncio.sleep(0)
        await r.cancel(follow.ref.id)
        log = [entry.fact for entry in await r.store.since(SCOPE, follow.ref.uid, 0)]
        (asked,) = [fact for fact in log if isinstance(fact, CancelRequested)]
        assert asked.deadline - asked.at == 1_234
        assert not [e for e in await rest(follow) if isinstance(e.fact, CancelRequested)]


@pytest.mark.proves("S-4-13")
async def test_whatever_ends_a_task_first_is_its_end() -> None:
    """The code finishes while it is being cancelled: then it is finished, and the canceller is told so."""

    async def finishes(turn: TurnHandle) -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            if text_of(turn.message) == "done":
                asyncio.current_task().uncancel()  # pyright: ignore[reportOptionalMemberAccess]
                return
            raise

    async with rig(finishes) as r:
        for runs, (text, end) in enumerate((("stop", TaskState.CANCELED), ("done", TaskState.COMPLETED)), 1):
            view = await r.begin(text)
            await until(lambda runs=runs: r.agent.runs == runs)
            cancelling = r.cancel(view.task.id)
            if end is TaskState.CANCELED:
                assert state_of(await cancelling) is end
            else:
                with pytest.raises(Exception, match="already finished"):
                    await cancelling
            assert state_of(await r.get(view.task.id)) is end


@pytest.mark.proves("S-10-3")
async def test_a_drain_waits_for_running_turns_and_releases_the_claims_of_those_it_leaves() -> None:
    store, gate = MemoryStore(), asyncio.Event()

    async def works(turn: TurnHandle) -> None:
        if text_of(turn.message) == "ends":
            await gate.wait()
            return
        await chunk(turn, "written", append=False)
        await asyncio.Event().wait()

    async with rig(works, store=store) as r:
        ends, stays = await r.begin("ends"), await r.begin("stays")
        draining = asyncio.ensure_future(r.engine.drain(0.1))
        await asyncio.sleep(0)
        assert await store.claim(SCOPE, stays.uid, "another", 1_000) is None, "not while it may still end"
        gate.set()
        await draining
        assert state_of(await r.get(ends.task.id)) is TaskState.COMPLETED
        assert state_of(await r.get(stays.task.id)) is TaskState.WORKING and not r.engine.turns.runs
        assert [head.uid for head in await store.claimable(10)] == [stays.uid]
        assert texts(await r.get(stays.task.id)) == ["written"], "what it had said is kept"


@pytest.mark.proves("S-10-4")
async def test_who_was_drained_goes_on_after_the_restart() -> None:
    store, block = MemoryStore(), True

    async def counts(turn: TurnHandle) -> None:
        await chunk(turn, "one ", append=False)
        if block:
            await asyncio.Event().wait()
        await chunk(turn, "two")

    async with rig(counts, store=store, on_restart="rerun") as r:
        follow = await r.stream()
        seen = await follow.batch(5)
        while seen is not None and not any(isinstance(e.fact, Chunk) for e in seen.entries):
            seen = await follow.batch(5)
        await r.engine.drain(0)
        last = await follow.batch(5)
        assert seen is not None and last is not None and last.ended and not last.closing
        ref, after = follow.ref, seen.entries[-1].seq
        follow.close()
    block = False
    async with rig(counts, store=store, on_restart="rerun") as r:
        entries = await rest(await r.subscribe(ref.id, cursor(ref.uid, after)))
        assert all(entry.seq > after for entry in entries) and isinstance(entries[-1].fact, Settled)
        assert texts(await r.get(ref.id)) == ["one two"]
