"""Whatever a receiver answers, we read no more than we said, keep nothing, and end in time with what is known."""

import asyncio

import pytest

from dragoman.client.dialler import Dialler
from dragoman.client.exchange import BODY_LIMIT, HEAD_LIMIT, Reply, Unanswered
from dragoman.client.poster import Poster
from dragoman.core.addresses import guard
from tests.client.receivers import (
    GOOD,
    Answer,
    Names,
    Receiver,
    Request,
    hang_up,
    never,
    receiving,
    saying,
    with_status,
)

pytestmark = pytest.mark.anyio

LOCAL = guard(networks=["127.0.0.0/8"])


async def posted(receiver: Receiver, *, seconds: float = 10.0, poster: Poster | None = None) -> Reply:
    poster = poster or Poster(Dialler(LOCAL, Names()))
    try:
        return await poster.post(LOCAL.target(receiver.url()), (), b"news", seconds=seconds)
    finally:
        await poster.close()


def status(raw: bytes, code: int, **more: str) -> tuple[bytes, Reply]:
    return raw, Reply(code, **more)


EMPTY = b"Content-Length: 0\r\n\r\n"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n"
LATER = b"HTTP/1.1 503 Later\r\nretry-AFTER: "
INTERIM = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Hints\r\nRetry-After: 1\r\n\r\n"
ENDINGS = [
    status(b"HTTP/1.1 200 OK\r\n" + EMPTY, 200),
    status(b"HTTP/1.1 204 No Content\r\n\r\n", 204),
    status(b"HTTP/1.0 200 OK\r\n\r\nuntil the end", 200),
    status(CHUNKED + b"\r\n", 200),
    status(CHUNKED + b"Trailer: x\r\n\r\n", 200),
    status(LATER + b"7\r\nContent-Length: 2\r\n\r\nno", 503, retry_after="7"),
    status(LATER + b"9" * 500 + b"\r\n" + EMPTY, 503, retry_after="9" * 64),
    status(INTERIM + b"HTTP/1.1 201 Created\r\n" + EMPTY, 201),
    status(b"HTTP/1.1 302 Found\r\nLocation: http://169.254.169.254/\r\n" + EMPTY, 302),
    status(b"HTTP/1.1 999 What\r\n" + EMPTY, 999),
]


@pytest.mark.parametrize(("raw", "reply"), ENDINGS)
@pytest.mark.parametrize("slow", [False, True])
async def test_an_answer_is_its_status_however_it_is_framed(raw: bytes, reply: Reply, slow: bool) -> None:
    async def answer(request: Request, writer: asyncio.StreamWriter) -> None:
        for at in range(0, len(raw), 1 if slow else len(raw)):
            writer.write(raw[at : at + (1 if slow else len(raw))])
            await writer.drain()
        if reply.status == 200 and b"1.0" in raw:
            writer.close()

    async with receiving(answer) as receiver:
        assert await posted(receiver) == reply


GARBAGE = [
    b"SSH-2.0-OpenSSH_9.6\r\n",
    b"220 mail.example ESMTP\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    b"\x00" * 100,
    b"HTTP/9.9 200 OK\r\n\r\n",
    b"HTTP/1.1 two hundred\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nX: a\x00b\r\n\r\n",
    b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: tea\r\nConnection: Upgrade\r\n\r\n",
    b"POST / HTTP/1.1\r\n\r\n",
]


@pytest.mark.parametrize("raw", GARBAGE)
async def test_what_is_not_an_answer_is_a_failure_at_once(raw: bytes) -> None:
    async with receiving(saying(raw)) as receiver:
        with pytest.raises(Unanswered, match=r"not HTTP|another protocol"):
            await posted(receiver)


async def test_a_connection_closed_without_an_answer_is_a_failure() -> None:
    for answer in (hang_up, saying(b"", close=True), saying(b"HTTP/1.1 20", close=True)):
        async with receiving(answer) as receiver:
            with pytest.raises(Unanswered, match="closed the connection without an answer"):
                await posted(receiver)
            assert len(receiver.requests) == 1  # nothing is sent again when the connection was new


