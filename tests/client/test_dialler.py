"""The address that was checked is the address that is dialled."""

import asyncio
import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from dragoman.client.dialler import Dialler
from dragoman.client.exchange import Reply, Unanswered
from dragoman.client.poster import Poster
from dragoman.core.addresses import Guard, guard
from dragoman.model.errors import AddressRefused
from tests.client.receivers import Names, receiving

pytestmark = pytest.mark.anyio

KEYS = Path(__file__).parents[1] / "server" / "tls"
LOCAL = guard(networks=["127.0.0.0/8"])
CLOSED = Guard()


async def post(url: str, names: Names, guarded: Guard = LOCAL, **how: str) -> Reply:
    poster = Poster(Dialler(guarded, names, **how))  # pyright: ignore[reportArgumentType]
    try:
        return await poster.post(guarded.target(url), (), b"news", seconds=10)
    finally:
        await poster.close()


async def test_a_name_that_leads_inside_is_not_called() -> None:
    async with receiving() as receiver:
        for addresses in (["127.0.0.1"], ["93.184.216.34", "127.0.0.1"], ["::ffff:127.0.0.1"]):
            with pytest.raises(AddressRefused, match="public"):
                await post(receiver.url(host="desk.example"), Names(desk_example=addresses), CLOSED)
        assert receiver.connections == 0


@pytest.mark.proves("S-10-8")
async def test_a_name_is_asked_for_once_so_that_changing_its_answer_changes_nothing() -> None:
    """What a rebinding name server does: a harmless answer for the check, another for the connection."""
    names = Names(desk_example=(["127.0.0.1"], ["127.0.0.2"]))
    async with receiving() as harmless, receiving(host="127.0.0.2") as inside:
        inside_port, inside.port = inside.port, harmless.port
        assert inside_port
        assert await post(harmless.url(host="desk.example"), names) == Reply(200)
        assert (harmless.connections, inside.connections) == (1, 0)
        assert names.asked == ["desk.example"]


async def test_a_name_that_turns_inside_later_is_refused_then() -> None:
    names = Names(desk_example=(["127.0.0.1"], ["127.0.0.2"]))
    narrow = guard(networks=["127.0.0.1"])
    async with receiving() as receiver:
        assert await post(receiver.url(host="desk.example"), names, narrow) == Reply(200)
        with pytest.raises(AddressRefused):
            await post(receiver.url(host="desk.example"), names, narrow)
        assert receiver.connections == 1


async def test_a_name_that_leads_nowhere_is_unanswered() -> None:
    with pytest.raises(Unanswered, match="could not be resolved"):
        await post("http://nowhere.example/", Names())


async def test_a_trusted_host_is_called_wherever_it_leads() -> None:
    async with receiving() as receiver:
        trusting = guard(["desk.internal"])
        url = receiver.url(host="desk.internal")
        assert await post(url, Names(desk_internal=["127.0.0.1"]), trusting) == Reply(200)


async def test_an_address_in_the_url_is_not_resolved() -> None:
    async with receiving() as receiver:
        names = Names()
        assert await post(receiver.url(), names) == Reply(200)
        assert names.asked == []


async def test_the_next_address_is_tried_when_one_does_not_answer() -> None:
    async with receiving() as receiver:
        names = Names(desk_example=["127.0.0.2", "127.0.0.3", "127.0.0.1"])  # nobody listens on the first two
        assert await post(receiver.url(host="desk.example"), names) == Reply(200)
        names = Names(desk_example=[f"127.0.0.{n}" for n in (2, 3, 4, 5, 1)])
        with pytest.raises(Unanswered, match="could not be reached"):
            await post(receiver.url(host="desk.example"), names)


