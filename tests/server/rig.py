"""A real listener on a free loopback port around a scripted engine, and a client that writes bytes by hand."""

import asyncio
import json
import ssl
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

from dragoman.gateway.gateway import Gateway
from dragoman.gateway.settings import GatewaySettings
from dragoman.model.cards import Profile, Skill
from dragoman.model.facts import Entry, Settled, Started
from dragoman.model.messages import Message, Part, Role
from dragoman.model.operations import Call, PushConfig, PushPage, TaskPage, TaskRef
from dragoman.model.tasks import Scope, Task, TaskState, TaskStatus, View
from dragoman.ports import Signer
from dragoman.server.asgi import Site
from dragoman.server.run import Listener
from dragoman.server.settings import ServerSettings

UID = "01a1f1a0-58f4-7000-89bd-829c07db5381"
REF = TaskRef(uid=UID, id=UID, context_id="c-1")
PROFILE = Profile(
    name="Desk",
    description="Answers",
    version="1.0.0",
    skills=(Skill(id="answer", name="Answer", description="Answers", tags=("a",)),),
)
WAIT = 5.0


def view(state: TaskState = TaskState.COMPLETED, seq: int = 3) -> View:
    return View(uid=UID, seq=seq, task=Task(id=UID, context_id="c-1", status=TaskStatus(state=state)))


def working(seq: int) -> Entry:
    status = TaskStatus(
        state=TaskState.WORKING, message=Message(message_id=f"m{seq}", role=Role.AGENT, parts=(Part(text="…"),))
    )
    return Entry(seq, Started(status=status, turn="t", epoch=1))


def settled(seq: int) -> Entry:
    return Entry(seq, Settled(status=TaskStatus(state=TaskState.COMPLETED)))


class Batch(NamedTuple):
    entries: list[Entry]
    closing: bool = False
    ended: bool = False


class ScriptedFollow:
    """Hands out what the test puts in."""

    def __init__(self, first: View | None) -> None:
        self.ref = REF
        self.first = first
        self.closed = asyncio.Event()
        self._batches: list[Batch | Exception] = []
        self._ring = asyncio.Event()

    def put(self, batch: Batch | Exception) -> None:
        self._batches.append(batch)
        self._ring.set()

    async def batch(self, wait: float) -> Batch | None:
        try:
            async with asyncio.timeout(wait):
                await self._ring.wait()
        except TimeoutError:
            return None
        batch = self._batches.pop(0)
        if not self._batches:
            self._ring.clear()
        if isinstance(batch, Exception):
            raise batch
        return batch

    def close(self) -> None:
        self.closed.set()


class ScriptedEngine:
    """Answers what the test says, and remembers what it was asked."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, Call, Any]] = []
        self.story: list[str] = []
        self.answer: Any = view()
        self.first: View | None = view(TaskState.WORKING, 1)
        self.follows: list[ScriptedFollow] = []
        self.followed = asyncio.Event()
        self.blocks = False
        self.blocked = asyncio.Event()
        self.cancelled = asyncio.Event()
        self.gate = asyncio.Event()

    async def start(self) -> None:
        self.story.append("start")

    async def drain(self, seconds: float) -> None:
        self.story.append("drain")
        for follow in self.follows:
            follow.put(Batch([], ended=True))

    async def close(self) -> None:
        self.story.append("close")

    async def send(self, call: Call, op: Any) -> Any:
        self.calls.append(("send", call, op))
        if self.blocks:
            self.blocked.set()
            try:
                await self.gate.wait()
            except asyncio.CancelledError:
                self.cancelled.set()
                raise
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    async def get(self, call: Call, op: Any) -> View:
        self.calls.append(("get", call, op))
        return view()

    async def list(self, call: Call, op: Any) -> TaskPage:
        self.calls.append(("list", call, op))
        return TaskPage(views=(), next_page_token="", page_size=50, total=0, artifacts=False)

    async def cancel(self, call: Call, op: Any) -> View:
        self.calls.append(("cancel", call, op))
        return view(TaskState.CANCELED)

    async def create_push(self, call: Call, op: Any) -> PushConfig:
        self.calls.append(("create_push", call, op))
        return PushConfig(task_id="t", id="h", url="https://cb.example")

    async def get_push(self, call: Call, op: Any) -> PushConfig | None:
        self.calls.append(("get_push", call, op))
        return None

    async def list_push(self, call: Call, op: Any) -> PushPage:
        self.calls.append(("list_push", call, op))
        return PushPage()

    async def delete_push(self, call: Call, op: Any) -> None:
        self.calls.append(("delete_push", call, op))

    async def stream(self, call: Call, op: Any) -> Any:
        self.calls.append(("stream", call, op))
        if isinstance(self.answer, Exception):
            raise self.answer
        if isinstance(self.answer, Message):
            return self.answer
        return self._follow()

    async def subscribe(self, call: Call, op: Any) -> Any:
        self.calls.append(("subscribe", call, op))
        return self._follow()

    async def whose(self, scope: Scope, id: str) -> Scope | None:
        return None

    def _follow(self) -> ScriptedFollow:
        follow = ScriptedFollow(self.first)
        self.follows.append(follow)
        self.followed.set()
        return follow


class ScriptedAgent:
    def __init__(self, profile: Profile = PROFILE) -> None:
        self.profile = profile


def site(
    engine: ScriptedEngine,
    *,
    settings: ServerSettings | None = None,
    gateway: GatewaySettings | None = None,
    agents: dict[str, Any] | None = None,
    signer: Signer | None = None,
) -> Site:
    agents = agents or {"": ScriptedAgent()}
    gate = Gateway(engine=engine, agents=agents, settings=gateway, signer=signer)
    return Site(gateway=gate, settings=settings)


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


class Line:
    """One connection, spoken by hand."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    def write(self, *data: bytes) -> None:
        self._writer.write(b"".join(data))

    async def drain(self) -> None:
        await self._writer.drain()

    async def head(self) -> tuple[int, dict[str, str]]:
        async with asyncio.timeout(WAIT):
            raw = await self._reader.readuntil(b"\r\n\r\n")
        first, *lines = raw.decode("latin-1").split("\r\n")
        pairs = [line.split(": ", 1) for line in lines if line]
        headers: dict[str, str] = {}
        for name, value in pairs:
            headers[name] = f"{headers[name]}, {value}" if name in headers else value
        return int(first.split()[1]), headers

    async def answer(self, *, bodiless: bool = False) -> Answer:
        """A whole response."""
        status, headers = await self.head()
        if bodiless or status in (204, 304):
            return Answer(status, headers, b"")
        async with asyncio.timeout(WAIT):
            if "content-length" in headers:
                return Answer(status, headers, await self._reader.readexactly(int(headers["content-length"])))
            if headers.get("transfer-encoding") == "chunked":
                body = b""
                while piece := await self.chunk():
                    body += piece
                return Answer(status, headers, body)
            return Answer(status, headers, await self._reader.read())

    async def chunk(self) -> bytes:
        """One chunk of a chunked body; b"" is its end."""
        async with asyncio.timeout(WAIT):
            size = int(await self._reader.readuntil(b"\r\n"), 16)
            data = await self._reader.readexactly(size + 2)
        return data[:-2]

    async def rest(self) -> bytes:
        """Everything until the other side ends."""
        async with asyncio.timeout(WAIT):
            try:
                return await self._reader.read()
            except ConnectionResetError:
                return b""

    def hang_up(self) -> None:
        self._writer.close()


