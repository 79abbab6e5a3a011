"""Sync handlers run in threads: bounded, counted until they return, and never able to hold up the loop."""

import asyncio
import threading
from contextvars import ContextVar
from typing import Any

import pytest

from dragoman.agents import Agent, SyncTurn
from dragoman.agents.threads import Bridge, Threads
from dragoman.model.tasks import TaskState
from tests.agents.handle import Handle, run, said, words

pytestmark = pytest.mark.anyio

WAIT = 5


async def until(event: threading.Event) -> None:
    assert await asyncio.to_thread(event.wait, WAIT)


@pytest.mark.proves("D-6-7")
async def test_as_many_run_at_once_as_there_are_slots_and_the_rest_wait_in_order() -> None:
    threads = Threads(2)
    go = threading.Event()
    order: list[int] = []

    def work(n: int) -> None:
        order.append(n)
        assert go.wait(WAIT)

    tasks = [asyncio.create_task(threads.call(lambda n=n: work(n))) for n in range(5)]
    while len(order) < 2:
        await asyncio.sleep(0)
    tasks[3].cancel()
    await asyncio.wait({tasks[3]})
    assert (threads.busy, sorted(order)) == (2, [0, 1])
    go.set()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert (threads.busy, sorted(order)) == (0, [0, 1, 2, 4])


@pytest.mark.proves("S-4-16")
async def test_a_cancelled_turn_leaves_at_once_but_its_slot_stays_counted_until_the_thread_returns() -> None:
    agent = Agent("a", threads=1)
    started, release, refused = threading.Event(), threading.Event(), threading.Event()

    @agent.skill
    def work(turn: SyncTurn) -> str:
        if turn.text != "block":
            return "free"
        started.set()
        assert release.wait(WAIT)
        try:
            turn.say("too late")
        except asyncio.CancelledError:
            refused.set()
            raise
        return "never"

    first = asyncio.create_task(run(agent, "block"))
    await until(started)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    second = asyncio.create_task(run(agent, "next"))
    done, _ = await asyncio.wait({second}, timeout=0.05)
    assert not done
    release.set()
    async with asyncio.timeout(WAIT):
        assert [each[0] for each in (await second).chunks] == ["free"]
    await until(refused)


async def test_a_slot_that_was_handed_to_a_cancelled_waiter_goes_to_the_next() -> None:
    threads = Threads(1)
    release = threading.Event()
    first = asyncio.create_task(threads.call(lambda: release.wait(WAIT)))
    await asyncio.sleep(0)
    second, third = (asyncio.create_task(threads.call(lambda: "ran")) for _ in range(2))
    await asyncio.sleep(0)
    release.set()
    await first
    second.cancel()  # it may hold the slot already and have had no chance to use it
    async with asyncio.timeout(WAIT):
        assert await third == "ran"
        await asyncio.wait({second})
    while threads.busy:
        await asyncio.sleep(0)


async def test_a_thread_that_waits_in_its_turn_is_woken_by_cancellation() -> None:
    agent = Agent("a")
    woken = threading.Event()
    asked = asyncio.Event()

    @agent.skill
    def work(turn: SyncTurn) -> None:
        try:
            turn.ask("Sure?")
        except asyncio.CancelledError:
            woken.set()
            raise

    handle = Handle(said("x"))

    async def hold(parts: Any, metadata: Any = None) -> Any:
        asked.set()
        await asyncio.Event().wait()

    handle.ask = hold
    task = asyncio.create_task(agent.run(agent.route(handle.message, None), handle))
    await asked.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await until(woken)


async def test_errors_of_a_handler_and_of_its_calls_come_back_to_the_turn() -> None:
    agent = Agent("a")
    caught: list[str] = []

    @agent.skill
    def work(turn: SyncTurn) -> None:
        try:
            turn.artifact("unknown", append=True)
        except ValueError as error:
            caught.append(str(error))
        raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        await run(agent)
    assert caught == ["There is no artifact named 'unknown' in this turn to append to"]


async def test_a_step_of_a_sync_handler_needs_no_second_slot() -> None:
    agent = Agent("a", threads=1)

    @agent.skill
    def work(turn: SyncTurn) -> str:
        return turn.step("where", lambda: threading.current_thread().name)

    async with asyncio.timeout(WAIT):
        turn = await run(agent)
    assert turn.chunks[0][0] == "dragoman-handler"


async def test_a_sync_turn_used_on_the_loop_says_so_instead_of_hanging() -> None:
    bridge = Bridge()
    with pytest.raises(RuntimeError, match="never on the event loop"):
        bridge.call(lambda: asyncio.sleep(0))


async def test_handlers_keep_their_context_variables() -> None:
    colour: ContextVar[str] = ContextVar("colour", default="none")
    agent = Agent("a")

    @agent.skill
    def work() -> str:
        return colour.get()

    colour.set("red")
    assert (await run(agent)).chunks[0][0] == "red"


async def test_a_plain_function_may_hand_back_a_coroutine_or_an_async_generator() -> None:
    agent = Agent("a")

    async def words_later() -> str:
        return "later"

    async def stream():
        yield "streamed"

    def coroutine() -> Any:
        return words_later()

    def generator() -> Any:
        return stream()

    agent.skill(coroutine)
    agent.skill(generator)
    one = await run(agent, said("x", metadata={"skill": "coroutine"}))
    two = await run(agent, said("x", metadata={"skill": "generator"}))
    assert (one.chunks[0][0], two.chunks[0][0]) == ("later", "streamed")


async def test_a_sync_handler_may_refuse_what_it_was_given() -> None:
    agent = Agent("a")

    @agent.skill
    def square(n: int) -> int:
        return n * n

    turn = await run(agent, "x")
    assert (turn.end[0], words(turn.end[1])) == (TaskState.REJECTED, "n: Expected int, got str")
    assert (await run(agent, "7")).artifacts[0].parts[0].data == 49
