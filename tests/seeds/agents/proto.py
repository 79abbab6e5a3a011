"""An agent that behaves as protoAgent's lead agent does. The message is its script, a step a line: `write Hello `,
`tool fetch a.txt = 3 lines`, `ask_human Which one?`, `spend 1200 340`. `wait x` holds it until another message says
`open x`; any other line is repeated.
"""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator

from dragoman import Agent, Turn
from dragoman.agents import Incoming

gates = defaultdict[str, asyncio.Event](asyncio.Event)

agent = Agent("protoAgent (script)", description="Plays back the steps of a run.", version="0.1.0")


@agent.router
def lead(said: Incoming) -> str:
    """Whoever names no skill talks to the lead agent."""
    return "chat"


@agent.skill
async def chat(turn: Turn) -> AsyncIterator[str]:
    """Plays the message's lines."""
    for line in turn.text.splitlines():
        step, _, rest = line.partition(" ")
        match step:
            case "write":
                yield rest
            case "tool":
                call, _, output = rest.partition(" = ")
                name, _, given = call.partition(" ")
                await turn.say(f"🔧 {name}: {given}")
                await turn.say(f"✅ {name} → {output}")
            case "ask_human":
                reply = await turn.ask(rest)
                yield f"Heard {reply.text!r}. "
            case "spend":
                read, written = map(int, rest.split())
                turn.usage(input_tokens=read, output_tokens=written)
            case "fail":
                await turn.fail(rest)
            case "wait":
                await gates[rest].wait()
            case "open":
                gates[rest].set()
            case _:
                yield line


@agent.skill
async def summarize_pr(turn: Turn) -> str:
    """Sums up in a word."""
    return f"Summary of {turn.text}"
