"""A turn for agents under test: records what is emitted, remembers steps, gives prepared answers."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import msgspec

from dragoman.agents import Agent
from dragoman.model.messages import Artifact, Message, Part, Role
from dragoman.model.operations import Principal
from dragoman.model.tasks import Scope, TaskState, Usage
from dragoman.ports import Parked


def said(*content: str | Part, metadata: dict[str, Any] | None = None) -> Message:
    parts = tuple(Part(text=each) if isinstance(each, str) else each for each in content)
    return Message(message_id="m1", role=Role.USER, parts=parts, metadata=metadata)


class Handle:
    """Implements `ports.TurnHandle`. `answers` are given to questions in order; a question without one parks."""

    def __init__(self, message: Message, answers: Sequence[Message] = (), steps: dict[str, Any] | None = None) -> None:
        self.scope = Scope("agent")
        self.uid = "uid"
        self.turn = "turn-0123456789"
        self.task_id = "task"
        self.context_id = "context"
        self.message = message
        self.metadata: dict[str, Any] = {"asked": "by request"}
        self.modes: tuple[str, ...] = ()
        self.extensions: tuple[str, ...] = ("urn:x",)
        self.principal = Principal(id="anna")
        self.attempt = 1
        self.deadline = 0
        self.cancelled = False
        self.history = (message,)
        self.answers = list(answers)
        self.steps = steps if steps is not None else {}
        self.log: list[Any] = []
        self.questions: list[tuple[Part, ...]] = []
        self.end: tuple[TaskState, tuple[Part, ...], dict[str, Any] | None] = (TaskState.COMPLETED, (), None)

    async def conversation(self, limit: int = 20) -> tuple[Message, ...]:
        return (self.message,) * limit

    async def say(self, parts: Sequence[Part], metadata: dict[str, Any] | None = None) -> None:
        self.log.append(("say", words(parts)))

    async def artifact(
        self,
        artifact: Artifact,
        *,
        append: bool = False,
        last_chunk: bool = False,
        metadata: dict[str, Any] | None = None,
    ) -> None:
        self.log.append((artifact, append, last_chunk))

    def usage(self, usage: Usage) -> None:
        self.log.append(usage)

    async def step(self, name: str, arguments: Any, run: Callable[[str], Awaitable[Any]]) -> Any:
        if name not in self.steps:
            self.steps[name] = msgspec.json.encode({"arguments": arguments, "result": await run(f"id of {name}")})
        return msgspec.json.decode(self.steps[name])["result"]

    async def ask(self, parts: Sequence[Part], metadata: dict[str, Any] | None = None) -> Message:
        self.questions.append(tuple(parts))
        if not self.answers:
            raise Parked
        return self.answers.pop(0)

    async def require_auth(self, parts: Sequence[Part], until: Awaitable[Any] | None = None) -> Message | None:
        self.questions.append(tuple(parts))
        if until is not None:
            await until
            return None
        if not self.answers:
            raise Parked
        return self.answers.pop(0)

    def finish(self, state: TaskState, parts: Sequence[Part] = (), metadata: dict[str, Any] | None = None) -> None:
        self.end = (state, tuple(parts), metadata)

    @property
    def chunks(self) -> list[tuple[str, bool, bool]]:
        """Emitted artifact events as (text, append, last chunk)."""
        return [(words(artifact.parts), append, last) for artifact, append, last in self._emitted()]

    @property
    def artifacts(self) -> list[Artifact]:
        return [artifact for artifact, _, _ in self._emitted()]

    def _emitted(self) -> list[tuple[Artifact, bool, bool]]:
        return [each for each in self.log if isinstance(each, tuple) and isinstance(each[0], Artifact)]


def words(parts: Sequence[Part]) -> str:
    return "".join(part.text for part in parts if isinstance(part.text, str))


async def run(agent: Agent, message: Message | str = "hi", **handle: Any) -> Handle:
    """One turn of the agent, to its end."""
    message = said(message) if isinstance(message, str) else message
    turn = Handle(message, **handle)
    await agent.run(agent.route(message, None), turn)
    return turn
