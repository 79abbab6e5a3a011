"""Small raw-socket clients for what wrk cannot do: one exact exchange, one timed stream, and crowds of streams.

They parse as little as they can: an event is a line that begins with `data:`, and a response ends with the chunk of
length zero or with the connection. That keeps the client's share of the processor small beside the server's.
"""

import selectors
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from bench.places import BenchError
from bench.requests import Ask

EVENT = b"data:"
FINE = b"HTTP/1.1 200"
LAST_CHUNK = b"0\r\n\r\n"
READ = 1 << 18
PATIENCE = 60.0


def connect(port: int, timeout: float = PATIENCE) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", port), timeout)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


class Caller:
    """One caller on one kept-alive connection."""

    def __init__(self, port: int, timeout: float = PATIENCE) -> None:
        self._port = port
        self._connection = connect(port, timeout)

    def __enter__(self) -> "Caller":
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def ask(self, ask: Ask) -> bytes:
        """The reply's body. Anything but a 200 raises."""
        self._connection.sendall(ask.wire(self._port))
        data = b""
        while (end := data.find(b"\r\n\r\n")) < 0:
            data += self._read()
        head, body = data[:end].lower(), data[end + 4 :]
        if b"transfer-encoding: chunked" in head:
            while not body.endswith(LAST_CHUNK):
                body += self._read()
            body = _unchunk(body)
        else:
            length = int(head.split(b"content-length:")[1].split(b"\r\n")[0])
            chunks, have = [body], len(body)
            while have < length:
                chunks.append(self._read())
                have += len(chunks[-1])
            body = b"".join(chunks)
        status = int(head.split(b" ")[1])
        if status != 200:
            raise BenchError(f"{ask.method} {ask.path} was answered {status}: {body[:200]!r}")
        return body

    def _read(self) -> bytes:
        data = self._connection.recv(READ)
        if not data:
            raise BenchError("the server closed the connection in mid-reply")
        return data


def _unchunk(data: bytes) -> bytes:
    parts: list[bytes] = []
    while True:
        size, _, data = data.partition(b"\r\n")
        length = int(size, 16)
        if not length:
            return b"".join(parts)
        parts.append(data[:length])
        data = data[length + 2 :]


def ask(port: int, question: Ask) -> bytes:
    with Caller(port) as caller:
        return caller.ask(question)


@dataclass
class Follower:
    """Counts the events of one stream. `marks` are (time, events so far), one per read, when asked for."""

    connection: socket.socket
    events: int = 0
    octets: int = 0
    first_event: float = 0.0
    done: bool = False
    marks: list[tuple[float, int]] | None = None
    _head: bytes = b""
    _tail: bytes = b""

    def feed(self) -> None:
        """Read what is there (or wait for it, on a blocking socket)."""
        data = self.connection.recv(READ)
        now = time.perf_counter()
        if self.octets < len(FINE):
            self._head += data
            if not self._head.startswith(FINE[: len(self._head)]):
                raise BenchError(f"a stream was answered {self._head[:300]!r}")
        self.octets += len(data)
        seen = self._tail + data
        found = seen.count(EVENT)
        if found and not self.events:
            self.first_event = now
        self.events += found
        if self.marks is not None:
            self.marks.append((now, self.events))
        # A marker split over two reads is found in the tail of one and the head of the next, never twice.
        self._tail = seen[-(len(EVENT) - 1) :] if len(seen) >= len(EVENT) - 1 else seen
        self.done = not data or seen.endswith(LAST_CHUNK)


def follow(port: int, question: Ask, extra: tuple[tuple[str, str], ...] = (), marks: bool = False) -> Follower:
    """One stream from its request to its end."""
    with connect(port) as connection:
        connection.sendall(question.wire(port, extra))
        follower = Follower(connection, marks=[] if marks else None)
        while not follower.done:
            follower.feed()
        return follower


def begin(port: int, question: Ask) -> tuple[str, str]:
    """Start a stream, read its first event, hang up: (cursor, first event). The turn behind it goes on."""
    with connect(port) as connection:
        connection.sendall(question.wire(port))
        data = b""
        while data.count(b"\n\n") < 1:
            read = connection.recv(READ)
            if not read:
                break
            data += read
    lines = data.decode(errors="replace").splitlines()
    cursor = next((line[3:].strip() for line in lines if line.startswith("id:")), "")
    first = next((line[5:].strip() for line in lines if line.startswith("data:")), "")
    if not first:
        raise BenchError(f"the stream began without an event: {data[:300]!r}")
    return cursor, first


@dataclass
class Crowd:
    """Many streams at once, read by one epoll loop."""

    port: int
    size: int
    followers: list[Follower] = field(default_factory=list[Follower])

    def __enter__(self) -> "Crowd":
        self._selector = selectors.EpollSelector()
        for _ in range(self.size):
            follower = Follower(connect(self.port))
            self.followers.append(follower)
            self._selector.register(follower.connection, selectors.EVENT_READ, follower)
        return self

    def __exit__(self, *_: object) -> None:
        self._selector.close()
        for follower in self.followers:
            follower.connection.close()

    def start(self, question: Ask) -> None:
        request = question.wire(self.port)
        for follower in self.followers:
            follower.connection.sendall(request)

    def until_first(self, patience: float) -> None:
        """Read until every stream has shown one event."""
        self._run(lambda follower: follower.events > 0, patience, "show their first event")

    def until_done(self, patience: float) -> None:
        self._run(lambda follower: follower.done, patience, "end")

    def _run(self, satisfied: Callable[[Follower], bool], patience: float, wish: str) -> None:
        waiting = {follower.connection for follower in self.followers if not satisfied(follower)}
        deadline = time.perf_counter() + patience
        while waiting:
            if time.perf_counter() > deadline:
                raise BenchError(f"{len(waiting)} of {self.size} streams did not {wish} within {patience:.0f} s")
            for key, _ in self._selector.select(1.0):
                follower: Follower = key.data
                follower.feed()
                if satisfied(follower):
                    waiting.discard(follower.connection)
                if follower.done:
                    self._selector.unregister(follower.connection)
                    waiting.discard(follower.connection)

    @property
    def events(self) -> int:
        return sum(follower.events for follower in self.followers)
