"""A process that appends to a store and says what was acknowledged, until somebody kills it.

    python writing_until_killed.py FILE ROUND
Prints `uid first count` per acknowledged append.
"""

import asyncio
import os
import sys

from dragoman.model.errors import Conflict
from dragoman.store.sqlite import SqliteStore
from tests.conformance.store.logs import OURS, chunk, new, output, settled


async def write(store: SqliteStore, uid: str, length: int) -> None:
    """One task: begin, output of uneven sizes, end. Every third is left unfinished."""
    appended = await store.append(new(uid))
    say(uid, appended.first, 2)
    for n in range(length):
        facts = tuple(chunk(text=f"{uid} {n} {i}") for i in range(n % 4 + 1))
        try:
            appended = await store.append(output(uid, *facts))
        except Conflict:
            os._exit(3)
        say(uid, appended.first, len(facts))
    if length % 3:
        appended = await store.append(output(uid, settled()))
        say(uid, appended.first, 1)


def say(uid: str, first: int, count: int) -> None:
    os.write(1, f"{uid} {first} {count}\n".encode())


async def main(path: str, round: str) -> None:
    store = SqliteStore(path)
    await store.open()
    await store.recover()
    assert await store.find(OURS, "nobody") is None
    for batch in range(1_000_000):
        await asyncio.gather(*(write(store, f"r{round}-b{batch}-{n}", n) for n in range(40)))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
