"""Connections: deadlines, sizes, broken HTTP, pipelining, and clients that leave."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from dragoman.gateway.settings import GatewaySettings
from dragoman.server.asgi import Site
from dragoman.server.connection import Watch
from dragoman.server.settings import ServerSettings
from tests.server.rig import SEND, STREAM, WAIT, Batch, Line, ScriptedEngine, request, rpc, running, settled, working

pytestmark = pytest.mark.anyio

HASTY = ServerSettings(head_seconds=0.2, body_seconds=0.2, idle_seconds=0.2, head_limit=4_096)


@pytest.fixture(params=["asyncio", "uvloop"])
def anyio_backend(request: pytest.FixtureRequest) -> tuple[str, dict[str, Any]]:
    """Transports differ between the loops in what they promise at the end of a connection."""
    return "asyncio", {"use_uvloop": request.param == "uvloop"}


async def drip(line: Line, data: bytes, until: asyncio.Task[Any]) -> None:
    """Write byte by byte for as long as the other side has not answered."""
    for at in range(len(data)):
        line.write(data[at : at + 1])
        if (await asyncio.wait((until,), timeout=0.02))[0]:
            return


@pytest.mark.proves("S-10-1")
async def test_headers_that_drip_in_are_cut_off_at_the_deadline_however_lively_they_drip() -> None:
    async with running(settings=HASTY) as server:
        line = await server.dial()
        answering = asyncio.create_task(line.answer())
        await drip(line, SEND[:-4] + b"x" * 400, answering)
        answer = await answering
        assert answer.status == 408
        assert await line.rest() == b""
        assert server.engine.calls == []


async def test_a_connection_that_says_nothing_is_closed() -> None:
    async with running(settings=HASTY) as server:
        line = await server.dial()
        assert await line.rest() == b""


async def test_a_body_that_stops_in_the_middle_is_answered_and_closed() -> None:
    async with running(settings=HASTY) as server:
        line = await server.dial()
        line.write(SEND[:-10])
        assert (await line.answer()).status == 408
        assert await line.rest() == b""
        assert server.engine.calls == []


async def test_a_connection_at_rest_is_closed_after_its_time() -> None:
    async with running(settings=HASTY) as server:
        line = await server.dial()
        line.write(SEND)
        assert (await line.answer()).status == 200
        assert await line.rest() == b""


async def test_a_stream_at_rest_is_not_closed_by_any_deadline() -> None:
    async with running(settings=HASTY) as server:
        line = await server.dial()
        line.write(STREAM)
        await line.head()
        await line.chunk()
        other = await server.dial()
        assert await other.rest() == b""  # by now every deadline has passed
        server.engine.follows[0].put(Batch([working(2)]))
        assert b"working" in (await line.chunk()).lower()


@pytest.mark.proves("S-10-1")
@pytest.mark.parametrize(
    "head",
    [
        pytest.param(b"GET / HTTP/1.1\r\nhost: 127.0.0.1\r\nx: " + b"y" * 5_000 + b"\r\n\r\n", id="one huge line"),
        pytest.param(b"GET /" + b"y" * 5_000 + b" HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n", id="a huge target"),
        pytest.param(b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 3_000 + b"\r\n", id="many lines"),
        pytest.param(b"GET / HTTP/1.1\r\nx: " + b"y" * 5_000, id="never finished"),
    ],
)
async def test_headers_over_the_limit_are_refused(head: bytes) -> None:
    async with running(settings=HASTY) as server:
        line = await server.dial()
        line.write(head)
        answer = await line.answer()
        assert answer.status == 431
        assert answer.headers["connection"] == "close"
        assert await line.rest() == b""


async def test_headers_over_the_limit_are_refused_also_when_they_come_piece_by_piece() -> None:
    async with running(settings=HASTY) as server:
        line = await server.dial()
        answering = asyncio.create_task(line.answer())
        line.write(b"GET / HTTP/1.1\r\n")
        while not answering.done():
            line.write(b"x-fill: " + b"y" * 500 + b"\r\n")
            await asyncio.wait((answering,), timeout=0.01)
        assert answering.result().status == 431


@pytest.mark.parametrize(
    "garbage",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",  # somebody speaks TLS
        b"SSH-2.0-OpenSSH_9.6\r\n",
        b"GET / HTTP/1.1\r\nhost 127.0.0.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nhost: 127.0.0.1\r\nx: a\nb\r\n\r\n",
        b"POST / HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab",
        b"POST / HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 3\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
        b"POST / HTTP/1.1\r\nhost: 127.0.0.1\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
        b"GET /\xff HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n",
        b"CONNECT example.com:443 HTTP/1.1\r\nhost: example.com\r\n\r\n",
    ],
)
async def test_what_is_no_http_is_refused_and_leaves_nothing_behind(garbage: bytes) -> None:
    async with running() as server:
        line = await server.dial()
        line.write(garbage)
        said = await line.rest() if garbage.startswith(b"CONNECT") else (await line.answer()).body
        assert b"Traceback" not in said
        assert server.engine.calls == []
        assert (await server.ask(SEND)).status == 200


async def test_garbage_after_a_request_does_not_cost_the_request_its_answer() -> None:
    async with running() as server:
        line = await server.dial()
        line.write(SEND, b"\x00\x01garbage\r\n\r\n")
        assert (await line.answer()).json()["result"]["task"]
        assert await line.rest() == b""


async def test_a_broken_body_behind_other_requests_costs_only_itself() -> None:
    async with running() as server:
        broken = request(body=b"", headers={"Transfer-Encoding": "chunked", "Content-Type": "application/json"})
        line = await server.dial()
        line.write(SEND, SEND, broken, b"zz\r\n")
        assert (await line.answer()).status == 200
        assert (await line.answer()).status == 200
        assert await line.rest() == b""
        assert len(server.engine.calls) == 2


async def test_pipelined_requests_are_answered_in_order() -> None:
    async with running() as server:
        line = await server.dial()
        line.write(*[request(body=rpc(request_id=number)) for number in range(60)])
        ids = [(await line.answer()).json()["id"] for _ in range(60)]
        assert ids == list(range(60))


async def test_a_request_pipelined_behind_a_waiting_one_waits() -> None:
    engine = ScriptedEngine()
    engine.blocks = True
    async with running(engine) as server:
        line = await server.dial()
        line.write(request(body=rpc(request_id="slow")), request("GET", "/healthz"))
        async with asyncio.timeout(WAIT):
            await engine.blocked.wait()
        engine.gate.set()
        assert (await line.answer()).json()["id"] == "slow"
        assert (await line.answer()).json() == {"status": "ok"}


async def test_a_chunked_body_is_read_whole_and_its_trailers_are_no_headers() -> None:
    body = rpc(request_id="chunked")
    pieces = [body[at : at + 7] for at in range(0, len(body), 7)]
    head = request(headers={"Transfer-Encoding": "chunked", "Content-Type": "application/json"})
    chunks = b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces)
    async with running() as server:
        # The trailer would be refused as a foreign page, if it counted.
        answer = await server.ask(head + chunks + b"0\r\nOrigin: https://evil.example\r\n\r\n")
        assert answer.json()["id"] == "chunked"


async def test_a_client_may_wait_for_permission_to_send_its_body() -> None:
    body = rpc(request_id="asked")
    async with running() as server:
        line = await server.dial()
        line.write(request(body=body, headers={"Expect": "100-continue"})[: -len(body)])
        assert (await line.head())[0] == 100
        line.write(body)
        assert (await line.answer()).json()["id"] == "asked"


async def test_an_http_1_0_client_gets_answers_it_understands() -> None:
    engine = ScriptedEngine()
    async with running(engine) as server:
        answer = await server.ask(request(body=rpc(), version="1.0"))
        assert answer.headers["content-length"] == str(len(answer.body))
        assert answer.headers["connection"] == "close"
        line = await server.dial()
        line.write(request(body=rpc("SendStreamingMessage"), version="1.0"))
        async with asyncio.timeout(WAIT):
            await engine.followed.wait()
        engine.follows[-1].put(Batch([settled(4)], closing=True, ended=True))
        stream = await line.answer()
        assert "transfer-encoding" not in stream.headers
        assert stream.body.endswith(b"\n\n")


H2C = {"Connection": "Upgrade, HTTP2-Settings", "Upgrade": "h2c", "HTTP2-Settings": "AAMAAABkAAQAAP__"}


async def test_an_upgrade_nobody_speaks_is_answered_as_if_it_had_not_been_asked() -> None:
    async with running() as server:
        line = await server.dial()
        for _ in range(2):
            line.write(request("GET", "/healthz", headers={"Connection": "Upgrade", "Upgrade": "websocket"}))
            assert (await line.answer()).status == 200
        line.write(request("GET", "/healthz"))
        assert (await line.answer()).status == 200


@pytest.mark.parametrize("size", [1, 7, 100_000], ids=["drops", "pieces", "whole"])
async def test_a_body_behind_a_request_for_an_upgrade_is_read(size: int) -> None:
    """Clients that prefer HTTP/2, as Java's does, ask for it with every first request, whatever its method."""
    body = rpc(request_id=1)
    framed = b"%x\r\n%b\r\n%x\r\n%b\r\n0\r\n\r\n" % (10, body[:10], len(body) - 10, body[10:])
    chunked = {"Transfer-Encoding": "chunked", "Content-Type": "application/json"}
    told = (
        request(body=body, headers=H2C)
        + request(headers=H2C | chunked)
        + framed
        + request("GET", "/healthz", headers=H2C)
        + request(body=rpc(request_id=2))
    )
    async with running() as server:
        line = await server.dial()
        for at in range(0, len(told), size):
            line.write(told[at : at + size])
            await line.drain()
        for id in (1, 1):
            answer = await line.answer()
            assert answer.json()["id"] == id and answer.json()["result"]["task"]
        assert (await line.answer()).json() == {"status": "ok"}
        assert (await line.answer()).json()["id"] == 2
        assert len(server.engine.calls) == 3