async def test_a_connection_that_does_not_come_about_costs_its_own_time() -> None:
    gone = asyncio.Event()

    async def hold(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()  # takes the connection and never speaks TLS
        writer.close()
        await writer.wait_closed()
        gone.set()

    server = await asyncio.start_server(hold, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    poster = Poster(Dialler(LOCAL, Names(), connect_seconds=0.05))
    with pytest.raises(Unanswered, match="could not be reached in time"):
        await poster.post(LOCAL.target(f"https://127.0.0.1:{port}/"), (), b"", seconds=10)
    async with asyncio.timeout(10):
        await gone.wait()
    server.close()
    await server.wait_closed()


# --- TLS ---


def server_side() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(KEYS / "server.pem")
    return context


async def test_tls_asks_for_the_name_of_the_url_at_the_address_that_was_checked() -> None:
    async with receiving(tls=server_side()) as receiver:
        url = f"https://localhost:{receiver.port}/"
        assert await post(url, Names(localhost=["127.0.0.1"]), ca_file=str(KEYS / "ca.pem")) == Reply(200)
        assert receiver.names == ["localhost"]
        assert receiver.requests[0].headers["host"] == f"localhost:{receiver.port}"
        assert await post(f"https://127.0.0.1:{receiver.port}/", Names(), ca_file=str(KEYS / "ca.pem")) == Reply(200)


async def test_a_certificate_of_somebody_else_is_refused() -> None:
    async with receiving(tls=server_side()) as receiver:
        url = f"https://desk.example:{receiver.port}/"
        names = Names(desk_example=["127.0.0.1"], localhost=["127.0.0.1"])
        with pytest.raises(Unanswered, match=r"certificate that cannot be trusted.*desk\.example"):
            await post(url, names, ca_file=str(KEYS / "ca.pem"))
        with pytest.raises(Unanswered, match="certificate that cannot be trusted"):
            await post(f"https://localhost:{receiver.port}/", names)  # the system does not know our authority
        assert not receiver.requests


async def test_a_receiver_that_speaks_no_tls_is_told_apart() -> None:
    async with receiving(greeting=b"220 mail.example ESMTP\r\n") as receiver:
        with pytest.raises(Unanswered, match=r"does not speak TLS|could not be reached$"):
            await post(f"https://127.0.0.1:{receiver.port}/", Names())


# --- the configured proxy ---


OPEN = b"HTTP/1.1 200 Connection established\r\n\r\n"


@asynccontextmanager
async def proxying(to: int, first: bytes = OPEN) -> AsyncGenerator[tuple[str, list[str]]]:
    """A proxy that leads everybody to one port: its address, and what it was asked."""
    asked: list[str] = []

    async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            while data := await reader.read(65_536):
                writer.write(data)
        writer.close()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append((await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")[0])
        writer.write(first)
        if first == OPEN:
            there, back = await asyncio.open_connection("127.0.0.1", to)
            await asyncio.gather(pump(reader, back), pump(there, writer))
        else:
            writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", asked
    finally:
        server.close()
        await server.wait_closed()


async def test_a_configured_proxy_is_given_the_address_that_was_checked() -> None:
    names = Names(desk_example=["127.0.0.7"], localhost=["127.0.0.7", "::1"])
    async with receiving() as receiver, proxying(receiver.port) as (proxy, asked):
        assert await post("http://desk.example:8000/x", names, proxy=proxy) == Reply(200)
        assert asked == ["CONNECT 127.0.0.7:8000 HTTP/1.1"]
        assert receiver.requests[0].line == "POST /x HTTP/1.1"
        assert receiver.requests[0].headers["host"] == "desk.example:8000"
    async with receiving(tls=server_side()) as receiver, proxying(receiver.port) as (proxy, asked):
        both = guard(networks=["127.0.0.0/8", "::1"])
        url = "https://localhost:8443/"
        assert await post(url, names, both, proxy=proxy, ca_file=str(KEYS / "ca.pem")) == Reply(200)
        assert receiver.names == ["localhost"]
        assert asked == ["CONNECT 127.0.0.7:8443 HTTP/1.1"]


async def test_a_proxy_is_given_the_name_only_of_a_trusted_host() -> None:
    async with receiving() as receiver, proxying(receiver.port) as (proxy, asked):
        names = Names()
        assert await post("http://desk.internal/", names, guard(["desk.internal"]), proxy=proxy) == Reply(200)
        assert asked == ["CONNECT desk.internal:80 HTTP/1.1"]
        assert names.asked == []
        with pytest.raises(AddressRefused):
            await post("http://desk.example/", Names(desk_example=["10.0.0.1"]), CLOSED, proxy=proxy)
        assert len(asked) == 1


@pytest.mark.parametrize(
    "first",
    [
        b"HTTP/1.1 403 Forbidden\r\n\r\n",
        b"HTTP/1.1 2",
        b"SSH-2.0\r\n",
        b"x" * 10_000,
        OPEN + b"HTTP/1.1 200 OK\r\n\r\n",
    ],
)
async def test_a_proxy_that_does_not_lead_on_is_a_failure(first: bytes) -> None:
    async with receiving() as receiver, proxying(receiver.port, first) as (proxy, _):
        with pytest.raises(Unanswered, match="could not be reached: the proxy"):
            await post(receiver.url(), Names(), proxy=proxy)
        assert not receiver.requests


async def test_a_name_over_ipv6_is_bracketed_for_the_proxy() -> None:
    async with receiving() as receiver, proxying(receiver.port) as (proxy, asked):
        assert await post("http://[::1]:8000/", Names(), guard(networks=["::1"]), proxy=proxy) == Reply(200)
        assert asked == ["CONNECT [::1]:8000 HTTP/1.1"]
