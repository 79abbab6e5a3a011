"""Answers that nobody reads: how much memory they may take, and for how long."""

import asyncio
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from dragoman.gateway.settings import GatewaySettings
from dragoman.model.messages import Artifact, Part
from dragoman.model.operations import Call
from dragoman.model.tasks import Task, TaskState, TaskStatus, View
from dragoman.server.settings import ServerSettings
from tests.server.rig import UID, Batch, Running, ScriptedEngine, request, running, working
from tests.server.test_connection import SEND, STREAM, rpc

pytestmark = pytest.mark.anyio

LARGE = 4_000_000
GET = request("GET", f"/tasks/{UID}")


def large(size: int = LARGE) -> View:
    artifact = Artifact(artifact_id="a", parts=(Part(text="x" * size),))
    return View(uid=UID, seq=3, task=Task(id=UID, status=TaskStatus(state=TaskState.COMPLETED), artifacts=(artifact,)))


class Generous(ScriptedEngine):
    """Has one task, and it is large."""

    def __init__(self) -> None:
        super().__init__()
        self.answer = large()

    async def get(self, call: Call, op: Any) -> View:
        self.calls.append(("get", call, op))
        return self.answer


@asynccontextmanager
async def reader(server: Running, data: bytes) -> AsyncGenerator[socket.socket]:
    """A client that asks, and reads when the test says so."""
    with socket.socket() as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        sock.setblocking(False)
        loop = asyncio.get_running_loop()
        await loop.sock_connect(sock, ("127.0.0.1", server.port))
        await loop.sock_sendall(sock, data)
        yield sock


async def read(sock: socket.socket, at_most: int = 1 << 30) -> int:
    """So many bytes, or until the other side ends."""
    count = 0
    try:
        async with asyncio.timeout(20):
            while count < at_most:
                data = await asyncio.get_running_loop().sock_recv(sock, min(1 << 16, at_most - count))
                if not data:
                    break
                count += len(data)
    except ConnectionResetError:
        pass
    return count


async def until(what: Any, seconds: float = 5) -> None:
    async with asyncio.timeout(seconds):
        while not what():
            await asyncio.sleep(0.01)


async def test_who_reads_nothing_of_an_answer_is_cut_off() -> None:
    engine = Generous()
    async with running(engine, settings=ServerSettings(stall_seconds=0.2)) as server:
        answers = server.listener._site._gateway.answers
        async with reader(server, GET) as sock:
            await until(lambda: answers.total > LARGE)
            await until(lambda: answers.total == 0)
            assert await read(sock) < LARGE
        await until(lambda: not server.listener.server_state.connections)


async def test_who_reads_slowly_gets_all_of_it() -> None:
    """What the kernel holds for a client counts too: it takes nothing for a long time, and then a lot."""
    engine = Generous()
    settings = ServerSettings(stall_seconds=0.3)
    async with running(engine, settings=settings) as server, reader(server, GET) as sock:
        total = 0
        loop = asyncio.get_running_loop()
        began = loop.time()
        while loop.time() < began + 1.5:  # much longer than anybody may do nothing
            total += await read(sock, 20_000)
            await asyncio.sleep(0.02)
        assert total < LARGE
        assert total + await read(sock, LARGE - total) == LARGE


async def test_a_stream_may_wait_for_its_reader() -> None:
    engine = ScriptedEngine()
    settings = ServerSettings(stall_seconds=0.1, idle_seconds=0.1)
    async with running(engine, settings=settings) as server, reader(server, STREAM) as sock:
        await until(lambda: bool(engine.follows))
        for seq in range(2, 12):
            entry = working(seq)
            entry.frames = {"1.0": b"x" * 1_000_000}
            engine.follows[0].put(Batch([entry], ended=seq == 11))
        await asyncio.sleep(0.6)
        assert await read(sock) > 10_000_000


async def test_a_connection_that_was_closed_is_not_kept_for_who_does_not_read_the_rest() -> None:
    """Small answers fit into the buffers, so that nobody notices; many of them do not."""
    engine = ScriptedEngine()
    settings = ServerSettings(stall_seconds=0.2, idle_seconds=0.2, head_seconds=0.2)
    async with running(engine, settings=settings) as server:
        engine.answer = large(50_000)
        async with reader(server, SEND * 200):
            await until(lambda: len(engine.calls) > 20)
            await until(lambda: not server.listener.server_state.connections)


async def test_large_answers_wait_for_those_that_were_not_read_and_small_ones_do_not() -> None:
    engine = Generous()
    limits = GatewaySettings(answers_per_caller=LARGE * 2 + 10_000, rate_wait=10)
    async with running(engine, gateway=limits) as server:
        answers = server.listener._site._gateway.answers
        async with reader(server, GET) as first, reader(server, GET), reader(server, GET) as third:
            await until(lambda: len(engine.calls) == 3 and bool(answers._waiting))
            assert answers.total < 2.1 * LARGE
            engine.answer = large(10)
            assert (await server.ask(GET)).status == 200
            engine.answer = large()
            assert await read(first, LARGE) >= LARGE
            assert await read(third, LARGE) >= LARGE
            assert len(engine.calls) == 5  # what waited was not kept, but read again
    assert answers.total == 0


async def test_who_reads_none_of_their_answers_is_told_to() -> None:
    engine = Generous()
    limits = GatewaySettings(answers_per_caller=LARGE, rate_wait=0.05)
    async with running(engine, gateway=limits) as server, reader(server, GET):
        await until(lambda: server.listener._site._gateway.answers.total > 0)
        refused = await server.ask(GET)
        assert refused.status == 429 and "You have not read your other answers yet" in refused.body.decode()
        sent = await server.ask(SEND)  # it was done, so its answer is due
        assert sent.status == 200 and len(sent.body) > LARGE


async def test_a_client_that_leaves_a_large_answer_gives_its_room_back() -> None:
    engine = Generous()
    async with running(engine) as server:
        answers = server.listener._site._gateway.answers
        async with reader(server, request(body=rpc(request_id=1))):
            await until(lambda: answers.total > 0)
        await until(lambda: (answers.total, answers._mine) == (0, {}))
