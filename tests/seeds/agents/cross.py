"""An agent that comes to every state a task can have. The message is its script, a step a line: `write Hello `,
`ask Which one?`, `login Sign in first`, `refuse Not that`, `fail It broke`. `wait x` holds it until another message
says `open x`.
"""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator

from dragoman import Agent, Turn

gates = defaultdict[str, asyncio.Event](asyncio.Event)

agent = Agent("Crossing", description="Plays back the steps it is told.", version="1.0.0")


@agent.skill(id="play")
async def play(turn: Turn) -> AsyncIterator[str]:
    for line in turn.text.splitlines():
        step, _, rest = line.partition(" ")
        match step:
            case "write":
                yield rest
            case "ask":
                reply = await turn.ask(rest)
                yield f"Heard {reply.text!r}. "
            case "login":
                await turn.require_auth(rest)
            case "refuse":
                await turn.reject(rest)
            case "fail":
                await turn.fail(rest)
            case "wait":
                await gates[rest].wait()
            case "open":
                gates[rest].set()
            case _:
                raise ValueError(step)
