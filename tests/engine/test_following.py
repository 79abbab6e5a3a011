"""Streams: cursors, snapshots, many readers, slow readers, ends."""

import asyncio
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from dragoman.core.cursors import cursor
from dragoman.core.fold import view as fold
from dragoman.engine.engine import Follow, Limits
from dragoman.model.errors import Busy, InvalidParams, UnsupportedOperation
from dragoman.model.facts import Chunk, Entry, StatusFact
from dragoman.model.messages import Part
from dragoman.model.tasks import Scope, TaskState
from dragoman.ports import Loaded, TurnHandle
from dragoman.store.sqlite import SqliteStore
from tests.engine.rig import SCOPE, call, chunk, rest, rig, state_of, text_of, texts

pytestmark = pytest.mark.anyio


async def chunks(turn: TurnHandle) -> None:
    for n in range(int(text_of(turn.message))):
        await chunk(turn, f"{n} ", append=n > 0)
        if n % 7 == 0:
            await asyncio.sleep(0)


def bodies(entries: Sequence[Entry]) -> str:
    return "".join(str(e.fact.artifact.parts[0].text) for e in entries if isinstance(e.fact, Chunk))


def states(entries: Sequence[Entry]) -> list[TaskState | None]:
    return [e.fact.status.state for e in entries if isinstance(e.fact, StatusFact)]


@pytest.mark.proves("S-2-5")
async def test_a_stream_begins_with_the_task_and_ends_with_its_last_status() -> None:
    async with rig(chunks) as r:
        follow = await r.stream("3")
        assert follow.first is not None
        assert state_of(follow.first) is TaskState.SUBMITTED
        entries = await rest(follow)
        assert bodies(entries) == "0 1 2 "
        assert states(entries) == [TaskState.WORKING, TaskState.COMPLETED]
        seqs = [e.seq for e in entries]
        assert seqs == sorted(set(seqs)) and seqs[0] > follow.first.seq


@pytest.mark.proves("S-2-8")
async def test_a_stream_without_a_snapshot_starts_with_the_first_status() -> None:
    async with rig(chunks) as r:
        follow = await r.engine.stream(call(first=False), r.op("1"))
        assert isinstance(follow, Follow)
        entries = await rest(follow)
        assert states(entries)[0] is TaskState.WORKING


@pytest.mark.proves("D-2-3", "S-2-9", "S-2-12")
async def test_any_cursor_continues_exactly_after_it_also_after_the_end() -> None:
    async with rig(chunks) as r:
        follow = await r.stream("40")
        everything = await rest(follow)
        uid, id = follow.ref.uid, follow.ref.id
        for entry in everything[:-1]:
            again = await r.subscribe(id, cursor(uid, entry.seq))
            assert again.first is None
            assert [e.seq for e in await rest(again)] == [e.seq for e in everything if e.seq > entry.seq]


@pytest.mark.proves("D-2-9")
async def test_a_slow_reader_is_served_from_the_log_and_misses_nothing() -> None:
    async with rig(chunks, limits=Limits(tail_facts=8, batch=5)) as r:
        follow = await r.stream("300")
        await r.settled(follow.ref.id, TaskState.COMPLETED)
        entries = await rest(follow)
        assert bodies(entries) == "".join(f"{n} " for n in range(300))


@pytest.mark.proves("W-081", "W-082", "W-083", "S-2-23")
async def test_many_readers_see_the_same_events_and_one_leaving_disturbs_nobody() -> None:
    gate = asyncio.Event()

    async def gated(turn: TurnHandle) -> None:
        await gate.wait()
        await chunks(turn)

    async with rig(gated) as r:
        first = await r.stream("20")
        others = [await r.subscribe(first.ref.id) for _ in range(5)]
        others.pop().close()
        gate.set()
        seen = await asyncio.gather(*[rest(f) for f in (first, *others)])
        assert len({tuple(e.seq for e in entries if e.seq > 2) for entries in seen}) == 1
        assert seen[1][-1] is seen[2][-1], "one entry serves all readers, so it is encoded once"


@pytest.mark.proves("S-2-13")
async def test_a_finished_task_refuses_a_subscription_unless_the_dialect_answers_it() -> None:
    async with rig(chunks) as r:
        view = await r.send("1")
        with pytest.raises(UnsupportedOperation):
            await r.subscribe(view.task.id)
        with pytest.raises(UnsupportedOperation):
            await r.subscribe(view.task.id, cursor(view.uid, view.seq))
        follow = await r.subscribe(view.task.id, subscribe_terminal=True)
        assert follow.first is not None and state_of(follow.first) is TaskState.COMPLETED
        assert await rest(follow) == []


