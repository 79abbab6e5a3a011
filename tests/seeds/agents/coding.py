"""An agent that tells of its work as coding-agent-a2a does. The message is what its CLI would print, an event a line:
`init opus s-1`, `thinking Hello`, `tool_use read_file`, `tool_result 3 lines`, `approval run make`, `done Well done.`,
`stats 12 34 560`, `error It broke`. `wait x` holds it until another message says `open x`.
"""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator

from dragoman import Agent, Turn

LONGEST = 200  # characters of a tool's output that are told
gates = defaultdict[str, asyncio.Event](asyncio.Event)

agent = Agent("coding-agent-a2a (script)", description="Plays back what a coding CLI would print.", version="0.1.0")


@agent.skill(id="code-task", tags=["coding"])
async def code_task(turn: Turn) -> AsyncIterator[str]:
    """Plays the message's lines."""
    for line in turn.text.splitlines():
        event, _, rest = line.partition(" ")
        match event:
            case "init":
                model, session = rest.split()
                await turn.artifact("agent-metadata", {"model": model, "sessionId": session})
            case "thinking":
                yield rest
            case "tool_use":
                await turn.say(f"Using tool: {rest}")
            case "tool_result":
                await turn.say(f"Tool result: {rest[:LONGEST]}{'…' if len(rest) > LONGEST else ''}")
            case "approval":
                answer = await turn.ask(f"Approve: {rest}?")
                yield f"Answered {answer.text!r}."
            case "done":
                await turn.artifact("result", {"summary": rest})
            case "stats":
                read, written, took = map(int, rest.split())
                turn.usage(input_tokens=read, output_tokens=written, durationMs=took)
            case "error":
                await turn.fail(rest)
            case "wait":
                await gates[rest].wait()
            case "open":
                gates[rest].set()
            case _:
                raise ValueError(f"no event is called {event}")
