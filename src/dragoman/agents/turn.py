"""`Turn`: one run of a skill for one message, as the author sees it."""

import inspect
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, NoReturn, Protocol

from dragoman.agents.content import parts_of, plain
from dragoman.agents.incoming import Incoming, Reply
from dragoman.agents.output import Output
from dragoman.agents.schema import Misfit, fit, schema_of
from dragoman.agents.signature import result_hint
from dragoman.model.messages import Artifact, Message, Part
from dragoman.model.operations import Principal
from dragoman.model.tasks import TaskState, Usage
from dragoman.ports import TurnHandle

SCHEMA = "application/schema+json"


class Ended(BaseException):
    """Unwinds a handler that said how its task ends. Never catch it."""


class Calls(Protocol):
    """Runs an author's blocking function somewhere it blocks nobody."""

    async def __call__(self, function: Callable[[], Any], /) -> Any: ...


class TurnFacts(Incoming):
    """What a turn knows, without any waiting: the same for async and sync handlers."""

    def __init__(self, handle: TurnHandle) -> None:
        super().__init__(handle.message, handle.metadata)
        self._handle = handle

    @property
    def task_id(self) -> str:
        return self._handle.task_id

    @property
    def context_id(self) -> str:
        return self._handle.context_id

    @property
    def principal(self) -> Principal:
        """Who is calling; its `id` is empty when nobody was authenticated."""
        return self._handle.principal

    @property
    def extensions(self) -> tuple[str, ...]:
        """URIs of the extensions the caller activated."""
        return self._handle.extensions

    @property
    def modes(self) -> tuple[str, ...]:
        """Media types the caller would like to get; empty when it named none."""
        return self._handle.modes

    @property
    def history(self) -> tuple[Message, ...]:
        """The task's messages so far, oldest first."""
        return self._handle.history

    @property
    def attempt(self) -> int:
        """1 at first, one more each time the handler runs again."""
        return self._handle.attempt

    @property
    def cancelled(self) -> bool:
        """Whether somebody asked to cancel. Async code is interrupted anyway; a thread should look."""
        return self._handle.cancelled

    @property
    def deadline(self) -> datetime | None:
        """When the turn will be stopped, if it has a timeout."""
        at = self._handle.deadline
        return datetime.fromtimestamp(at / 1000, UTC) if at else None


