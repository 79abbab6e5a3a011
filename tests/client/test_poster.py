"""POSTs to checked targets: what is sent, which connections are kept, what is never done."""

import asyncio

import pytest

from dragoman.client import poster as module
from dragoman.client.dialler import Dialler
from dragoman.client.exchange import Reply, Unanswered
from dragoman.client.poster import Headers, Poster
from dragoman.core.addresses import guard
from tests.client.receivers import GOOD, Names, Receiver, Request, hang_up, never, receiving, saying, with_status

pytestmark = pytest.mark.anyio

LOCAL = guard(networks=["127.0.0.0/8"])


def poster() -> Poster:
    return Poster(Dialler(LOCAL, Names(desk_example=["127.0.0.1"])))


async def send(posting: Poster, receiver: Receiver, body: bytes = b"", headers: Headers = (), **url: str) -> Reply:
    return await posting.post(LOCAL.target(receiver.url(**url)), headers, body, seconds=10)


async def test_a_post_says_what_it_was_given_and_nothing_of_its_own() -> None:
    posting = poster()
    async with receiving() as receiver:
        headers = (("Content-Type", "application/json"), ("Authorization", "Bearer k\xe9y"))
        assert await send(posting, receiver, b'{"a":1}', headers, path="/a/b?c=d", host="desk.example") == Reply(200)
        (request,) = receiver.requests
        assert request.line == "POST /a/b?c=d HTTP/1.1"
        assert request.body == b'{"a":1}'
        assert request.headers == {
            "host": f"desk.example:{receiver.port}",
            "content-length": "7",
            "content-type": "application/json",
            "authorization": "Bearer k\xe9y",
        }
    await posting.close()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("Authorization", "Bearer a\r\nX-Evil: 1"),
        ("Authorization", "Bearer a\nb"),
        ("Authorization", "Bearer \x00"),
        ("Authorization", "Bearer ☃"),
        ("X Evil", "1"),
        ("X-Evil:", "1"),
        ("", "1"),
        ("X-Évil", "1"),
        ("X\r\nY", "1"),
    ],
)
async def test_a_header_that_would_write_the_request_is_refused_before_anything_is_sent(name: str, value: str) -> None:
    posting = poster()
    async with receiving() as receiver:
        with pytest.raises(ValueError, match="cannot be sent") as error:
            await send(posting, receiver, headers=((name, value),))
        assert receiver.connections == 0
        assert "Bearer" not in str(error.value)
    await posting.close()


async def test_connections_are_used_again() -> None:
    posting = poster()
    async with receiving() as receiver:
        for _ in range(5):
            await send(posting, receiver)
        assert [request.connection for request in receiver.requests] == [1] * 5
    await posting.close()


async def test_a_connection_is_not_used_again_when_its_receiver_says_so() -> None:
    posting = poster()
    async with receiving(with_status(200, "Connection: close")) as receiver:
        await send(posting, receiver)
        await send(posting, receiver)
        assert [request.connection for request in receiver.requests] == [1, 2]
    await posting.close()


async def test_a_kept_connection_that_was_closed_meanwhile_costs_nothing() -> None:
    posting = poster()
    closing = saying(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", close=True)
    async with receiving([closing, GOOD]) as receiver:
        assert await send(posting, receiver) == Reply(200)
        assert await send(posting, receiver) == Reply(200)
        assert [request.connection for request in receiver.requests] == [1, 2]
    await posting.close()


async def test_a_kept_connection_that_dies_under_the_request_is_replaced_once() -> None:
    posting = poster()
    async with receiving([GOOD, hang_up, GOOD]) as receiver:
        assert await send(posting, receiver, b"1") == Reply(200)
        assert await send(posting, receiver, b"2") == Reply(200)
        assert receiver.bodies == [b"1", b"2", b"2"]
    async with receiving([GOOD, hang_up]) as receiver:
        assert await send(posting, receiver, b"1") == Reply(200)
        with pytest.raises(Unanswered):
            await send(posting, receiver, b"2")
        assert receiver.bodies == [b"1", b"2", b"2"]
    await posting.close()


async def test_a_kept_connection_that_began_to_answer_is_not_tried_again() -> None:
    posting = poster()
    async with receiving([GOOD, saying(b"HTTP/1.1 2", close=True)]) as receiver:
        await send(posting, receiver)
        with pytest.raises(Unanswered):
            await send(posting, receiver)
        assert len(receiver.requests) == 2
    await posting.close()


async def test_no_redirect_is_followed() -> None:
    posting = poster()
    async with receiving() as elsewhere, receiving(with_status(307, f"Location: {elsewhere.url()}")) as receiver:
        assert (await send(posting, receiver)).status == 307
        assert not elsewhere.requests
    await posting.close()


async def test_no_proxy_is_taken_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    posting = poster()
    async with receiving() as proxy, receiving() as receiver:
        for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, proxy.url(""))
        assert await send(posting, receiver) == Reply(200)
        assert not proxy.requests
    await posting.close()


async def test_idle_connections_are_bounded_and_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "IDLE_PER_PLACE", 2)
    monkeypatch.setattr(module, "IDLE_TOTAL", 3)
    posting = poster()
    gate = asyncio.Event()

    async def together(request: Request, writer: asyncio.StreamWriter) -> None:
        await gate.wait()
        await GOOD(request, writer)

    async with receiving(together) as one, receiving(together) as other:
        sending = asyncio.gather(*(send(posting, receiver) for receiver in (one, other) for _ in range(4)))
        await one.received(4)
        await other.received(4)
        gate.set()
        await sending
        await left_open(3, one, other)
        assert {one.open, other.open} == {1, 2}
        await posting.close()
        await left_open(0, one, other)


async def test_an_idle_connection_is_closed_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "IDLE_SECONDS", 0.01)
    posting = poster()
    async with receiving() as receiver:
        await send(posting, receiver)
        await left_open(0, receiver)
        await send(posting, receiver)
        assert receiver.connections == 2
    await posting.close()


async def test_an_old_connection_is_not_kept_so_that_its_name_is_checked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LIFE_SECONDS", 0.0)
    posting = poster()
    async with receiving() as receiver:
        await send(posting, receiver)
        await send(posting, receiver)
        assert receiver.connections == 2
    await posting.close()


async def test_who_gives_up_leaves_no_connection_behind() -> None:
    posting = poster()
    async with receiving(never) as receiver:
        sending = asyncio.create_task(send(posting, receiver))
        await receiver.received()
        sending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sending
        await left_open(0, receiver)
    await posting.close()


async def test_nothing_is_kept_once_it_is_closed() -> None:
    posting = poster()
    async with receiving() as receiver:
        await posting.close()
        assert await send(posting, receiver) == Reply(200)
        await left_open(0, receiver)


async def left_open(count: int, *receivers: Receiver) -> None:
    async with asyncio.timeout(10):
        while sum(receiver.open for receiver in receivers) != count:
            await asyncio.sleep(0.005)
