"""Large bodies: how many bytes are in memory at once, and whose turn it is."""

import asyncio
from collections.abc import AsyncGenerator, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import pytest

from dragoman.gateway.room import UPLOADS, Room
from dragoman.model.errors import Busy, Overloaded

pytestmark = pytest.mark.anyio


def uploads(most: int = 100, each: int = 60, wait: float = 10) -> Room:
    return Room(most, each, wait, UPLOADS)


@asynccontextmanager
async def entering(room: Room, *who: tuple[str, int]) -> AsyncGenerator[list["asyncio.Task[None]"]]:
    """All of them come in this order; those who get in stay in until the test lets them leave."""
    tasks: list[asyncio.Task[None]] = []
    for caller, size in who:
        tasks.append(asyncio.create_task(room.enter(caller, size)))
        await settle()
    try:
        yield tasks
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def inside(tasks: "list[asyncio.Task[None]]") -> list[bool]:
    await settle()
    return [task.done() for task in tasks]


async def test_what_fits_enters_and_the_rest_waits_for_room() -> None:
    room = uploads()
    async with entering(room, ("a", 50), ("b", 40), ("c", 20)) as tasks:
        assert await inside(tasks) == [True, True, False]
        assert room.total == 90
        room.leave("b", 40)
        assert await inside(tasks) == [True, True, True]
        assert room.total == 70
    room.leave("a", 50)
    room.leave("c", 20)
    assert (room.total, room._mine, len(room._waiting)) == (0, {}, 0)


async def test_one_caller_does_not_take_the_room_of_another() -> None:
    room = uploads()
    async with entering(room, ("a", 40), ("a", 40), ("a", 40), ("b", 40)) as tasks:
        assert await inside(tasks) == [True, False, False, True]
        room.leave("a", 40)
        assert await inside(tasks) == [True, True, False, True]
        room.leave("b", 40)
        assert await inside(tasks) == [True, True, False, True]  # its caller has as much as one may


async def test_room_is_handed_out_to_callers_in_turn() -> None:
    room = uploads(most=50, each=50)
    async with entering(room, ("x", 50), ("a", 25), ("a", 25), ("a", 25), ("b", 25)) as tasks:
        room.leave("x", 50)
        assert await inside(tasks) == [True, True, False, False, True]
        room.leave("b", 25)
        assert await inside(tasks) == [True, True, True, False, True]


async def test_a_caller_gives_back_one_body_and_keeps_the_room_of_another() -> None:
    room = uploads(most=100, each=60)
    async with entering(room, ("a", 40), ("a", 20), ("a", 30)) as tasks:
        assert await inside(tasks) == [True, True, False]
        room.leave("a", 20)
        assert await inside(tasks) == [True, True, False]
        room.leave("a", 40)
        assert await inside(tasks) == [True, True, True]
        assert room.total == 30


async def test_what_is_larger_than_all_room_enters_alone() -> None:
    room = uploads(most=10, each=10)
    async with entering(room, ("a", 500), ("b", 1)) as tasks:
        assert await inside(tasks) == [True, False]
        room.leave("a", 500)
        assert await inside(tasks) == [True, True]


async def test_later_ones_do_not_overtake_their_own_callers_earlier_ones() -> None:
    room = uploads(most=100, each=60)
    async with entering(room, ("a", 50), ("a", 50), ("a", 5)) as tasks:
        assert await inside(tasks) == [True, False, False]
        room.leave("a", 50)
        assert await inside(tasks) == [True, True, True]


async def refusal(work: Coroutine[Any, Any, None]) -> Busy:
    with pytest.raises(Busy) as refused:
        await work
    return refused.value


async def test_who_waits_too_long_is_told_whose_limit_it_is() -> None:
    room = uploads(wait=0.02)
    await room.enter("a", 60)
    await room.enter("b", 40)
    mine = await refusal(room.enter("a", 30))
    assert (mine.limit, type(mine)) == ("limits.uploads_per_caller", Busy)
    full = await refusal(room.enter("c", 30))
    assert (full.limit, type(full)) == ("limits.uploads", Overloaded)
    room.leave("a", 60)
    room.leave("b", 40)
    assert (room.total, room._mine, len(room._waiting)) == (0, {}, 0)


async def test_who_leaves_the_line_gives_way() -> None:
    room = uploads()
    async with entering(room, ("a", 60), ("b", 90), ("b", 30)) as tasks:
        assert await inside(tasks) == [True, False, False]
        tasks[1].cancel()
        assert await inside(tasks) == [True, True, True]
        assert tasks[1].cancelled() and not tasks[2].cancelled()
    room.leave("a", 60)
    room.leave("b", 30)
    assert (room.total, room._mine) == (0, {})


async def test_room_handed_to_who_leaves_at_that_moment_is_not_lost() -> None:
    room = uploads(most=50, each=50)
    async with entering(room, ("a", 50), ("b", 50), ("c", 50)) as tasks:
        room.leave("a", 50)  # b's turn; but b hears of it only after it was cancelled
        tasks[1].cancel()
        assert await inside(tasks) == [True, True, True]
        assert tasks[1].cancelled() and not tasks[2].cancelled()
    room.leave("c", 50)
    assert (room.total, room._mine, len(room._waiting)) == (0, {}, 0)