class Running(NamedTuple):
    listener: Listener
    engine: ScriptedEngine
    lines: list[Line]

    @property
    def port(self) -> int:
        return int(self.listener.url.rpartition(":")[2])

    async def dial(self, tls: ssl.SSLContext | None = None) -> Line:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port, ssl=tls, limit=1 << 24)
        line = Line(reader, writer)
        self.lines.append(line)
        return line

    async def ask(self, data: bytes, *, bodiless: bool = False) -> Answer:
        """One request on a connection of its own."""
        line = await self.dial()
        line.write(data)
        answer = await line.answer(bodiless=bodiless)
        line.hang_up()
        return answer


@asynccontextmanager
async def running(
    engine: ScriptedEngine | None = None,
    *,
    settings: ServerSettings | None = None,
    gateway: GatewaySettings | None = None,
    agents: dict[str, Any] | None = None,
    wrap: Callable[[Site], Any] | None = None,
    tls: ssl.SSLContext | None = None,
    signer: Signer | None = None,
) -> AsyncGenerator[Running]:
    """Listening while inside; afterwards nothing is left: no task, no connection, no timer that matters."""
    engine = engine or ScriptedEngine()
    served = site(engine, settings=settings, gateway=gateway, agents=agents, signer=signer)
    listener = Listener(served, engine, port=0, settings=settings, tls=tls)
    if wrap is not None:
        listener.config.loaded_app = wrap(served)
    opened = asyncio.Event()
    task = asyncio.create_task(listener.listen(lambda url: opened.set()))
    waiting = asyncio.create_task(opened.wait())
    await asyncio.wait((task, waiting), timeout=WAIT, return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    if task.done():
        task.result()
    running = Running(listener, engine, [])
    try:
        yield running
    finally:
        for line in running.lines:
            line.hang_up()
        listener.stop(hurry=True)
        async with asyncio.timeout(WAIT):
            await task
        assert not listener.server_state.tasks


def request(
    method: str = "POST",
    target: str = "/",
    body: bytes = b"",
    headers: dict[str, str] | None = None,
    version: str = "1.1",
) -> bytes:
    given = {"Host": "127.0.0.1"} | ({"Content-Type": "application/json"} if body else {}) | (headers or {})
    if body and "Transfer-Encoding" not in given:
        given.setdefault("Content-Length", str(len(body)))
    lines = [f"{method} {target} HTTP/{version}", *(f"{name}: {value}" for name, value in given.items())]
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body


def rpc(method: str = "SendMessage", request_id: Any = 1, text: str = "hi", **params: Any) -> bytes:
    message = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": text}]}
    params = params or {"message": message}
    return json.dumps({"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}).encode()


SEND = request(body=rpc())
STREAM = request(body=rpc("SendStreamingMessage"))
