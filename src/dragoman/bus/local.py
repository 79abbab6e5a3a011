"""A bell within one process: ringing calls the listeners, on the loop's thread, in the order they came."""

from collections.abc import Callable

Wake = Callable[[], None]


class LocalBus:
    """`ports.Bus` for one replica.

    A ring wakes at most once per listener and is never queued: a listener that is told twice reads the log once more
    and finds nothing, so there is nothing to bound here.
    """

    def __init__(self) -> None:
        self._bells: dict[str, dict[object, Wake]] = {}
        self._work: dict[object, Wake] = {}

    async def open(self) -> None:
        pass

    async def close(self) -> None:
        self._bells.clear()
        self._work.clear()

    def ring(self, uid: str) -> None:
        if listeners := self._bells.get(uid):
            for wake in tuple(listeners.values()):
                wake()

    def listen(self, uid: str, wake: Wake) -> Callable[[], None]:
        token = object()
        self._bells.setdefault(uid, {})[token] = wake

        def stop() -> None:
            if listeners := self._bells.get(uid):
                listeners.pop(token, None)
                if not listeners:
                    del self._bells[uid]

        return stop

    def ring_work(self) -> None:
        for wake in tuple(self._work.values()):
            wake()

    def listen_work(self, wake: Wake) -> Callable[[], None]:
        token = object()
        self._work[token] = wake
        return lambda: self._work.pop(token, None) and None
