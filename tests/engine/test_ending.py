"""Cancels, deadlines, restarts, retention: how tasks end, and that they stay ended."""

import asyncio
from typing import Any

import pytest

from dragoman.model.errors import TaskNotCancelable, TaskNotFound
from dragoman.model.facts import Settled
from dragoman.model.messages import Message, Part
from dragoman.model.tasks import TaskState
from dragoman.ports import Agent, Route, TurnHandle
from dragoman.store.memory import MemoryStore
from tests.engine.rig import Clock, FunctionAgent, Rig, chunk, rest, rig, state_of, text_of, texts

pytestmark = pytest.mark.anyio


async def forever(turn: TurnHandle) -> None:
    await chunk(turn, "begun", append=False)
    await asyncio.Event().wait()


async def asks(turn: TurnHandle) -> None:
    answer = await turn.ask([Part(text="?")])
    await chunk(turn, text_of(answer), append=False)


@pytest.mark.proves("D-6-5")
async def test_cancel_reaches_the_code_and_ends_the_task_and_its_streams() -> None:
    begun, reached = asyncio.Event(), asyncio.Event()

    async def notices(turn: TurnHandle) -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            assert turn.cancelled
            reached.set()

    async with rig(notices) as r:
        follow = await r.stream()
        await begun.wait()
        view = await r.cancel(follow.ref.id)
        assert state_of(view) is TaskState.CANCELED
        assert reached.is_set()
        entries = await rest(follow)
        last = entries[-1].fact
        assert isinstance(last, Settled) and last.status.state is TaskState.CANCELED
        assert state_of(await r.cancel(follow.ref.id)) is TaskState.CANCELED


async def test_what_was_emitted_before_a_cancel_is_kept() -> None:
    async with rig(forever) as r:
        view = await r.begin()
        await asyncio.sleep(0)
        assert texts(await r.cancel(view.task.id)) == ["begun"]


async def test_a_turn_stopped_before_its_first_step_ends_without_running(monkeypatch: pytest.MonkeyPatch) -> None:
    async with rig(forever) as r:
        turns = r.engine.turns
        begin = turns.begin

        def begin_and_stop(*arguments: Any) -> None:
            begin(*arguments)
            for run in turns.runs:
                run.stop("cancel")

        monkeypatch.setattr(turns, "begin", begin_and_stop)
        view = await r.send()
        assert state_of(view) is TaskState.CANCELED and texts(view) == [] and r.agent.runs == 0


@pytest.mark.proves("S-4-13")
async def test_cancel_after_completion_is_refused_and_changes_nothing() -> None:
    async def quick(turn: TurnHandle) -> None:
        pass

    async with rig(quick) as r:
        view = await r.send()
        with pytest.raises(TaskNotCancelable):
            await r.cancel(view.task.id)
        assert (await r.get(view.task.id)) == view
        terminal = frozenset({TaskState.COMPLETED, TaskState.CANCELED})
        assert await r.cancel(view.task.id, cancel_again=terminal) == view


@pytest.mark.proves("D-6-5", "S-4-14")
async def test_code_that_ignores_its_cancel_is_canceled_at_the_deadline() -> None:
    released = asyncio.Event()

    async def stubborn(turn: TurnHandle) -> None:
        while not released.is_set():
            try:
                await released.wait()
            except asyncio.CancelledError:
                continue
        await chunk(turn, "too late", append=False)

    async with rig(stubborn, cancel_ms=30) as r:
        view = await r.begin()
        view = await r.cancel(view.task.id)
        assert state_of(view) is TaskState.CANCELED
        released.set()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert texts(await r.get(view.task.id)) == []


@pytest.mark.proves("S-4-15")
async def test_a_parked_task_is_canceled_at_once() -> None:
    async with rig(asks) as r:
        view = await r.send()
        assert state_of(await r.cancel(view.task.id)) is TaskState.CANCELED


async def test_an_unknown_task_cannot_be_canceled() -> None:
    async with rig(asks) as r:
        with pytest.raises(TaskNotFound):
            await r.cancel("nope")


