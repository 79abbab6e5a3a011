"""A direct reply: a Message and nothing else. No task, no log, not cancellable."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from dragoman.model.errors import InvalidAgentResponse
from dragoman.model.messages import Artifact, Message, Part
from dragoman.model.operations import Call, SendMessage
from dragoman.model.tasks import TaskState, Usage
from dragoman.ports import Clock, Route

_NO_TASK = "a direct skill answers with a message; it has no task to ask, stream or park with"


class DirectTurn:
    """What a direct skill is given: it can read the message, and has nothing to write to."""

    def __init__(self, call: Call, op: SendMessage, message: Message, route: Route, clock: Clock) -> None:
        self.scope = call.scope
        self.uid = self.turn = self.task_id = ""
        self.context_id = message.context_id
        self.message = message
        self.metadata: dict[str, Any] = {**(op.metadata or {}), **(message.metadata or {})}
        self.modes = op.configuration.accepted_output_modes
        self.extensions = call.extensions
        self.principal = call.principal
        self.attempt = 1
        self.deadline = clock.now() + route.timeout_ms if route.timeout_ms else 0
        self.history = (message,)

    @property
    def cancelled(self) -> bool:
        return False

    async def conversation(self, limit: int = 20) -> tuple[Message, ...]:
        return ()

    async def say(self, parts: Sequence[Part], metadata: dict[str, Any] | None = None) -> None:
        raise InvalidAgentResponse(_NO_TASK)

    async def artifact(
        self,
        artifact: Artifact,
        *,
        append: bool = False,
        last_chunk: bool = False,
        metadata: dict[str, Any] | None = None,
    ) -> None:
        raise InvalidAgentResponse(_NO_TASK)

    def usage(self, usage: Usage) -> None:
        """A message has no place for it."""

    async def step(self, name: str, arguments: Any, run: Callable[[str], Awaitable[Any]]) -> Any:
        return await run(f"{self.message.message_id}.{name}")

    async def ask(self, parts: Sequence[Part], metadata: dict[str, Any] | None = None) -> Message:
        raise InvalidAgentResponse(_NO_TASK)

    async def require_auth(self, parts: Sequence[Part], until: Awaitable[Any] | None = None) -> Message | None:
        raise InvalidAgentResponse(_NO_TASK)

    def finish(self, state: TaskState, parts: Sequence[Part] = (), metadata: dict[str, Any] | None = None) -> None:
        if state is not TaskState.COMPLETED:
            raise InvalidAgentResponse(_NO_TASK)
