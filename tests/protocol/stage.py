"""The agent the protocol tests talk to: one skill for each thing a client can meet, and gates the tests hold."""

import asyncio
from typing import Any

from dragoman import Agent, Turn
from dragoman.agents import Incoming, Reply
from dragoman.model.cards import Extension
from dragoman.model.messages import Message, Part


class Stage:
    """An agent and the gate its waiting skills stand at."""

    def __init__(self, **words: Any) -> None:
        self.gate = asyncio.Event()
        self.working = asyncio.Event()
        self.runs: list[str] = []
        words = {"extensions": [Extension(uri="urn:known", description="echoed")], **words}
        self.agent = Agent("Stage", description="Plays every part a client can meet", version="1.0.0", **words)
        self._skills()

    def _skills(self) -> None:
        agent = self.agent

        @agent.router
        def first_word(said: Incoming) -> str:
            word = said.text.split(" ", 1)[0]
            return word if any(word == skill.id for skill in agent.profile.skills) else "echo"

        @agent.skill(tags=["text"])
        async def echo(turn: Turn) -> list[Part]:
            """Gives back what it got."""
            self.runs.append(turn.text)
            return list(turn.parts)

        @agent.skill(tags=["text"])
        async def count(turn: Turn):
            """Counts in chunks."""
            for n in range(int(turn.text.split(" ")[1])):
                yield f"{n} "

        @agent.skill(tags=["text"])
        async def steps(turn: Turn):
            """Half before the gate, half after."""
            await turn.say("Half way")
            yield "before "
            self.working.set()
            await self.gate.wait()
            yield "after"

        @agent.skill(tags=["waiting"])
        async def wait(turn: Turn) -> str:
            """Waits at the gate."""
            self.working.set()
            await self.gate.wait()
            return "waited"

        @agent.skill(tags=["questions"])
        async def ask(turn: Turn) -> str:
            """Asks a question."""
            answer = await turn.ask("Which one?")
            return f"You said {answer.text}"

        @agent.skill(tags=["questions"])
        async def signin(turn: Turn) -> str:
            """Waits for an authorization that comes out of band."""
            await turn.require_auth("Sign in at https://example.com/login", until=self.gate.wait())
            return "signed in"

        @agent.skill(tags=["questions"])
        async def login(turn: Turn) -> str:
            """Waits for a message that says that somebody signed in."""
            await turn.require_auth("Sign in, then tell me")
            return "logged in"

        @agent.skill(tags=["endings"])
        async def reject(turn: Turn) -> None:
            """Refuses."""
            await turn.reject("Not here")

        @agent.skill(tags=["endings"])
        async def fail(turn: Turn) -> None:
            """Fails with a reason."""
            await turn.fail("It broke")

        @agent.skill(tags=["endings"])
        async def crash(turn: Turn) -> None:
            """Raises."""
            raise RuntimeError("secret /etc/passwd SELECT")

        @agent.skill(tags=["text"], direct=True)
        async def direct(turn: Turn) -> Reply:
            """Answers with a message."""
            return Reply("At once")

        @agent.skill(tags=["text"])
        async def context(turn: Turn) -> dict[str, Any]:
            """Tells what it knows of the conversation and the request."""
            earlier = await turn.conversation()
            return {
                "earlier": [words(message) for message in earlier],
                "references": list(turn.message.reference_task_ids),
                "extensions": list(turn.extensions),
                "metadata": turn.metadata,
                "modes": list(turn.modes),
            }


def words(message: Message) -> str:
    return "".join(part.text for part in message.parts if isinstance(part.text, str))