async def test_agents_can_end_a_task_as_rejected_or_failed_with_a_reason() -> None:
    async def decides(turn: TurnHandle) -> None:
        turn.finish(TaskState[text_of(turn.message)], [Part(text="because")])

    async with rig(decides) as r:
        for state in (TaskState.REJECTED, TaskState.FAILED, TaskState.COMPLETED):
            view = await r.send(state.name)
            assert state_of(view) is state
            assert view.task.status and view.task.status.message
            assert text_of(view.task.status.message) == "because"


# --- restarts: a second engine over the same store, the first one gone without a word


async def crash(r: Rig) -> None:
    """The process is gone: its runs stop without writing anything."""
    for run in list(r.engine.turns.runs):
        run.stop("lost")
    await asyncio.sleep(0)


@pytest.mark.proves("D-2-6", "D-6-6")
async def test_a_working_turn_is_failed_by_the_next_start() -> None:
    store = MemoryStore()
    async with rig(forever, store=store) as r:
        follow = await r.stream()
        id = follow.ref.id
        while not texts(await r.get(id)):
            await asyncio.sleep(0)
        follow.close()
        await crash(r)
    async with rig(forever, store=store) as r:
        view = await r.get(id)
        assert state_of(view) is TaskState.FAILED
        assert view.task.status and view.task.status.message
        assert text_of(view.task.status.message) == "interrupted by server restart"
        assert texts(view) == ["begun"]


@pytest.mark.proves("D-2-6")
async def test_a_rerun_turn_restarts_the_artifact_it_had_begun() -> None:
    store = MemoryStore()
    async with rig(forever, store=store, on_restart="rerun") as r:
        view = await r.begin()
        while not texts(await r.get(view.task.id)):
            await asyncio.sleep(0)
        await crash(r)

    async def second(turn: TurnHandle) -> None:
        assert turn.attempt == 2
        await chunk(turn, "begun ", append=False)
        await chunk(turn, "and ended")

    async with rig(second, store=store, on_restart="rerun") as r:
        view = await r.settled(view.task.id, TaskState.COMPLETED)
        assert texts(view) == ["begun and ended"]


@pytest.mark.proves("D-6-8")
async def test_a_crash_after_an_answer_restarts_the_whole_artifact() -> None:
    store = MemoryStore()
    block = True

    async def half(turn: TurnHandle) -> None:
        await chunk(turn, "a", append=False)
        await turn.ask([Part(text="?")])
        await chunk(turn, "b")
        if block:
            await asyncio.Event().wait()
        await chunk(turn, "c")

    async with rig(half, store=store, on_restart="rerun") as r:
        view = await r.send()
        await r.begin("go", task_id=view.task.id)
        while texts(await r.get(view.task.id)) != ["ab"]:
            await asyncio.sleep(0)
        await crash(r)
    block = False
    async with rig(half, store=store, on_restart="rerun") as r:
        assert texts(await r.settled(view.task.id, TaskState.COMPLETED)) == ["abc"]


@pytest.mark.proves("S-5-10")
async def test_a_turn_that_crashes_again_and_again_is_given_up() -> None:
    store = MemoryStore()
    id = ""
    for _ in range(5):
        async with rig(forever, store=store, on_restart="rerun") as r:
            if not id:
                id = (await r.begin()).task.id
            await crash(r)
    async with rig(forever, store=store, on_restart="rerun") as r:
        assert state_of(await r.get(id)) is TaskState.FAILED


async def test_a_parked_question_survives_a_restart_and_is_answerable() -> None:
    store = MemoryStore()
    async with rig(asks, store=store) as r:
        view = await r.send()
    async with rig(asks, store=store) as r:
        assert state_of(await r.get(view.task.id)) is TaskState.INPUT_REQUIRED
        assert texts(await r.send("late", task_id=view.task.id)) == ["late"]


def broken(message: Message, metadata: dict[str, Any] | None) -> Route:
    raise LookupError("the author's router")


