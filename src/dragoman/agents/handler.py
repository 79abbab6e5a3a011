"""A skill's function and how to run it: async or in a thread, returning or yielding.

Parked, cancellation and errors pass through untouched; whatever was suspended is closed on their way.
"""

import functools
import inspect
import logging
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import closing
from typing import Any, NamedTuple, Protocol, cast

from dragoman.agents.blocking import SyncTurn
from dragoman.agents.incoming import Reply
from dragoman.agents.signature import Signature
from dragoman.agents.threads import Bridge, Threads
from dragoman.agents.turn import Turn
from dragoman.model.cards import Skill
from dragoman.model.messages import Message
from dragoman.model.operations import Principal
from dragoman.ports import Route

log = logging.getLogger("dragoman.agents")


class Sink(Protocol):
    """Where a handler's words go."""

    async def put(self, item: Any) -> None: ...
    async def deliver(self, result: Any) -> None: ...
    async def close(self) -> None: ...


class Handler(NamedTuple):
    function: Callable[..., Any]
    signature: Signature
    skill: Skill
    route: Route
    extended: bool | Callable[[Principal], bool]
    threaded: bool


def is_async(function: Callable[..., Any]) -> bool:
    """Whether it runs on the loop. Looks through partials, functools.wraps and objects with __call__."""
    while isinstance(function, functools.partial):
        function = cast(Callable[..., Any], function.func)
    function = inspect.unwrap(function)
    if not inspect.isroutine(function):
        function = type(function).__call__
    return inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function)


async def perform(handler: Handler, arguments: dict[str, Any], turn: Turn, sink: Sink, threads: Threads) -> None:
    """Run the handler for this turn and put what it gives into the sink."""
    if handler.threaded:
        result = await threads.run(lambda bridge: _in_thread(handler, arguments, SyncTurn(turn, bridge), sink, bridge))
    else:
        placed, named = handler.signature.place(arguments, turn)
        result = handler.function(*placed, **named)
    if inspect.isasyncgen(result):
        await _drain(cast(AsyncGenerator[Any], result), sink)
        return
    if inspect.isawaitable(result):
        result = await result
    await sink.deliver(result)


async def _drain(items: AsyncGenerator[Any], sink: Sink) -> None:
    try:
        async for item in items:
            await sink.put(item)
    except BaseException:
        try:
            await items.aclose()
        except Exception:
            # What made us stop matters more than what went wrong while the generator cleaned up.
            log.exception("A handler failed while it was closed")
        raise
    await sink.close()


def _in_thread(handler: Handler, arguments: dict[str, Any], turn: SyncTurn, sink: Sink, bridge: Bridge) -> Any:
    placed, named = handler.signature.place(arguments, turn)
    result = handler.function(*placed, **named)
    return _relay(cast(Generator[Any, None, Any], result), sink, bridge) if inspect.isgenerator(result) else result


def _relay(items: Generator[Any, None, Any], sink: Sink, bridge: Bridge) -> Any:
    with closing(items):
        while True:
            try:
                item = next(items)
            except StopIteration as end:
                last = end.value
                break
            bridge.call(lambda item=item: sink.put(item))
    spoken = isinstance(last, Reply | Message)
    if not spoken:
        bridge.call(lambda: sink.put(last))
    bridge.call(sink.close)
    return last if spoken else None
