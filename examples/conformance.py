"""The agent for the official test kit (a2aproject/a2a-tck). docs/conformance.md says how it is run.

    dragoman serve examples/conformance.py:full        everything declared
    dragoman serve examples/conformance.py:minimal     no capability declared
    dragoman serve examples/conformance.py:extension   a required extension

The kit for 1.0 chooses the behaviour by the prefix of the messageId, and wants it at once. The kit for 0.3 knows no
such prefixes: it wants a slow agent that never finishes, so that there is a live task to cancel and to follow.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable

from dragoman import Agent, Part, Reply, Turn
from dragoman.agents import Incoming
from dragoman.model.cards import Extension

REQUIRED_EXTENSION = "urn:a2a:tck:required-extension"
STREAMING_TIMEOUT = float(os.environ.get("TCK_STREAMING_TIMEOUT", "2"))  # the kit's own variable
THINKING = 1.0  # seconds between a message of the 0.3 kit and the question that answers it

# What a behaviour ends with: the answer to its question (the next message to act on), its last words, or nothing.
Outcome = Reply | str | None
Behaviour = Callable[[Turn], Awaitable[Outcome]]

TEXT = Part(text="Generated text content")
BYTES = Part(raw=b"Generated file content", filename="output.txt", media_type="text/plain")
LINK = Part(url="https://example.com/output.txt", filename="output.txt", media_type="text/plain")
DATA = Part(data={"key": "value", "count": 42})


def artifact(part: Part) -> Behaviour:
    """One artifact, then completed."""

    async def give(turn: Turn) -> None:
        await turn.artifact("answer", part)

    return give


async def complete(turn: Turn) -> str:
    return "Hello from TCK"


async def reject(turn: Turn) -> None:
    await turn.reject("The kit asked for a rejection")


async def ask(turn: Turn) -> Reply:
    return await turn.ask("Please tell me more")


async def in_chunks(turn: Turn) -> None:
    await turn.artifact("answer", "first chunk", last_chunk=False)
    await turn.artifact("answer", "second chunk", append=True)


async def ponder(turn: Turn) -> Reply:
    """The agent of the 0.3 kit: works a while, then asks, for as long as it is told more."""
    await turn.step("think", asyncio.sleep, THINKING)
    return await turn.ask("Please tell me more")


async def linger(turn: Turn) -> None:
    """Work for so long that the 0.3 kit can drop its stream and come back to it."""
    for moment in range(round(2.5 * STREAMING_TIMEOUT / 0.25)):
        await turn.say(f"Still working ({moment})")
        await asyncio.sleep(0.25)


# The first prefix that fits wins, so the longer one of two comes first.
BEHAVIOURS: tuple[tuple[str, Behaviour], ...] = (
    ("tck-artifact-text", artifact(TEXT)),
    ("tck-artifact-file-url", artifact(LINK)),
    ("tck-artifact-file", artifact(BYTES)),
    ("tck-artifact-data", artifact(DATA)),
    ("tck-input-required", ask),
    ("tck-reject-task", reject),
    ("tck-stream-artifact-chunked", in_chunks),
    ("tck-stream-artifact-file", artifact(BYTES)),
    ("tck-stream-002", complete),
    ("tck-stream-", artifact(TEXT)),
    ("tck-", complete),
    ("test-resubscribe-message-id", linger),
    ("", ponder),
)


def choose(incoming: Incoming) -> str:
    return "reply" if incoming.message.message_id.startswith("tck-message-response") else "behave"


async def reply(turn: Turn) -> str:
    """Answer with a message and no task."""
    return "Direct message response"


async def behave(turn: Turn) -> Reply | None:
    """Do what the messageId asks for; after a question, what the answer's messageId asks for."""
    message = turn.message
    while True:
        behaviour = next(behaviour for prefix, behaviour in BEHAVIOURS if message.message_id.startswith(prefix))
        outcome = await behaviour(turn)
        if not isinstance(outcome, Reply):
            return Reply(outcome) if outcome else None
        message = outcome.message


def conformance(name: str, *, everything: bool, extensions: tuple[Extension, ...] = ()) -> Agent:
    made = Agent(
        name,
        description="Behaves as the test kit expects.",
        version="1.0.0",
        streaming=everything,
        extended=everything,
        extensions=extensions,
    )
    made.router(choose)
    made.skill(direct=True, tags=["tck"])(reply)
    made.skill(tags=["tck"])(behave)
    return made


full = conformance(
    "Conformance",
    everything=True,
    extensions=(Extension(uri="urn:dragoman:example", description="Declared, and not needed", params={"answer": 42}),),
)
minimal = conformance("Conformance, nothing declared", everything=False)
extension = conformance(
    "Conformance, an extension required",
    everything=True,
    extensions=(Extension(uri=REQUIRED_EXTENSION, description="The kit leaves it out", required=True),),
)
