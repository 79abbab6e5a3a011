"""Walks: one streaming request in each dialect, from its bytes on our own connection to the last byte of the answer,
with the turn it starts and the SQLite file it is kept in.

What is counted is said in docs/walk.md.
"""

import asyncio
import json
import socket
import threading
import time
from collections.abc import Generator, Iterable
from contextlib import closing, contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from dragoman.app import wiring
from dragoman.app.sources import resolve
from dragoman.server.run import Listener, run
from tests.walk.agent import agent
from tests.walk.tracing import Call, Trace, traced

WAIT = 20.0


class Way(NamedTuple):
    """How a dialect asks for a stream. `like` is the official one it varies, `origin` what its tasks remember."""

    name: str
    asks: str
    path: str
    params: dict[str, Any]
    like: str
    origin: str
    version: str = ""

    def body(self, number: int) -> bytes:
        text = json.dumps(self.params).replace("NUMBER", str(number))
        if self.asks.startswith("POST"):
            return text.encode()
        return b'{"jsonrpc":"2.0","id":%d,"method":"%b","params":%b}' % (number, self.asks.encode(), text.encode())


def _said(part: dict[str, Any], role: str = "user", parts: str = "parts", **members: Any) -> dict[str, Any]:
    return {"message": {"messageId": "m-NUMBER", "role": role, parts: [part], **members}}


_MODERN = _said({"text": "go"}, "ROLE_USER")
_LEGACY = _said({"kind": "text", "text": "go"}, kind="message")
_OVER_V1 = _said({"text": "go"}, "ROLE_USER", "content")
_BARE = _said({"text": "go"})
_OLDEST = {"id": "t-NUMBER", "sessionId": "s"} | _said({"type": "text", "text": "go"})

WAYS = (
    Way("1.0", "SendStreamingMessage", "/", _MODERN, "1.0", "1.0", "1.0"),
    Way("0.3", "message/stream", "/", _LEGACY, "0.3", "0.3"),
    Way("1.0 over HTTP", "POST /message:stream", "/message:stream", _MODERN, "1.0 over HTTP", "1.0", "1.0"),
    Way("0.3 over HTTP", "POST /v1/message:stream", "/v1/message:stream", _OVER_V1, "0.3 over HTTP", "0.3"),
    Way("0.1", "tasks/sendSubscribe", "/", _OLDEST, "0.3", "0.1"),
    Way("coding-agent", "message/stream", "/a2a/jsonrpc", _LEGACY, "0.3", "coding-agent"),
    Way("Cortex", "SendStreamingMessage", "/a2a", _BARE, "1.0", "cortex"),
    Way("simple_a2a", "tasks/sendSubscribe", "/", _BARE, "0.3", "simple"),
    Way("A2X", "message/stream", "/api/a2a", _BARE, "0.3", "a2x"),
    Way("protoAgent", "message/stream", "/a2a", _BARE, "0.3", "proto"),
)


class Walk:
    """What a trace tells, counted."""

    def __init__(self, way: Way, trace: Trace) -> None:
        self.way = way
        self.files = frozenset(trace.files)
        self.calls = frozenset(trace.calls)

    @cached_property
    def passed(self) -> frozenset[str]:
        """The files the request passes through: those that call on, to something they have a name for."""
        return frozenset(call.caller for call in self.calls if not call.handed)

    @property
    def asked(self) -> frozenset[str]:
        """The files that answer and call nobody."""
        return self.files - self.passed

    @property
    def between(self) -> frozenset[Call]:
        """The calls on the way: into files that the request passes through."""
        return frozenset(call for call in self.calls if call.callee in self.passed)

    @property
    def both_ways(self) -> list[tuple[str, str]]:
        """Pairs of files that call each other."""
        steps = {(call.caller, call.callee) for call in self.calls if not call.handed}
        return sorted((one, other) for one, other in steps if one < other and (other, one) in steps)

    @property
    def dialects(self) -> frozenset[str]:
        return frozenset(name for name in self.files if name.startswith("wire/"))

    def swapped(self, official: "Walk") -> frozenset[str]:
        """The files of `wire` that stand where the official dialect has others."""
        return self.dialects - official.dialects


class _Served(NamedTuple):
    works: wiring.Works
    listener: Listener

    @property
    def port(self) -> int:
        return int(self.listener.url.rpartition(":")[2])

    def quiet(self) -> bool:
        """Whether nothing of any request is left."""
        return not (self.listener.server_state.connections or self.works._engine.turns.runs)


@contextmanager
def _served(store: Path) -> Generator[_Served]:
    """A real server of ours, in a thread of its own."""
    settings = resolve({"store": str(store), "port": 0}, file=None)
    opened = threading.Event()
    parts: list[Any] = []

    def serve() -> None:
        works = wiring.Works({"": agent}, settings)
        listener = Listener(works.site, works, port=0, settings=wiring.serving(settings))

        def told(url: str) -> None:
            parts.extend((_Served(works, listener), asyncio.get_running_loop()))
            opened.set()

        run(listener, told)

    thread = threading.Thread(target=serve, name="walk")
    thread.start()
    try:
        assert opened.wait(WAIT), "the server did not come up"
        yield parts[0]
    finally:
        if parts:
            parts[1].call_soon_threadsafe(parts[0].listener.stop)
        thread.join(WAIT)


def _ask(port: int, way: Way, number: int) -> bytes:
    """The whole answer, as it came. The connection is new and closes behind it."""
    body = way.body(number)
    lines = [
        f"POST {way.path} HTTP/1.1",
        f"Host: 127.0.0.1:{port}",
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
        "Connection: close",
        *([f"A2A-Version: {way.version}"] if way.version else []),
    ]
    with closing(socket.create_connection(("127.0.0.1", port), WAIT)) as line:
        line.sendall("\r\n".join(lines).encode() + b"\r\n\r\n" + body)
        return b"".join(iter(lambda: line.recv(65_536), b""))


def walks(store: Path, ways: Iterable[Way] = WAYS) -> list[Walk]:
    """Each way walked on a server that has answered its like before, so that only what every request costs is seen."""
    found: list[Walk] = []
    with traced() as watching, _served(store) as served:
        for way in ways:
            for number, trace in enumerate((None, Trace())):
                if trace is not None:
                    watching.files, watching.calls, watching.on = trace.files, trace.calls, True
                answer = _ask(served.port, way, number)
                end = time.monotonic() + WAIT
                while not served.quiet() and time.monotonic() < end:
                    time.sleep(0.002)  # the server's own thread: there is nothing to wait on
                watching.on = False
                assert served.quiet() and b"two steps" in answer, answer
                if trace is not None:
                    found.append(Walk(way, trace))
    return found
