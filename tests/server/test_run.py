"""The listener: opens after recovery, drains before it closes, stops on signals, and says why it cannot listen."""

import asyncio
import os
import signal
import socket
import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from dragoman.server.run import CannotListen, Listener, bind
from dragoman.server.settings import ServerSettings
from tests.server.rig import SEND, STREAM, WAIT, Line, Running, ScriptedEngine, request, running, site

pytestmark = pytest.mark.anyio

KEYS = Path(__file__).parent / "tls"


class SlowEngine(ScriptedEngine):
    """Recovery and draining take as long as the test says."""

    def __init__(self) -> None:
        super().__init__()
        self.recovering = asyncio.Event()
        self.recovered = asyncio.Event()
        self.draining = asyncio.Event()
        self.drained = asyncio.Event()

    async def start(self) -> None:
        self.recovering.set()
        await self.recovered.wait()
        await super().start()

    async def drain(self, seconds: float) -> None:
        self.draining.set()
        async with asyncio.timeout(seconds):
            await self.drained.wait()
        await super().drain(seconds)


@asynccontextmanager
async def listening(engine: ScriptedEngine, **settings: Any) -> AsyncGenerator[tuple[Running, asyncio.Task[None]]]:
    """A listener from its very beginning; the test stops it."""
    given = ServerSettings(**settings)
    listener = Listener(site(engine, settings=given), engine, port=0, settings=given)
    task = asyncio.create_task(listener.listen())
    server = Running(listener, engine, [])
    try:
        yield server, task
    finally:
        for line in server.lines:
            line.hang_up()
        listener.stop(hurry=True)
        async with asyncio.timeout(WAIT):
            await asyncio.gather(task, return_exceptions=True)


async def until_open(server: Running) -> None:
    async with asyncio.timeout(WAIT):
        while not server.listener.started:
            await asyncio.sleep(0.01)


async def streaming(server: Running) -> Line:
    line = await server.dial()
    line.write(STREAM)
    await line.head()
    await line.chunk()
    return line


@pytest.mark.proves("S-10-7")
async def test_the_port_opens_only_after_recovery() -> None:
    engine = SlowEngine()
    async with listening(engine) as (server, _):
        async with asyncio.timeout(WAIT):
            await engine.recovering.wait()
        with pytest.raises(ConnectionRefusedError):
            await server.dial()
        engine.recovered.set()
        await until_open(server)
        assert (await server.ask(request("GET", "/readyz"))).status == 200


async def test_a_stop_during_recovery_opens_nothing_and_closes_what_was_opened() -> None:
    engine = SlowEngine()
    async with listening(engine) as (server, task):
        async with asyncio.timeout(WAIT):
            await engine.recovering.wait()
            server.listener.stop()
            await task
        assert engine.story == ["close"]
        assert not server.listener.started


async def test_a_recovery_that_fails_is_told_and_leaves_nothing_open() -> None:
    class Broken(ScriptedEngine):
        async def start(self) -> None:
            raise RuntimeError("the file is not a database")

    engine = Broken()
    async with listening(engine) as (_, task):
        with pytest.raises(RuntimeError, match="not a database"):
            async with asyncio.timeout(WAIT):
                await task
        assert engine.story == ["close"]


@pytest.mark.proves("S-10-3")
async def test_while_draining_reads_are_served_and_readiness_is_withdrawn() -> None:
    engine = SlowEngine()
    engine.recovered.set()
    async with listening(engine) as (server, task):
        await until_open(server)
        line = await streaming(server)
        server.listener.stop()
        async with asyncio.timeout(WAIT):
            await engine.draining.wait()
        assert (await server.ask(request("GET", "/readyz"))).json() == {"status": "stopping"}
        assert (await server.ask(request("GET", "/tasks/x"))).status == 200
        engine.drained.set()
        assert await line.chunk() == b""  # the stream's body ends properly
        assert await line.rest() == b""
        async with asyncio.timeout(WAIT):
            await task
        assert engine.story == ["start", "drain", "close"]


