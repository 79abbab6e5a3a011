"""Sync handlers: each in a thread of its own, as many as there are slots; its turn calls run in the turn's task.

A cancelled turn leaves its thread behind: a thread cannot be stopped. Its slot stays counted until it returns, and
whatever it still calls on its turn raises CancelledError.
"""

import asyncio
import threading
from collections import deque
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from contextvars import copy_context
from typing import Any

SLOTS = 32  # as many blocking handlers at once as a small machine carries; more wait their turn


class Bridge:
    """Lends a turn's task to its thread: calls run there one at a time, in the order they were made."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._owner = threading.get_ident()
        self._calls: deque[tuple[Callable[[], Awaitable[Any]], Future[Any]] | Future[Any]] = deque()
        self._arrived = asyncio.Event()
        self._closed = False

    def call(self, make: Callable[[], Awaitable[Any]]) -> Any:
        """From the thread: run this in the turn's task and wait for it."""
        if threading.get_ident() == self._owner:
            raise RuntimeError("A SyncTurn waits; use it only in the thread of its handler, never on the event loop")
        answer: Future[Any] = Future()
        self._post((make, answer))
        return answer.result()

    def returned(self, result: Future[Any]) -> None:
        """From the thread: it is over, and this is what it gave or raised."""
        self._post(result)

    async def serve(self) -> Any:
        """Run the thread's calls until it returns."""
        try:
            while True:
                while not self._calls:
                    self._arrived.clear()
                    await self._arrived.wait()
                call = self._calls.popleft()
                if isinstance(call, Future):
                    return call.result()
                await self._answer(*call)
        finally:
            self._closed = True
            while self._calls:
                self._refuse(self._calls.popleft())

    async def _answer(self, make: Callable[[], Awaitable[Any]], answer: Future[Any]) -> None:
        try:
            answer.set_result(await make())
        except BaseException as error:
            # Whatever it is, the thread must unwind. A cancellation also ends this task; Parked comes back
            # to us as what the thread raised.
            answer.set_exception(error)
            if isinstance(error, asyncio.CancelledError | KeyboardInterrupt | SystemExit):
                raise

    def _post(self, call: "tuple[Callable[[], Awaitable[Any]], Future[Any]] | Future[Any]") -> None:
        try:
            self._loop.call_soon_threadsafe(self._arrive, call)
        except RuntimeError:  # the loop is closed: the process is leaving
            self._refuse(call)

    def _arrive(self, call: "tuple[Callable[[], Awaitable[Any]], Future[Any]] | Future[Any]") -> None:
        if self._closed:
            self._refuse(call)
            return
        self._calls.append(call)
        self._arrived.set()

    def _refuse(self, call: "tuple[Callable[[], Awaitable[Any]], Future[Any]] | Future[Any]") -> None:
        if not isinstance(call, Future):
            call[1].set_exception(asyncio.CancelledError("The turn is over"))


class Threads:
    """A bounded number of threads. Who comes when all are taken waits, first come, first served."""

    def __init__(self, slots: int = SLOTS) -> None:
        self.slots = slots
        self.busy = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def run(self, work: Callable[[Bridge], Any]) -> Any:
        """Run in a thread that holds a slot. `work` gets the bridge to the calling task."""
        await self._enter()
        return await self._start(work, self._leave)

    async def nested(self, function: Callable[[], Any]) -> Any:
        """Run for a thread that already holds a slot and waits: taking another could lock all of them up."""
        return await self._start(lambda _: function(), lambda: None)

    async def call(self, function: Callable[[], Any]) -> Any:
        """Run a blocking function that needs no bridge."""
        return await self.run(lambda _: function())

    async def _start(self, work: Callable[[Bridge], Any], leave: Callable[[], None]) -> Any:
        loop = asyncio.get_running_loop()
        bridge = Bridge()
        context = copy_context()

        def body() -> None:
            result: Future[Any] = Future()
            try:
                result.set_result(context.run(work, bridge))
            except BaseException as error:  # it belongs to the turn, not to the thread
                result.set_exception(error)
            try:
                loop.call_soon_threadsafe(leave)
            except RuntimeError:
                leave()
            bridge.returned(result)

        try:
            threading.Thread(target=body, name="dragoman-handler", daemon=True).start()
        except BaseException:
            leave()
            raise
        return await bridge.serve()

    async def _enter(self) -> None:
        if self.busy < self.slots:
            self.busy += 1
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._leave()
            raise

    def _leave(self) -> None:
        while self._waiting:
            waiting = self._waiting.popleft()
            if not waiting.done():
                waiting.set_result(None)
                return
        self.busy -= 1
