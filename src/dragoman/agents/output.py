"""What a turn delivers: plain yields grow one artifact, explicit artifacts stand alone, messages are said.

Artifact ids follow from the turn and the order of artifacts in it, never from chance: a rerun must meet its own
artifacts again.
"""

from typing import Any, TypeGuard, cast

from msgspec.structs import replace

from dragoman.agents.content import parts_of
from dragoman.agents.incoming import Reply
from dragoman.model.messages import Artifact, Message, Part
from dragoman.model.tasks import TaskState
from dragoman.ports import TurnHandle

_NOTHING = (Part(text=""),)


class Output:
    def __init__(self, handle: TurnHandle) -> None:
        self._handle = handle
        self._opened = 0
        self._stream = ""
        self._named: dict[str, str] = {}

    async def put(self, item: Any) -> None:
        """Deliver what a handler yielded. None and the empty string are nothing."""
        if item is None or (isinstance(item, str) and not item):
            return
        if isinstance(item, Artifact):
            await self.whole(item)
        elif isinstance(item, Message | Reply):
            message = _message(item)
            await self._handle.say(message.parts, message.metadata)
        elif _are_artifacts(item):
            for artifact in item:
                await self.whole(artifact)
        elif parts := parts_of(item):
            await self._grow(parts)

    async def close(self) -> None:
        """Say that the yielded artifact is complete: no chunk was held back to carry the flag."""
        if self._stream:
            await self._handle.artifact(
                Artifact(artifact_id=self._stream, parts=_NOTHING), append=True, last_chunk=True
            )

    async def deliver(self, result: Any) -> None:
        """Deliver what a handler returned: a message ends the task, anything else is an artifact."""
        if isinstance(result, Message | Reply):
            message = _message(result)
            self._handle.finish(TaskState.COMPLETED, message.parts, message.metadata)
        elif isinstance(result, Artifact) or _are_artifacts(result):
            await self.put(result)
        elif parts := parts_of(result):
            await self.whole(Artifact(parts=parts))

    async def whole(self, artifact: Artifact, *, append: bool = False, last_chunk: bool = True) -> str:
        """Emit an artifact of its own, under its id, else under the id its name had, else under a new one."""
        known = self._named.get(artifact.name, "") if append else ""
        id = artifact.artifact_id or known
        if append and not id:
            raise ValueError(f"There is no artifact named {artifact.name!r} in this turn to append to")
        id = id or self._next()
        if artifact.name:
            self._named[artifact.name] = id
        await self._handle.artifact(replace(artifact, artifact_id=id), append=append, last_chunk=last_chunk)
        return id

    async def _grow(self, parts: tuple[Part, ...]) -> None:
        append = bool(self._stream)
        if not append:
            self._stream = self._next()
        await self._handle.artifact(Artifact(artifact_id=self._stream, parts=parts), append=append)

    def _next(self) -> str:
        self._opened += 1
        return f"{self._handle.turn[-8:]}-{self._opened}"


def _message(item: Message | Reply) -> Message:
    return item.message if isinstance(item, Reply) else item


def _are_artifacts(value: Any) -> TypeGuard[list[Artifact]]:
    if not isinstance(value, list | tuple) or not value:
        return False
    return all(isinstance(item, Artifact) for item in cast(list[Any], value))
