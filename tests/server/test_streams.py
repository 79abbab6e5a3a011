"""Streams: what their frames look like on the line, how they rest, and how they end."""

import asyncio

import pytest

from dragoman.gateway.settings import GatewaySettings
from dragoman.model.errors import StoreFull, TaskNotFound
from dragoman.model.messages import Message, Part, Role
from dragoman.server.settings import ServerSettings
from tests.server.rig import (
    SEND,
    STREAM,
    WAIT,
    Batch,
    Line,
    Running,
    ScriptedEngine,
    request,
    rpc,
    running,
    settled,
    working,
)

pytestmark = pytest.mark.anyio


async def opened(server: Running, data: bytes = STREAM) -> Line:
    line = await server.dial()
    line.write(data)
    status, headers = await line.head()
    assert status == 200
    assert headers["content-type"] == "text/event-stream"
    return line


async def test_a_stream_says_how_it_wants_to_be_carried() -> None:
    async with running() as server:
        line = await server.dial()
        line.write(STREAM)
        _, headers = await line.head()
        assert headers["cache-control"] == "no-cache"
        assert headers["x-accel-buffering"] == "no"
        assert "content-length" not in headers


async def test_all_frames_that_are_ready_leave_in_one_write() -> None:
    engine = ScriptedEngine()
    async with running(engine) as server:
        line = await opened(server)
        assert (await line.chunk()).startswith(b"id: ")
        engine.follows[0].put(Batch([working(seq) for seq in range(2, 102)]))
        assert (await line.chunk()).count(b"\n\n") == 100


@pytest.mark.proves("S-2-7")
async def test_an_idle_stream_is_kept_alive_by_comments_that_are_no_events() -> None:
    engine = ScriptedEngine()
    async with running(engine, settings=ServerSettings(keepalive_seconds=0.05)) as server:
        line = await opened(server)
        await line.chunk()
        for _ in range(3):
            comment = await line.chunk()
            assert comment.startswith(b":")
            assert comment.endswith(b"\n\n")
            assert b"id:" not in comment


async def test_a_stream_that_begins_after_a_cursor_sends_its_headers_at_once() -> None:
    engine = ScriptedEngine()
    engine.first = None
    async with running(engine) as server:
        line = await opened(server, request(body=rpc("SubscribeToTask", id="x"), headers={"Last-Event-ID": "u.1"}))
        assert engine.calls[0][1].cursor == "u.1"
        engine.follows[0].put(Batch([working(2)]))
        assert b".2\n" in await line.chunk()


async def test_a_finished_stream_ends_its_body_and_keeps_its_connection() -> None:
    engine = ScriptedEngine()
    async with running(engine) as server:
        line = await opened(server)
        await line.chunk()
        engine.follows[0].put(Batch([settled(4)], closing=True, ended=True))
        assert b"TASK_STATE_COMPLETED" in await line.chunk()
        assert await line.chunk() == b""
        assert engine.follows[0].closed.is_set()
        line.write(SEND)
        assert (await line.answer()).status == 200


@pytest.mark.proves("S-10-4")
async def test_a_drained_stream_ends_without_a_final_marker() -> None:
    engine = ScriptedEngine()
    async with running(engine) as server:
        line = await opened(
            server,
            request(
                body=rpc(
                    "message/stream",
                    message={
                        "kind": "message",
                        "messageId": "m",
                        "role": "user",
                        "parts": [{"kind": "text", "text": "hi"}],
                    },
                )
            ),
        )
        first = await line.chunk()
        engine.follows[0].put(Batch([working(2)]))
        seen = await line.chunk()
        engine.follows[0].put(Batch([], ended=True))
        assert await line.chunk() == b""
        assert b'"final":true' not in first + seen


async def test_a_direct_message_is_a_stream_of_one_frame() -> None:
    engine = ScriptedEngine()
    engine.answer = Message(message_id="a", role=Role.AGENT, parts=(Part(text="done"),))
    async with running(engine) as server:
        answer = await server.ask(STREAM)
        assert answer.headers["content-type"] == "text/event-stream"
        assert answer.body.count(b"data: ") == 1


async def test_what_fails_before_the_first_event_is_a_plain_error() -> None:
    engine = ScriptedEngine()
    engine.answer = TaskNotFound("x")
    async with running(engine) as server:
        answer = await server.ask(STREAM)
        assert answer.headers["content-type"] == "application/json"
        assert answer.json()["error"]["code"] == -32001
        rest = await server.ask(request(target="/message:stream", body=rpc()[rpc().index(b'{"message"') : -1]))
        assert rest.status == 404


async def test_what_fails_inside_a_stream_is_its_last_event() -> None:
    engine = ScriptedEngine()
    async with running(engine) as server:
        line = await opened(server)
        await line.chunk()
        engine.follows[0].put(StoreFull("disk /dev/sda1 is full"))
        frame = await line.chunk()
        assert frame.startswith(b"event: error\n")
        assert b"/dev/sda1" not in frame
        assert await line.chunk() == b""
        assert engine.follows[0].closed.is_set()


