"""One client connection of our own server: uvicorn's httptools protocol, held to deadlines and sizes.

What differs from uvicorn's: the head of a request has a deadline and a size, the body has a deadline, trailers never
become headers, bytes that are no HTTP close the connection instead of being answered in the middle of a response,
a refused upload is drained for a moment so that the client can read why, a client that reads nothing of its answer is
cut off, one that would rather speak another protocol is answered in this one, a lost client cancels its request's task
at once, and the client's certificate is in the scope. It is also smaller and quicker: deadlines are one number per
connection looked at by one timer, and there are no events or timers per request.
"""

import asyncio
import fcntl
import logging
import ssl
import struct
import termios
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any
from urllib.parse import unquote

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.protocols.utils import get_local_addr, get_remote_addr, is_ssl

from dragoman.gateway.quota import HERE, place_of
from dragoman.server.asgi import OWN
from dragoman.server.cycle import Cycle, Flow
from dragoman.server.settings import ServerSettings

log = logging.getLogger("dragoman.server")

PIPELINED = 16  # requests queued behind a running one before we stop reading
HELD_BODY = 65_536  # bytes of a body kept before the application has asked for them
LINGER_SECONDS = 2.0  # how long we read on, discarding, after refusing an upload

ASGI = {"version": "3.0", "spec_version": "2.3"}
PLAIN: dict[str, Any] = {OWN: {}}
NOBODY: deque[Cycle] = deque()  # most connections never pipeline; they share this empty queue

SOME = 64  # connections that any address may have, however few files the process may open
CROWD = (
    b"HTTP/1.1 429 Too Many Requests\r\nretry-after: 1\r\nconnection: close\r\n"
    b"content-type: text/plain; charset=utf-8\r\ncontent-length: 48\r\n\r\n"
    b"Too many connections are open from your address."
)

FAULTS = {
    400: (b"400 Bad Request", b"This is not a valid HTTP request."),
    408: (b"408 Request Timeout", b"The request took too long to arrive."),
    431: (b"431 Request Header Fields Too Large", b"The request's headers are too large."),
    501: (b"501 Not Implemented", b"Of transfer encodings only chunked is understood."),
}
FRAMING = (b"content-length", b"transfer-encoding")


