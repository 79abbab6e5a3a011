"""The agent the chaos rounds kill. Every chunk says which attempt wrote it, so that a turn past its fence shows."""

import asyncio

from dragoman import Agent, Turn

agent = Agent("Victim", description="Streams, asks and echoes until somebody pulls the plug.", version="1")

CHUNKS = 300


async def _count(turn: Turn):
    for number in range(CHUNKS):
        yield f"{turn.attempt}:{number};"
        await asyncio.sleep(0.003)


@agent.skill
async def stream(turn: Turn):
    """Counts; fails when its process dies."""
    async for piece in _count(turn):
        yield piece


@agent.skill(on_restart="rerun")
async def again(turn: Turn):
    """Counts; starts over when its process dies."""
    async for piece in _count(turn):
        yield piece


@agent.skill
async def ask(turn: Turn) -> str:
    """Asks, and repeats the answer."""
    reply = await turn.ask("What shall I repeat?")
    return reply.text


@agent.skill
async def echo(turn: Turn) -> str:
    """Repeats the message, after a millisecond of thought."""
    await asyncio.sleep(0.001)
    return turn.text


@agent.skill(on_restart="rerun")
async def report(turn: Turn) -> str:
    """Says how far it is; starts over when its process dies."""
    for number in range(5):
        await turn.say(f"{number} of 5")
        await asyncio.sleep(0.02)
    return "done"
