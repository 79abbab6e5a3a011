"""An agent made of a tool registry, as Cortex makes its own. The message is its script, a step a line: `write Hello `,
`whole Hello` (in one piece), `say Reading`, `ask Which one?`, `login Where?`, `fail Broken`, `reject No`. `recall`
repeats the conversation so far, `skill` the skill that was named. `work x` goes on until it is cancelled and
`stopped x` says whether it was, `wait x` holds it until another message says `open x`; any other line is repeated.
"""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator

from dragoman import Agent, Message, Role, Turn
from dragoman.agents import Tool

gates = defaultdict[str, asyncio.Event](asyncio.Event)
stopped = set[str]()


async def loop(turn: Turn) -> AsyncIterator[str]:
    """Plays the message's lines."""
    for line in turn.text.splitlines():
        step, _, rest = line.partition(" ")
        match step:
            case "write":
                yield rest
            case "whole":
                await turn.artifact("answer", rest)
            case "say":
                await turn.say(rest)
            case "ask":
                reply = await turn.ask(rest)
                yield f"Heard {reply.text!r}. "
            case "login":
                await turn.require_auth(rest)
                yield "Welcome."
            case "skill":
                yield str(turn.metadata.get("skill"))
            case "recall":
                yield "\n".join(map(told, await turn.conversation()))
            case "work":
                try:
                    await asyncio.Event().wait()
                finally:
                    stopped.add(rest)
            case "stopped":
                yield str(rest in stopped)
            case "fail":
                await turn.fail(rest)
            case "reject":
                await turn.reject(rest)
            case "wait":
                await gates[rest].wait()
            case "open":
                gates[rest].set()
            case _:
                yield line


def told(message: Message) -> str:
    """A turn as Cortex gives it to its agent: `[user]: hello`."""
    said = "".join(part.text for part in message.parts if isinstance(part.text, str))
    return f"[{'agent' if message.role is Role.AGENT else 'user'}]: {said}"


agent = Agent.from_tools(
    [
        Tool(name="file_read", description="Reads a file.", capabilities=("filesystem:read",)),
        Tool(name="shell", description="Runs a command.", capabilities=("process:spawn", "filesystem:write")),
        Tool(name="web_search", description="Searches the web.", capabilities=("network:fetch",)),
        Tool(name="send_weekly_report", description="Mails the report."),
    ],
    "Cortex (script)",
    description="Plays back the steps of a run.",
    run=loop,
)
bare = Agent.from_tools([], "Cortex (bare)", description="Has no tools.", run=loop)
replies = Agent("Cortex (replies)", description="Answers without a task.")


@replies.skill(direct=True)
async def hear(turn: Turn) -> str:
    """Repeats it."""
    return f"Heard {turn.text!r}."