async def test_a_request_for_an_upgrade_gives_no_second_reading_of_its_body() -> None:
    """What follows the body is the next request, and the body never is one."""
    inner = request("GET", "/healthz")
    async with running() as server:
        line = await server.dial()
        line.write(request(body=inner, headers=H2C), request("GET", "/readyz", headers={"Connection": "close"}))
        assert (await line.answer()).json()["error"]["code"] == -32700
        assert (await line.answer()).status == 200
        assert await line.rest() == b""


@pytest.mark.parametrize("encoding", ["gzip, chunked", "gzip", "chunked, identity", "identity"])
async def test_a_body_in_an_encoding_nobody_takes_off_is_not_taken_for_plain(encoding: str) -> None:
    async with running() as server:
        line = await server.dial()
        line.write(request(headers={"Transfer-Encoding": encoding}), b"0\r\n\r\n")
        assert (await line.answer()).status in (400, 501)
        assert await line.rest() == b""
        assert server.engine.calls == []


async def test_the_answer_to_head_has_the_length_but_not_the_body() -> None:
    async with running() as server:
        line = await server.dial()
        line.write(request("HEAD", "/.well-known/agent-card.json"), request("GET", "/.well-known/agent-card.json"))
        head, get = await line.answer(bodiless=True), await line.answer()
        assert head.headers["content-length"] == str(len(get.body))
        assert head.headers["etag"] == get.headers["etag"]


