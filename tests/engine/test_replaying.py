"""Turns that run again after a crash: what they had done counts once, what they had not is done."""

import asyncio

import pytest

from dragoman.model.messages import Part
from dragoman.model.tasks import TaskState, Usage
from dragoman.ports import TurnHandle
from dragoman.store.memory import MemoryStore
from tests.engine.rig import Rig, chunk, rig, text_of, texts

pytestmark = pytest.mark.anyio


async def crash(r: Rig) -> None:
    """The process is gone: its runs stop without writing anything."""
    for run in list(r.engine.turns.runs):
        run.stop("lost")
    await asyncio.sleep(0)


async def asks(turn: TurnHandle) -> None:
    answer = await turn.ask([Part(text="which?")])
    await chunk(turn, text_of(answer), append=False)


@pytest.mark.proves("S-5-6")
async def test_steps_at_once_under_names_of_their_own_are_remembered_whatever_order_they_ended_in() -> None:
    store, calls = MemoryStore(), list[str]()

    async def both(turn: TurnHandle) -> None:
        first = asyncio.Event()

        async def slow(step_id: str) -> str:
            calls.append("slow")
            await first.wait()
            return "slow"

        async def quick(step_id: str) -> str:
            calls.append("quick")
            first.set()
            return "quick"

        done = await asyncio.gather(turn.step("slow", [], slow), turn.step("quick", [], quick))
        answer = await turn.ask([Part(text="?")])
        await chunk(turn, f"{done} {text_of(answer)}", append=False)

    async with rig(both, store=store) as r:
        id = (await r.send()).task.id
    async with rig(both, store=store) as r:
        assert texts(await r.send("on", task_id=id)) == ["['slow', 'quick'] on"]
    assert calls == ["slow", "quick"]


@pytest.mark.proves("S-5-8")
async def test_a_rerun_turn_counts_its_usage_once() -> None:
    store = MemoryStore()

    async def spends(turn: TurnHandle) -> None:
        turn.usage(Usage(input_tokens=3))
        await chunk(turn, "x", append=False)
        if turn.attempt == 1:
            await asyncio.Event().wait()

    async with rig(spends, store=store, on_restart="rerun") as r:
        id = (await r.begin()).task.id
        while not texts(await r.get(id)):
            await asyncio.sleep(0)
        await crash(r)
    async with rig(spends, store=store, on_restart="rerun") as r:
        view = await r.settled(id, TaskState.COMPLETED)
        assert view.usage == Usage(input_tokens=3)
