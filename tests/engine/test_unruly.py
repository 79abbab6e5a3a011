"""Agents that do what no agent should: exit, cancel themselves, ignore cancels, ask for more than there is."""

import asyncio
import sys
from collections.abc import Callable
from typing import NoReturn

import pytest

from dragoman.engine.engine import Limits
from dragoman.model.errors import Conflict, InvalidAgentResponse, Overloaded, StoreFull
from dragoman.model.facts import Chunk
from dragoman.model.messages import Message, Part, Role
from dragoman.model.operations import Call, SendMessage
from dragoman.model.tasks import TaskState
from dragoman.ports import Route, TurnHandle
from tests.engine.rig import FunctionAgent, Rig, call, chunk, rig, state_of, text_of, texts
from tests.engine.test_durability import Troubled, with_fact

pytestmark = pytest.mark.anyio


class Odd(BaseException):
    """Neither an Exception nor anything Python knows."""


def exits() -> NoReturn:
    sys.exit("wrong arguments")


def cancels_itself() -> NoReturn:
    raise asyncio.CancelledError


def ends_like_a_generator() -> NoReturn:
    raise GeneratorExit


def raises_oddly() -> NoReturn:
    raise Odd


UNRULY = [exits, cancels_itself, ends_like_a_generator, raises_oddly]


@pytest.mark.parametrize("outcome", UNRULY)
async def test_whatever_an_agent_raises_ends_its_task_and_nothing_else(outcome: Callable[[], NoReturn]) -> None:
    async def unruly(turn: TurnHandle) -> None:
        await chunk(turn, "begun", append=False)
        if text_of(turn.message) == "now":
            outcome()

    async with rig(unruly) as r, asyncio.timeout(5):
        view = await r.send("now")
        assert state_of(view) is TaskState.FAILED and texts(view) == ["begun"]
        assert state_of(await r.send("and again, politely")) is TaskState.COMPLETED


class Direct(FunctionAgent):
    """Answers directly, with what its function does."""

    def __init__(self, function: Callable[[], object], **route: object) -> None:
        super().__init__(_nothing, direct=True, **route)
        self._function = function

    async def reply(self, route: Route, turn: TurnHandle) -> Message:
        done = self._function()
        if isinstance(done, asyncio.Event):
            await done.wait()
        return Message(role=Role.AGENT, parts=(Part(text="done"),))


def _direct(r: Rig) -> tuple[Call, SendMessage]:
    return call(), r.op()


async def _nothing(turn: TurnHandle) -> None:
    pass


@pytest.mark.parametrize("outcome", [exits, cancels_itself, raises_oddly])
async def test_whatever_a_direct_skill_raises_fails_its_reply_and_nothing_else(outcome: Callable[[], NoReturn]) -> None:
    async with rig(_nothing, agent=Direct(outcome)) as r, asyncio.timeout(5):
        for key in ("", "k"):
            with pytest.raises(InvalidAgentResponse):
                await r.send(key=key)


async def test_direct_replies_count_as_running_turns_also_when_nobody_waits_any_more() -> None:
    hold = asyncio.Event()
    async with rig(_nothing, agent=Direct(lambda: hold), limits=Limits(running=2)) as r, asyncio.timeout(5):
        for _ in range(2):
            asking = asyncio.create_task(r.engine.send(*_direct(r)))
            await asyncio.sleep(0)
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)
        with pytest.raises(Overloaded):
            await r.engine.send(*_direct(r))
        hold.set()
        while r.engine.turns.replies:
            await asyncio.sleep(0)
        assert isinstance(await r.engine.send(*_direct(r)), Message)


async def test_a_drain_lets_direct_replies_end() -> None:
    hold = asyncio.Event()
    async with rig(_nothing, agent=Direct(lambda: hold)) as r, asyncio.timeout(5):
        asking = asyncio.create_task(r.engine.send(*_direct(r)))
        while not r.engine.turns.replies:
            await asyncio.sleep(0)
        draining = asyncio.create_task(r.engine.drain(5))
        await asyncio.sleep(0)
        assert not draining.done()
        hold.set()
        await draining
        assert isinstance(await asking, Message)


async def test_turns_that_wait_for_their_context_count_as_running() -> None:
    hold = asyncio.Event()

    async def waits(turn: TurnHandle) -> None:
        await hold.wait()

    async with rig(waits, serialize="context", limits=Limits(running=3)) as r, asyncio.timeout(5):
        views = [await r.begin(context_id="c") for _ in range(3)]
        with pytest.raises(Overloaded):
            await r.begin(context_id="c")
        hold.set()
        for view in views:
            await r.settled(view.task.id, TaskState.COMPLETED)
        assert r.engine.turns.waiting == 0


@pytest.mark.parametrize("error", [Conflict(), StoreFull()], ids=["lost", "full"])
async def test_a_handler_that_ignores_being_stopped_blocks_nobody(error: Exception) -> None:
    """Its turn is lost, or its output could not be stored; it is told, and goes on as if nothing had happened."""
    store = Troubled()
    emitted = 0

    async def ignores(turn: TurnHandle) -> None:
        nonlocal emitted
        store.error, store.trouble = error, with_fact(Chunk)
        while emitted < 2_000:
            try:
                emitted += 1
                await chunk(turn, "x" * 1_000)
            except asyncio.CancelledError:
                continue

    async with rig(ignores, store=store, limits=Limits(buffer_facts=8, buffer_bytes=10_000)) as r, asyncio.timeout(5):
        await r.begin()
        while emitted < 2_000:
            await asyncio.sleep(0)
        assert emitted == 2_000


async def test_one_impatient_branch_of_a_handler_does_not_stop_the_others() -> None:
    """Both wait for room in the buffer; one gives up waiting."""

    async def forks(turn: TurnHandle) -> None:
        async def says(text: str) -> None:
            for _ in range(20):
                await turn.say([Part(text=text)])

        impatient, patient = asyncio.create_task(says("a")), asyncio.create_task(says("b"))
        await asyncio.sleep(0)
        impatient.cancel()
        await asyncio.gather(impatient, return_exceptions=True)
        await patient

    async with rig(forks, limits=Limits(buffer_facts=2)) as r, asyncio.timeout(5):
        view = await r.send()
        assert state_of(view) is TaskState.COMPLETED
        assert [text_of(said) for said in view.task.history].count("b") == 20