@pytest.mark.proves("S-4-17")
async def test_a_client_that_leaves_frees_its_waiting_send_at_once() -> None:
    engine = ScriptedEngine()
    engine.blocks = True
    async with running(engine) as server:
        line = await server.dial()
        line.write(SEND)
        async with asyncio.timeout(WAIT):
            await engine.blocked.wait()
            line.hang_up()
            await engine.cancelled.wait()


@pytest.mark.parametrize("behind", [b"", SEND, SEND * 30])
async def test_a_client_that_leaves_an_idle_stream_frees_its_follower_at_once(behind: bytes) -> None:
    engine = ScriptedEngine()
    async with running(engine, settings=ServerSettings(keepalive_seconds=0.1)) as server:
        line = await server.dial()
        line.write(STREAM, behind)
        await line.head()
        await line.chunk()
        line.hang_up()
        async with asyncio.timeout(WAIT):
            await engine.follows[0].closed.wait()
        assert server.listener._site._gateway.quota.streams == 0


async def test_a_client_that_leaves_before_its_body_is_whole_leaves_nothing_behind() -> None:
    async with running() as server:
        line = await server.dial()
        line.write(SEND[:-5])
        await line.drain()
        line.hang_up()
        assert (await server.ask(SEND)).status == 200
        assert len(server.engine.calls) == 1


