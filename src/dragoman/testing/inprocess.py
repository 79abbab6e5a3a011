"""An ASGI application driven from within the same process: requests, streams, lifespan. No sockets, no buffering.

A stream's chunk is handed over when the reader takes it, so a slow reader holds the server back as a socket would.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, MutableMapping
from contextlib import suppress
from typing import Any
from urllib.parse import unquote

import msgspec

Scope = MutableMapping[str, Any]
Event = MutableMapping[str, Any]
App = Callable[[Scope, Callable[[], Awaitable[Event]], Callable[[Event], Awaitable[None]]], Awaitable[None]]

ASGI = {"version": "3.0", "spec_version": "2.3"}


class Response:
    """A whole answer."""

    def __init__(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        self.status = status
        self.headers = headers
        self.body = body

    @property
    def text(self) -> str:
        return self.body.decode()

    def json(self) -> Any:
        return msgspec.json.decode(self.body)


class Exchange:
    """One request on its way through the application. Leaving it is a disconnect."""

    def __init__(self, app: App, method: str, target: str, headers: Mapping[str, str], body: bytes) -> None:
        path, _, query = target.partition("?")
        given = {"host": "127.0.0.1", **{name.lower(): value for name, value in headers.items()}}
        if body:
            given["content-length"] = str(len(body))
        self._scope: Scope = {
            "type": "http",
            "asgi": ASGI,
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": unquote(path),
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "root_path": "",
            "headers": [(name.encode(), value.encode()) for name, value in given.items()],
            "client": ("127.0.0.1", 49152),
            "server": ("127.0.0.1", 80),
            "state": {},
        }
        self._app = app
        self._body: bytes | None = body
        self._gone = asyncio.Event()
        self._started = asyncio.Event()
        self._chunks: asyncio.Queue[bytes | None] = asyncio.Queue(1)
        self._task: asyncio.Task[None] | None = None
        self.status = 0
        self.headers: dict[str, str] = {}

    async def open(self) -> None:
        """Returns once the answer has begun. Raises what the application raised instead."""
        self._task = asyncio.create_task(self._run())
        try:
            await self._started.wait()
            if not self.status:
                await self._task
                raise RuntimeError("The application returned without an answer")
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        """Disconnect, and wait until the application noticed."""
        self._gone.set()
        with suppress(asyncio.QueueEmpty):  # a send may wait for its reader
            self._chunks.get_nowait()
        if self._task is not None:
            _, late = await asyncio.wait({self._task}, timeout=5)
            for task in late:
                task.cancel()

    async def chunks(self) -> AsyncGenerator[bytes]:
        """The body as it comes. Ends with the body; raises what the application raised."""
        assert self._task is not None
        while (chunk := await self._chunks.get()) is not None:
            yield chunk
        await asyncio.shield(self._task)

    async def whole(self) -> Response:
        body = b"".join([chunk async for chunk in self.chunks()])
        return Response(self.status, self.headers, body)

    async def _run(self) -> None:
        try:
            await self._app(self._scope, self._receive, self._send)
        finally:
            self._started.set()
            if not self._gone.is_set():
                await self._chunks.put(None)

    async def _receive(self) -> Event:
        if self._body is not None:
            body, self._body = self._body, None
            return {"type": "http.request", "body": body, "more_body": False}
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def _send(self, event: Event) -> None:
        if event["type"] == "http.response.start":
            self.status = event["status"]
            for name, value in event.get("headers", ()):
                key, text = name.decode("latin-1").lower(), value.decode("latin-1")
                self.headers[key] = f"{self.headers[key]}, {text}" if key in self.headers else text
            self._started.set()
        elif event.get("body") and not self._gone.is_set():
            await self._chunks.put(event["body"])


class Lifespan:
    """The application's start and end."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._incoming: asyncio.Queue[str] = asyncio.Queue()
        self._outgoing: asyncio.Queue[Event] = asyncio.Queue()
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        self._task = asyncio.create_task(self._run())
        await self._exchange("startup")

    async def stop(self) -> None:
        assert self._task is not None
        await self._exchange("shutdown")
        await self._task

    async def _run(self) -> None:
        async def receive() -> Event:
            return {"type": f"lifespan.{await self._incoming.get()}"}

        await self._app({"type": "lifespan", "asgi": ASGI, "state": {}}, receive, self._outgoing.put)

    async def _exchange(self, what: str) -> None:
        assert self._task is not None
        await self._incoming.put(what)
        answer = asyncio.ensure_future(self._outgoing.get())
        await asyncio.wait({answer, self._task}, return_when=asyncio.FIRST_COMPLETED)
        if not answer.done():
            answer.cancel()
            await self._task  # raises what the application raised
            raise RuntimeError(f"The application left during {what}")
        event = answer.result()
        if event["type"] != f"lifespan.{what}.complete":
            raise RuntimeError(event.get("message") or f"The application refused to {what}")
