"""A process that ends tasks with webhooks and delivers their news, and says what was acknowledged, until it is killed.

    python telling_until_killed.py FILE ROUND
Prints `ended uid` when the end is committed, `took id uid hook` before a delivery counts as made, and `made id` once
that is committed.
"""

import asyncio
import os
import sys

from dragoman.ports import Outcome
from dragoman.store.sqlite import SqliteStore
from tests.conformance.store.logs import OURS, chunk, hook, new, output, said, settled

HOOKS = ("a", "b")


async def write(store: SqliteStore, uid: str, length: int) -> None:
    """One task. Every third gets one of its webhooks after the end."""
    late = length % 3 == 0
    await store.append(new(uid, hooks=tuple(hook(uid, id, f"{id}.example") for id in (HOOKS[1:] if late else HOOKS))))
    for n in range(length):
        await store.append(output(uid, chunk(text=f"{uid} {n}"), said(text=str(n))))
    await store.append(output(uid, settled()))
    if late:
        await store.keep_hook(hook(uid, "a", "a.example"))
    say(f"ended {uid}")


async def deliver(store: SqliteStore) -> None:
    """Make what is due; every fifth fails once or more, every eleventh dies."""
    wake = asyncio.Event()
    store.listen_deliveries(wake.set)
    count = 0
    while True:
        found = await store.due_deliveries(32)
        if not found:
            wake.clear()
            await asyncio.wait({asyncio.ensure_future(wake.wait())}, timeout=0.02)
            continue
        outcomes: list[Outcome] = []
        for each in found:
            count += 1
            say(f"took {each.id} {each.hook.uid} {each.hook.config.id} {each.seq}")
            failed, dead = count % 5 == 0, count % 11 == 0
            outcomes.append(
                Outcome(id=each.id, delivered=not (failed or dead), dead=dead, due=store.now() + 10, error="x")
            )
        await store.record(outcomes)
        for outcome in outcomes:
            if outcome.delivered:
                say(f"made {outcome.id}")


def say(words: str) -> None:
    os.write(1, f"{words}\n".encode())


async def main(path: str, round: str) -> None:
    store = SqliteStore(path, calm_interval=20)
    await store.open()
    await store.recover()
    assert await store.find(OURS, "nobody") is None
    delivering = asyncio.create_task(deliver(store))
    for batch in range(1_000_000):
        await asyncio.gather(*(write(store, f"r{round}-b{batch}-{n}", n % 7) for n in range(20)))
    await delivering


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