@pytest.mark.proves("D-2-9")
async def test_a_client_that_does_not_read_holds_its_stream_back_and_nobody_else() -> None:
    engine = ScriptedEngine()
    async with running(engine) as server:
        line = await server.dial()
        line.write(STREAM)
        await line.head()
        follow = engine.follows[0]
        for seq in range(2, 40):
            entry = working(seq)
            entry.frames = {"1.0": b"x" * 1_000_000}
            follow.put(Batch([entry]))
        async with asyncio.timeout(WAIT):
            assert (await server.ask(SEND)).status == 200
        assert follow._batches  # most of it still waits in the log
        total = 0
        while total < 38_000_000:
            total += len(await line.chunk())
        assert not follow._batches


def broken(how: str) -> Callable[[Site], Any]:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        await receive()
        if how == "raises":
            raise RuntimeError("the secret of /etc/passwd")
        if how == "says nothing":
            return
        value = b"a\r\nset-cookie: x=1" if how == "splits a header" else b"a"
        await send({"type": "http.response.start", "status": 200, "headers": [(b"x", value)]})
        if how == "raises late":
            await send({"type": "http.response.body", "body": b"some", "more_body": True})
            raise RuntimeError("the secret of /etc/passwd")
        await send({"type": "http.response.body", "body": b""})

    return lambda site: app


@pytest.mark.parametrize("how", ["raises", "says nothing", "splits a header"])
async def test_an_application_that_breaks_is_answered_for_in_neutral_words(how: str) -> None:
    async with running(wrap=broken(how)) as server:
        answer = await server.ask(SEND)
        assert answer.status == 500
        assert b"secret" not in answer.body
        assert "set-cookie" not in answer.headers


async def test_an_application_that_breaks_in_the_middle_ends_the_connection_and_never_the_body() -> None:
    async with running(wrap=broken("raises late")) as server:
        line = await server.dial()
        line.write(SEND)
        await line.head()
        assert await line.rest() == b"4\r\nsome\r\n"


@pytest.mark.proves("W-165")
async def test_names_of_headers_are_matched_whatever_their_case() -> None:
    async with running() as server:
        refused = await server.ask(request(body=rpc(), headers={"a2A-vErSiOn": "9.9"}))
        assert refused.json()["error"]["code"] == -32009
        answered = await server.ask(request(body=rpc(), headers={"IDEMPOTENCY-KEY": "k", "a2a-VERSION": "1.0"}))
        assert answered.status == 200
        ((_, call, _),) = server.engine.calls
        assert call.idempotency_key == "k"


# --- how many


async def test_one_address_has_only_so_many_connections_and_gets_them_back() -> None:
    async with running(settings=ServerSettings(connections_per_address=2)) as server:
        first, second = await server.dial(), await server.dial()
        for line in (first, second):
            line.write(SEND)
            assert (await line.answer()).status == 200
        third = await server.dial()
        answer = await third.answer()
        assert (answer.status, answer.headers["retry-after"], answer.headers["connection"]) == (429, "1", "close")
        assert b"Too many connections" in answer.body
        assert await third.rest() == b""
        second.write(SEND)
        assert (await second.answer()).status == 200
        first.hang_up()
        async with asyncio.timeout(WAIT):
            while (await server.ask(SEND)).status != 200:
                await asyncio.sleep(0.005)


async def test_many_callers_come_from_a_proxy() -> None:
    gateway = GatewaySettings(proxies=("127.0.0.1",))
    async with running(settings=ServerSettings(connections_per_address=2), gateway=gateway) as server:
        lines = [await server.dial() for _ in range(5)]
        for line in lines:
            line.write(SEND)
            assert (await line.answer()).status == 200


def test_without_a_number_nobody_takes_all_files_and_this_machine_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman.server.connection.open_files", lambda: 200)
    watch = Watch(ServerSettings())
    assert all(watch.admit("192.0.2.1") for _ in range(100))
    assert not watch.admit("192.0.2.1")
    assert watch.admit("192.0.2.2") and watch.admit("")
    assert all(watch.admit("127.0.0.1") for _ in range(300))
    for _ in range(100):
        watch.leave("@192.0.2.1")
    assert "@192.0.2.1" not in watch._from
    assert watch.admit("192.0.2.1")
