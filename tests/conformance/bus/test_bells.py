"""One suite, every bus."""

from collections.abc import AsyncIterator, Callable

import pytest

from dragoman.bus.local import LocalBus
from dragoman.ports import Bus

pytestmark = pytest.mark.anyio

BUSES: dict[str, Callable[[], Bus]] = {"local": LocalBus}


@pytest.fixture(params=BUSES)
async def bus(request: pytest.FixtureRequest) -> AsyncIterator[Bus]:
    bus = BUSES[request.param]()
    await bus.open()
    yield bus
    await bus.close()


@pytest.mark.proves("S-4-7")
async def test_a_ring_wakes_every_listener_of_that_task_and_nobody_else(bus: Bus) -> None:
    heard: list[str] = []
    bus.listen("u", lambda: heard.append("one"))
    bus.listen("u", lambda: heard.append("two"))
    bus.listen("v", lambda: heard.append("other"))
    bus.ring("u")
    assert heard == ["one", "two"]


async def test_a_ring_nobody_listens_to_is_fine(bus: Bus) -> None:
    bus.ring("u")
    bus.ring_work()


async def test_a_listener_that_stopped_hears_nothing_and_may_stop_twice(bus: Bus) -> None:
    heard: list[str] = []
    stop = bus.listen("u", lambda: heard.append("x"))
    keep = bus.listen("u", lambda: heard.append("y"))
    stop()
    stop()
    bus.ring("u")
    keep()
    bus.ring("u")
    assert heard == ["y"]


async def test_one_callable_may_listen_twice_and_stop_once(bus: Bus) -> None:
    heard: list[int] = []

    def wake() -> None:
        heard.append(1)

    stop = bus.listen("u", wake)
    bus.listen("u", wake)
    stop()
    bus.ring("u")
    assert heard == [1]


async def test_a_listener_may_stop_itself_or_others_while_it_is_called(bus: Bus) -> None:
    heard: list[str] = []
    stops: list[Callable[[], None]] = []

    def first() -> None:
        heard.append("first")
        for stop in stops:
            stop()

    stops.append(bus.listen("u", first))
    stops.append(bus.listen("u", lambda: heard.append("second")))
    bus.ring("u")
    bus.ring("u")
    assert heard[0] == "first" and heard.count("first") == 1


@pytest.mark.proves("S-4-7")
async def test_the_work_bell_is_its_own(bus: Bus) -> None:
    heard: list[str] = []
    bus.listen("u", lambda: heard.append("task"))
    stop = bus.listen_work(lambda: heard.append("work"))
    bus.ring_work()
    stop()
    stop()
    bus.ring_work()
    assert heard == ["work"]