async def test_a_connection_closed_in_the_middle_of_the_body_has_answered() -> None:
    async with receiving(saying(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf", close=True)) as receiver:
        assert await posted(receiver) == Reply(200)


async def test_a_receiver_that_never_answers_costs_its_time_and_no_more() -> None:
    async with receiving(never) as receiver:
        with pytest.raises(Unanswered, match="did not answer in time"):
            await posted(receiver, seconds=0.05)


async def test_a_status_counts_although_the_body_never_ends() -> None:
    async def answer(request: Request, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 202 Accepted\r\nContent-Length: 100\r\n\r\nhalf")
        await never(request, writer)

    async with receiving(answer) as receiver:
        assert await posted(receiver, seconds=0.3) == Reply(202)


def flood(start: bytes, piece: bytes) -> tuple[Answer, list[int]]:
    """Send pieces until the caller closes; how much went out."""
    sent = [0]

    async def answer(request: Request, writer: asyncio.StreamWriter) -> None:
        writer.write(start)
        while not writer.is_closing():
            writer.write(piece)
            sent[0] += len(piece)
            await writer.drain()
            await asyncio.sleep(0)

    return answer, sent


async def test_a_huge_body_is_not_read_to_its_end() -> None:
    answer, _ = flood(b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n", b"x" * 65_536)
    async with receiving(answer) as receiver:
        assert await posted(receiver) == Reply(200)
        assert receiver.connections == 1


async def test_endless_headers_end() -> None:
    answer, _ = flood(b"HTTP/1.1 200 OK\r\n", b"X-Filler: " + b"y" * 1_000 + b"\r\n")
    async with receiving(answer) as receiver:
        with pytest.raises(Unanswered, match="endless headers"):
            await posted(receiver)


async def test_endless_interim_answers_end() -> None:
    answer, _ = flood(b"", b"HTTP/1.1 103 Hints\r\n\r\n")
    async with receiving(answer) as receiver:
        with pytest.raises(Unanswered, match=r"without end|endless"):
            await posted(receiver)


async def test_a_body_without_end_in_chunks_is_cut() -> None:
    answer, _ = flood(b"HTTP/1.1 500 Oh\r\nTransfer-Encoding: chunked\r\n\r\n", b"400\r\n" + b"z" * 1_024 + b"\r\n")
    async with receiving(answer) as receiver:
        assert await posted(receiver) == Reply(500)


def test_the_limits_are_small() -> None:
    assert HEAD_LIMIT + BODY_LIMIT <= 128 * 1024


async def test_a_second_answer_nobody_asked_for_ends_the_connection() -> None:
    twice = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n" * 2
    async with receiving([saying(twice), GOOD]) as receiver:
        poster = Poster(Dialler(LOCAL, Names()))
        target = LOCAL.target(receiver.url())
        for _ in range(2):
            assert await poster.post(target, (), b"", seconds=10) == Reply(200)
        assert [request.connection for request in receiver.requests] == [1, 2]
        await poster.close()


async def test_bytes_between_two_requests_end_the_connection() -> None:
    told = asyncio.Event()

    async def answer(request: Request, writer: asyncio.StreamWriter) -> None:
        await GOOD(request, writer)
        await writer.drain()
        await told.wait()
        writer.write(b"HTTP/1.1 500 Smuggled\r\nContent-Length: 0\r\n\r\n")

    async with receiving([answer, with_status(201)]) as receiver:
        poster = Poster(Dialler(LOCAL, Names()))
        target = LOCAL.target(receiver.url())
        assert (await poster.post(target, (), b"", seconds=10)).status == 200
        told.set()
        async with asyncio.timeout(10):
            while receiver.open:
                await asyncio.sleep(0.005)  # the receiver notices that we hung up
        assert (await poster.post(target, (), b"", seconds=10)).status == 201
        await poster.close()
