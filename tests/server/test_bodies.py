"""Bodies: how large, how told, of which type; refused in the caller's own shape and without filling memory."""

import asyncio
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest

from dragoman.gateway.settings import GatewaySettings
from dragoman.server.settings import ServerSettings
from tests.server.rig import SEND, WAIT, Answer, Line, Running, ScriptedEngine, request, rpc, running

pytestmark = pytest.mark.anyio

LIMIT = 64 * 1024
SMALL = ServerSettings(body_limit=LIMIT)
FORM = {"Content-Type": "application/x-www-form-urlencoded"}


def announced(size: int, target: str = "/", **headers: str) -> bytes:
    return request(target=target, headers={"Content-Type": "application/json", "Content-Length": str(size)} | headers)


async def shed(line: Line, mebibytes: int) -> Answer:
    """Keep sending chunks, as a client does that does not look up, then read."""
    piece = b"x" * (1 << 20)
    for _ in range(mebibytes):
        line.write(b"%x\r\n" % len(piece), piece, b"\r\n")
        try:
            await line.drain()
        except ConnectionError:
            break
    return await line.answer()


@pytest.mark.proves("W-207")
@pytest.mark.parametrize(
    ("target", "version", "check"),
    [
        ("/", "1.0", lambda told: told["error"]["code"] == -32600 and told["id"] is None),
        ("/", "0.3", lambda told: told["error"]["code"] == -32600 and "data" not in told["error"]),
        ("/message:send", "1.0", lambda told: told["error"]["code"] == 413),
        ("/v1/message:send", "0.3", lambda told: told["type"] == "InvalidRequestError"),
        ("/acme/message:send", "1.0", lambda told: told["error"]["status"] == "RESOURCE_EXHAUSTED"),
    ],
)
async def test_a_body_announced_too_large_is_refused_in_the_callers_shape(
    target: str, version: str, check: Any
) -> None:
    async with running(settings=SMALL) as server:
        answer = await server.ask(announced(LIMIT + 1, target, **{"A2A-Version": version}))
        assert answer.status == 413
        assert check(answer.json())
        assert server.engine.calls == []


async def test_a_body_of_just_the_limit_is_read() -> None:
    body = rpc(request_id="fits")
    async with running(settings=SMALL) as server:
        answer = await server.ask(request(body=body + b" " * (LIMIT - len(body))))
        assert answer.json()["id"] == "fits"


async def test_permission_to_send_is_not_given_for_a_body_that_is_too_large() -> None:
    async with running(settings=SMALL) as server:
        answer = await server.ask(announced(LIMIT + 1, Expect="100-continue"))
        assert answer.status == 413


async def test_a_chunked_body_is_counted_as_it_comes_and_memory_stays_flat() -> None:
    async with running(settings=SMALL) as server:
        line = await server.dial()
        line.write(request(headers={"Content-Type": "application/json", "Transfer-Encoding": "chunked"}))
        tracemalloc.start()
        try:
            answer = await shed(line, 32)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert answer.status == 413
        assert peak < 16 << 20  # the test's own megabytes on their way included
        assert server.engine.calls == []


async def test_a_client_that_sends_on_after_a_refusal_can_still_read_it() -> None:
    async with running(settings=SMALL) as server:
        line = await server.dial()
        line.write(announced(4 << 20))
        line.write(b"x" * (4 << 20))
        assert (await line.answer()).status == 413
        assert await line.rest() == b""


@pytest.mark.parametrize("length", ["-1", "1e3", "0x10", "9" * 30])
async def test_a_length_that_is_none_is_refused(length: str) -> None:
    async with running() as server:
        line = await server.dial()
        line.write(request(headers={"Content-Type": "application/json", "Content-Length": length}))
        assert (await line.answer()).status in (400, 413)


@pytest.mark.proves("W-207", "S-9-3")
@pytest.mark.parametrize("target", ["/", "/message:send", "/message:stream", "/v1/message:send"])
@pytest.mark.parametrize("headers", [FORM, {"Content-Type": "text/plain"}, {"Content-Type": ""}])
async def test_a_body_that_does_not_call_itself_json_is_refused(target: str, headers: dict[str, str]) -> None:
    """What a page may send without asking first is never read."""
    async with running() as server:
        answer = await server.ask(request(target=target, body=rpc(), headers=headers))
        told = answer.json()
        assert "error" in told or told["type"] == "ContentTypeNotSupportedError"
        assert server.engine.calls == []


async def refused(server: Running, data: bytes) -> Answer:
    answer = await server.ask(data)
    assert answer.status >= 400 or "error" in answer.json()
    assert b"Traceback" not in answer.body
    assert b"site-packages" not in answer.body
    return answer


@pytest.mark.proves("W-207")
@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"null",
        b"[]",
        b"\xff\xfe",
        b"\x00",
        b'{"jsonrpc":"2.0","id":{"$ne":1},"method":"SendMessage"}',
        b"[" * 100_000,
        rpc("NoSuchMethod"),
        rpc("SendMessage", message={"messageId": "m\r\nX: y", "role": "ROLE_USER", "parts": [{"text": "a"}]}),
        rpc("GetTask", id="a\r\nb"),
    ],
)
async def test_what_is_no_request_leaves_no_task_and_no_trace_in_the_reply(body: bytes) -> None:
    async with running() as server:
        await refused(server, request(body=body, headers={"Content-Type": "application/json"}))
        assert server.engine.calls == []


