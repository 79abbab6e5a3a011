"""A full disk: a clear answer, nothing acknowledged is lost, and ends still fit."""

import asyncio
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from dragoman.model.errors import OutcomeUnknown, StoreFull
from dragoman.model.tasks import TaskState
from dragoman.ports import Append, Appended
from dragoman.store.sqlite import SqliteStore
from dragoman.store.sqlite.writer import Synchronous
from tests.conformance.store.logs import OURS, chunk, created, finished, new, output, settled

pytestmark = pytest.mark.anyio

LIMIT = 2_000_000


async def fill(store: SqliteStore, uid: str, text: str = "x" * 20_000, at_most: int = 10_000) -> int:
    """Append until the store refuses; how many were acknowledged."""
    for n in range(at_most):
        try:
            await store.append(output(uid, chunk(text=text)))
        except StoreFull:
            return n
    raise AssertionError("the store never filled up")


@pytest.mark.proves("S-3-6")
async def test_when_full_ordinary_appends_are_refused_and_ends_still_fit(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "log.db", max_bytes=LIMIT)
    await store.open()
    for n in range(20):
        await store.append(new(f"u{n}"))
    kept = await fill(store, "u0")
    with pytest.raises(StoreFull) as refused:
        await store.append(new("late", created(text="x" * 50_000)))
    assert str(tmp_path) not in str(refused.value) and "SQL" not in str(refused.value)
    for n in range(20):
        head = (await store.append(output(f"u{n}", settled(state=TaskState.FAILED)))).head
        assert head.state is TaskState.FAILED
    await store.close()
    assert (tmp_path / "log.db").stat().st_size <= LIMIT
    store = SqliteStore(tmp_path / "log.db", max_bytes=LIMIT)
    await store.open()
    head = await store.head(OURS, "u0")
    assert head and head.seq == 2 + kept + 1
    await store.close()


async def test_one_large_append_does_not_take_small_ones_down_with_it(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "log.db", max_bytes=LIMIT)
    await store.open()
    for n in range(5):
        await store.append(new(f"u{n}"))
    answers = await asyncio.gather(
        *(store.append(output(f"u{n}", chunk(text="x" * (LIMIT * 2 if n == 2 else 10)))) for n in range(5)),
        store.append(new("v")),
        return_exceptions=True,
    )
    kinds = [type(answer).__name__ for answer in answers]
    assert kinds == ["Appended", "Appended", "StoreFull", "Appended", "Appended", "Appended"]
    assert len(await store.since(OURS, "u2", 0)) == 2
    await store.close()


async def test_after_a_sweep_there_is_room_again(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "log.db", max_bytes=LIMIT)
    await store.open()
    await store.append(new("u"))
    await fill(store, "u")
    await store.append(output("u", settled()))
    await store.sweep(terminal_before=store.now())
    assert await finished(store, "next")
    assert await fill(store, await begun(store, "again")) > 50
    await store.close()
    assert (tmp_path / "log.db").stat().st_size <= LIMIT


async def begun(store: SqliteStore, uid: str) -> str:
    await store.append(new(uid))
    return uid


class Place(NamedTuple):
    folder: Path
    max_bytes: int


@pytest.fixture
def tiny(tmp_path: Path) -> Iterator[Place]:
    """A real filesystem of 3 MiB where one may be mounted; elsewhere a file that may not grow."""
    folder = tmp_path / "tiny"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(folder)]
    if os.geteuid() == 0 and subprocess.run(mount, capture_output=True).returncode == 0:
        yield Place(folder, 0)
        subprocess.run(["umount", str(folder)], check=True)
    else:
        yield Place(folder, LIMIT)


@pytest.mark.parametrize("synchronous", ["NORMAL", "FULL"])
async def test_on_a_full_disk_nothing_acknowledged_is_lost_and_nothing_refused_is_kept(
    tiny: Place, synchronous: Synchronous
) -> None:
    others = tiny.folder / "others"
    others.write_bytes(b"x" * 1_800_000)
    store = SqliteStore(
        tiny.folder / "log.db", max_bytes=tiny.max_bytes, synchronous=synchronous, recent_tasks=1, recent_bytes=0
    )
    await store.open()
    for n in range(4):
        await store.append(new(f"u{n}"))
    acknowledged: dict[str, int] = {f"u{n}": 2 for n in range(4)}
    refused = 0
    for round in range(400):
        wishes: list[Append] = [output(f"u{n}", chunk(text=f"{round} " + "x" * 3_000)) for n in range(4)]
        for answer in await asyncio.gather(*(store.append(wish) for wish in wishes), return_exceptions=True):
            if isinstance(answer, Appended):
                acknowledged[answer.head.uid] = answer.head.seq
            else:
                assert isinstance(answer, StoreFull | OutcomeUnknown)
                refused += 1
    assert refused > 4
    for uid, last in acknowledged.items():
        loaded = await store.load(OURS, uid)
        assert loaded and loaded.head.seq == last
        assert [entry.seq for entry in loaded.entries] == list(range(1, last + 1))
    others.unlink()
    for uid, last in acknowledged.items():
        assert (await store.append(output(uid, settled()))).first == last + 1
    await store.close()
    store = SqliteStore(tiny.folder / "log.db")
    await store.open()
    for uid, last in acknowledged.items():
        head = await store.head(OURS, uid)
        assert head and head.seq == last + 1
    await store.close()
