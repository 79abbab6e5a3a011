"""A sender over a real store, news to send, and receivers to send them to."""

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from dragoman.client.dialler import Dialler
from dragoman.client.poster import Poster
from dragoman.core.addresses import guard
from dragoman.model.facts import AnyFact
from dragoman.model.operations import PushConfig
from dragoman.ports import Delivery, Hook, Resolver
from dragoman.push.letters import Letters
from dragoman.push.sender import Sender
from dragoman.push.settings import PushSettings
from dragoman.store.memory import MemoryStore
from dragoman.store.sqlite import SqliteStore
from tests.client.receivers import Names, Receiver
from tests.conformance.store.adapters import HookedStore
from tests.conformance.store.logs import OURS, chunk, created, new, output, settled, started

LOCAL = guard(networks=["127.0.0.0/8"])
QUICK = PushSettings(seconds=5, retries=(20, 60, 180))
STORES = ("memory", "sqlite")


def make_store(kind: str, folder: Path) -> HookedStore:
    if kind == "memory":
        return MemoryStore(max_tasks=100_000, max_contexts=100_000)
    return SqliteStore(folder / "push.db")


@asynccontextmanager
async def opened(kind: str, folder: Path) -> AsyncGenerator[HookedStore]:
    store = make_store(kind, folder)
    await store.open()
    try:
        yield store
    finally:
        await store.close()


def hook(uid: str, receiver: Receiver | str, id: str = "h", **config: Any) -> Hook:
    url = receiver if isinstance(receiver, str) else receiver.url()
    return Hook(uid=uid, scope=OURS, config=PushConfig(id=id, task_id=uid, url=url, **config), origin="test")


async def begin(store: HookedStore, uid: str, *hooks: Hook) -> None:
    """A working task. That it works is news by itself."""
    now = store.now()
    await store.append(new(uid, created(now), started(now), hooks=hooks))


async def tell(store: HookedStore, uid: str, *facts: AnyFact) -> None:
    await store.append(output(uid, *facts))


async def end(store: HookedStore, uid: str, *hooks: Hook) -> None:
    """A task that is over at once: its end is the only news."""
    now = store.now()
    await store.append(new(uid, created(now), started(now), chunk(now), settled(now), hooks=hooks))


async def render(delivery: Delivery) -> tuple[bytes, str]:
    """What the tests' dialect says."""
    status = getattr(delivery.fact, "status", None)
    said = {"task": delivery.task_id, "seq": delivery.seq, "state": status and status.state}
    return json.dumps(said).encode(), "application/test+json"


def told(receiver: Receiver) -> list[dict[str, Any]]:
    return [json.loads(body) for body in receiver.bodies]


def tasks(receiver: Receiver) -> list[str]:
    return [each["task"] for each in told(receiver)]


def deliveries(receiver: Receiver) -> list[str]:
    return [request.headers["idempotency-key"] for request in receiver.requests]


@asynccontextmanager
async def sending(
    store: HookedStore,
    *,
    settings: PushSettings = QUICK,
    tell: Callable[[Delivery], Awaitable[tuple[bytes, str] | None]] = render,
    resolver: Resolver | None = None,
    grace: float = 0,
) -> AsyncGenerator[Sender]:
    poster = Poster(Dialler(LOCAL, resolver or Names()))
    letters = Letters(agent="dragoman/test", issuer="test")
    sender = Sender(store, tell=tell, poster=poster, letters=letters, now=store.now, settings=settings)
    await sender.start()
    try:
        yield sender
        await sender.drain(grace)
    finally:
        await sender.close()


async def done(store: HookedStore, sender: Sender, seconds: float = 20) -> None:
    """Until everything is delivered or dead."""
    async with asyncio.timeout(seconds):
        while sender._under_way or sender._ended or await store.next_delivery_at():
            await asyncio.sleep(0.005)


async def dead(store: HookedStore, count: int = 1, seconds: float = 20) -> Sequence[Delivery]:
    """Until there are so many dead letters."""
    async with asyncio.timeout(seconds):
        while len(found := await store.dead_deliveries()) < count:
            await asyncio.sleep(0.005)
    return found
