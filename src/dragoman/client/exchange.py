"""One connection to a receiver: HTTP/1.1 requests written by hand, answers read by httptools.

Whoever answers may be broken or hostile. Only the status and `Retry-After` of an answer matter here; of everything
else no more is read than the limits say, nothing is kept, and whatever does not fit ends the connection. Once the
status is known it counts, however the rest of the answer ends.
"""

import asyncio
from typing import Any, NamedTuple

import httptools

from dragoman.model.errors import DragomanError

HEAD_LIMIT = 32_768  # bytes of status line and headers, interim answers included
BODY_LIMIT = 65_536  # bytes of an answer's body read so that the connection can be used again
INTERIM_LIMIT = 8  # answers such as 103 before the real one


class Unanswered(DragomanError):
    """There is no answer. The text goes on after the receiver's name: "did not answer in time"."""


class Reply(NamedTuple):
    status: int
    retry_after: str = ""


class Exchange(asyncio.Protocol):
    """Takes one request at a time. `idle` while it waits for the next one; whoever keeps it meanwhile may time it."""

    def __init__(self) -> None:
        self._transport: Any = None
        self._parser: Any = httptools.HttpResponseParser(self)
        self._answer: asyncio.Future[Reply] | None = None
        self._read = self._interim = self._status = 0
        self._retry_after = ""
        self.idle = True
        self.since = asyncio.get_running_loop().time()
        self.timer: asyncio.TimerHandle | None = None

    async def post(self, request: bytes) -> Reply:
        """Send the request and wait for its answer. Raises Unanswered; bounds no time: the caller does.

        When the caller stops waiting while the status is known already, `known` has it.
        """
        self.idle = False
        self._read = self._interim = self._status = 0
        self._retry_after = ""
        self._answer = asyncio.get_running_loop().create_future()
        self._transport.write(request)
        return await self._answer

    @property
    def known(self) -> Reply | None:
        """What the receiver has answered so far, as much as matters."""
        return Reply(self._status, self._retry_after) if self._status else None

    @property
    def silent(self) -> bool:
        """Whether nothing of an answer to the last request has arrived."""
        return not self._read

    def close(self) -> None:
        self.idle = False
        if self.timer is not None:
            self.timer.cancel()
        if self._transport is not None:
            self._transport.abort()

    def _fail(self, why: str) -> None:
        self.close()
        if self._answer is not None and not self._answer.done():
            if known := self.known:
                self._answer.set_result(known)
            else:
                self._answer.set_exception(Unanswered(why))

    # --- the transport speaks ---

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        if self._answer is None or self._answer.done():
            self.close()  # an answer to nothing: nobody knows what the next one would belong to
            return
        self._read += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._fail("answered in another protocol")
        except httptools.HttpParserError:
            self._fail("answered something that is not HTTP")
        else:
            if self._read > HEAD_LIMIT + (BODY_LIMIT if self._status else 0):
                self._fail("answered with endless headers")

    def eof_received(self) -> None:
        self._fail("closed the connection without an answer")

    def connection_lost(self, exc: Exception | None) -> None:
        self._fail("closed the connection without an answer")

    # --- the parser speaks ---

    def on_message_begin(self) -> None:
        if self._answer is not None and self._answer.done():
            self.close()  # a second answer behind the first

    def on_header(self, name: bytes, value: bytes) -> None:
        if name.lower() == b"retry-after":
            self._retry_after = value[:64].decode("latin-1")

    def on_headers_complete(self) -> None:
        status = self._parser.get_status_code()
        if 100 <= status < 200:
            self._interim += 1
            self._retry_after = ""
        else:
            self._status = status

    def on_message_complete(self) -> None:
        if not self._status:
            if self._interim > INTERIM_LIMIT:
                self._fail("answered without end")
            return
        if self._answer is None or self._answer.done():
            return
        self._answer.set_result(Reply(self._status, self._retry_after))
        self.idle = self._parser.should_keep_alive()
        if not self.idle:
            self.close()
