"""`asgi()`: agents as an ASGI application, alone or inside somebody else's.

A host that runs our lifespan (any ASGI server, or a host application that enters `app.lifespan`) starts us before the
first request. Starlette and FastAPI don't run the lifespan of what they mount, so otherwise the first request does.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, MutableMapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from dragoman.app import checks, wiring
from dragoman.app.settings import Settings
from dragoman.app.sources import resolve
from dragoman.model.tasks import Scope, Task
from dragoman.ports import Agent

Connection = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


def asgi(agents: wiring.Agents, *, config: str | Path | None = None, **settings: Any) -> "Application":
    """Serve one agent or several (a list, or a dictionary by slug) from an ASGI server or inside another application.

    Settings are those of docs/configuration.md, as keywords: `store="memory://"`, `public_url="https://…"`. Mounting::

        app = Starlette(routes=[Mount("/desk", dragoman.asgi(agent))])

    The first request starts it. To start with the host, and to stop properly, enter `application.lifespan()` in the
    host's own lifespan. Raises SettingsError.
    """
    return Application(wiring.named(agents), wiring.applicable(resolve(settings, file=config)))


class Application:
    """An ASGI application that starts when it is first needed, once, and can be started again after it stopped."""

    def __init__(self, agents: dict[str, Agent], settings: Settings) -> None:
        checks.values(settings)
        self.agents = agents
        self.settings = settings
        self._starting: asyncio.Lock | None = None
        self._works: wiring.Works | None = None

    async def __call__(self, scope: Connection, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._run_lifespan(receive, send)
            return
        works = self._works or await self.start()
        await works.site(scope, receive, send)

    @property
    def ready(self) -> bool:
        return self._works is not None

    async def start(self) -> wiring.Works:
        """Open the store and recover what was running. However many requests come at once, this happens once."""
        if self._starting is None:
            self._starting = asyncio.Lock()
        async with self._starting:
            if self._works is None:
                works = wiring.Works(self.agents, self.settings)
                try:
                    await works.start()
                except BaseException:
                    await works.close()
                    raise
                self._works = works
            return self._works

    async def drain(self, seconds: float | None = None) -> None:
        """Refuse new messages, let running turns end, then end streams so that their clients resume elsewhere.

        Call it when the host is told to stop, before it waits for its connections: open streams would keep it waiting.
        """
        if self._works is not None:
            await self._works.drain(self.settings.server.drain if seconds is None else seconds)

    async def stop(self) -> None:
        """Drain and close. A later request would start it again."""
        works = self._works
        if works is None:
            return
        try:
            await works.drain(self.settings.server.drain)
        finally:
            self._works = None
            await works.close()

    async def resume(self, task_id: str, *, agent: str = "", tenant: str = "", owner: str = "") -> Task:
        """The authorization a task waits for was given elsewhere: its turn goes on. The task as it is then.

        For a callback route of the host's, after it found out who calls: with several agents `agent` is the slug,
        `tenant` and `owner` (the caller's principal id) are those of the task. Saying it twice changes nothing. Raises
        TaskNotFound.
        """
        works = self._works or await self.start()
        return await works.resume(Scope(agent or next(iter(self.agents)), tenant, owner), task_id)

    @asynccontextmanager
    async def lifespan(self, app: object = None) -> AsyncGenerator[None]:
        """Started inside, stopped after. Takes and ignores the host application, so it can be the host's lifespan."""
        await self.start()
        try:
            yield
        finally:
            await self.stop()

    async def _run_lifespan(self, receive: Receive, send: Send) -> None:
        await receive()
        try:
            await self.start()
        except Exception as error:
            # The server prints the message and exits; the traceback stays with whoever debugs the start.
            await send({"type": "lifespan.startup.failed", "message": str(error)})
            return
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await self.stop()
        await send({"type": "lifespan.shutdown.complete"})
