"""Our own listener: a uvicorn server whose port opens after recovery and which drains before it lets go of anybody.

Stopping goes: not ready → new messages are refused → running turns get their time → claims are released and streams
end, resumable → connections close → the engine closes. A second signal skips the waiting.
"""

import asyncio
import errno
import gc
import signal
import socket
import ssl
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, Protocol

import uvicorn

from dragoman.model.errors import DragomanError
from dragoman.server.asgi import Site
from dragoman.server.connection import Connection, Watch
from dragoman.server.settings import ServerSettings

SIGNALS = (signal.SIGINT, signal.SIGTERM)

# A request leaves no cycles behind, so whoever collects after every 700 new objects finds nothing, and finding nothing
# was a tenth of the time a short request took. Cycles come from agents; so many of their objects may wait.
COLLECT = (50_000, 20, 100)


class Engine(Protocol):
    async def start(self) -> None: ...
    async def drain(self, seconds: float) -> None: ...
    async def close(self) -> None: ...


class CannotListen(DragomanError):
    """The address cannot be listened on. The text says why and what would do."""


class Listener(uvicorn.Server):
    """Serves a site at one address until it is told to stop."""

    def __init__(
        self,
        site: Site,
        engine: Engine,
        *,
        host: str = "127.0.0.1",
        port: int = 8000,
        settings: ServerSettings | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._settings = settings = settings or ServerSettings()
        super().__init__(
            uvicorn.Config(
                site,
                http=partial(Connection, Watch(settings, site.shared)),  # pyright: ignore[reportArgumentType]
                ws="none",
                lifespan="off",
                interface="asgi3",
                log_config=None,
                access_log=False,
                proxy_headers=False,
                server_header=False,
                backlog=settings.backlog,
            )
        )
        self.config.load()
        self.config.ssl = tls
        self._site = site
        self._engine = engine
        self._host = host
        self._port = port
        self._scheme = "http" if tls is None else "https"
        self._told = asyncio.Event()
        self._hurry = asyncio.Event()
        self._opened: Callable[[str], None] | None = None
        self.reload: Callable[[], None] | None = None  # what SIGHUP means; without it, what it usually does
        self.url = ""

    async def listen(self, opened: Callable[[str], None] | None = None) -> None:
        """Recover, open the port, call `opened` with our URL, serve until `stop` or a signal, drain, close.

        Raises CannotListen before anything else is touched when the address is taken.
        """
        self._opened = opened
        listening = bind(self._host, self._port)
        try:
            self.url = self._address(listening[0])
            self._site.readiness.stage = "starting"
            try:
                with self.capture_signals():
                    # A signal during recovery ends it: what is recovered can be recovered again.
                    if await self._unless_told(self._engine.start()):
                        await self._serve(listening)
            finally:
                await self._engine.close()
        finally:
            for each in listening:
                each.close()

    def stop(self, *, hurry: bool = False) -> None:
        """Begin to stop; said twice, or in a hurry, without waiting for turns and connections."""
        if hurry or self._told.is_set():
            self.force_exit = True
            self._hurry.set()
        self.should_exit = True
        self._told.set()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._site.readiness.stage = "ready"
        if self._opened is not None:
            self._opened(self.url)

    async def main_loop(self) -> None:
        # One tick a second keeps the Date header; uvicorn's own ten would keep an idle machine awake.
        while not await self.on_tick(0):
            with suppress(TimeoutError):
                await asyncio.wait_for(self._told.wait(), 1.0)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._site.readiness.stage = "stopping"
        await self._unless(self._hurry, self._engine.drain(0 if self.force_exit else self._settings.drain_seconds))
        for server in self.servers:
            server.close()
        for connection in list(self.server_state.connections):
            connection.shutdown()
        await self._unless(self._hurry, self._emptied())
        for task in list(self.server_state.tasks):
            task.cancel()
        if self.server_state.tasks:
            await asyncio.wait(self.server_state.tasks, timeout=1)
        for connection in list(self.server_state.connections):
            connection.transport.abort()

    async def _emptied(self) -> None:
        deadline = asyncio.get_running_loop().time() + self._settings.close_seconds
        while self.server_state.connections and asyncio.get_running_loop().time() < deadline:
            await asyncio.sleep(0.02)

    async def _unless_told(self, work: Awaitable[None]) -> bool:
        return await self._unless(self._told, work)

    async def _unless(self, sooner: asyncio.Event, work: Awaitable[None]) -> bool:
        """Whether the work was finished before the event came; otherwise it is cancelled."""
        working = asyncio.ensure_future(work)
        waiting = asyncio.ensure_future(sooner.wait())
        try:
            await asyncio.wait((working, waiting), return_when=asyncio.FIRST_COMPLETED)
            if working.done():
                working.result()
                return True
            return False
        finally:
            for each in (working, waiting):
                each.cancel()
            await asyncio.gather(working, waiting, return_exceptions=True)

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Unlike uvicorn's, this ends a stop that was asked for as a success instead of raising the signal again."""
        loop = asyncio.get_running_loop()
        caught: list[signal.Signals] = []
        handlers: dict[signal.Signals, Callable[[], None]] = dict.fromkeys(SIGNALS, self.stop)
        if self.reload is not None and hasattr(signal, "SIGHUP"):
            handlers[signal.SIGHUP] = self.reload
        for each, handler in handlers.items():
            with suppress(NotImplementedError, RuntimeError, ValueError):  # not the main thread: the host has signals
                loop.add_signal_handler(each, handler)
                caught.append(each)
        try:
            yield
        finally:
            for each in caught:
                loop.remove_signal_handler(each)

    def _address(self, listening: socket.socket) -> str:
        host = self._host or "127.0.0.1"
        if host in ("0.0.0.0", "::"):
            host = "127.0.0.1" if host == "0.0.0.0" else "::1"
        name = f"[{host}]" if ":" in host else host
        return f"{self._scheme}://{name}:{listening.getsockname()[1]}"


def bind(host: str, port: int) -> list[socket.socket]:
    """Take the address without listening yet: until then callers are refused, as if nobody were there."""
    bound: list[socket.socket] = []
    where = f"{host or 'every address'}, port {port}"
    try:
        found = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError:
        raise CannotListen(
            f"There is no address called {host}; listen on 127.0.0.1, or on an address of yours"
        ) from None
    failure: OSError | None = None
    for family, kind, protocol, _, address in dict.fromkeys(found):
        place: Any = address
        if port == 0 and bound:  # the same free port on every address of a name
            place = (address[0], bound[0].getsockname()[1], *address[2:])
        try:
            bound.append(_bound(family, kind, protocol, place))
        except OSError as error:
            failure = error
    if not bound or (failure is not None and failure.errno == errno.EADDRINUSE):
        for each in bound:
            each.close()
        raise CannotListen(f"Cannot listen on {where}: {_why(failure)}") from failure
    return bound


def _bound(family: int, kind: int, protocol: int, address: Any) -> socket.socket:
    listening = socket.socket(family, kind, protocol)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            listening.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listening.bind(address)
        listening.setblocking(False)
    except OSError:
        listening.close()
        raise
    return listening


def _why(failure: OSError | None) -> str:
    match failure:
        case PermissionError():
            return "this user may not use that port; choose one above 1023"
        case OSError(errno=errno.EADDRINUSE):
            return "somebody else is listening there; stop them or choose another port"
        case _:
            return "it is not an address of this machine"


def run(listener: Listener, opened: Callable[[str], None] | None = None) -> None:
    """Serve until stopped, on the quickest event loop there is."""
    try:
        import uvloop

        factory = uvloop.new_event_loop
    except ImportError:  # not made for Windows
        factory = None
    before = gc.get_threshold()
    gc.set_threshold(*COLLECT)
    gc.freeze()  # what was loaded by now stays: it need not be looked at again
    try:
        with asyncio.Runner(loop_factory=factory) as runner:
            runner.run(listener.listen(opened))
    finally:
        gc.unfreeze()
        gc.set_threshold(*before)
