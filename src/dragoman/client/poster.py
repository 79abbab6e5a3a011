"""POSTs, each within its time, over connections that are kept for the next one to the same place."""

import asyncio
import re
from collections import deque
from collections.abc import Sequence

from dragoman.client.dialler import Dialler
from dragoman.client.exchange import Exchange, Reply, Unanswered
from dragoman.core.addresses import Target

IDLE_SECONDS = 4.0  # shorter than what common servers keep an idle connection for (5 s and more)
LIFE_SECONDS = 60.0  # then the name is resolved and checked again
IDLE_TOTAL = 128
IDLE_PER_PLACE = 16

Place = tuple[str, str, int]
Headers = Sequence[tuple[str, str]]

_NAME = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_VALUE = re.compile(r"[\x20-\x7e\x80-\xff\t]*")


class Poster:
    """Posts to checked targets. Follows no redirect, keeps no cookie, reads of an answer only what decides.

    A request may arrive twice: when a kept connection turns out to be closed, it is sent again on another one.
    """

    def __init__(self, dialler: Dialler) -> None:
        self.dialler = dialler
        self._idle: dict[Place, deque[Exchange]] = {}
        self._count = 0
        self._closed = False

    async def post(self, target: Target, headers: Headers, body: bytes, *, seconds: float) -> Reply:
        """Send and wait for the status. Raises AddressRefused, Unanswered, or ValueError for an impossible header."""
        request = _request(target, headers, body)
        place = (target.scheme, target.host, target.port)
        exchange: Exchange | None = None
        try:
            async with asyncio.timeout(seconds):
                while exchange := self._take(place):
                    try:
                        return await exchange.post(request)
                    except Unanswered:
                        if not exchange.silent:
                            raise
                exchange = await self.dialler.dial(target)
                return await exchange.post(request)
        except TimeoutError:
            if exchange is not None and (known := exchange.known):
                return known
            raise Unanswered("did not answer in time") from None
        finally:
            if exchange is not None:
                self._keep(place, exchange)

    async def close(self) -> None:
        self._closed = True
        for waiting in self._idle.values():
            for exchange in waiting:
                exchange.close()
        self._idle.clear()

    def _take(self, place: Place) -> Exchange | None:
        """The connection used last: the others may then grow old."""
        while waiting := self._idle.get(place):
            exchange = waiting.pop()
            self._forget(place, waiting)
            if exchange.timer is not None:
                exchange.timer.cancel()
            if exchange.idle:
                return exchange
        return None

    def _keep(self, place: Place, exchange: Exchange) -> None:
        loop = asyncio.get_running_loop()
        waiting = self._idle.get(place, ())
        full = self._closed or self._count >= IDLE_TOTAL or len(waiting) >= IDLE_PER_PLACE
        if full or not exchange.idle or loop.time() - exchange.since > LIFE_SECONDS:
            exchange.close()
            return
        self._idle.setdefault(place, deque()).append(exchange)
        self._count += 1
        exchange.timer = loop.call_later(IDLE_SECONDS, self._expire, place, exchange)

    def _expire(self, place: Place, exchange: Exchange) -> None:
        waiting = self._idle.get(place)
        if waiting is not None and exchange in waiting:
            waiting.remove(exchange)
            self._forget(place, waiting)
        exchange.close()

    def _forget(self, place: Place, waiting: deque[Exchange]) -> None:
        self._count -= 1
        if not waiting:
            del self._idle[place]


def _request(target: Target, headers: Headers, body: bytes) -> bytes:
    lines = [f"POST {target.path} HTTP/1.1", f"Host: {target.authority}", f"Content-Length: {len(body)}"]
    for name, value in headers:
        # Values come from callers: one with a line break in it would write the request.
        if not (_NAME.fullmatch(name) and _VALUE.fullmatch(value)):
            raise ValueError(f"The header {name[:40]!a} cannot be sent")
        lines.append(f"{name}: {value}")
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body