class Turn(TurnFacts):
    """Injected into async handlers as `turn`. Sync handlers get a `SyncTurn`, which waits instead of being awaited."""

    def __init__(self, handle: TurnHandle, calls: Calls) -> None:
        super().__init__(handle)
        self._output = Output(handle)
        self._calls = calls

    async def say(self, *content: Any, metadata: dict[str, Any] | None = None) -> None:
        """Tell the caller how it goes: a status update, the task keeps working."""
        await self._handle.say(parts_of(*content), metadata)

    async def ask(self, *content: Any, schema: Any = None, metadata: dict[str, Any] | None = None) -> Reply:
        """Ask the caller; the task waits in input-required.

        Code outside `step` runs again: the handler is unwound here, and when the answer comes it runs from the top,
        with earlier answers and step results remembered. `schema` is a JSON Schema sent along with the question; given
        as a type, the answer must fit it (one that does not is asked for again) and comes converted as `reply.value`.
        """
        question = parts_of(*content)
        typed = schema is not None and not isinstance(schema, dict)
        if schema is not None:
            question = (*question, Part(data=schema_of(schema) if typed else schema, media_type=SCHEMA))
        reply = Reply(await self._handle.ask(question, metadata))
        while typed:
            try:
                reply.value = _answer(reply, schema)
                break
            except Misfit as misfit:
                reply = Reply(await self._handle.ask((Part(text=f"That does not fit. {misfit}"), *question), metadata))
        return reply

    async def require_auth(self, *content: Any, until: Awaitable[Any] | None = None) -> Reply | None:
        """Wait in auth-required for a message that says it is done, or, without parking, for `until`."""
        answer = await self._handle.require_auth(parts_of(*content), until)
        return Reply(answer) if answer is not None else None

    async def step(self, name: str, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Call the function once and remember its result: a rerun gets the result without the call.

        At least once until the result is committed; a parameter named `step_id` receives a stable id to make the
        effect idempotent. The result must survive JSON; a return hint brings its type back.
        """
        wants_id = "step_id" in inspect.signature(function).parameters

        async def run(step_id: str) -> Any:
            named = {**kwargs, "step_id": step_id} if wants_id else kwargs
            if inspect.iscoroutinefunction(function):
                return plain(await function(*args, **named))
            result = await self._calls(lambda: function(*args, **named))
            return plain(await result if inspect.isawaitable(result) else result)

        return _restored(await self._handle.step(name, _described([args, kwargs]), run), function)

    async def artifact(
        self,
        name: str | Artifact,
        *content: Any,
        id: str = "",
        description: str = "",
        append: bool = False,
        last_chunk: bool = True,
        metadata: dict[str, Any] | None = None,
    ) -> str:
        """Deliver an artifact of its own and return its id.

        To grow it, pass `last_chunk=False`, then `append=True` with the same name (or id).
        """
        if isinstance(name, Artifact):
            return await self._output.whole(name, append=append, last_chunk=last_chunk)
        parts = parts_of(*content)
        artifact = Artifact(artifact_id=id, name=name, description=description, parts=parts, metadata=metadata)
        return await self._output.whole(artifact, append=append, last_chunk=last_chunk)

    async def reject(self, *reason: Any, metadata: dict[str, Any] | None = None) -> NoReturn:
        """Refuse the task. The handler ends here."""
        self._handle.finish(TaskState.REJECTED, parts_of(*reason), metadata)
        raise Ended

    async def fail(self, *reason: Any, metadata: dict[str, Any] | None = None) -> NoReturn:
        """Fail the task with a reason the caller may read. The handler ends here."""
        self._handle.finish(TaskState.FAILED, parts_of(*reason), metadata)
        raise Ended

    def usage(self, *, input_tokens: int = 0, output_tokens: int = 0, **extra: float) -> None:
        """Report what was consumed; it adds up over the turn. Not awaited."""
        self._handle.usage(Usage(input_tokens=input_tokens, output_tokens=output_tokens, extra=extra))

    async def conversation(self, limit: int = 20) -> tuple[Message, ...]:
        """Messages of earlier tasks in the same context, oldest first."""
        return await self._handle.conversation(limit)


def output_of(turn: Turn) -> Output:
    """Where the handler's yields go: the same counter of artifacts as `turn.artifact`."""
    return turn._output  # pyright: ignore[reportPrivateUsage] (the author's Turn does not show it)


def _answer(reply: Reply, kind: Any) -> Any:
    if reply.data is not None:
        return fit(reply.data, kind)
    with suppress(Misfit):
        return fit(reply.text, kind)
    return fit(reply.text.strip(), kind, strict=False)


def _described(arguments: Any) -> Any:
    """Arguments as far as JSON can tell them apart: they only show whether a rerun asks for the same step."""
    try:
        return plain(arguments)
    except TypeError:
        pass
    if isinstance(arguments, dict):
        return {str(key): _described(value) for key, value in arguments.items()}  # pyright: ignore[reportUnknownArgumentType,reportUnknownVariableType]
    if isinstance(arguments, list | tuple):
        return [_described(value) for value in arguments]  # pyright: ignore[reportUnknownVariableType]
    return f"<{type(arguments).__qualname__}>"


def _restored(result: Any, function: Callable[..., Any]) -> Any:
    """The result in the type the function promises; as JSON has it when the hint says nothing usable."""
    try:
        return fit(result, result_hint(function))
    except (Misfit, TypeError, NotImplementedError):
        return result