async def test_what_nobody_foresaw_inside_a_stream_is_told_in_neutral_words() -> None:
    engine = ScriptedEngine()
    async with running(engine) as server:
        line = await opened(server)
        await line.chunk()
        engine.follows[0].put(RuntimeError("SELECT * FROM secrets"))
        frame = await line.chunk()
        assert b"SELECT" not in frame
        assert b"Internal error" in frame


@pytest.mark.proves("D-2-7")
async def test_streams_have_a_limit_and_give_their_place_back() -> None:
    engine = ScriptedEngine()
    async with running(engine, gateway=GatewaySettings(streams=2)) as server:
        first = await opened(server)
        await opened(server)
        refused = await server.ask(STREAM)
        assert refused.status == 503  # nobody's fault in particular
        assert int(refused.headers["retry-after"]) > 0
        assert len(engine.calls) == 2  # a refused stream starts no turn
        first.hang_up()
        async with asyncio.timeout(WAIT):
            await engine.follows[0].closed.wait()
        await opened(server)


async def test_one_caller_cannot_take_all_streams() -> None:
    async with running(gateway=GatewaySettings(streams_per_caller=1)) as server:
        await opened(server)
        assert (await server.ask(STREAM)).status == 429


@pytest.mark.proves("D-2-8")
async def test_requests_at_once_have_a_limit_and_give_their_place_back() -> None:
    engine = ScriptedEngine()
    engine.blocks = True
    async with running(engine, gateway=GatewaySettings(requests=1)) as server:
        waiting = await server.dial()
        waiting.write(SEND)
        async with asyncio.timeout(WAIT):
            await engine.blocked.wait()
        assert (await server.ask(SEND)).status == 503
        engine.gate.set()
        assert (await waiting.answer()).status == 200
        assert (await server.ask(SEND)).status == 200


async def test_a_caller_with_too_many_requests_at_once_is_told_so_and_others_are_served() -> None:
    engine = ScriptedEngine()
    engine.blocks = True
    gateway = GatewaySettings(requests_per_caller=1, proxies=("127.0.0.1",), hosts=("*",))
    async with running(engine, gateway=gateway) as server:
        waiting = await server.dial()
        waiting.write(from_address("192.0.2.1"))
        async with asyncio.timeout(WAIT):
            await engine.blocked.wait()
        refused = await server.ask(from_address("192.0.2.1"))
        assert (refused.status, refused.headers["retry-after"]) == (429, "1")
        assert refused.json()["error"]["data"][1]["violations"][0]["subject"] == "limits.requests_per_caller"
        engine.blocks = False
        assert (await server.ask(from_address("192.0.2.2"))).status == 200
        engine.gate.set()
        assert (await waiting.answer()).status == 200
        assert (await server.ask(from_address("192.0.2.1"))).status == 200


@pytest.mark.proves("W-212", "D-2-8")
async def test_a_rate_turns_a_burst_into_a_trickle_and_refuses_what_is_too_much() -> None:
    gateway = GatewaySettings(rate_per_address=50, rate_burst=2, rate_wait=0.1, proxies=("127.0.0.1",), hosts=("*",))
    async with running(gateway=gateway) as server:
        began = asyncio.get_running_loop().time()
        flood = [asyncio.create_task(server.ask(from_address("192.0.2.1"))) for _ in range(20)]
        other = await server.ask(from_address("2001:db8::1"))
        assert other.status == 200
        assert not any(each.done() and each.result().status == 429 for each in flood)
        answers = await asyncio.gather(*flood)
        took = asyncio.get_running_loop().time() - began
        good = [each for each in answers if each.status == 200]
        refused = [each for each in answers if each.status == 429]
        assert len(good) + len(refused) == 20
        # Two at once, and those whose turn came within the tenth of a second that they may be held back.
        assert 5 <= len(good) <= 8
        assert took >= 0.08
        for each in refused:
            assert each.headers["retry-after"] == "1"
            assert "50 requests per second" in each.json()["error"]["message"]


async def test_pages_count_too_and_probes_do_not() -> None:
    gateway = GatewaySettings(rate_per_address=1, rate_burst=1, rate_wait=0, rate_loopback=True)
    async with running(gateway=gateway) as server:
        card = request("GET", "/.well-known/agent-card.json")
        assert [(await server.ask(card)).status for _ in range(2)] == [200, 429]
        assert [(await server.ask(request("GET", "/healthz"))).status for _ in range(3)] == [200, 200, 200]


def forwarded(address: str) -> dict[str, str]:
    return {"X-Forwarded-For": address}


def from_address(address: str) -> bytes:
    return request(body=rpc(), headers=forwarded(address))


async def test_subscribing_is_a_stream_by_either_verb() -> None:
    async with running() as server:
        for method in ("GET", "POST"):
            await opened(server, request(method, "/tasks/a:b:subscribe"))
        assert {call[2].id for call in server.engine.calls} == {"a:b"}


async def test_asking_only_for_the_headers_of_a_stream_opens_none() -> None:
    async with running() as server:
        answer = await server.ask(request("HEAD", "/tasks/x:subscribe"), bodiless=True)
        assert answer.status == 405
        assert answer.headers["allow"].startswith("GET, POST")
        assert server.engine.calls == []
