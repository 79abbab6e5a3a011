"""How much at once: requests in work and open streams, in total and per caller."""

from dragoman.gateway.settings import GatewaySettings
from dragoman.model.errors import Busy


class Quota:
    """Counts. Whoever enters leaves, in a `finally`."""

    def __init__(self, settings: GatewaySettings) -> None:
        self._most_requests = settings.requests
        self._most_streams = settings.streams
        self._most_each = settings.streams_per_caller
        self._each: dict[str, int] = {}
        self.requests = 0
        self.streams = 0

    def enter(self) -> None:
        if self.requests >= self._most_requests:
            raise Busy("Too many requests are being worked on; try again in a moment", limit=str(self._most_requests))
        self.requests += 1

    def leave(self) -> None:
        self.requests -= 1

    def open(self, caller: str) -> None:
        mine = self._each.get(caller, 0)
        if mine >= self._most_each:
            raise Busy("Too many streams are open for this caller; close one first", limit=str(self._most_each))
        if self.streams >= self._most_streams:
            raise Busy("Too many streams are open; try again in a moment", limit=str(self._most_streams))
        self._each[caller] = mine + 1
        self.streams += 1

    def close(self, caller: str) -> None:
        self.streams -= 1
        mine = self._each[caller] - 1
        if mine:
            self._each[caller] = mine
        else:
            del self._each[caller]
