"""Agents for the clients of simple_a2a, A2X and 0.1.

The message is a script, a step a line: `write Hello `, `data 3`, `piece 3` (the same, yielded), `file a.txt`,
`link https://…`, `say Looking`, `ask Which one?`, `auth Your token?` (until it is `open-sesame`), `fail It broke`,
`reject Not here`, `break`. `wait x` holds it until another message says `open x`; other lines are repeated. A
conversation does one thing at a time.

`blunt` answers without a task, `particular` does not stream, takes only text and insists on two extensions,
`secretive` has a skill that not everybody is shown.
"""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator
from typing import Any

from dragoman import Agent, Message, Part, Turn
from dragoman.agents import Incoming
from dragoman.model.cards import Extension

X402 = "https://github.com/google-agentic-commerce/a2a-x402/blob/main/spec/v0.2"
gates = defaultdict[str, asyncio.Event](asyncio.Event)

agent = Agent("Simple agent", description="Plays back the steps of a message.", version="1.0", serialize="context")
blunt = Agent("Blunt agent", description="Answers without a task.")
particular = Agent(
    "Particular agent",
    description="Insists on how it is asked.",
    streaming=False,
    input_modes=["text/plain"],
    extensions=[
        Extension(uri=X402, description="Supports payments.", required=True),
        Extension(uri="urn:second", required=True),
        "urn:optional",
    ],
)
secretive = Agent("Secretive agent", description="Hides a skill.", extended=True)


@agent.router
def chosen(said: Incoming) -> str:
    if said.text == "derail":
        raise RuntimeError("the secret is 42")
    return "answer" if said.text.startswith("answer ") else "play"


@agent.skill(tags=["script"])
async def play(turn: Turn) -> AsyncIterator[Any]:
    """Plays the message's lines."""
    for line in turn.text.splitlines():
        step, _, rest = line.partition(" ")
        match step:
            case "write":
                yield rest
            case "data":
                await turn.artifact("data", {"number": int(rest)})
            case "piece":
                yield {"number": int(rest)}
            case "file":
                file = Part(raw=b"\x00\xff" + rest.encode(), filename=rest, media_type="text/plain")
                await turn.artifact("file", file)
            case "link":
                await turn.artifact("link", Part(url=rest, media_type="image/png"))
            case "say":
                await turn.say(rest)
            case "ask":
                reply = await turn.ask(rest)
                yield f"Heard {reply.text!r}. "
            case "auth":
                reply = await turn.require_auth(rest)
                while reply is not None and reply.text != "open-sesame":
                    reply = await turn.require_auth(f"Wrong. {rest}")
                yield "Unlocked. "
            case "fail":
                await turn.fail(rest)
            case "reject":
                await turn.reject(rest)
            case "break":
                raise RuntimeError("the secret is 42")
            case "wait":
                await gates[rest].wait()
            case "open":
                gates[rest].set()
            case "given":
                parts = [part.text or part.data or part.raw for part in turn.message.parts[1:]]
                yield f"{turn.task_id} {turn.context_id} {len(turn.history)} {parts}"
            case _:
                yield line


@agent.skill(tags=["answer"])
async def answer(turn: Turn) -> Message:
    """Ends its task with a message."""
    return Message(parts=(Part(text=turn.text.removeprefix("answer ")),))


@blunt.skill(direct=True, tags=["answer"])
async def reply(turn: Turn) -> str:
    """Says it back, or fails."""
    if turn.text == "break":
        raise RuntimeError("the secret is 42")
    return f"You said {turn.text}."


@particular.skill(id="analyze-repo", tags=["text"], input_modes=["text/plain"], output_modes=["text/plain"])
async def analyze(turn: Turn) -> str:
    """Names the extensions in effect."""
    return " ".join(turn.extensions)


@secretive.skill(tags=["shown"])
async def known(turn: Turn) -> str:
    """Shown to everybody."""
    return "known"


@secretive.skill(tags=["hidden"], extended=True)
async def hidden(turn: Turn) -> str:
    """Shown to some."""
    return "hidden"
