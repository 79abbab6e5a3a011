"""Requests and streams through an ASGI application without sockets."""

import asyncio
from contextlib import aclosing
from typing import Any

import pytest

from dragoman.testing.inprocess import App, Exchange, Lifespan
from dragoman.testing.sse import Frame, Frames

pytestmark = pytest.mark.anyio


def exchange(app: App, method: str = "GET", target: str = "/", body: bytes = b"", **headers: str) -> Exchange:
    return Exchange(app, method, target, headers, body)


async def test_a_request_carries_path_query_headers_and_body_and_brings_the_whole_answer_back() -> None:
    seen: dict[str, Any] = {}

    async def app(scope: Any, receive: Any, send: Any) -> None:
        seen.update(scope, body=(await receive())["body"])
        headers = [(b"X-One", b"1"), (b"x-one", b"2")]
        await send({"type": "http.response.start", "status": 201, "headers": headers})
        await send({"type": "http.response.body", "body": b'{"a":', "more_body": True})
        await send({"type": "http.response.body", "body": b"1}"})

    request = exchange(app, "POST", "/a%20b?c=d", b"{}", Accept="x/y")
    await request.open()
    response = await request.whole()
    await request.close()
    assert (seen["method"], seen["path"], seen["raw_path"], seen["query_string"]) == ("POST", "/a b", b"/a%20b", b"c=d")
    assert dict(seen["headers"]) == {b"host": b"127.0.0.1", b"accept": b"x/y", b"content-length": b"2"}
    assert seen["body"] == b"{}"
    assert (response.status, response.headers, response.text, response.json()) == (
        201,
        {"x-one": "1, 2"},
        '{"a":1}',
        {"a": 1},
    )


async def test_a_stream_is_read_chunk_by_chunk_and_holds_the_application_back() -> None:
    sent: list[int] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for n in range(100):
            await send({"type": "http.response.body", "body": b"%d" % n, "more_body": True})
            sent.append(n)
        await send({"type": "http.response.body", "body": b""})

    request = exchange(app)
    await request.open()
    async with aclosing(request.chunks()) as chunks:
        assert await anext(chunks) == b"0"
        for _ in range(50):
            await asyncio.sleep(0)
        assert len(sent) <= 3
        assert len([chunk async for chunk in chunks]) == 99
    await request.close()


async def test_leaving_early_is_a_disconnect_that_the_application_sees() -> None:
    gone = asyncio.Event()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await receive()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"a", "more_body": True})
        await send({"type": "http.response.body", "body": b"b", "more_body": True})
        assert (await receive())["type"] == "http.disconnect"
        gone.set()

    request = exchange(app)
    await request.open()
    await request.close()
    assert gone.is_set()


async def test_what_the_application_raises_reaches_the_reader() -> None:
    async def early(scope: Any, receive: Any, send: Any) -> None:
        raise LookupError("early")

    async def silent(scope: Any, receive: Any, send: Any) -> None: ...

    async def late(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        raise LookupError("late")

    with pytest.raises(LookupError, match="early"):
        await exchange(early).open()
    with pytest.raises(RuntimeError, match="without an answer"):
        await exchange(silent).open()
    request = exchange(late)
    await request.open()
    with pytest.raises(LookupError, match="late"):
        await request.whole()
    await request.close()


async def test_a_lifespan_starts_and_stops_the_application_and_says_when_it_refuses() -> None:
    log: list[str] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        for _ in range(2):
            kind = (await receive())["type"]
            log.append(kind)
            await send({"type": f"{kind}.complete"})

    async def refusing(scope: Any, receive: Any, send: Any) -> None:
        await receive()
        await send({"type": "lifespan.startup.failed", "message": "the disk is gone"})

    async def leaving(scope: Any, receive: Any, send: Any) -> None: ...

    async def broken(scope: Any, receive: Any, send: Any) -> None:
        raise LookupError("at start")

    lifespan = Lifespan(app)
    await lifespan.start()
    await lifespan.stop()
    assert log == ["lifespan.startup", "lifespan.shutdown"]
    with pytest.raises(RuntimeError, match="the disk is gone"):
        await Lifespan(refusing).start()
    with pytest.raises(RuntimeError, match="left during startup"):
        await Lifespan(leaving).start()
    with pytest.raises(LookupError, match="at start"):
        await Lifespan(broken).start()


def test_frames_come_out_whole_however_the_bytes_were_cut() -> None:
    stream = b': keepalive\n\nid: u.1\ndata: {"a":1}\n\nevent: error\r\ndata:b\r\ndata: c\r\n\r\ndata: half'
    expected = [Frame("u.1", "", '{"a":1}'), Frame("", "error", "b\nc")]
    for cut in range(1, len(stream)):
        frames = Frames()
        assert frames.feed(stream[:cut]) + frames.feed(stream[cut:]) == expected, cut