async def test_a_second_stop_does_not_wait_for_turns() -> None:
    engine = SlowEngine()
    engine.recovered.set()
    async with listening(engine) as (server, task):
        await until_open(server)
        await streaming(server)
        server.listener.stop()
        async with asyncio.timeout(WAIT):
            await engine.draining.wait()
            server.listener.stop()
            await task
        assert engine.story == ["start", "close"]


async def test_requests_that_do_not_end_are_ended_after_their_time() -> None:
    engine = ScriptedEngine()
    engine.blocks = True
    async with listening(engine, close_seconds=0.1) as (server, task):
        await until_open(server)
        line = await server.dial()
        line.write(SEND)
        async with asyncio.timeout(WAIT):
            await engine.blocked.wait()
            server.listener.stop()
            await task
        assert engine.cancelled.is_set()
        assert await line.rest() == b""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_stops_the_server_in_good_order(number: signal.Signals) -> None:
    engine = ScriptedEngine()
    async with listening(engine) as (server, task):
        await until_open(server)
        os.kill(os.getpid(), number)
        async with asyncio.timeout(WAIT):
            await task
        assert engine.story == ["start", "drain", "close"]


async def test_idle_connections_do_not_hold_a_stop_up() -> None:
    async with listening(ScriptedEngine(), close_seconds=30) as (server, task):
        await until_open(server)
        line = await server.dial()
        line.write(SEND)
        await line.answer()
        server.listener.stop()
        async with asyncio.timeout(WAIT):
            await task
        assert await line.rest() == b""


async def test_a_taken_port_is_told_before_anything_is_started() -> None:
    engine = ScriptedEngine()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        listener = Listener(site(engine), engine, port=taken.getsockname()[1])
        with pytest.raises(CannotListen, match="somebody else is listening there"):
            await listener.listen()
    assert engine.story == []


@pytest.mark.parametrize("host", ["no.such.host.invalid", "203.0.113.7"])
def test_an_address_that_is_not_ours_is_told(host: str) -> None:
    with pytest.raises(CannotListen, match="address"):
        bind(host, 0)


def test_every_address_of_a_name_gets_the_same_port() -> None:
    bound = bind("localhost", 0)
    try:
        assert len({each.getsockname()[1] for each in bound}) == 1
    finally:
        for each in bound:
            each.close()


@pytest.mark.parametrize(("host", "shown"), [("0.0.0.0", "127.0.0.1"), ("", "127.0.0.1"), ("localhost", "localhost")])
async def test_the_address_shown_is_one_that_can_be_called(host: str, shown: str) -> None:
    engine = ScriptedEngine()
    opened: list[str] = []
    listener = Listener(site(engine), engine, host=host, port=0)

    def stop(url: str) -> None:
        opened.append(url)
        listener.stop()

    async with asyncio.timeout(WAIT):
        await listener.listen(stop)
    assert opened == [f"http://{shown}:{listener.url.rpartition(':')[2]}"]


@pytest.mark.proves("S-10-2")
async def test_the_certificate_of_a_client_is_in_the_scope() -> None:
    server_side = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server_side.load_cert_chain(KEYS / "server.pem")
    server_side.load_verify_locations(KEYS / "ca.pem")
    server_side.verify_mode = ssl.CERT_OPTIONAL
    seen: list[Any] = []

    def spy(inner: Any) -> Any:
        async def app(scope: Any, receive: Any, send: Any) -> None:
            seen.append((scope["scheme"], scope["extensions"]["tls"]))
            await inner(scope, receive, send)

        return app

    async with running(wrap=spy, tls=server_side) as server:
        assert server.listener.url.startswith("https://")
        for certificate in (None, KEYS / "client.pem"):
            client = ssl.create_default_context(cafile=str(KEYS / "ca.pem"))
            if certificate is not None:
                client.load_cert_chain(certificate)
            line = await server.dial(client)
            line.write(SEND)
            assert (await line.answer()).status == 200
    (scheme, nobody), (_, somebody) = seen
    assert scheme == "https"
    assert nobody["client_cert_chain"] == ()
    own = ssl.PEM_cert_to_DER_cert(somebody["client_cert_chain"][0])
    text = (KEYS / "client.pem").read_text()
    assert own == ssl.PEM_cert_to_DER_cert(text[: text.index("-----BEGIN PRIVATE")])
    assert somebody["tls_version"].startswith("TLS")
