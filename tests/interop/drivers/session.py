"""The loop around a Python client: one JSON request per line in, one JSON answer per line out.

Runs inside a foreign environment, so it knows the standard library only. A request names an operation and its
arguments; the answer holds `value`, or `error` (the client's own class), `code` (number it carried) and `text`.
"""

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

PATIENCE = 30.0  # seconds one operation may take; the test behind it gives up a little later

Operation = Callable[..., Awaitable[Any]]


def run(operations: Mapping[str, Operation], code_of: Callable[[Exception], int | None]) -> None:
    asyncio.run(_loop(operations, code_of))


async def _loop(operations: Mapping[str, Operation], code_of: Callable[[Exception], int | None]) -> None:
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        request = json.loads(line)
        operation = operations[request.pop("op")]
        try:
            answer = {"value": await asyncio.wait_for(operation(**request), PATIENCE)}
        except Exception as error:  # whatever the client raised is the answer
            answer = {"error": type(error).__name__, "code": code_of(error), "text": str(error)}
        print(json.dumps(answer), flush=True)


async def gather(
    stream: Any,
    describe: Callable[[Any], dict[str, Any]],
    react: Callable[[dict[str, Any], bool], Awaitable[Any]] | None = None,
) -> dict[str, Any]:
    """Every event of a stream as plain data, and the error that ended it early, if one did. `react` sees each as it
    comes, and whether it is the first."""
    events: list[dict[str, Any]] = []
    try:
        async for item in stream:
            events.append(describe(item))
            if react is not None:
                await react(events[-1], len(events) == 1)
    except Exception as error:  # a dropped socket is a result here, not a failure
        if not events:
            raise
        return {"events": events, "dropped": type(error).__name__}
    return {"events": events, "dropped": None}