async def test_a_request_id_with_line_breaks_comes_back_as_json_and_not_as_lines() -> None:
    engine = ScriptedEngine()
    async with running(engine) as server:
        line = await server.dial()
        line.write(request(body=rpc("SendStreamingMessage", request_id="a\r\n\r\ndata: b")))
        await line.head()
        frame = await line.chunk()
        assert frame.count(b"data:") == 2  # the field's name, and the id's text inside its value
        assert frame.count(b"\n\n") == 1
        assert b"\r" not in frame


async def test_the_body_of_a_read_is_ignored() -> None:
    async with running() as server:
        line = await server.dial()
        line.write(request("GET", "/tasks/x", body=b"<xml/>", headers=FORM), SEND)
        assert (await line.answer()).status == 200
        assert (await line.answer()).status == 200


async def test_an_answer_while_others_upload_is_quick() -> None:
    """A slow upload holds nobody up."""
    async with running() as server:
        slow = [await server.dial() for _ in range(20)]
        for line in slow:
            line.write(announced(1_000), b"{")
        assert (await server.ask(SEND)).status == 200
        await asyncio.sleep(0)
        assert len(server.engine.calls) == 1


@pytest.mark.parametrize(
    "data",
    [
        request("GET", "/tasks/a%0d%0aset-cookie:%20x=1"),
        request("GET", "/a%0d%0aset-cookie:%20x=1/tasks"),
        request("GET", "/tasks/%00"),
        request("GET", "/tasks/%ff"),
        request("GET", "/agents/a%0d%0aset-cookie:%20x=1/"),
        request("POST", "/tasks/a%0aset-cookie:%20x=1:cancel"),
        request(body=rpc(), headers={"A2A-Version": "1.0\tset-cookie: x=1"}),
        request(body=rpc(), headers={"Idempotency-Key": "k\tset-cookie: x=1"}),
        request(target="/message:send?A2A-Version=%0d%0aset-cookie:x", body=rpc()),
    ],
)
async def test_line_breaks_in_paths_and_headers_break_no_line_of_the_reply(data: bytes) -> None:
    async with running() as server:
        answer = await refused(server, data)
        assert "set-cookie" not in answer.headers
        assert server.engine.calls == []


@pytest.mark.parametrize("line", [b"x: a\r\n b", b"x : a", b"x: a\rb", b": a", b"x: a\x00b"])
async def test_header_lines_that_could_be_read_in_two_ways_are_refused(line: bytes) -> None:
    async with running() as server:
        answer = await server.ask(
            SEND[:-4].replace(b"\r\nContent-Type", b"\r\n" + line + b"\r\nContent-Type", 1) + SEND[-4:]
        )
        assert answer.status == 400
        assert server.engine.calls == []


# --- room for large ones


def large(size: int = 150_000) -> bytes:
    return request(body=rpc(text="x" * size))


async def test_large_bodies_of_one_caller_are_read_as_far_as_there_is_room_and_others_are_not_behind_them() -> None:
    proxied = {"X-Forwarded-For": "192.0.2.1"}
    data = request(body=rpc(text="x" * 150_000), headers=proxied)
    settings = GatewaySettings(uploads_per_caller=200_000, proxies=("127.0.0.1",), hosts=("*",))
    async with running(gateway=settings) as server:
        uploads = server.listener._site._gateway.uploads
        lines = [await server.dial() for _ in range(3)]
        for line in lines:
            line.write(data[:100_000])
            await line.drain()
        await until(lambda: uploads.total > 150_000 and bool(uploads._waiting))
        assert uploads.total < 200_000  # one is read, and the others are left where they are
        other = request(body=rpc(text="x" * 150_000), headers={"X-Forwarded-For": "192.0.2.2"})
        assert (await server.ask(other)).status == 200
        for line in lines:
            line.write(data[100_000:])
        assert [(await line.answer()).status for line in lines] == [200, 200, 200]
        assert (uploads.total, uploads._mine) == (0, {})


async def test_who_sends_too_many_large_ones_at_once_is_told_so() -> None:
    async with running(gateway=GatewaySettings(uploads_per_caller=200_000, rate_wait=0.05)) as server:
        stuck = await server.dial()
        stuck.write(large()[:100_000])
        await until(lambda: server.listener._site._gateway.uploads.total > 0)
        refused = await server.ask(large())
        assert refused.status == 429
        assert "one after the other" in refused.json()["error"]["message"]
        assert (await server.ask(SEND)).status == 200  # small ones need no room


async def test_a_body_of_unknown_length_gets_room_once_it_is_large() -> None:
    async with running() as server:
        uploads = server.listener._site._gateway.uploads
        line = await server.dial()
        whole = rpc(text="x" * 150_000)
        line.write(request(headers={"Transfer-Encoding": "chunked", "Content-Type": "application/json"}))
        line.write(b"%x\r\n%b\r\n" % (100_000, whole[:100_000]))
        await until(lambda: uploads.total > 0)
        line.write(b"%x\r\n%b\r\n0\r\n\r\n" % (len(whole) - 100_000, whole[100_000:]))
        assert (await line.answer()).status == 200
        assert uploads.total == 0


async def test_a_client_that_leaves_in_the_middle_gives_its_room_back() -> None:
    async with running() as server:
        uploads = server.listener._site._gateway.uploads
        line = await server.dial()
        line.write(large()[:100_000])
        await until(lambda: uploads.total > 0)
        line.hang_up()
        await until(lambda: uploads.total == 0)


async def until(so: Callable[[], bool]) -> None:
    async with asyncio.timeout(WAIT):
        while not so():
            await asyncio.sleep(0.005)