@pytest.mark.proves("S-2-10")
async def test_foreign_and_future_cursors_are_refused() -> None:
    async with rig(chunks) as r:
        view, other = await r.send("1"), await r.send("1")
        for bad in (cursor(other.uid, 1), cursor(view.uid, 99), "nonsense", view.uid + ".-1", ".1"):
            with pytest.raises(InvalidParams):
                await r.subscribe(view.task.id, bad)


@pytest.mark.proves("S-2-14")
async def test_a_send_with_a_cursor_resumes_the_same_message_and_starts_nothing() -> None:
    async with rig(chunks) as r:
        follow = await r.stream("5", message_id="m")
        everything = await rest(follow)
        again = await r.stream("5", cursor(follow.ref.uid, 3), message_id="m")
        assert [e.seq for e in await rest(again)] == [e.seq for e in everything if e.seq > 3]
        assert r.agent.runs == 1
        for stranger in (r.op("6", message_id="m"), r.op("5", message_id="other")):
            with pytest.raises(InvalidParams):
                await r.engine.stream(call(cursor=cursor(follow.ref.uid, 3)), stranger)
        with pytest.raises(InvalidParams):
            await r.stream("5", cursor(follow.ref.uid, 99), message_id="m")
        with pytest.raises(InvalidParams, match="no task of yours"):
            elsewhere = call(Scope("agent", "", "eve"), cursor(follow.ref.uid, 3))
            await r.engine.stream(elsewhere, r.op("5", message_id="m"))
        assert (await r.list()).total == 1


@pytest.mark.proves("S-2-14")
async def test_a_waiting_send_with_a_cursor_waits_for_that_task_and_starts_nothing() -> None:
    gate = asyncio.Event()

    async def waits(turn: TurnHandle) -> None:
        await gate.wait()

    async with rig(waits) as r:
        view = await r.begin("x", message_id="m")
        again = asyncio.ensure_future(r.engine.send(call(cursor=cursor(view.uid, 1)), r.op("x", message_id="m")))
        await asyncio.sleep(0)
        assert not again.done()
        gate.set()
        assert await again == await r.get(view.task.id)
        with pytest.raises(InvalidParams):
            await r.engine.send(call(cursor=cursor(view.uid, 1)), r.op("y", message_id="m"))
        assert r.agent.runs == 1


@pytest.mark.proves("S-2-14")
async def test_a_send_whose_cursor_has_seen_everything_is_told_so_and_does_not_wait_for_ever() -> None:
    async with rig(chunks) as r:
        follow = await r.stream("1", message_id="m")
        everything = await rest(follow)
        last = cursor(follow.ref.uid, everything[-1].seq)
        with pytest.raises(UnsupportedOperation):
            await r.stream("1", last, message_id="m")
        answers = call(cursor=last, subscribe_terminal=True)
        again = await r.engine.stream(answers, r.op("1", message_id="m"))
        assert isinstance(again, Follow)
        assert again.first is not None and state_of(again.first) is TaskState.COMPLETED
        assert await rest(again) == []


async def test_a_stream_that_ended_with_a_question_ends_again_for_who_comes_back_after_it() -> None:
    async def asks(turn: TurnHandle) -> None:
        await turn.ask([Part(text="?")])

    async with rig(asks) as r:
        follow = await r.stream(message_id="m")
        everything = await rest(follow)
        again = await r.stream("hi", cursor(follow.ref.uid, everything[-1].seq), message_id="m")
        assert again.first is None and await rest(again) == []
        again = await r.stream("hi", cursor(follow.ref.uid, everything[0].seq), message_id="m")
        assert states(await rest(again)) == [TaskState.INPUT_REQUIRED]


async def test_a_stream_closes_on_a_question_and_a_subscription_waits() -> None:
    async def asks(turn: TurnHandle) -> None:
        answer = await turn.ask([Part(text="?")])
        await chunk(turn, text_of(answer), append=False)

    async with rig(asks) as r:
        follow = await r.stream()
        assert states(await rest(follow)) == [TaskState.WORKING, TaskState.INPUT_REQUIRED]
        watching = await r.subscribe(follow.ref.id)
        assert watching.first is not None and state_of(watching.first) is TaskState.INPUT_REQUIRED
        assert await watching.batch(0.01) is None, "nothing to tell: time for a keepalive"
        answer = await r.stream("yes", task_id=follow.ref.id)
        assert answer.first is not None
        assert states(await rest(answer))[-1] is TaskState.COMPLETED
        assert bodies(await rest(watching)) == "yes"


