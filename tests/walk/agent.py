"""The agent of the walk: it says what it does, streams two chunks and ends."""

import asyncio
from collections.abc import AsyncIterator

from dragoman import Agent, Turn

agent = Agent("Walker", description="Says where it is going.", version="1.0.0")


@agent.skill(id="walk")
async def walk(turn: Turn) -> AsyncIterator[str]:
    await turn.say("On my way")
    yield "one step, "
    await asyncio.sleep(0)
    yield "two steps"
