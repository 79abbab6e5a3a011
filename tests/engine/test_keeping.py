"""What memory keeps, under a clock that is held: an hour, looked at every five minutes."""

import asyncio

import pytest

from dragoman.app import wiring
from dragoman.app.sources import resolve
from dragoman.engine import keeper
from dragoman.model.errors import TaskNotFound
from dragoman.model.messages import Part
from dragoman.model.tasks import Head, TaskState
from dragoman.ports import TurnHandle
from dragoman.store.memory import HOUR, MemoryStore
from tests.conformance.store.adapters import HeldClock
from tests.engine.rig import Clock, Rig, rig, text_of

pytestmark = pytest.mark.anyio


class WatchedStore(MemoryStore):
    """Counts how often the keeper came by."""

    def __init__(self, clock: HeldClock) -> None:
        super().__init__(clock=clock)
        self.rounds = 0

    async def due(self, limit: int) -> list[Head]:
        self.rounds += 1
        return list(await super().due(limit))


async def play(turn: TurnHandle) -> None:
    if text_of(turn.message) == "ask":
        await turn.ask([Part(text="?")])
    if text_of(turn.message) == "wait":
        await asyncio.Event().wait()


async def a_round(rig: Rig, store: WatchedStore) -> None:
    before = store.rounds
    async with asyncio.timeout(10):
        while store.rounds < before + 2:  # one may have begun already
            await asyncio.sleep(0)


@pytest.mark.proves("001-24", "001-25", "001-d13")
async def test_an_hour_after_its_end_the_sweep_of_every_five_minutes_forgets_a_task_and_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = HeldClock(Clock().ms)
    store = WatchedStore(clock)
    limits = wiring.limits(resolve({"store": "memory://"}, environ={}))
    loop = asyncio.get_running_loop()
    real, ahead = loop.time, 0.0
    monkeypatch.setattr(keeper, "TICK", 0.01)
    monkeypatch.setattr(loop, "time", lambda: real() + ahead)
    async with rig(play, store=store, limits=limits) as here:
        done = await here.send("done")
        parked = await here.send("ask")
        working = await here.begin("wait")
        clock.at += HOUR
        ahead += 301
        await a_round(here, store)
        assert (await here.get(done.task.id)).task.id == done.task.id  # it ended a few moments after the clock stopped
        clock.at += 1_000
        ahead += 290
        await a_round(here, store)
        assert (await here.get(done.task.id)).task.id == done.task.id  # nobody looked yet
        ahead += 11
        await a_round(here, store)
        with pytest.raises(TaskNotFound):
            await here.get(done.task.id)
        assert (await here.list()).total == 2
        await here.settled(parked.task.id, TaskState.INPUT_REQUIRED)
        await here.settled(working.task.id, TaskState.WORKING)
