"""Handlers that block the event loop are reported; they are the only ones."""

import asyncio
import threading
import time

import pytest

from dragoman import Agent, Turn
from dragoman.engine.engine import Limits
from dragoman.engine.pace import Pace
from dragoman.model.messages import Message, Part, Role
from dragoman.model.tasks import TaskState
from dragoman.ports import Route, TurnHandle
from dragoman.testing import Client
from tests.engine.rig import call, chunk, rig, state_of, text_of

pytestmark = pytest.mark.anyio

BLOCKED = "has blocked everybody else"
HASTY = Limits(block_ms=20)


def block(caplog: pytest.LogCaptureFixture) -> None:
    """Until somebody complains."""
    deadline = time.monotonic() + 10
    while BLOCKED not in caplog.text and time.monotonic() < deadline:
        time.sleep(0.001)


def hold_up() -> None:
    time.sleep(0.1)


@pytest.mark.proves("D-6-7")
async def test_a_handler_that_blocks_the_loop_is_reported_by_its_skill_and_where_it_stands(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def blocks(turn: TurnHandle) -> None:
        await asyncio.sleep(0)
        block(caplog)
        await asyncio.sleep(0)

    async with rig(blocks, limits=HASTY) as r:
        assert state_of(await r.send()) is TaskState.COMPLETED
    assert "The skill only" in caplog.text and __file__ in caplog.text


async def test_one_that_awaits_is_not_however_long_it_takes(caplog: pytest.LogCaptureFixture) -> None:
    async def waits(turn: TurnHandle) -> None:
        await asyncio.sleep(0.1)

    async with rig(waits, limits=HASTY) as r:
        await r.send()
    assert BLOCKED not in caplog.text


async def test_one_that_is_always_busy_but_lets_others_in_is_not(caplog: pytest.LogCaptureFixture) -> None:
    async def busy(turn: TurnHandle) -> None:
        until = time.monotonic() + 0.2
        while time.monotonic() < until:
            await asyncio.sleep(0)

    async with rig(busy, limits=Limits(block_ms=100)) as r:
        await r.send()
    assert BLOCKED not in caplog.text


async def test_nobody_is_blamed_for_what_no_handler_does(caplog: pytest.LogCaptureFixture) -> None:
    async def waits(turn: TurnHandle) -> None:
        await asyncio.Event().wait()

    async with rig(waits, limits=HASTY) as r:
        await r.begin()
        hold_up()
    assert BLOCKED not in caplog.text


@pytest.mark.proves("D-6-7")
async def test_a_direct_skill_that_blocks_is_reported_too(caplog: pytest.LogCaptureFixture) -> None:
    async def unused(turn: TurnHandle) -> None:
        raise AssertionError

    async def reply(route: Route, turn: TurnHandle) -> Message:
        block(caplog)
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
        pace.report("a", seconds, "x.py:1")
    pace.report("b", 0.2, "x.py:2")
    assert [each.args for each in caplog.records] == [("a", 0.2, "x.py:1"), ("a", 0.4, "x.py:1"), ("b", 0.2, "x.py:2")]


async def test_the_watch_ends_with_its_engine() -> None:
    async def echo(turn: TurnHandle) -> None:
        await chunk(turn, "x", append=False)

    others = set(threading.enumerate())
    async with rig(echo) as r:
        await r.send()
        (watch,) = set(threading.enumerate()) - others
        assert watch.name == "pace"
    assert not watch.is_alive()


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
