"""The bench's agents for dragoman, one per behaviour: `dragoman serve bench/agents/dragoman_agent.py:stream`."""

import asyncio
import random
import time
from collections.abc import AsyncIterator

from workload import BLOB, NAP_SECONDS, STATUS_EVERY, TICK_SECONDS, count, tokens

from dragoman import Agent, Turn

echo = Agent("Bench echo", description="Says what it hears.", version="1.0.0")
nap = Agent("Bench nap", description="Waits a millisecond, then says what it heard.", version="1.0.0")
stream = Agent("Bench stream", description="Streams N tokens as fast as it may.", version="1.0.0")
tick = Agent("Bench tick", description="Streams N tokens, one every 50 ms.", version="1.0.0")
idle = Agent("Bench idle", description="Never answers.", version="1.0.0")
clock = Agent("Bench clock", description="Streams N times what time it is, and says it once a second.", version="1.0.0")
blob = Agent("Bench blob", description="Streams N chunks of 1 KiB.", version="1.0.0")


@echo.skill(id="echo")
async def _echo(turn: Turn) -> str:
    return turn.text


@nap.skill(id="nap")
async def _nap(turn: Turn) -> str:
    await asyncio.sleep(NAP_SECONDS)
    return turn.text


@stream.skill(id="stream")
async def _stream(turn: Turn) -> AsyncIterator[str]:
    for token in tokens(turn.text):
        yield token
        await asyncio.sleep(0)


@tick.skill(id="tick")
async def _tick(turn: Turn) -> AsyncIterator[str]:
    for token in tokens(turn.text):
        await asyncio.sleep(TICK_SECONDS)
        yield token


@idle.skill(id="idle")
async def _idle(turn: Turn) -> None:
    await asyncio.Event().wait()


@clock.skill(id="clock")
async def _clock(turn: Turn) -> AsyncIterator[str]:
    await asyncio.sleep(random.random() * STATUS_EVERY * TICK_SECONDS)  # agents do not march in step
    for number in range(count(turn.text)):
        await asyncio.sleep(TICK_SECONDS)
        stamp = f"@at:{time.monotonic_ns()}@"
        if number % STATUS_EVERY == 0:
            await turn.say(stamp)
        else:
            yield stamp


@blob.skill(id="blob")
async def _blob(turn: Turn) -> AsyncIterator[str]:
    for _ in range(count(turn.text)):
        yield BLOB
        await asyncio.sleep(0)


agent = echo
