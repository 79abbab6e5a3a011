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