@pytest.mark.proves("D-2-6")
async def test_a_turn_whose_skill_cannot_be_chosen_any_more_fails_at_the_next_start_and_keeps_nobody_else(
    caplog: pytest.LogCaptureFixture,
) -> None:
    store = MemoryStore()
    async with rig(forever, store=store, on_restart="rerun") as r:
        ids = [(await r.begin(text)).task.id for text in ("broken", "sound")]
        await crash(r)
    sound = FunctionAgent(forever, on_restart="rerun").route
    agent = FunctionAgent(forever)
    agent.route = lambda message, metadata: (broken if text_of(message) == "broken" else sound)(message, metadata)
    async with rig(forever, store=store, agent=agent) as r:
        view = await r.get(ids[0])
        assert state_of(view) is TaskState.FAILED
        assert view.task.status and view.task.status.message
        assert text_of(view.task.status.message) == "interrupted by server restart"
        assert state_of(await r.get(ids[1])) is TaskState.WORKING
    assert "could not choose a skill" in caplog.text


async def test_a_waiting_message_no_skill_is_chosen_for_goes_to_the_one_that_runs(
    caplog: pytest.LogCaptureFixture,
) -> None:
    gate = asyncio.Event()

    async def works(turn: TurnHandle) -> None:
        await gate.wait()
        await chunk(turn, text_of(turn.message), append=False, id=text_of(turn.message))

    async with rig(works) as r:
        id = (await r.begin("one")).task.id
        await r.begin("two", task_id=id)
        r.agent.route = broken
        gate.set()
        assert texts(await r.settled(id, TaskState.COMPLETED)) == ["one", "two"]
    assert "could not choose a skill" in caplog.text


async def test_messages_in_the_inbox_survive_a_restart() -> None:
    store = MemoryStore()
    async with rig(forever, store=store, on_restart="rerun") as r:
        view = await r.begin("one")
        await r.begin("two", task_id=view.task.id)
        await crash(r)

    async def echo(turn: TurnHandle) -> None:
        await chunk(turn, text_of(turn.message), append=False, id=text_of(turn.message))

    async with rig(echo, store=store, on_restart="rerun") as r:
        view = await r.settled(view.task.id, TaskState.COMPLETED)
        assert texts(view)[-2:] == ["one", "two"]


@pytest.mark.proves("D-5-6", "D-5-8")
async def test_finished_tasks_are_deleted_after_their_retention_and_parked_ones_stay() -> None:
    clock = Clock()
    store = MemoryStore(clock=clock)

    async def either(turn: TurnHandle) -> None:
        if text_of(turn.message) == "ask":
            await turn.ask([Part(text="?")])

    async with rig(either, store=store) as r:
        done, parked = await r.send("x"), await r.send("ask")
        clock.ms += 86_400_000 * 2
        await r.engine.sweep()
        with pytest.raises(TaskNotFound):
            await r.get(done.task.id)
        assert state_of(await r.get(parked.task.id)) is TaskState.INPUT_REQUIRED


@pytest.mark.proves("W-070")
async def test_a_conversation_lasts_as_long_as_one_of_its_tasks() -> None:
    clock = Clock()
    store = MemoryStore(clock=clock)
    seen: list[list[str]] = []

    async def remembers(turn: TurnHandle) -> None:
        seen.append([text_of(message) for message in await turn.conversation()])
        if text_of(turn.message) == "ask":
            await turn.ask([Part(text="?")])

    async with rig(remembers, store=store) as r:
        for context in ("over", "parked"):
            await r.send("begun", context_id=context)
        parked = await r.send("ask", context_id="parked")
        clock.ms += 86_400_000 * 2
        await r.engine.sweep()
        again = await r.send("later", context_id="over")
        assert again.task.context_id == "over"
        await r.send("later", context_id="parked")
        assert state_of(await r.get(parked.task.id)) is TaskState.INPUT_REQUIRED
    assert seen[-2:] == [[], ["ask", "?"]]


@pytest.mark.proves("D-2-4")
async def test_nothing_moves_a_terminal_task() -> None:
    emitted = asyncio.Event()

    async def late(turn: TurnHandle) -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            emitted.set()
            await chunk(turn, "late", append=False)
            raise

    async with rig(late, cancel_ms=20) as r:
        view = await r.begin()
        await asyncio.sleep(0)
        seen = await r.cancel(view.task.id)
        assert emitted.is_set()
        assert await r.get(view.task.id) == seen


def test_rig_agents_satisfy_the_port() -> None:
    agent: Agent = FunctionAgent(asks)
    assert agent.profile.name == "test"
