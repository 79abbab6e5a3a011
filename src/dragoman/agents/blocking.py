"""`SyncTurn`: the turn in a sync handler. The same words as `Turn`, but every call waits instead of being awaited."""

from collections.abc import Awaitable, Callable
from typing import Any, NoReturn

from dragoman.agents.incoming import Reply
from dragoman.agents.threads import Bridge
from dragoman.agents.turn import Turn, TurnFacts
from dragoman.model.messages import Artifact, Message


class SyncTurn(TurnFacts):
    """Injected into sync handlers as `turn`. See `Turn` for what each word means."""

    def __init__(self, turn: Turn, bridge: Bridge) -> None:
        super().__init__(turn._handle)  # pyright: ignore[reportPrivateUsage] (two faces of one turn)
        self._turn = turn
        self._bridge = bridge

    def say(self, *content: Any, metadata: dict[str, Any] | None = None) -> None:
        self._bridge.call(lambda: self._turn.say(*content, metadata=metadata))

    def ask(self, *content: Any, schema: Any = None, metadata: dict[str, Any] | None = None) -> Reply:
        return self._bridge.call(lambda: self._turn.ask(*content, schema=schema, metadata=metadata))

    def require_auth(self, *content: Any, until: Awaitable[Any] | None = None) -> Reply | None:
        return self._bridge.call(lambda: self._turn.require_auth(*content, until=until))

    def step(self, name: str, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        return self._bridge.call(lambda: self._turn.step(name, function, *args, **kwargs))

    def artifact(
        self,
        name: str | Artifact,
        *content: Any,
        id: str = "",
        description: str = "",
        append: bool = False,
        last_chunk: bool = True,
        metadata: dict[str, Any] | None = None,
    ) -> str:
        return self._bridge.call(
            lambda: self._turn.artifact(
                name,
                *content,
                id=id,
                description=description,
                append=append,
                last_chunk=last_chunk,
                metadata=metadata,
            )
        )

    def reject(self, *reason: Any, metadata: dict[str, Any] | None = None) -> NoReturn:
        self._bridge.call(lambda: self._turn.reject(*reason, metadata=metadata))
        raise AssertionError("a rejected turn goes no further")

    def fail(self, *reason: Any, metadata: dict[str, Any] | None = None) -> NoReturn:
        self._bridge.call(lambda: self._turn.fail(*reason, metadata=metadata))
        raise AssertionError("a failed turn goes no further")

    def usage(self, *, input_tokens: int = 0, output_tokens: int = 0, **extra: float) -> None:
        async def report() -> None:
            self._turn.usage(input_tokens=input_tokens, output_tokens=output_tokens, **extra)

        self._bridge.call(report)

    def conversation(self, limit: int = 20) -> tuple[Message, ...]:
        return self._bridge.call(lambda: self._turn.conversation(limit))
