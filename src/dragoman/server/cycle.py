"""One request and its response on a connection, spoken in ASGI. Head and first body leave in one write."""

import asyncio
from http import HTTPStatus
from typing import Any, Protocol

STATUS_LINES = {status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n".encode() for status in HTTPStatus}
DISCONNECT = {"type": "http.disconnect"}
APOLOGY = b"Something went wrong on our side."


class Flow:
    """Pauses whoever writes faster than the client reads. One future, made only when somebody must wait."""

    __slots__ = ("_transport", "_waiter", "read_paused", "write_paused")

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._waiter: asyncio.Future[None] | None = None
        self.read_paused = False
        self.write_paused = False

    async def drain(self) -> None:
        while self.write_paused:
            if self._waiter is None:
                self._waiter = asyncio.get_running_loop().create_future()
            await asyncio.shield(self._waiter)

    def pause_reading(self) -> None:
        if not self.read_paused:
            self.read_paused = True
            self._transport.pause_reading()

    def resume_reading(self) -> None:
        if self.read_paused:
            self.read_paused = False
            self._transport.resume_reading()

    def pause_writing(self) -> None:
        self.write_paused = True

    def resume_writing(self) -> None:
        self.write_paused = False
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
        self._waiter = None


class Owner(Protocol):
    """What a cycle needs of its connection."""

    loop: asyncio.AbstractEventLoop
    transport: Any
    flow: Any
    server_state: Any


class Cycle:
    __slots__ = (
        "body", "chunked", "complete", "delivered", "expects", "head", "keep_alive", "left", "lost", "method",
        "more", "owner", "scope", "started", "status", "task", "version", "waiter",
    )  # fmt: skip

    def __init__(self, owner: Owner, scope: dict[str, Any], keep_alive: bool, expects: bool) -> None:
        self.owner = owner
        self.scope: dict[str, Any] | None = scope  # the application takes it
        self.method: str = scope["method"]
        self.version: str = scope["http_version"]
        self.keep_alive = keep_alive
        self.expects = expects
        self.body: bytes | bytearray = b""
        self.more = True  # of the request's body
        self.delivered = False
        self.started = False
        self.complete = False
        self.lost = False
        self.chunked = False
        self.left = -1
        self.status = 0
        self.head: Any = None
        self.waiter: asyncio.Future[None] | None = None
        self.task: asyncio.Task[None] | None = None

    # --- the connection's side

    def feed(self, data: bytes) -> None:
        if not self.body:
            self.body = data
        else:
            if type(self.body) is bytes:
                self.body = bytearray(self.body)
            self.body += data
        self.wake()

    def wake(self) -> None:
        if self.waiter is not None and not self.waiter.done():
            self.waiter.set_result(None)

    def lose(self) -> None:
        """The client is gone: nobody reads what this request would answer."""
        self.lost = True
        self.body = b""
        if self.task is not None:
            self.task.cancel()

    async def apologise(self) -> None:
        """End an answer that the application left unfinished."""
        if self.started or self.lost:
            self.owner.transport.close()
            return
        self.keep_alive = False
        self.left, self.chunked = -1, False
        headers = [(b"content-type", b"text/plain; charset=utf-8")]
        await self.send({"type": "http.response.start", "status": 500, "headers": headers})
        await self.send({"type": "http.response.body", "body": APOLOGY})

    # --- the application's side

    async def receive(self) -> dict[str, Any]:
        if self.expects and not self.started:
            self.owner.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        self.expects = False
        while not (self.lost or self.complete):
            if self.body or not (self.more or self.delivered):
                body, self.body = bytes(self.body), b""
                self.delivered = not self.more
                return {"type": "http.request", "body": body, "more_body": self.more}
            self.owner.flow.resume_reading()
            self.waiter = self.owner.loop.create_future()
            try:
                await self.waiter
            finally:
                self.waiter = None
        return DISCONNECT

    async def send(self, message: Any) -> None:
        flow = self.owner.flow
        if flow.write_paused and not self.lost:
            await flow.drain()
        if self.lost:
            return
        if message["type"] == "http.response.start":
            # Kept back: with the first piece of the body it is one write, and its length may be known.
            self.status = message["status"]
            self.head = message.get("headers", ())
            return
        body: bytes = message.get("body", b"")
        more: bool = message.get("more_body", False)
        if self.started:
            data = self._framed(body, more)
        else:
            data = self._first(body, more)
        if data:
            self.owner.transport.write(data)
        if not more:
            if self.left > 0:
                raise RuntimeError("the response is shorter than its Content-Length")
            self.complete = True
            self.wake()

    def _first(self, body: bytes, more: bool) -> bytes:
        if self.head is None:
            raise RuntimeError("http.response.start must come first")
        lines = [STATUS_LINES[self.status]]
        for name, value in self.owner.server_state.default_headers:
            lines += (name, b": ", value, b"\r\n")
        count = 1 + len(self.owner.server_state.default_headers)
        closing = False
        for name, value in self.head:
            lines += (name, b": ", value, b"\r\n")
            count += 1
            if name == b"content-length":
                self.left = int(value)
            elif name == b"connection":
                closing = value == b"close"
        self.head = None
        if closing or self.more:
            self.keep_alive = False  # the rest of an unread body would be taken for a request
        bodiless = self.method == "HEAD" or self.status in (204, 304)
        if self.left < 0 and not bodiless:
            if not more:
                lines.append(b"content-length: %d\r\n" % len(body))
                count += 1
                self.left = len(body)
            elif self.version == "1.1":
                lines.append(b"transfer-encoding: chunked\r\n")
                count += 1
                self.chunked = True
            else:
                self.keep_alive = False  # HTTP/1.0 knows no chunks: the end of the connection is the end
        if not self.keep_alive and not closing:
            lines.append(b"connection: close\r\n")
            count += 1
        lines.append(b"\r\n")
        head = b"".join(lines)
        if head.count(b"\n") != count + 1 or head.count(b"\r") != count + 1 or b"\0" in head:
            raise RuntimeError("a response header holds a line break")
        self.started = True
        return head + self._framed(body, more)

    def _framed(self, body: bytes, more: bool) -> bytes:
        if self.method == "HEAD" or self.status in (204, 304):
            self.left = 0
            return b""
        if self.chunked:
            if not body:
                return b"" if more else b"0\r\n\r\n"
            return b"%x\r\n%b\r\n%b" % (len(body), body, b"" if more else b"0\r\n\r\n")
        if self.left >= 0:
            self.left -= len(body)
            if self.left < 0:
                raise RuntimeError("the response is longer than its Content-Length")
        return body
