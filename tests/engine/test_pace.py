"""Handlers that block the event loop are reported; they are the only ones."""

import asyncio
import time

import pytest

from dragoman import Agent, Turn
from dragoman.engine.engine import Limits
from dragoman.engine.pace import Pace
from dragoman.model.messages import Message, Part, Role
from dragoman.model.tasks import TaskState
from dragoman.ports import Route, TurnHandle
from dragoman.testing import Client
from tests.engine.rig import call, rig, state_of, text_of

pytestmark = pytest.mark.anyio

BLOCKED = "blocked everybody else"
HASTY = Limits(block_ms=20)


def block() -> None:
    time.sleep(0.04)


@pytest.mark.proves("D-6-7")
async def test_a_handler_that_blocks_the_loop_is_reported_by_its_skill(caplog: pytest.LogCaptureFixture) -> None:
    async def blocks(turn: TurnHandle) -> None:
        await asyncio.sleep(0)
        block()
        await asyncio.sleep(0)

    async with rig(blocks, limits=HASTY) as r:
        assert state_of(await r.send()) is TaskState.COMPLETED
        assert caplog.text.count(BLOCKED) == 1 and "The skill only" in caplog.text


async def test_one_that_awaits_is_not_however_long_it_takes(caplog: pytest.LogCaptureFixture) -> None:
    async def waits(turn: TurnHandle) -> None:
        await asyncio.sleep(0.04)

    async with rig(waits, limits=HASTY) as r:
        await r.send()
    assert BLOCKED not in caplog.text


@pytest.mark.proves("D-6-7")
async def test_a_direct_skill_that_blocks_is_reported_too(caplog: pytest.LogCaptureFixture) -> None:
    async def unused(turn: TurnHandle) -> None:
        raise AssertionError

    async def reply(route: Route, turn: TurnHandle) -> Message:
        block()
        return Message(role=Role.AGENT, parts=(Part(text="hello"),))

    async with rig(unused, limits=HASTY, direct=True) as r:
        r.agent.reply = reply
        answer = await r.engine.send(call(), r.op())
        assert isinstance(answer, Message) and text_of(answer) == "hello"
    assert BLOCKED in caplog.text


@pytest.mark.proves("D-6-7")
async def test_a_plain_function_may_block_because_it_runs_in_a_thread(caplog: pytest.LogCaptureFixture) -> None:
    agent = Agent("Blocks")

    @agent.skill
    def blocks() -> str:
        time.sleep(0.3)
        return "done"

    async with Client(agent) as client:
        await client.send("x")
    assert BLOCKED not in caplog.text


def test_it_is_said_once_and_again_when_it_got_much_worse(caplog: pytest.LogCaptureFixture) -> None:
    pace = Pace(0.1)
    for seconds in (0.2, 0.3, 0.2, 0.4, 0.5):
        pace.report("a", seconds)
    pace.report("b", 0.2)
    assert [each.args for each in caplog.records] == [("a", 0.2), ("a", 0.4), ("b", 0.2)]


class TestWatched:
    """Being watched changes nothing about how work runs."""

    async def test_results_and_errors_come_through(self) -> None:
        async def works(n: int) -> int:
            await asyncio.sleep(0)
            if n < 0:
                raise LookupError(str(n))
            return n

        pace = Pace(1)
        assert await pace.watched(works(3), "s") == 3
        with pytest.raises(LookupError, match="-3"):
            await pace.watched(works(-3), "s")

    async def test_a_cancellation_reaches_the_work_which_may_refuse_it(self) -> None:
        seen: list[str] = []

        async def stubborn() -> str:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                seen.append("cancelled")
            await asyncio.sleep(0)
            return "done"

        async def watch() -> str:
            return await Pace(1).watched(stubborn(), "s")

        task = asyncio.ensure_future(watch())
        await asyncio.sleep(0)
        task.cancel()
        assert await task == "done" and seen == ["cancelled"]

    async def test_work_nobody_waits_for_any_more_is_closed(self) -> None:
        closed: list[bool] = []

        async def works() -> None:
            try:
                await asyncio.Event().wait()
            finally:
                closed.append(True)

        waiting = Pace(1).watched(works(), "s").__await__()
        next(waiting)
        waiting.close()
        assert closed == [True]


async def test_turns_are_still_interrupted_at_once(caplog: pytest.LogCaptureFixture) -> None:
    agent = Agent("Waits")

    @agent.skill
    async def waits(turn: Turn) -> None:
        await asyncio.Event().wait()

    async with Client(agent) as client:
        task = await client.send("x", returnImmediately=True)
        assert not isinstance(task, Message)
        canceled = await client.cancel(task)
        assert canceled.status and canceled.status.state is TaskState.CANCELED
    assert not caplog.records
