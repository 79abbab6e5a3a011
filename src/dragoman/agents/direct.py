"""Direct skills: a Message in answer, no task and nothing remembered."""

from typing import Any, NoReturn
from uuid import uuid4

from msgspec.structs import replace

from dragoman.agents.content import parts_of
from dragoman.agents.incoming import Incoming, Reply
from dragoman.agents.turn import Turn
from dragoman.model.errors import AgentError, InvalidParams
from dragoman.model.messages import Message, Part, Role


class DirectTurn(Turn):
    """A turn without a task: it reads, steps and refuses. What needs a task, the engine refuses."""

    async def reject(self, *reason: Any, metadata: dict[str, Any] | None = None) -> NoReturn:
        raise InvalidParams(_words(reason, "The agent refused this message"))

    async def fail(self, *reason: Any, metadata: dict[str, Any] | None = None) -> NoReturn:
        raise AgentError(_words(reason, "The agent failed"))


class Answer:
    """Gathers what a direct handler returns or yields into one Message."""

    def __init__(self, context_id: str) -> None:
        self._context_id = context_id
        self._parts: list[Part] = []
        self._message: Message | None = None

    async def put(self, item: Any) -> None:
        for part in parts_of(item):
            if self._parts and _is_plain(part) and _is_plain(self._parts[-1]):
                part = Part(text=f"{self._parts.pop().text}{part.text}")
            self._parts.append(part)

    async def deliver(self, result: Any) -> None:
        if isinstance(result, Message | Reply):
            self._message = result.message if isinstance(result, Reply) else result
        else:
            self._parts.extend(parts_of(result))

    async def close(self) -> None:
        pass

    def message(self) -> Message:
        said = self._message or Message()
        parts = (*self._parts, *said.parts) or (Part(text=""),)
        return replace(
            said,
            message_id=said.message_id or str(uuid4()),
            context_id=said.context_id or self._context_id,
            role=Role.AGENT,
            parts=parts,
        )


def _is_plain(part: Part) -> bool:
    return isinstance(part.text, str) and part == Part(text=part.text)


def _words(reason: tuple[Any, ...], otherwise: str) -> str:
    text = Incoming(Message(parts=parts_of(*reason))).text
    return text or otherwise
