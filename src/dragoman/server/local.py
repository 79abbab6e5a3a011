"""A socket in the file system for whoever administers this server on its own machine: a line of JSON in, one out.

It has no address a page, a proxy or another machine could reach, and nobody logs in: whoever may open the file may ask,
and that is only the user the server runs as. It lies beside the database and is as private as that.
"""

import asyncio
import logging
import os
import socket
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from pathlib import Path

log = logging.getLogger("dragoman.server")

LONGEST_LINE = 1024 * 1024
ANSWER_SECONDS = 30.0
LONGEST_PATH = 100  # what every system takes as a socket's name

Respond = Callable[[bytes], Awaitable[bytes]]


class Local:
    """Answers at `path`. What a process that died left there is replaced: who serves owns the store beside it."""

    def __init__(self, path: Path, respond: Respond) -> None:
        self._path = path
        self._respond = respond
        self._server: asyncio.Server | None = None
        self._answering: set[asyncio.Task[None]] = set()

    async def open(self) -> None:
        """Without such a socket the server serves all the same, so what is in the way is only logged."""
        try:
            listening = self._bound()
        except OSError as error:
            log.warning("No local socket: %s cannot be made (%s)", self._path.name, error.strerror or "unusable")
            return
        self._server = await asyncio.start_unix_server(self._answer, sock=listening, limit=LONGEST_LINE)

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
            for each in list(self._answering):
                each.cancel()
            await self._server.wait_closed()
            self._server = None
            self._path.unlink(missing_ok=True)

    def _bound(self) -> socket.socket:
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._path.unlink(missing_ok=True)
            with _reachable(self._path) as name:
                listening.bind(name)
            # Before anybody can connect, which takes a socket that listens.
            self._path.chmod(0o600)
            listening.setblocking(False)
        except OSError:
            listening.close()
            raise
        return listening

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._answering.add(task)
        task.add_done_callback(self._answering.discard)
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                line = await reader.readline()
                if line.endswith(b"\n"):
                    writer.write(await self._respond(line) + b"\n")
                    await writer.drain()
        except (TimeoutError, ConnectionError, ValueError):  # the last: a line without end
            pass
        except asyncio.CancelledError:
            pass  # the server closes
        except Exception:
            log.exception("A local request could not be answered")
        finally:
            writer.close()


async def ask(path: Path, line: bytes) -> bytes | None:
    """The answer of the server at that socket; None when there is none. Raises ConnectionError when it gives none."""
    try:
        with _reachable(path) as name:
            reader, writer = await asyncio.open_unix_connection(name, limit=1 << 26)
    except (FileNotFoundError, ConnectionRefusedError):
        return None
    try:
        writer.write(line + b"\n")
        async with asyncio.timeout(ANSWER_SECONDS):
            answer = await reader.readline()
    except TimeoutError:
        raise ConnectionError("The server does not answer") from None
    finally:
        writer.close()
    if not answer.endswith(b"\n"):
        raise ConnectionError("The server gave no answer")
    return answer


@contextmanager
def _reachable(path: Path) -> Generator[str]:
    """A name short enough for a socket, however deep its folder lies."""
    if len(os.fsencode(path)) <= LONGEST_PATH:
        yield str(path)
        return
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)
