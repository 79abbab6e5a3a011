"""What was said to the agent, read conveniently; and what it answers with when a Message says it best."""

from typing import Any
from uuid import uuid4

from msgspec import UNSET
from msgspec.structs import replace

from dragoman.agents.content import parts_of
from dragoman.model.messages import Message, Part, Role


class Incoming:
    """A message with its content at hand."""

    def __init__(self, message: Message, metadata: dict[str, Any] | None = None) -> None:
        self._message = message
        self._metadata = metadata

    @property
    def message(self) -> Message:
        return self._message

    @property
    def parts(self) -> tuple[Part, ...]:
        return self._message.parts

    @property
    def text(self) -> str:
        """All text parts, one per line."""
        return "\n".join(part.text for part in self.parts if isinstance(part.text, str))

    @property
    def files(self) -> tuple[Part, ...]:
        """Parts that are files, whether they carry their bytes (`raw`) or a link (`url`)."""
        return tuple(part for part in self.parts if part.raw is not UNSET or part.url is not UNSET)

    @property
    def data(self) -> Any:
        """The value of the first data part, or None."""
        return next((part.data for part in self.parts if part.data is not UNSET), None)

    @property
    def metadata(self) -> dict[str, Any]:
        """The request's metadata, with the message's on top."""
        return {**(self._metadata or {}), **(self._message.metadata or {})}


class Reply(Incoming):
    """A message in answer: what `turn.ask` gives you, and what a skill returns to speak instead of deliver.

    `value` is the answer converted to the type that `ask(schema=...)` named, otherwise its `data`.
    """

    def __init__(self, *content: Any, metadata: dict[str, Any] | None = None) -> None:
        if len(content) == 1 and isinstance(content[0], Message):
            message = content[0] if metadata is None else replace(content[0], metadata=metadata)
        else:
            parts = parts_of(*content) or (Part(text=""),)
            message = Message(message_id=str(uuid4()), role=Role.AGENT, parts=parts, metadata=metadata)
        super().__init__(message)
        self.value: Any = self.data
