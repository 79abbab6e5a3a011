"""An engine over a real store, with agents made of plain functions, a clock to hold and ids to read."""

import asyncio
import itertools
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from dragoman.bus.local import LocalBus
from dragoman.engine.engine import Engine, Follow, Limits
from dragoman.model.cards import Profile
from dragoman.model.facts import Entry
from dragoman.model.messages import Artifact, Message, Part, Role
from dragoman.model.operations import (
    Call,
    CancelTask,
    Configuration,
    GetTask,
    ListTasks,
    Policy,
    SendMessage,
    SubscribeToTask,
    TaskPage,
)
from dragoman.model.tasks import Scope, TaskState, View
from dragoman.ports import Hooks, Route, Screen, Store, TurnHandle
from dragoman.store.memory import MemoryStore

SCOPE = Scope("agent")
Handler = Callable[[TurnHandle], Awaitable[None]]


class Clock:
    def __init__(self) -> None:
        self.ms = 1_800_000_000_000

    def now(self) -> int:
        self.ms += 1
        return self.ms


class Ids:
    def __init__(self) -> None:
        self._numbers = itertools.count(1)

    def uid(self) -> str:
        return f"u{next(self._numbers):06d}"


class FunctionAgent:
    """The handler is found by the message's metadata or is the only one."""

    def __init__(self, handler: Handler, **route: Any) -> None:
        self._handler = handler
        self._route = route
        self.runs = 0

    @property
    def profile(self) -> Profile:
        return Profile(name="test", description="a test agent", version="1")

    def route(self, message: Message, metadata: dict[str, Any] | None) -> Route:
        return Route(skill="only", **self._route)

    async def run(self, route: Route, turn: TurnHandle) -> None:
        self.runs += 1
        await self._handler(turn)

    async def reply(self, route: Route, turn: TurnHandle) -> Message:
        return Message(role=Role.AGENT, parts=(Part(text="direct " + text_of(turn.message)),))

    async def close(self) -> None:
        pass


def text_of(message: Message) -> str:
    return "".join(part.text for part in message.parts if isinstance(part.text, str))


class Rig:
    def __init__(self, engine: Engine, store: Store, agent: FunctionAgent) -> None:
        self.engine = engine
        self.store = store
        self.agent = agent
        self._messages = itertools.count(1)

    def message(self, text: str = "hi", **members: Any) -> Message:
        id = members.pop("message_id", f"m{next(self._messages)}")
        return Message(message_id=id, role=Role.USER, parts=(Part(text=text),), **members)

    def op(self, text: str = "hi", *, now: bool = False, key: str = "", **members: Any) -> SendMessage:
        configuration = Configuration(return_immediately=now, idempotency_key=key)
        return SendMessage(message=self.message(text, **members), configuration=configuration)

    async def send(self, text: str = "hi", **members: Any) -> View:
        view = await self.engine.send(call(), self.op(text, **members))
        assert isinstance(view, View)
        return view

    async def begin(self, text: str = "hi", **members: Any) -> View:
        return await self.send(text, now=True, **members)

    async def stream(self, text: str = "hi", cursor: str = "", **members: Any) -> Follow:
        follow = await self.engine.stream(call(cursor=cursor), self.op(text, **members))
        assert isinstance(follow, Follow)
        return follow

    async def subscribe(self, id: str, cursor: str = "", **policy: Any) -> Follow:
        return await self.engine.subscribe(call(cursor=cursor, **policy), SubscribeToTask(id=id))

    async def get(self, id: str) -> View:
        return await self.engine.get(call(), GetTask(id=id))

    async def cancel(self, id: str, **policy: Any) -> View:
        return await self.engine.cancel(call(**policy), CancelTask(id=id))

    async def list(self, **filters: Any) -> TaskPage:
        return await self.engine.list(call(), ListTasks(**filters))

    async def settled(self, id: str, state: TaskState | None = None) -> View:
        """Wait (bounded) until the task is settled, in this state if one is named."""
        async with asyncio.timeout(5):
            while True:
                view = await self.get(id)
                found = state_of(view)
                if (found is state) if state else found is not TaskState.WORKING:
                    return view
                await asyncio.sleep(0)


def call(scope: Scope = SCOPE, cursor: str = "", **policy: Any) -> Call:
    return Call(scope=scope, origin="test", cursor=cursor, policy=Policy(**policy))


def state_of(view: View) -> TaskState:
    assert view.task.status is not None and view.task.status.state is not None
    return view.task.status.state


def texts(view: View) -> list[str]:
    return ["".join(str(part.text) for part in artifact.parts) for artifact in view.task.artifacts]


async def until(holds: Callable[[], object]) -> None:
    """Wait (bounded) until it does."""
    async with asyncio.timeout(5):
        while not holds():
            await asyncio.sleep(0)


async def rest(follow: Follow, wait: float = 5) -> list[Entry]:
    """Everything until the stream ends."""
    entries: list[Entry] = []
    try:
        async with asyncio.timeout(10):
            while True:
                batch = await follow.batch(wait)
                assert batch is not None, "the stream went silent"
                entries += batch.entries
                if batch.ended:
                    return entries
    finally:
        follow.close()


async def chunk(turn: TurnHandle, text: str, *, append: bool = True, id: str = "a") -> None:
    await turn.artifact(Artifact(artifact_id=id, parts=(Part(text=text),)), append=append)


@asynccontextmanager
async def rig(
    handler: Handler,
    *,
    store: Store | None = None,
    limits: Limits | None = None,
    agent: FunctionAgent | None = None,
    hooks: Hooks | None = None,
    screen: Screen | None = None,
    **route: Any,
) -> AsyncGenerator[Rig]:
    store = store or MemoryStore()
    agent = agent or FunctionAgent(handler, **route)
    engine = Engine(
        store=store,
        bus=LocalBus(),
        agents={"agent": agent},
        clock=Clock(),
        ids=Ids(),
        limits=limits,
        hooks=hooks,
        screen=screen,
    )
    await engine.start()
    try:
        yield Rig(engine, store, agent)
    finally:
        await engine.close()