@pytest.mark.proves("S-6-2")
async def test_a_stream_that_stays_over_a_question_ends_after_its_patience_however_long_it_waited_before() -> None:
    gate = asyncio.Event()

    async def asks(turn: TurnHandle) -> None:
        await gate.wait()
        await turn.ask([Part(text="?")])

    async with rig(asks) as r:
        patient = call(closes=frozenset(), patience_ms=50)
        follow = await r.engine.stream(patient, r.op())
        assert isinstance(follow, Follow)
        assert await follow.batch(5) is not None
        waiting = asyncio.ensure_future(follow.batch(3600))
        await asyncio.sleep(0)
        gate.set()
        asked = await waiting
        assert asked is not None and not asked.closing
        async with asyncio.timeout(5):
            last = await follow.batch(3600)
        assert last is not None and last.closing and last.ended and last.entries == (asked.entries[-1],)
        follow.close()


@pytest.mark.proves("S-2-22")
async def test_a_large_snapshot_leaves_bodies_out_and_replays_them() -> None:
    gate = asyncio.Event()

    async def large(turn: TurnHandle) -> None:
        for n in range(100):
            await chunk(turn, "x" * 100, append=n > 0)
        await gate.wait()

    async with rig(large, limits=Limits(snapshot_bytes=1000, span_facts=16)) as r:
        view = await r.begin()
        while len(texts(await r.get(view.task.id))[:1] and texts(await r.get(view.task.id))[0]) < 10_000:
            await asyncio.sleep(0)
        follow = await r.subscribe(view.task.id)
        assert follow.first is not None and follow.first.partial and not follow.first.task.artifacts
        gate.set()
        entries = await rest(follow)
        assert bodies(entries) == "x" * 10_000
        assert states(entries) == [TaskState.COMPLETED], "statuses folded into the snapshot do not come again"


@pytest.mark.proves("S-2-13")
async def test_a_large_finished_task_is_told_whole_and_then_the_stream_ends() -> None:
    async def large(turn: TurnHandle) -> None:
        for n in range(100):
            await chunk(turn, "x" * 100, append=n > 0)
        if text_of(turn.message) == "ask":
            await turn.ask([Part(text="?")])

    async with rig(large, limits=Limits(snapshot_bytes=1000, span_facts=16, batch=7)) as r:
        view = await r.send()
        follow = await r.subscribe(view.task.id, subscribe_terminal=True)
        assert follow.first is not None and state_of(follow.first) is TaskState.COMPLETED
        assert texts(follow.first) == ["x" * 10_000] and await rest(follow) == [], "its frame is the last one"
        view = await r.send("ask")
        follow = await r.subscribe(view.task.id, follows=frozenset({TaskState.INPUT_REQUIRED}))
        assert follow.first is not None and state_of(follow.first) is TaskState.INPUT_REQUIRED
        assert texts(follow.first) == ["x" * 10_000] and await rest(follow) == []