class Watch:
    """Looks at every connection's deadline once per interval. Shared by all connections of one listener."""

    def __init__(self, settings: ServerSettings, shared: Callable[[str], bool] = lambda host: False) -> None:
        """`shared` says whether many callers come from an address: then it may have any number of connections."""
        self.settings = settings
        self._shared = shared
        self._told = settings.connections_per_address
        self._most = self._told or max(SOME, open_files() // 2)
        self._from: dict[str, int] = {}
        shortest = min(settings.head_seconds, settings.body_seconds, settings.idle_seconds, settings.stall_seconds)
        self.interval = min(1.0, max(0.02, shortest / 4))
        self.connections: set[Connection] = set()
        self.reading: dict[Connection, tuple[int, float]] = {}  # whose clients read slowly: what is left, since when
        self._timer: asyncio.TimerHandle | None = None

    def add(self, connection: "Connection") -> None:
        self.connections.add(connection)
        if self._timer is None:
            self._timer = connection.loop.call_later(self.interval, self._look, connection.loop)

    def admit(self, host: str) -> str:
        """Count a connection from that address. What to give to `leave`; nothing if it has too many already."""
        place = place_of(host)
        count = self._from.get(place, 0)
        if count >= self._most and not self._shared(host) and (self._told or place != HERE):
            return ""
        self._from[place] = count + 1
        return place

    def leave(self, place: str) -> None:
        count = self._from[place] - 1
        if count:
            self._from[place] = count
        else:
            del self._from[place]

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        now = loop.time()
        for connection in [one for one in self.connections if 0.0 < one.due <= now]:
            connection.overdue()
        for connection, (left, since) in list(self.reading.items()):
            size = unread(connection.transport)
            if size < left or connection.streams:
                self.reading[connection] = (size, now)
            elif now - since >= self.settings.stall_seconds:
                connection.transport.abort()
        self._timer = loop.call_later(self.interval, self._look, loop) if self.connections else None


class Connection(HttpToolsProtocol):
    # Beside uvicorn's own attributes, whose shared-key dict has no room for more.
    __slots__ = (
        "deaf", "due", "extensions", "fault", "fed", "framing", "head_bytes", "in_body", "in_head", "place", "running",
        "upgrading", "watch",
    )  # fmt: skip

    def __init__(self, watch: Watch, **wiring: Any) -> None:
        super().__init__(**wiring)
        self.watch = watch
        self.due = 0.0
        self.place = ""
        self.extensions = PLAIN
        self.fault = 400
        self.fed = 0  # bytes of an unfinished head
        self.head_bytes = 0  # names and values of the head as parsed
        self.in_head = False
        self.in_body = False
        self.deaf = False  # what still arrives is thrown away
        self.upgrading = False
        self.framing = b""  # how long the body is of a request that asked for an upgrade
        self.running: Cycle | None = None  # whose response is being written; `cycle` is whose request is being read
        self.cycle: Any = None
        self.parser: Any = self.parser
        self.app: Any = wiring["config"].loaded_app
        self.flow: Any = None
        self.pipeline: Any = NOBODY

    # --- the transport speaks

    def connection_made(self, transport: Any) -> None:
        self.connections.add(self)
        self.transport = transport
        self.flow = Flow(transport)
        self.server = get_local_addr(transport)
        self.client = get_remote_addr(transport)
        self.place = self.watch.admit(self.client[0] if self.client else "")
        if not self.place:
            self.deaf = True
            transport.write(CROWD)
            transport.close()
            return
        self.scheme = "http"
        if is_ssl(transport):
            self.scheme = "https"
            self.extensions = PLAIN | {"tls": _tls(transport.get_extra_info("ssl_object"))}
        self.due = self.loop.time() + self.watch.settings.head_seconds
        self.watch.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self.connections.discard(self)
        self.watch.connections.discard(self)
        self.watch.reading.pop(self, None)
        if self.place:
            self.watch.leave(self.place)
        self.due = 0.0
        self.pipeline = NOBODY
        if self.running is not None and not self.running.complete:
            self.running.lose()
        self.flow.resume_writing()
        self.transport.close()
        self.cycle = self.running = None
        self.parser = None

    def data_received(self, data: bytes) -> None:
        if self.deaf:
            return
        try:
            while True:
                try:
                    self.parser.feed_data(data)
                    break
                except httptools.HttpParserUpgrade as upgrade:
                    data = self._stay() + data[upgrade.args[0] :]
        except httptools.HttpParserError:
            self._refuse()
            return
        if self.in_head:
            self.fed += len(data)
            if self.fed > self.watch.settings.head_limit:
                self.fault = 431
                self._refuse()
            elif self.due == 0.0:
                # The first bytes of a request start its clock; further drops don't wind it up again.
                self.due = self.loop.time() + self.watch.settings.head_seconds
        elif self.in_body and self.due == 0.0:
            self.due = self.loop.time() + self.watch.settings.body_seconds

    def overdue(self) -> None:
        """The deadline has passed: of head, body, or an idle, lingering or closed connection."""
        self.due = 0.0
        if self.transport.is_closing():
            if self not in self.watch.reading:
                self.transport.abort()
        elif not self.deaf and (self.in_head or self.in_body):
            self.fault = 408
            self._refuse()
        else:
            self._part()

    def pause_writing(self) -> None:
        self.flow.pause_writing()
        self.watch.reading[self] = (unread(self.transport), self.loop.time())

    def resume_writing(self) -> None:
        self.flow.resume_writing()
        self.watch.reading.pop(self, None)
        if self.transport.is_closing():
            self.due = self.loop.time() + self.watch.settings.stall_seconds

    @property
    def streams(self) -> bool:
        """Whether an answer of no known length is being written: its client may take its time."""
        return self.running is not None and self.running.started and self.running.left < 0

    def _part(self) -> None:
        """Close when everything was written, or when nobody reads it."""
        self.transport.close()
        self.due = self.loop.time() + self.watch.settings.stall_seconds

    def _stay(self) -> bytes:
        """The client would like to go on in another protocol. We speak nothing but HTTP/1.1: its request is answered as
        if that had not been asked. A parser that has seen an upgrade reads no further, so another one does; what to
        begin with takes it to where the first one is."""
        self.parser = httptools.HttpRequestParser(_Behind(self))
        return b"POST / HTTP/1.1\r\n%b\r\n" % self.framing

    def _refuse(self) -> None:
        """What arrives cannot be read. Requests read before it keep their answers; then we part."""
        self.deaf = True
        self.due = 0.0
        running = self.running if self.running is not None and not self.running.complete else None
        broken = self.cycle if self.in_body else None  # its body will never be whole
        if running is not None and running is not broken:
            if broken is not None:
                self.pipeline.remove(broken)
            (self.pipeline[0] if self.pipeline else running).keep_alive = False
            return
        if running is None or not running.started:
            if running is not None:
                running.lose()
            status, words = FAULTS[self.fault]
            size = str(len(words)).encode()
            self.transport.write(
                b"HTTP/1.1 %b\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: %b\r\n"
                b"connection: close\r\n\r\n%b" % (status, size, words)
            )
        self._part()

    # --- the parser speaks

    def on_message_begin(self) -> None:
        self.url = b""
        self.in_head = True
        self.due = 0.0
        self.fed = self.head_bytes = 0
        self.expect_100_continue = False
        self.headers = []

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self.in_head:
            return  # a trailer; whoever let it change a header would let it past the checks made on headers
        name = name.lower()
        self.head_bytes += len(name) + len(value)
        if name == b"expect" and value.lower() == b"100-continue":
            self.expect_100_continue = True
        elif name == b"transfer-encoding" and value.strip().lower() != b"chunked":
            self.fault = 501
            raise ValueError
        self.headers.append((name, value))

    def on_headers_complete(self) -> None:
        if self.head_bytes + len(self.url) > self.watch.settings.head_limit:
            self.fault = 431
            raise ValueError
        self.in_head = False
        self.in_body = True
        self.due = 0.0
        path, query = _split(self.url)
        parser = self.parser
        version = parser.get_http_version()
        text = path.decode("ascii")
        root = self.root_path
        scope: Any = {
            "type": "http",
            "asgi": ASGI,
            "http_version": version,
            "method": parser.get_method().decode("ascii"),
            "scheme": self.scheme,
            "path": root + (unquote(text) if "%" in text else text),
            "raw_path": root.encode("ascii") + path if root else path,
            "query_string": query,
            "root_path": root,
            "headers": self.headers,
            "client": self.client,
            "server": self.server,
            "extensions": self.extensions,
        }
        cycle = Cycle(self, scope, version != "1.0" and parser.should_keep_alive(), self.expect_100_continue)
        self.cycle = cycle
        self.upgrading = parser.should_upgrade()
        if self.upgrading:
            lines = [b"%b: %b\r\n" % line for line in self.headers if line[0] in FRAMING]
            self.framing = b"".join(lines)
        self.headers: Any = None  # the scope's now, and gone with it while a stream stays
        if self.running is None:
            self._begin(cycle)
        else:
            if self.pipeline is NOBODY:
                self.pipeline = deque()
            self.pipeline.appendleft(cycle)
            if len(self.pipeline) >= PIPELINED:
                self.flow.pause_reading()

    def on_body(self, body: bytes) -> None:
        cycle = self.cycle
        if not cycle.complete:
            cycle.feed(body)
            if len(cycle.body) > HELD_BODY:
                self.flow.pause_reading()

    def on_message_complete(self) -> None:
        if self.upgrading:  # the parser takes a body for another protocol
            self.upgrading = False
            return
        self.in_body = False
        self.due = 0.0
        cycle = self.cycle
        cycle.more = False
        cycle.wake()

    # --- the running request

    def _begin(self, cycle: Cycle) -> None:
        self.running = cycle
        task = cycle.task = self.loop.create_task(self._serve(cycle))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def _serve(self, cycle: Cycle) -> None:
        """Run the application for one request, and go on when its answer is written whole."""
        try:
            # The scope is the application's alone: a stream that stays for hours lets go of it.
            work = self.app(cycle.scope, cycle.receive, cycle.send)
            cycle.scope = None
            await work
        except asyncio.CancelledError:
            if not cycle.lost:
                self.transport.close()
                raise
        except Exception:
            log.exception("The application failed")
            await cycle.apologise()
        else:
            if not cycle.complete and not cycle.lost:
                log.error("The application ended without an answer")
                await cycle.apologise()
        finally:
            cycle.task = None
        if cycle.complete:
            self._finished(cycle)

    def _finished(self, cycle: Cycle) -> None:
        """A response was written whole: go on with the next request, rest, or part."""
        self.server_state.total_requests += 1
        self.running = None
        if self.transport.is_closing():
            return
        if cycle.more and not self.deaf:
            # Refused before its body had come. Closing now would reset the connection under the client's
            # pen, and it would never read the answer: end our side, read on for a moment, then close.
            self.deaf = True
            self.due = self.loop.time() + LINGER_SECONDS
            self.flow.resume_reading()
            if self.transport.can_write_eof():
                self.transport.write_eof()
            return
        if not cycle.keep_alive:
            self._part()
            return
        self.flow.resume_reading()
        if self.pipeline:
            self._begin(self.pipeline.pop())
        elif not self.in_head:
            self.due = self.loop.time() + self.watch.settings.idle_seconds

    def shutdown(self) -> None:
        """The server stops: an idle connection closes now, a busy one after its responses."""
        if self.running is None:
            self._part()
        else:
            (self.pipeline[0] if self.pipeline else self.running).keep_alive = False


def open_files() -> int:
    """How many files, connections among them, this process may have open."""
    try:
        import resource  # not on Windows
    except ImportError:
        return 1 << 16
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return 1 << 20 if soft == resource.RLIM_INFINITY else soft


class _Behind:
    """What a parser tells that goes on in the middle of a request, whose head is known already."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._head = True
        self.on_body = connection.on_body
        self.on_message_complete = connection.on_message_complete

    def on_message_begin(self) -> None:
        if not self._head:
            self._connection.on_message_begin()

    def on_url(self, url: bytes) -> None:
        if not self._head:
            self._connection.on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._head:
            self._connection.on_header(name, value)

    def on_headers_complete(self) -> None:
        if self._head:
            self._head = False
        else:
            self._connection.on_headers_complete()


def unread(transport: Any) -> int:
    """How many bytes the client has not taken yet, of what the transport holds and of what the kernel holds for it. The
    kernel may take none for a long time though the client reads, and far more than it seems to at once."""
    size: int = transport.get_write_buffer_size()
    sock = transport.get_extra_info("socket")
    with suppress(OSError, AttributeError):  # it has just been closed, or this is no system that tells
        (queued,) = struct.unpack("i", fcntl.ioctl(sock.fileno(), termios.TIOCOUTQ, bytes(4)))
        size += queued
    return size


def _split(url: bytes) -> tuple[bytes, bytes]:
    """Path and query of a request target in any of its forms."""
    if url[:1] == b"/" and b"#" not in url:
        path, _, query = url.partition(b"?")
        return path, query
    if url == b"*":
        return b"/", b""
    parsed = httptools.parse_url(url)
    return parsed.path or b"/", parsed.query or b""


def _tls(connection: ssl.SSLObject) -> dict[str, Any]:
    """ASGI's tls extension, as far as authentication needs it."""
    certificate = connection.getpeercert(binary_form=True)
    chain = (ssl.DER_cert_to_PEM_cert(certificate),) if certificate else ()
    return {"client_cert_chain": chain, "tls_version": connection.version()}
