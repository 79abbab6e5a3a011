"""`Client`: an agent under test, spoken to in protocol 1.0 over JSON-RPC."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any, Self, TypeVar
from uuid import uuid4

import msgspec
from msgspec.structs import replace

from dragoman.agents.content import parts_of
from dragoman.model.messages import Artifact, Message, Role
from dragoman.model.tasks import Task, TaskState
from dragoman.testing.events import Event, Outcome, RpcError, TaskList
from dragoman.testing.inprocess import Exchange, Lifespan, Response
from dragoman.testing.sse import Frame, Frames

if TYPE_CHECKING:
    from dragoman.app.mounting import Application

T = TypeVar("T")
MEMORY = "memory://"


class _Error(msgspec.Struct):
    code: int
    message: str = ""
    data: Any = None


class _Envelope(msgspec.Struct):
    result: msgspec.Raw = msgspec.Raw(b"")
    error: _Error | None = None


class Client:
    """Serves the agent inside this process while the `async with` lasts.

    `store` is memory unless given (`restart` needs a file); other settings are those of `dragoman.asgi`. `timeout`
    bounds each answer and each wait for a stream's next event, so that a test fails instead of hanging.
    """

    def __init__(
        self,
        agent: Any,
        *,
        store: str | PathLike[str] = MEMORY,
        headers: Mapping[str, str] | None = None,
        timeout: float = 10,
        **settings: Any,
    ) -> None:
        self._agent = agent
        self._store = fspath(store)
        self._headers = dict(headers or {})
        self._timeout = timeout
        self._settings: dict[str, Any] = {"drain": 0, **settings}
        self._app: Application | None = None
        self._lifespan: Lifespan | None = None
        self._calls = 0
        self._open: set[Exchange] = set()

    async def __aenter__(self) -> Self:
        import dragoman

        app = dragoman.asgi(self._agent, store=self._store, **self._settings)
        self._app, self._lifespan = app, Lifespan(app)
        async with asyncio.timeout(self._timeout):
            await self._lifespan.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        lifespan, self._lifespan, self._app = self._lifespan, None, None
        for exchange in list(self._open):  # streams a test walked away from
            await exchange.close()
        if lifespan is not None:
            async with asyncio.timeout(self._timeout):
                await lifespan.stop()

    async def restart(self) -> None:
        """Stop the server without waiting for turns, and start a new one over the same store."""
        if self._store == MEMORY:
            raise ValueError("memory:// forgets everything on a restart; give the client a store in a file")
        await self.__aexit__()
        await self.__aenter__()

    # --- operations

    async def send(
        self,
        *content: Any,
        task: Task | str | None = None,
        context: str = "",
        skill: str = "",
        metadata: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        **configuration: Any,
    ) -> Task | Message:
        """Send a message and wait for the outcome (`returnImmediately=True`: only for the task)."""
        params = self._sending(content, task, context, skill, metadata, configuration)
        return _outcome(await self.call("SendMessage", params, Outcome, headers=headers))

    def stream(
        self,
        *content: Any,
        task: Task | str | None = None,
        context: str = "",
        skill: str = "",
        metadata: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        **configuration: Any,
    ) -> AsyncIterator[Event]:
        """Send a message and read events as they come. Leaving early disconnects."""
        params = self._sending(content, task, context, skill, metadata, configuration)
        return self.events("SendStreamingMessage", params, headers=headers)

    async def answer(self, task: Task | str, *content: Any, **how: Any) -> Task | Message:
        """Answer the question the task waits with, and wait for what comes of it."""
        return await self.send(*content, task=task, **how)

    async def get(self, task: Task | str, *, history_length: int | None = None) -> Task:
        params: dict[str, Any] = {"id": _id(task)}
        if history_length is not None:
            params["historyLength"] = history_length
        return await self.call("GetTask", params, Task)

    async def list(self, *, state: TaskState | None = None, context: str = "", **params: Any) -> TaskList:
        if state is not None:
            params["status"] = state.value
        if context:
            params["contextId"] = context
        return await self.call("ListTasks", params, TaskList)

    async def cancel(self, task: Task | str) -> Task:
        return await self.call("CancelTask", {"id": _id(task)}, Task)

    async def resume(self, task: Task | str) -> Task:
        """Say that the authorization the task waits for was given elsewhere."""
        return await self._door().resume(_id(task))

    def subscribe(self, task: Task | str, *, cursor: str = "") -> AsyncIterator[Event]:
        """Read a task's events; with a cursor, those after it."""
        headers = {"last-event-id": cursor} if cursor else {}
        return self.events("SubscribeToTask", {"id": _id(task)}, headers=headers)

    async def card(self) -> dict[str, Any]:
        return (await self.request("GET", "/.well-known/agent-card.json")).json()

    async def settled(self, task: Task | str) -> Task:
        """The task once it ended or waits for somebody."""
        seen = await self.get(task)
        if seen.status is not None and seen.status.state in (TaskState.SUBMITTED, TaskState.WORKING):
            async for event in self.subscribe(task):
                if event.state not in (None, TaskState.SUBMITTED, TaskState.WORKING):
                    break
            seen = await self.get(task)
        return seen

    # --- beneath them

    async def call(
        self, method: str, params: Mapping[str, Any], kind: type[T], *, headers: Mapping[str, str] | None = None
    ) -> T:
        """One JSON-RPC call. Raises RpcError for an error answer."""
        response = await self.request("POST", "/", json=self._envelope(method, params), headers=headers)
        return msgspec.json.decode(_result(response.body), type=kind)

    async def events(
        self, method: str, params: Mapping[str, Any], *, headers: Mapping[str, str] | None = None
    ) -> AsyncIterator[Event]:
        """One streaming JSON-RPC call, event by event."""
        body = msgspec.json.encode(self._envelope(method, params))
        async with self._exchange("POST", "/", self._given(headers, json=True), body) as exchange:
            if not exchange.headers.get("content-type", "").startswith("text/event-stream"):
                async with asyncio.timeout(self._timeout):
                    _result((await exchange.whole()).body)
                raise RuntimeError("The server answered a streaming call with neither a stream nor an error")
            frames = Frames()
            async with aclosing(exchange.chunks()) as chunks:
                while (chunk := await self._next(chunks)) is not None:
                    for frame in frames.feed(chunk):
                        yield _event(frame)

    async def request(
        self,
        method: str,
        path: str,
        *,
        json: Any = None,
        body: bytes = b"",
        headers: Mapping[str, str] | None = None,
    ) -> Response:
        """Any HTTP request, answered whole."""
        if json is not None:
            body = msgspec.json.encode(json)
        async with self._exchange(method, path, self._given(headers, json=bool(body)), body) as exchange:
            async with asyncio.timeout(self._timeout):
                return await exchange.whole()

    @asynccontextmanager
    async def _exchange(self, method: str, path: str, headers: dict[str, str], body: bytes) -> AsyncGenerator[Exchange]:
        exchange = Exchange(self._door(), method, path, headers, body)
        async with asyncio.timeout(self._timeout):
            await exchange.open()
        self._open.add(exchange)
        try:
            yield exchange
        finally:
            self._open.discard(exchange)
            await exchange.close()

    async def _next(self, chunks: AsyncIterator[bytes]) -> bytes | None:
        async with asyncio.timeout(self._timeout):
            return await anext(chunks, None)

    def _door(self) -> "Application":
        if self._app is None:
            raise RuntimeError("The client serves only inside its `async with`")
        return self._app

    def _given(self, headers: Mapping[str, str] | None, *, json: bool) -> dict[str, str]:
        media = {"content-type": "application/json"} if json else {}
        return {"a2a-version": "1.0", **media, **self._headers, **(headers or {})}

    def _envelope(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        self._calls += 1
        return {"jsonrpc": "2.0", "id": self._calls, "method": method, "params": params}

    def _sending(
        self,
        content: tuple[Any, ...],
        task: Task | str | None,
        context: str,
        skill: str,
        metadata: Mapping[str, Any] | None,
        configuration: Mapping[str, Any],
    ) -> dict[str, Any]:
        if len(content) == 1 and isinstance(content[0], Message):
            message = content[0]
        else:
            message = Message(message_id=str(uuid4()), role=Role.USER, parts=parts_of(*content))
        extra = {**(message.metadata or {}), **(metadata or {}), **({"skill": skill} if skill else {})}
        message = replace(
            message,
            task_id=_id(task) if task is not None else message.task_id,
            context_id=context or message.context_id,
            metadata=extra or None,
        )
        params: dict[str, Any] = {"message": message}
        if configuration:
            params["configuration"] = configuration
        return params


def text(said: Task | Message | Artifact | None) -> str:
    """All the text in it. Of a task: of its artifacts, and last of its status message."""
    if said is None:
        return ""
    if isinstance(said, Task):
        status = said.status.message if said.status else None
        return "\n".join(filter(None, [*(text(each) for each in said.artifacts), text(status)]))
    return "".join(part.text for part in said.parts if isinstance(part.text, str))


def _id(task: Task | str) -> str:
    return task if isinstance(task, str) else task.id


def _result(body: bytes) -> msgspec.Raw:
    envelope = msgspec.json.decode(body, type=_Envelope)
    if envelope.error is not None:
        raise RpcError(envelope.error.code, envelope.error.message, envelope.error.data)
    return envelope.result


def _event(frame: Frame) -> Event:
    return replace(msgspec.json.decode(_result(frame.data.encode()), type=Event), cursor=frame.id)


def _outcome(outcome: Outcome) -> Task | Message:
    said = outcome.task or outcome.message
    if said is None:
        raise RuntimeError("The server answered with neither a task nor a message")
    return said