@pytest.mark.proves("D-2-5")
async def test_a_snapshot_that_took_so_long_to_read_that_the_task_ended_is_the_whole_stream(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gate = asyncio.Event()

    async def large(turn: TurnHandle) -> None:
        for n in range(100):
            await chunk(turn, "x" * 100, append=n > 0)
        await gate.wait()

    async with rig(large, limits=Limits(snapshot_bytes=1000, span_facts=16)) as r:
        view = await r.begin()
        async with asyncio.timeout(5):
            while not view.task.artifacts or len(texts(view)[0]) < 10_000:
                await asyncio.sleep(0)
                view = await r.get(view.task.id)
        load = r.store.load

        async def slow(scope: Scope, uid: str) -> Loaded | None:
            gate.set()
            while not (head := await r.store.head(scope, uid)) or not head.terminal:
                await asyncio.sleep(0)
            return await load(scope, uid)

        monkeypatch.setattr(r.store, "load", slow)
        follow = await r.subscribe(view.task.id)
        assert follow.first is not None and state_of(follow.first) is TaskState.COMPLETED
        assert texts(follow.first) == ["x" * 10_000] and await rest(follow) == []


@pytest.mark.proves("S-2-11")
async def test_a_cursor_older_than_the_log_gets_the_task_as_it_is_and_goes_on_from_there(tmp_path: Path) -> None:
    """Facts before the checkpoint are gone, as they are once they are older than what the log is kept for."""
    path, gate = tmp_path / "log.db", asyncio.Event()

    async def counts(turn: TurnHandle) -> None:
        for n in range(40):
            await chunk(turn, f"{n} ", append=n > 0)
        if text_of(turn.message) == "wait":
            await gate.wait()

    limits = Limits(span_facts=16, brief_facts=1, tail_facts=4)
    async with rig(counts, store=SqliteStore(path, recent_bytes=0), limits=limits) as r:
        done, working = await r.send(), await r.begin("wait")
        for view in (done, working):
            async with asyncio.timeout(5):
                while not (loaded := await r.store.load(SCOPE, view.uid)) or loaded.head.checkpoint_seq < 40:
                    await asyncio.sleep(0)
            forget(path, view.uid, loaded.head.checkpoint_seq)
        follow = await r.subscribe(working.task.id, cursor(working.uid, 1))
        assert follow.first is not None and texts(follow.first) == ["".join(f"{n} " for n in range(40))]
        gate.set()
        later = await rest(follow)
        assert states(later) == [TaskState.COMPLETED] and later[0].seq > follow.first.seq
        for view in (done, working):
            follow = await r.subscribe(view.task.id, cursor(view.uid, 1))
            assert follow.first is not None and state_of(follow.first) is TaskState.COMPLETED
            assert await rest(follow) == []
        again = await r.engine.stream(
            call(cursor=cursor(done.uid, 1)), r.op(message_id=done.task.history[0].message_id)
        )
        assert isinstance(again, Follow) and again.first is not None and await rest(again) == []


def forget(path: Path, uid: str, before: int) -> None:
    """Delete a log's first facts behind the store's back."""
    with closing(sqlite3.connect(path)) as connection, connection:
        rows = connection.execute(
            "DELETE FROM facts WHERE task = (SELECT n FROM tasks WHERE uid = ?) AND seq <= ?", (uid, before)
        )
        assert rows.rowcount > 0


@pytest.mark.proves("D-5-5", "S-2-20", "S-2-21")
@pytest.mark.parametrize(
    ("limits", "span"),
    [(Limits(span_facts=16, span_bytes=1 << 20), 16), (Limits(span_facts=1 << 20, span_bytes=500), 3)],
)
async def test_no_read_of_a_live_task_folds_more_than_a_span(limits: Limits, span: int) -> None:
    """Checkpoints are taken while it works, by facts and by bytes."""
    most = 0
    go_on = asyncio.Event()

    async def speaks(turn: TurnHandle) -> None:
        for n in range(200):
            await chunk(turn, f"{n:03} ", append=n > 0)
            go_on.clear()
            await go_on.wait()

    async with rig(speaks, limits=limits) as r:
        view = await r.begin()
        seen = ""
        while len(seen) < 800:
            await asyncio.sleep(0)
            go_on.set()
            loaded = await r.store.load(SCOPE, view.uid)
            assert loaded is not None
            most = max(most, len(loaded.entries))
            seen = "".join(texts(fold(loaded)))
            assert "".join(f"{n:03} " for n in range(200)).startswith(seen), "and every read sees all of it"
        assert 1 < most <= span + 2, "what is being written and what was written before its checkpoint"
        assert len(await r.store.since(SCOPE, view.uid, 0, 1_000)) == 202, "the log itself stays whole"


@pytest.mark.proves("S-2-24")
async def test_what_a_live_task_keeps_in_memory_is_bounded() -> None:
    most = 0
    go_on = asyncio.Event()

    async def speaks(turn: TurnHandle) -> None:
        for n in range(300):
            await chunk(turn, "x" * 100, append=n > 0)
            if n % 5 == 0:
                go_on.clear()
                await go_on.wait()

    async with rig(speaks, limits=Limits(tail_facts=20, span_facts=20)) as r:
        follow = await r.stream()
        while r.engine.turns.runs:
            live = r.engine._lives.get(SCOPE, follow.ref.id)
            assert live is not None
            most = max(most, len(live.entries))
            go_on.set()
            await asyncio.sleep(0)
        assert most <= 20 + 10
        assert bodies(await rest(follow)) == "x" * 30_000, "what is not in memory comes from the log"


async def test_long_artifacts_are_folded_span_by_span() -> None:
    async with rig(chunks, limits=Limits(span_facts=16, whole_bytes=100)) as r:
        view = await r.send("200")
        wanted = "".join(f"{n} " for n in range(200))
        assert texts(view) == [wanted]
        loaded = await r.store.load(SCOPE, view.uid)
        assert loaded is not None and loaded.head.checkpoint_seq > 0 and len(loaded.entries) <= 32
        page = await r.list(include_artifacts=True)
        assert texts(page.views[0]) == [wanted]


@pytest.mark.proves("D-2-5", "S-10-3")
async def test_draining_ends_streams_without_a_final_marker_and_refuses_new_messages() -> None:
    async def forever(turn: TurnHandle) -> None:
        await chunk(turn, "a", append=False)
        await asyncio.Event().wait()

    async with rig(forever) as r:
        follow = await r.stream()
        blocked = asyncio.ensure_future(r.send())
        await asyncio.sleep(0)
        await r.engine.drain(0)
        batches = [await follow.batch(1)]
        while batches[-1] is not None and not batches[-1].ended:
            batches.append(await follow.batch(1))
        assert not any(b.closing for b in batches if b)
        with pytest.raises(Busy):
            await r.send()
        with pytest.raises(Busy):
            await blocked
        follow.close()
