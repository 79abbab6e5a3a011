"""Receivers on loopback sockets that answer as the test says, byte by byte if need be, and names that lead to them."""

import asyncio
import ssl
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, NamedTuple

WAIT = 20.0


class Request(NamedTuple):
    line: str
    headers: dict[str, str]  # names in lower case
    body: bytes
    connection: int  # which of the receiver's connections it came on
    at: float  # when, by the loop's clock


Answer = Callable[[Request, asyncio.StreamWriter], Coroutine[Any, Any, None]]


def saying(raw: bytes, *, close: bool = False) -> Answer:
    """Answer with these bytes."""

    async def answer(request: Request, writer: asyncio.StreamWriter) -> None:
        writer.write(raw)
        if close:
            await writer.drain()
            writer.close()

    return answer


def with_status(status: int, *headers: str, body: bytes = b"") -> Answer:
    lines = [f"HTTP/1.1 {status} Whatever", f"Content-Length: {len(body)}", *headers]
    return saying("\r\n".join(lines).encode() + b"\r\n\r\n" + body)


GOOD = with_status(200)


async def never(request: Request, writer: asyncio.StreamWriter) -> None:
    """Hang until the caller gives up."""
    await asyncio.get_running_loop().create_future()


async def hang_up(request: Request, writer: asyncio.StreamWriter) -> None:
    writer.transport.abort()


class Receiver:
    """Everything it was sent, and how it answers. `answer` may be changed, or be a list used up one by one."""

    def __init__(self, answer: Answer | list[Answer] = GOOD, greeting: bytes = b"") -> None:
        self.answer = answer
        self.greeting = greeting
        self.requests: list[Request] = []
        self.connections = 0
        self.open = 0
        self.most_open = 0
        self.port = 0
        self.names: list[str | None] = []  # what TLS was asked for
        self._arrived = asyncio.Event()
        self._handling: set[asyncio.Task[None]] = set()

    @property
    def bodies(self) -> list[bytes]:
        return [request.body for request in self.requests]

    def url(self, path: str = "/hook", host: str = "127.0.0.1") -> str:
        return f"http://{host}:{self.port}{path}"

    async def received(self, count: int = 1, seconds: float = WAIT) -> list[Request]:
        """Wait until so many requests have come."""
        async with asyncio.timeout(seconds):
            while len(self.requests) < count:
                self._arrived.clear()
                await self._arrived.wait()
        return self.requests

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._handling.add(task)
        self.connections += 1
        self.open += 1
        self.most_open = max(self.most_open, self.open)
        number = self.connections
        writer.write(self.greeting)
        try:
            with suppress(ConnectionError, asyncio.IncompleteReadError):
                while not writer.is_closing():
                    request = await read(reader, number)
                    self.requests.append(request)
                    self._arrived.set()
                    await self._until_left(reader, self._next()(request, writer))
                    await writer.drain()
        except asyncio.CancelledError:
            pass  # the test is over
        finally:
            self.open -= 1
            self._handling.discard(task)
            writer.transport.abort()

    async def _until_left(self, reader: asyncio.StreamReader, answering: Coroutine[Any, Any, None]) -> None:
        """Answer, unless the caller hangs up before."""
        working = asyncio.ensure_future(answering)
        leaving = asyncio.ensure_future(reader.read(1))
        try:
            await asyncio.wait((working, leaving), return_when=asyncio.FIRST_COMPLETED)
            if not working.done():
                raise ConnectionError
            working.result()
        finally:
            for each in (working, leaving):
                each.cancel()
            await asyncio.gather(working, leaving, return_exceptions=True)

    def _next(self) -> Answer:
        if not isinstance(self.answer, list):
            return self.answer
        return self.answer.pop(0) if len(self.answer) > 1 else self.answer[0]

    async def stop(self) -> None:
        for task in list(self._handling):
            task.cancel()
        await asyncio.gather(*self._handling, return_exceptions=True)


async def read(reader: asyncio.StreamReader, connection: int) -> Request:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    line, *rest = head.rstrip("\r\n").split("\r\n")
    pairs = [each.split(": ", 1) for each in rest]
    assert len({name.lower() for name, _ in pairs}) == len(pairs), f"a header came twice: {pairs}"
    headers = {name.lower(): value for name, value in pairs}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Request(line, headers, body, connection, asyncio.get_running_loop().time())


@asynccontextmanager
async def receiving(
    answer: Answer | list[Answer] = GOOD,
    *,
    tls: ssl.SSLContext | None = None,
    host: str = "127.0.0.1",
    greeting: bytes = b"",
) -> AsyncGenerator[Receiver]:
    receiver = Receiver(answer, greeting)
    if tls is not None:
        tls.sni_callback = lambda _, name, __: receiver.names.append(name)
    server = await asyncio.start_server(receiver.handle, host, 0, ssl=tls, limit=1 << 24)
    receiver.port = server.sockets[0].getsockname()[1]
    try:
        yield receiver
    finally:
        server.close()
        await receiver.stop()
        await server.wait_closed()


class Names:
    """A resolver that answers from a table. A tuple of answers is given out one by one, the last one for good."""

    def __init__(self, **table: list[str] | tuple[list[str], ...]) -> None:
        self._table = {name.replace("_", "."): found for name, found in table.items()}
        self.asked: list[str] = []

    async def resolve(self, host: str) -> Sequence[str]:
        self.asked.append(host)
        await asyncio.sleep(0)
        found = self._table.get(host, [])
        if isinstance(found, list):
            return found
        self._table[host] = found[1:] or found
        return next(iter(found))
