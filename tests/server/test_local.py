"""The local socket: a line in, a line out, for the server's own user alone."""

import asyncio
import os
import socket
import stat
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from dragoman.server import local as module
from dragoman.server.local import Local, ask

pytestmark = pytest.mark.anyio


async def echo(line: bytes) -> bytes:
    if line == b"break\n":
        raise RuntimeError("broken")
    return b"said " + line.rstrip(b"\n")


@asynccontextmanager
async def opened(path: Path) -> AsyncGenerator[Local]:
    local = Local(path, echo)
    await local.open()
    try:
        yield local
    finally:
        await local.close()


async def test_it_answers_each_line_and_is_gone_when_it_closes(tmp_path: Path) -> None:
    path = tmp_path / "a.db-control"
    async with opened(path):
        assert await asyncio.gather(*(ask(path, b"%d" % number) for number in range(5))) == [
            b"said %d\n" % number for number in range(5)
        ]
    assert not path.exists()
    assert await ask(path, b"1") is None


async def test_nobody_else_may_open_it(tmp_path: Path) -> None:
    path = tmp_path / "a.db-control"
    async with opened(path):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


async def test_what_a_dead_process_left_is_no_server_and_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "a.db-control"
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(path))
    assert await ask(path, b"1") is None
    async with opened(path):
        assert await ask(path, b"1") == b"said 1\n"


async def test_a_deep_folder_is_no_obstacle(tmp_path: Path) -> None:
    folder = tmp_path / ("deep" * 30)
    folder.mkdir()
    path = folder / "a.db-control"
    assert len(os.fsencode(path)) > 108
    async with opened(path):
        assert await ask(path, b"1") == b"said 1\n"
    assert not path.exists()


async def test_without_a_place_for_it_the_server_goes_on(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with opened(tmp_path / "nowhere" / "a.db-control"):
        assert "No local socket" in caplog.text
        assert str(tmp_path) not in caplog.text


async def test_a_request_that_breaks_is_not_answered_and_the_next_one_is(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "a.db-control"
    async with opened(path):
        with pytest.raises(ConnectionError):
            await ask(path, b"break")
        assert "broken" in caplog.text
        assert await ask(path, b"1") == b"said 1\n"


async def test_whoever_does_not_finish_its_line_is_let_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ANSWER_SECONDS", 0.05)
    path = tmp_path / "a.db-control"
    async with opened(path):
        for said in (b"half a line", b"x" * (module.LONGEST_LINE + 1)):
            reader, writer = await asyncio.open_unix_connection(str(path))
            writer.write(said)
            async with asyncio.timeout(10):
                assert await reader.read() == b""
            writer.close()


async def test_who_is_silent_does_not_hold_up_the_end(tmp_path: Path) -> None:
    path = tmp_path / "a.db-control"
    async with opened(path):
        assert await ask(path, b"1") == b"said 1\n"
        reader, writer = await asyncio.open_unix_connection(str(path))
        writer.write(b"half")
        await writer.drain()
        assert await ask(path, b"2") == b"said 2\n"
    async with asyncio.timeout(5):
        assert await reader.read() == b""
    writer.close()
