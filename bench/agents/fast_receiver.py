"""A webhook receiver that does nothing but answer. Says its port; a line `count seconds` on its input opens it, and is
answered with the seconds it took until so many different deliveries came, and how many did."""

import asyncio
import sys
import time

import uvloop

ANSWER = b"HTTP/1.1 204 No Content\r\n\r\n"
LENGTH, KEY = b"content-length: ", b"idempotency-key: "

came: set[bytes] = set()
waiting: list[asyncio.Transport] = []
is_open = False


class Connection(asyncio.Protocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport: asyncio.Transport = transport  # type: ignore[assignment]
        self._data = b""

    def data_received(self, data: bytes) -> None:
        self._data += data
        while (end := self._data.find(b"\r\n\r\n")) >= 0:
            head = self._data[:end].lower() + b"\r\n"
            whole = end + 4 + int(_value(head, LENGTH))
            if len(self._data) < whole:
                return
            self._data = self._data[whole:]
            came.add(_value(head, KEY))
            if is_open:
                self._transport.write(ANSWER)
            else:
                waiting.append(self._transport)


def _value(head: bytes, name: bytes) -> bytes:
    start = head.index(name) + len(name)
    return head[start : head.index(b"\r\n", start)]


async def main() -> None:
    global is_open
    loop = asyncio.get_running_loop()
    server = await loop.create_server(Connection, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    expected, patience = (await loop.run_in_executor(None, sys.stdin.readline)).split()
    started, is_open = time.perf_counter(), True
    for transport in (each for each in waiting if not each.is_closing()):
        transport.write(ANSWER)
    while len(came) < int(expected) and time.perf_counter() - started < float(patience):
        await asyncio.sleep(0.005)
    print(time.perf_counter() - started, len(came), flush=True)
    await asyncio.Event().wait()


uvloop.run(main())
