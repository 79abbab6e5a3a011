"""How much at once and how often: of each caller, of each address, and in total.

A caller is who logged in; where nobody has to, an address is a caller. Rates are kept by waiting: a request that comes
before its turn is held back for a moment, so that a burst becomes a steady trickle and nobody else's requests queue
behind it. Only who is further ahead than that is refused, and not at once either: an answer that costs nothing would
invite the next request.
"""

import asyncio
import math
import time
from collections.abc import Awaitable, Callable
from functools import lru_cache
from ipaddress import IPv6Address, ip_address

from dragoman.gateway.paces import Paces
from dragoman.gateway.settings import GatewaySettings
from dragoman.model.errors import Busy, Overloaded

HERE = "@here"
"""Every address of this machine, and sockets that have none."""

LARGE = 65_536  # bytes of a body that count as one more request
NETWORK = 64  # bits of an IPv6 address; one machine easily has all the rest


class Quota:
    """Counts. Whoever enters leaves, in a `finally`."""

    def __init__(self, settings: GatewaySettings, clock: Callable[[], int] = time.monotonic_ns) -> None:
        self._settings = settings
        self._patience = settings.rate_wait
        self._addresses = _paces(settings.rate_per_address, settings, clock)
        self._callers = _paces(settings.rate_per_caller, settings, clock)
        self._working: dict[str, int] = {}
        self._streaming: dict[str, int] = {}
        self.requests = 0
        self.streams = 0
        self.waiting = 0

    # --- how often

    def arrive(self, place: str) -> Awaitable[None] | None:
        """A request from there. None when it may go on; else await it first, which may raise Busy."""
        if self._addresses is None or (place == HERE and not self._settings.rate_loopback):
            return None
        seconds = self._addresses.wait(place)
        return None if seconds <= 0 else self._hold(seconds, "rate_per_address", self._settings.rate_per_address)

    def knock(self, caller: str, place: str) -> Awaitable[None] | None:
        """That request is of somebody who logged in; as with `arrive`. From now on it counts as theirs, and not as one
        from their address: neighbours are not to pay for each other."""
        if not caller or (place == HERE and not self._settings.rate_loopback):
            return None
        if self._addresses is not None:
            self._addresses.give_back(place)
        if self._callers is None:
            return None
        seconds = self._callers.wait(caller)
        return None if seconds <= 0 else self._hold(seconds, "rate_per_caller", self._settings.rate_per_caller)

    def weigh(self, caller: str, place: str, size: int) -> None:
        """That request was large: reading it took as long as several small ones."""
        if place == HERE and not self._settings.rate_loopback:
            return
        paces = self._callers if caller else self._addresses
        if paces is not None:
            paces.add(caller or place, size // LARGE)

    async def _hold(self, seconds: float, limit: str, most: float) -> None:
        over = seconds > self._patience
        if self.waiting >= self._settings.requests:
            raise Overloaded(
                "Too many requests are waiting for their turn; try again in a moment",
                limit="limits.requests",
                most=self._settings.requests,
            )
        self.waiting += 1
        try:
            await asyncio.sleep(min(seconds, self._patience))
        finally:
            self.waiting -= 1
        if over:
            raise Busy(
                f"More than {most:g} requests per second; slow down",
                math.ceil(seconds - self._patience),
                limit=f"limits.{limit}",
                most=most,
            )

    # --- how much at once

    def enter(self, caller: str) -> None:
        """A request of that caller (or, where nobody logged in, from that place) begins to be worked on."""
        settings = self._settings
        if self.requests >= settings.requests:
            raise Overloaded(
                "Too many requests are being worked on; try again in a moment",
                limit="limits.requests",
                most=settings.requests,
            )
        mine = self._working.get(caller, 0)
        if mine >= settings.requests_per_caller:
            raise Busy(
                f"{mine} of your requests are being worked on already; wait for one of them",
                limit="limits.requests_per_caller",
                most=mine,
            )
        self._working[caller] = mine + 1
        self.requests += 1

    def leave(self, caller: str) -> None:
        self.requests -= 1
        _less(self._working, caller)

    def open(self, caller: str, place: str) -> None:
        """A stream of that caller, there. Raises Busy."""
        settings = self._settings
        mine = self._streaming.get(caller, 0)
        if mine >= settings.streams_per_caller:
            raise Busy(
                f"{mine} of your streams are open already; close one of them",
                limit="limits.streams_per_caller",
                most=mine,
            )
        near = self._streaming.get(place, 0)
        if near >= settings.streams_per_address:
            raise Busy(
                f"{near} streams are open already from your address; close one of them",
                limit="limits.streams_per_address",
                most=near,
            )
        if self.streams >= settings.streams:
            raise Overloaded(
                "Too many streams are open; try again in a moment", limit="limits.streams", most=settings.streams
            )
        self._streaming[caller] = mine + 1
        if place != caller:
            self._streaming[place] = near + 1
        self.streams += 1

    def close(self, caller: str, place: str) -> None:
        self.streams -= 1
        _less(self._streaming, caller)
        if place != caller:
            _less(self._streaming, place)


@lru_cache(4_096)
def place_of(address: str) -> str:
    """What counts as one address. It begins with an @, as no principal's id does."""
    try:
        found = ip_address(address)
    except ValueError:
        # A proxy may hide its clients behind words like these (RFC 7239). Otherwise it is a local socket, or a host
        # application's own idea of one.
        return f"@{address}" if address.startswith(("_", "unknown")) else HERE
    if isinstance(found, IPv6Address):
        mapped = found.ipv4_mapped
        if mapped is None and not found.is_loopback:
            return f"@{IPv6Address(int(found) >> (128 - NETWORK) << (128 - NETWORK))}/{NETWORK}"
        found = mapped or found
    return HERE if found.is_loopback else f"@{found}"


def _paces(per_second: float, settings: GatewaySettings, clock: Callable[[], int]) -> Paces | None:
    return Paces(per_second, settings.rate_burst, settings.rate_wait, clock) if per_second else None


def _less(counts: dict[str, int], key: str) -> None:
    left = counts[key] - 1
    if left:
        counts[key] = left
    else:
        del counts[key]
