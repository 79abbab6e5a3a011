"""A name server on loopback that changes its mind, and a resolver that asks it."""

import asyncio
import itertools
import struct
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from ipaddress import IPv6Address, ip_address

A, AAAA = 1, 28
_queries = itertools.count(1)


def _name(host: str) -> bytes:
    return b"".join(bytes([len(label)]) + label.encode() for label in host.split(".")) + b"\0"


def _host(packet: bytes, at: int) -> tuple[str, int]:
    """A name, and where it ends. A pointer (as answers have) ends it too."""
    labels: list[str] = []
    while (length := packet[at]) and length < 0xC0:
        labels.append(packet[at + 1 : at + 1 + length].decode())
        at += 1 + length
    return ".".join(labels), at + (2 if length else 1)


class NameServer(asyncio.DatagramProtocol):
    """Answers questions for addresses from a table: the first answer, then the second, the last one for good. A name
    whose answers are None is never answered at all."""

    def __init__(self, table: dict[str, Sequence[Sequence[str]] | None]) -> None:
        self.table = table
        self.asked: list[str] = []
        self.port = 0
        self._times: dict[tuple[str, int], int] = {}

    def connection_made(self, transport: asyncio.DatagramTransport) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        self._transport = transport

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        host, end = _host(data, 12)
        (kind,) = struct.unpack_from("!H", data, end)
        if kind == A:
            self.asked.append(host)
        answers = self.table.get(host, [[]])
        if answers is None:
            return
        time = self._times[host, kind] = self._times.get((host, kind), -1) + 1
        found = [ip_address(each) for each in answers[min(time, len(answers) - 1)]]
        chosen = [each for each in found if isinstance(each, IPv6Address) == (kind == AAAA)]
        # The answer's flags, one question, so many answers; each points back to the name and lives for 0 seconds.
        head = data[:2] + struct.pack("!HHHHH", 0x8180, 1, len(chosen), 0, 0)
        body = b"".join(b"\xc0\x0c" + struct.pack("!HHIH", kind, 1, 0, len(e.packed)) + e.packed for e in chosen)
        self._transport.sendto(head + data[12 : end + 4] + body, addr)


class Asking:
    """`ports.Resolver` that asks that name server, over the wire, each time anew."""

    def __init__(self, server: NameServer) -> None:
        self._server = server

    async def resolve(self, host: str) -> Sequence[str]:
        return [address for kind in (A, AAAA) for address in await self._ask(host, kind)]

    async def _ask(self, host: str, kind: int) -> list[str]:
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[bytes] = loop.create_future()
        transport, _ = await loop.create_datagram_endpoint(
            lambda: _Waiting(answer), remote_addr=("127.0.0.1", self._server.port)
        )
        try:
            number = next(_queries) & 0xFFFF
            transport.sendto(
                struct.pack("!HHHHHH", number, 0x0100, 1, 0, 0, 0) + _name(host) + struct.pack("!HH", kind, 1)
            )
            return _addresses(await answer)
        finally:
            transport.close()


class _Waiting(asyncio.DatagramProtocol):
    def __init__(self, answer: "asyncio.Future[bytes]") -> None:
        self._answer = answer

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        if not self._answer.done():
            self._answer.set_result(data)


def _addresses(packet: bytes) -> list[str]:
    (count,) = struct.unpack_from("!H", packet, 6)
    _, at = _host(packet, 12)
    at += 4
    found: list[str] = []
    for _ in range(count):
        _, at = _host(packet, at)
        (length,) = struct.unpack_from("!H", packet, at + 8)
        found.append(str(ip_address(packet[at + 10 : at + 10 + length])))
        at += 10 + length
    return found


@asynccontextmanager
async def naming(**table: Sequence[Sequence[str]] | None) -> AsyncGenerator[NameServer]:
    """A name server that knows these names; write desk_example for desk.example."""
    server = NameServer({name.replace("_", "."): answers for name, answers in table.items()})
    loop = asyncio.get_running_loop()
    transport, _ = await loop.create_datagram_endpoint(lambda: server, local_addr=("127.0.0.1", 0))
    server.port = transport.get_extra_info("sockname")[1]
    try:
        yield server
    finally:
        transport.close()
