"""Names are resolved beside everything else: one that never answers holds up only itself."""

import asyncio
import socket
import subprocess
import sys
import threading
from typing import Any

import pytest

from dragoman.client.resolver import SystemResolver

pytestmark = pytest.mark.anyio


async def test_a_name_leads_to_its_addresses_once_each() -> None:
    found = await SystemResolver().resolve("localhost")
    assert found and set(found) <= {"127.0.0.1", "::1"}
    assert len(set(found)) == len(found)


async def test_what_does_not_exist_leads_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> Any:
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", fail)
    assert await SystemResolver().resolve("nowhere.example") == ()
    monkeypatch.undo()
    assert await SystemResolver().resolve("a" * 64 + ".example") == ()


class Slow:
    """The system, answering when the test says so."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.gate = threading.Event()

    def __call__(self, host: str, *_: Any, **__: Any) -> list[Any]:
        self.asked.append(host)
        if host.startswith("slow"):
            self.gate.wait(20)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("192.0.2.1", 0))]


async def test_many_who_ask_for_one_name_ask_the_system_once(monkeypatch: pytest.MonkeyPatch) -> None:
    slow = Slow()
    monkeypatch.setattr(socket, "getaddrinfo", slow)
    resolver = SystemResolver()
    asking = [asyncio.create_task(resolver.resolve("slow.example")) for _ in range(10)]
    await asyncio.sleep(0)
    asking[0].cancel()  # giving up takes nothing from the others
    slow.gate.set()
    assert await asyncio.gather(*asking[1:]) == [("192.0.2.1",)] * 9
    assert slow.asked == ["slow.example"]
    assert await resolver.resolve("slow.example") == ("192.0.2.1",)
    assert len(slow.asked) == 2


async def test_names_that_hang_leave_room_and_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    slow = Slow()
    monkeypatch.setattr(socket, "getaddrinfo", slow)
    resolver = SystemResolver(at_once=3)
    hanging = [asyncio.create_task(resolver.resolve(f"slow{n}.example")) for n in range(2)]
    async with asyncio.timeout(10):
        assert await resolver.resolve("quick.example") == ("192.0.2.1",)
    hanging += [asyncio.create_task(resolver.resolve(f"slow{n}.example")) for n in range(2, 5)]
    await asyncio.sleep(0)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await resolver.resolve("quick.example")
    assert len([host for host in slow.asked if host.startswith("slow")]) == 3
    slow.gate.set()
    await asyncio.gather(*hanging)


def test_a_name_that_hangs_does_not_hold_up_the_end_of_the_process() -> None:
    code = """
import asyncio, socket, time
from dragoman.client.resolver import SystemResolver
socket.getaddrinfo = lambda *a, **k: time.sleep(60)
async def main():
    try:
        async with asyncio.timeout(0.05):
            await SystemResolver().resolve("slow.example")
    except TimeoutError:
        print("gave up")
asyncio.run(main())
"""
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=20, check=True)
    assert (shown.stdout, shown.stderr) == ("gave up\n", "")
