"""kill -9 while a thousand tasks notify fifty receivers: every end arrives, and each webhook hears in order."""

import asyncio
import json
import os
import random
from collections import defaultdict
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import httpx2
import pytest

from tests.chaos.observer import ENDED, JSON, message, rpc
from tests.chaos.victim import Victim

pytestmark = [pytest.mark.anyio, pytest.mark.chaos]

KILLS = min(20, int(os.environ.get("CHAOS_ROUNDS", "3")))
TASKS_PER_KILL = 50
RECEIVERS = 50
OPTIONS = ("--set", "push_allow_loopback=true", "--set", "push_interval=30ms")


class Told(NamedTuple):
    delivery: str
    task: str
    state: str
    at: str


class Book:
    """What one receiver was told, in the order in which it came. It answers at once, and means it."""

    def __init__(self) -> None:
        self.told: list[Told] = []
        self.url = ""

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
                fields = dict(line.split(": ", 1) for line in head.split("\r\n")[1:] if line)
                body = json.loads(await reader.readexactly(int(fields["content-length"])))
                found = body.get("task") or body["statusUpdate"]
                status = found["status"]
                task = found.get("id") or found["taskId"]
                self.told.append(Told(fields["idempotency-key"], task, status["state"], status["timestamp"]))
                writer.write(b"HTTP/1.1 204 No Content\r\n\r\n")
                await writer.drain()
        writer.close()

    def of(self, task: str) -> list[Told]:
        return [each for each in self.told if each.task == task]


@asynccontextmanager
async def listening() -> AsyncGenerator[Book]:
    book = Book()
    server = await asyncio.start_server(book.handle, "127.0.0.1", 0)
    book.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/hook"
    try:
        yield book
    finally:
        server.close()


class Crowd:
    """Callers who have tasks done and want to be told. `expected` is what the server acknowledged: who is to hear."""

    def __init__(self, books: list[Book]) -> None:
        self._books = books
        self._random = random.Random(4)
        self.expected: dict[str, list[Book]] = defaultdict(list)

    async def load(self, client: httpx2.AsyncClient) -> None:
        await asyncio.gather(*(self._one(client) for _ in range(TASKS_PER_KILL)))

    async def _one(self, client: httpx2.AsyncClient) -> None:
        first, second = self._random.sample(self._books, 2)
        await asyncio.sleep(self._random.random() * 0.3)  # not all in one commit
        configuration = {"returnImmediately": True, "taskPushNotificationConfig": {"url": first.url}}
        params: JSON = {"message": message("x", "report"), "configuration": configuration}
        with suppress(httpx2.TransportError, httpx2.StreamError):
            answer = await rpc(client, "SendMessage", params)
            id = answer["result"]["task"]["id"]
            self.expected[id].append(first)
            if self._random.random() < 0.2:
                kept = await rpc(client, "CreateTaskPushNotificationConfig", {"taskId": id, "url": second.url})
                assert "result" in kept, kept
                self.expected[id].append(second)


async def test_every_end_arrives_and_each_webhook_hears_in_order(tmp_path: Path) -> None:
    victim = Victim(tmp_path, *OPTIONS)
    async with AsyncExitStack() as stack:
        books = [await stack.enter_async_context(listening()) for _ in range(RECEIVERS)]
        crowd = Crowd(books)
        victim.start()
        try:
            async with asyncio.timeout(60 + 10 * KILLS):
                for seed in range(KILLS):
                    await _suffer(victim, crowd, random.Random(seed).uniform(0.1, 0.6))
                    await asyncio.to_thread(victim.start)
                async with httpx2.AsyncClient(base_url=victim.base, timeout=30) as client:
                    await _verify(client, crowd)
        finally:
            victim.stop()
    victim.audit()


async def _suffer(victim: Victim, crowd: Crowd, seconds: float) -> None:
    async with httpx2.AsyncClient(base_url=victim.base, timeout=30) as client:
        load = asyncio.ensure_future(crowd.load(client))
        await asyncio.sleep(seconds)
        victim.kill()
        await load


async def _verify(client: httpx2.AsyncClient, crowd: Crowd) -> None:
    assert len(crowd.expected) > KILLS * TASKS_PER_KILL / 4, "hardly anything was accepted"
    for task, books in crowd.expected.items():
        for book in books:
            while not any(each.state in ENDED for each in book.of(task)):
                await asyncio.sleep(0.02)  # bounded by the test's own time
        state = (await rpc(client, "GetTask", {"id": task}))["result"]["status"]["state"]
        assert state in ENDED
        for book in books:
            _in_order(book.of(task), state)


def _in_order(told: list[Told], state: str) -> None:
    """Whatever came again came under its id; without what came again, time and the task only went on."""
    firsts: dict[str, Told] = {}
    for each in told:
        assert firsts.setdefault(each.delivery, each) == each, "one delivery told two things"
    seen: list[Any] = list(firsts.values())
    assert [each.at for each in seen] == sorted(each.at for each in seen)
    assert [each.state for each in seen if each.state in ENDED] == [state], "it ended once, as it says now"
    assert seen[-1].state == state, "something was told after the end"
    for before, after in pairwise(told):
        assert after.delivery == before.delivery or after.at >= before.at, "a repeat came out of turn"
