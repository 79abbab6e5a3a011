"""One process per file."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from dragoman.model.errors import StoreError
from dragoman.store.sqlite import SqliteStore
from tests.conformance.store.logs import OURS, new

pytestmark = pytest.mark.anyio

ROOT = Path(__file__).parents[2]

HOLD = """
import asyncio, sys
from dragoman.store.sqlite import SqliteStore
async def main():
    store = SqliteStore(sys.argv[1])
    await store.open()
    print("open", flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline)
    await store.close()
asyncio.run(main())
"""


def holder(path: Path) -> "subprocess.Popen[str]":
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
    )
    assert process.stdout and process.stdout.readline() == "open\n"
    return process


@pytest.mark.proves("S-4-6")
async def test_a_second_process_is_refused_with_the_reason_and_no_path(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    with holder(path) as process:
        with pytest.raises(StoreError) as refused:
            await SqliteStore(path).open()
        assert f"in use by process {process.pid}" in str(refused.value)
        assert str(tmp_path) not in str(refused.value)
        process.communicate("\n", timeout=10)
    store = SqliteStore(path)
    await store.open()
    await store.close()


@pytest.mark.proves("S-4-6")
async def test_another_name_for_the_same_file_is_the_same_store(tmp_path: Path) -> None:
    path, link, around = tmp_path / "log.db", tmp_path / "link.db", tmp_path / "dir"
    link.symlink_to(path)
    around.symlink_to(tmp_path)
    with holder(path) as process:
        for other in (link, around / "log.db", tmp_path / "." / "log.db"):
            with pytest.raises(StoreError, match=f"in use by process {process.pid}"):
                await SqliteStore(other).open()
        process.communicate("\n", timeout=10)
    store = SqliteStore(link)
    await store.open()
    await store.append(new("u"))
    await store.close()
    assert path.exists() and not (tmp_path / "link.db-lock").exists()
    (tmp_path / "hard.db").hardlink_to(path)
    for one in (path, tmp_path / "hard.db"):
        with pytest.raises(StoreError, match="hard link"):
            await SqliteStore(one).open()


@pytest.mark.proves("S-4-6")
async def test_a_killed_owner_leaves_no_lock_behind(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    with holder(path) as process:
        process.send_signal(signal.SIGKILL)
        process.wait(10)
    store = SqliteStore(path)
    await store.open()
    await store.append(new("u"))
    await store.close()


async def test_a_second_store_in_one_process_is_refused_and_the_first_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    first = SqliteStore(path)
    await first.open()
    with pytest.raises(StoreError):
        await SqliteStore(path).open()
    await first.append(new("u"))
    with pytest.raises(StoreError):
        await SqliteStore(path).open()
    assert await first.head(OURS, "u")
    await first.close()


async def test_a_deleted_content_of_the_lock_file_does_not_open_the_door(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    with holder(path) as process:
        (tmp_path / "log.db-lock").write_text("")
        with pytest.raises(StoreError, match="in use by another process"):
            await SqliteStore(path).open()
        process.communicate("\n", timeout=10)


async def test_a_forked_child_does_not_keep_the_file_of_a_dead_parent(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    forking = """
import asyncio, os, sys, signal
from dragoman.store.sqlite import SqliteStore
async def main():
    store = SqliteStore(sys.argv[1])
    await store.open()
    child = os.fork()
    if child == 0:
        os.write(1, f"{os.getpid()}\\n".encode())
    signal.pause()
asyncio.run(main())
"""
    process = subprocess.Popen(
        [sys.executable, "-c", forking, str(path)],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
    )
    assert process.stdout
    child = int(process.stdout.readline())
    process.kill()
    try:
        process.wait(10)
        store = SqliteStore(path)
        await store.open()
        await store.close()
    finally:
        os.kill(child, signal.SIGKILL)
        process.stdout.close()


async def test_a_directory_that_is_not_there_is_a_plain_refusal(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="directory"):
        await SqliteStore(tmp_path / "nowhere" / "log.db").open()
