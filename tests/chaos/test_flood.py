"""One caller floods a real server; another one goes on as if nothing were."""

import asyncio
import json
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from statistics import median

import pytest

from dragoman.auth.hashes import token_hash
from tests.serving import serving

pytestmark = [pytest.mark.anyio, pytest.mark.chaos]

RATE = 100
CONNECTIONS = 64
SECONDS = 2.0
BODY = json.dumps(
    {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "SendMessage",
        "params": {"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "hi"}]}},
    }
).encode()


class Caller:
    """One connection of somebody who logs in with a token."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, token: str) -> None:
        self._reader, self._writer = reader, writer
        self._request = (
            f"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nA2A-Version: 1.0\r\n"
            f"Authorization: Bearer {token}\r\nContent-Length: {len(BODY)}\r\n\r\n"
        ).encode() + BODY

    async def send(self) -> int:
        """The status of the answer."""
        self._writer.write(self._request)
        head = await self._reader.readuntil(b"\r\n\r\n")
        length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length"))
        await self._reader.readexactly(int(length.partition(b":")[2]))
        return int(head.split(b" ")[1])

    def close(self) -> None:
        self._writer.close()


async def caller(port: int, token: str) -> Caller:
    return Caller(*await asyncio.open_connection("127.0.0.1", port), token)


@asynccontextmanager
async def flood(port: int, token: str) -> AsyncGenerator[list[int]]:
    """Each connection sends its next message when the last is answered. The list holds the answers' statuses."""
    statuses: list[int] = []
    callers = [await caller(port, token) for _ in range(CONNECTIONS)]

    async def go_on(one: Caller) -> None:
        while True:
            statuses.append(await one.send())

    tasks = [asyncio.create_task(go_on(one)) for one in callers]
    try:
        yield statuses
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for one in callers:
            one.close()


async def waits(one: Caller, seconds: float = SECONDS) -> list[float]:
    """What a calm caller waits for each of its answers."""
    found: list[float] = []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        began = time.monotonic()
        assert await one.send() == 200
        found.append(time.monotonic() - began)
        await asyncio.sleep(0.02)
    return found


async def test_a_flood_is_slowed_down_and_another_callers_requests_are_answered_as_before(tmp_path: Path) -> None:
    callers = tmp_path / "callers.toml"
    callers.write_text("".join(f'[{name}]\ntoken = "{token_hash(name.encode())}"\n' for name in ("anna", "bert")))
    settings = {
        "DRAGOMAN_AUTH_CALLERS": str(callers),
        "DRAGOMAN_LIMIT_RATE_LOOPBACK": "true",
        "DRAGOMAN_LIMIT_RATE_PER_CALLER": str(RATE),
        "DRAGOMAN_LIMIT_RATE_PER_ADDRESS": str(RATE),
        "DRAGOMAN_LIMIT_RATE_BURST": "10",
    }
    options = ("--store", str(tmp_path / "tasks.db"))
    with serving("examples/hello.py", *options, logs=tmp_path / "log", env=settings) as base:
        port = int(base.rpartition(":")[2])
        bert = await caller(port, "bert")
        await waits(bert, 0.5)
        quiet = await waits(bert)
        began = time.monotonic()
        async with flood(port, "anna") as statuses:
            flooded = await waits(bert)
            took = time.monotonic() - began
        bert.close()
    answered = statuses.count(200)
    assert RATE * took * 0.5 <= answered <= RATE * took + 10 + CONNECTIONS, "slowed down, not shut out"
    assert set(statuses) <= {200, 429}
    # The bench compares the slowest; here a busy machine is to make no difference.
    assert median(flooded) <= 2 * median(quiet) + 0.005
    assert len(flooded) >= len(quiet) / 2
