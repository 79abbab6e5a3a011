"""The system's name resolution, on threads of its own.

A loop's `getaddrinfo` shares a handful of threads with files and with everybody else, and a name whose server never
answers holds one of them for half a minute. Here such names can only stand in each other's way, and the process ends
without waiting for them.
"""

import asyncio
import socket
from collections.abc import Sequence
from threading import Thread

AT_ONCE = 16


class SystemResolver:
    """`ports.Resolver` by the system's rules: hosts file, search domains, name servers. Asks once for all who wait."""

    def __init__(self, at_once: int = AT_ONCE) -> None:
        self._room = asyncio.Semaphore(at_once)
        self._asked: dict[str, asyncio.Future[Sequence[str]]] = {}

    async def resolve(self, host: str) -> Sequence[str]:
        asked = self._asked.get(host)
        if asked is None:
            asked = self._asked[host] = asyncio.ensure_future(self._ask(host))
            asked.add_done_callback(lambda _: self._asked.pop(host, None))
        # Whoever gives up waiting leaves the question to the others.
        return await asyncio.shield(asked)

    async def _ask(self, host: str) -> Sequence[str]:
        async with self._room:
            loop = asyncio.get_running_loop()
            answer: asyncio.Future[Sequence[str]] = loop.create_future()

            def tell(found: Sequence[str]) -> None:
                if not answer.done():
                    answer.set_result(found)

            def look() -> None:
                found = _lookup(host)
                try:
                    loop.call_soon_threadsafe(tell, found)
                except RuntimeError:
                    pass  # the loop has ended meanwhile: nobody waits

            Thread(target=look, name="resolver", daemon=True).start()
            return await answer


def _lookup(host: str) -> Sequence[str]:
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return ()
    return tuple(dict.fromkeys(str(place[0]) for *_, place in found))
