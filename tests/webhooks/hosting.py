"""An ASGI application on a free loopback port, served by uvicorn inside the test."""

import asyncio
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import uvicorn


class _Server(uvicorn.Server):
    def install_signal_handlers(self) -> None:
        """The signals are the test run's."""


@asynccontextmanager
async def hosted(app: Any) -> AsyncGenerator[str]:
    """Its base URL, without a slash at the end."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        server = _Server(uvicorn.Config(app, log_config=None, lifespan="on", ws="none"))
        serving = asyncio.create_task(server.serve([listening]))
        try:
            async with asyncio.timeout(10):
                while not server.started:
                    await asyncio.sleep(0.005)
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.should_exit = True
            await serving
