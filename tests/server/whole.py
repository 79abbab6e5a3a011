"""The whole server, as `dragoman serve` wires it, on a free loopback port in this process."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from dragoman.app import wiring
from dragoman.app.sources import resolve
from dragoman.ports import Agent
from dragoman.server.run import Listener
from tests.server.rig import WAIT, Answer, Line, request


class Whole:
    def __init__(self, listener: Listener) -> None:
        self.listener = listener
        self.lines: list[Line] = []

    @property
    def port(self) -> int:
        return int(self.listener.url.rpartition(":")[2])

    async def dial(self) -> Line:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port, limit=1 << 24)
        self.lines.append(Line(reader, writer))
        return self.lines[-1]

    async def ask(self, data: bytes, *, bodiless: bool = False) -> Answer:
        """One request on a connection of its own."""
        line = await self.dial()
        line.write(data)
        answer = await line.answer(bodiless=bodiless)
        line.hang_up()
        return answer

    async def tasks(self, tenant: str = "") -> list[dict[str, Any]]:
        """Every task there is, in 1.0's words."""
        path = f"/{tenant}/tasks" if tenant else "/tasks"
        answer = await self.ask(request("GET", f"{path}?pageSize=100&includeArtifacts=true"))
        assert answer.status == 200
        return answer.json()["tasks"]


@asynccontextmanager
async def whole(agent: Agent, **settings: Any) -> AsyncGenerator[Whole]:
    """Serving while inside; settings are those of `dragoman.serve`."""
    given: dict[str, Any] = {"store": "memory://", "drain": "0s", **settings}
    found = resolve(given, environ={})
    works = wiring.Works({"": agent}, found)
    listener = Listener(works.site, works, port=0, settings=wiring.serving(found))
    opened = asyncio.Event()
    task = asyncio.create_task(listener.listen(lambda url: opened.set()))
    async with asyncio.timeout(WAIT):
        await opened.wait()
    server = Whole(listener)
    try:
        yield server
    finally:
        for line in server.lines:
            line.hang_up()
        listener.stop(hurry=True)
        async with asyncio.timeout(WAIT):
            await task
