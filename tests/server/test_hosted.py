"""Inside somebody else's server: mounted below a path, without our connections, under the same rules."""

import asyncio
import json
import logging
from typing import Any

import pytest

from dragoman.gateway.settings import GatewaySettings
from dragoman.model.errors import StoreFull
from dragoman.server.asgi import Site
from dragoman.server.settings import ServerSettings
from dragoman.server.target import below
from tests.server.rig import WAIT, Batch, ScriptedEngine, rpc, settled, site, view

pytestmark = pytest.mark.anyio

JSON = [(b"host", b"localhost"), (b"content-type", b"application/json")]


class Host:
    """A plain ASGI host: one request, its pieces, and what came back."""

    def __init__(self, app: Site, scope: dict[str, Any], *body: bytes) -> None:
        given = {"type": "http", "method": "POST", "path": "/", "query_string": b"", "headers": JSON, "root_path": ""}
        self._scope = given | scope
        self._app = app
        self._pieces = list(body)
        self._gone = asyncio.Event()
        self.sent: list[Any] = []
        self.moved = asyncio.Event()

    async def receive(self) -> Any:
        if self._pieces:
            piece = self._pieces.pop(0)
            return {"type": "http.request", "body": piece, "more_body": bool(self._pieces)}
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Any) -> None:
        self.sent.append(message)
        self.moved.set()

    async def run(self) -> None:
        async with asyncio.timeout(WAIT):
            await self._app(self._scope, self.receive, self.send)

    def leave(self) -> None:
        self._gone.set()

    @property
    def status(self) -> int:
        return self.sent[0]["status"]

    @property
    def headers(self) -> dict[bytes, bytes]:
        return dict(self.sent[0]["headers"])

    @property
    def body(self) -> bytes:
        return b"".join(message["body"] for message in self.sent[1:])


async def test_a_request_is_answered_with_its_length() -> None:
    host = Host(site(ScriptedEngine()), {}, rpc())
    await host.run()
    assert host.status == 200
    assert host.headers[b"content-length"] == str(len(host.body)).encode()


async def test_a_body_in_pieces_is_put_together_and_an_endless_one_refused() -> None:
    body = rpc(request_id="pieces")
    host = Host(site(ScriptedEngine()), {}, body[:10], b"", body[10:])
    await host.run()
    assert json.loads(host.body)["id"] == "pieces"
    engine = ScriptedEngine()
    endless = Host(site(engine, settings=ServerSettings(body_limit=1_000)), {}, *[b" " * 100] * 50)
    await endless.run()
    assert endless.status == 413
    assert engine.calls == []


async def test_a_client_that_leaves_frees_its_waiting_send() -> None:
    engine = ScriptedEngine()
    engine.blocks = True
    host = Host(site(engine), {}, rpc())
    running = asyncio.create_task(host.run())
    await engine.blocked.wait()
    host.leave()
    await running
    assert engine.cancelled.is_set()
    assert host.sent == []


async def test_a_client_that_leaves_an_idle_stream_frees_its_follower() -> None:
    engine = ScriptedEngine()
    host = Host(site(engine), {}, rpc("SendStreamingMessage"))
    running = asyncio.create_task(host.run())
    await host.moved.wait()
    host.leave()
    await running
    assert engine.follows[0].closed.is_set()


async def test_a_host_that_gives_up_on_a_request_frees_it_too() -> None:
    engine = ScriptedEngine()
    host = Host(site(engine), {}, rpc("SendStreamingMessage"))
    running = asyncio.create_task(host.run())
    await host.moved.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert engine.follows[0].closed.is_set()


async def test_a_client_that_leaves_before_its_body_is_whole_asks_nothing() -> None:
    engine = ScriptedEngine()
    host = Host(site(engine), {}, rpc()[:5])
    host._pieces.append(b"")
    host.leave()
    pieces = host.receive

    async def receive() -> Any:
        message = await pieces()
        return message if message["type"] == "http.disconnect" else message | {"more_body": True}

    host.receive = receive
    await host.run()
    assert host.sent == []
    assert engine.calls == []


async def test_a_stream_runs_to_its_end() -> None:
    engine = ScriptedEngine()
    host = Host(site(engine), {}, rpc("SendStreamingMessage"))
    running = asyncio.create_task(host.run())
    await engine.followed.wait()
    engine.follows[0].put(Batch([settled(4)], closing=True, ended=True))
    await running
    assert host.sent[-1].get("more_body", False) is False
    assert host.body.count(b"data: ") == 2


@pytest.mark.proves("S-9-7")
@pytest.mark.parametrize("headers", [[(b"host", b"evil.example")], [*JSON, (b"origin", b"https://evil.example")], []])
async def test_the_same_callers_are_refused(headers: list[Any]) -> None:
    engine = ScriptedEngine()
    host = Host(site(engine), {"headers": headers, "client": ("127.0.0.1", 1)}, rpc())
    await host.run()
    assert host.status == 403
    assert engine.calls == []


async def test_headers_on_several_lines_are_one() -> None:
    engine = ScriptedEngine()
    lines = [*JSON, (b"a2a-extensions", b"urn:a"), (b"a2a-extensions", b"urn:b")]
    host = Host(site(engine), {"headers": lines}, rpc())
    await host.run()
    assert host.status == 200
    twice = Host(site(engine), {"headers": [*JSON, (b"host", b"localhost")]}, rpc())
    await twice.run()
    assert twice.status == 403


@pytest.mark.proves("S-10-6")
@pytest.mark.parametrize(
    ("scope", "path"),
    [
        ({"path": "/tasks/a b", "raw_path": b"/tasks/a%20b"}, "/tasks/a%20b"),
        ({"path": "/tasks/a%2Fb", "raw_path": b"/tasks/a%252Fb"}, "/tasks/a%252Fb"),
        ({"path": "/desk/tasks/x", "raw_path": b"/desk/tasks/x", "root_path": "/desk"}, "/tasks/x"),
        ({"path": "/tasks/x", "raw_path": b"/tasks/x", "root_path": "/desk"}, "/tasks/x"),
        ({"path": "/desk", "raw_path": b"/desk", "root_path": "/desk"}, "/"),
        ({"path": "/desk/", "raw_path": b"/desk/", "root_path": "/desk/"}, "/"),
        ({"path": "/desks/x", "raw_path": b"/desks/x", "root_path": "/desk"}, "/desks/x"),
        ({"path": "/d k/x", "raw_path": b"/d%20k/x", "root_path": "/d k"}, "/x"),
        ({"path": "/desk/tasks/ä:b", "root_path": "/desk"}, "/tasks/%C3%A4:b"),
        ({"path": "/tasks", "raw_path": b"/tasks?pageSize=1"}, "/tasks"),
        ({"path": "/x", "raw_path": None, "root_path": ""}, "/x"),
    ],
)
def test_the_path_is_what_lies_below_our_mount(scope: dict[str, Any], path: str) -> None:
    assert below(scope) == path


async def test_a_mounted_card_names_its_mount() -> None:
    path = "/desk/.well-known/agent-card.json"
    host = Host(site(ScriptedEngine()), {"method": "GET", "path": path, "root_path": "/desk", "scheme": "https"}, b"")
    await host.run()
    assert json.loads(host.body)["url"] == "https://localhost/desk/"


@pytest.mark.proves("W-056", "D-2-13")
async def test_what_nobody_foresaw_is_told_in_neutral_words_and_logged_whole(
    caplog: pytest.LogCaptureFixture,
) -> None:
    engine = ScriptedEngine()
    engine.answer = RuntimeError("password=hunter2 in /srv/app.py")
    host = Host(site(engine), {}, rpc())
    await host.run()
    assert json.loads(host.body)["error"] == {"code": -32603, "message": "Internal error"}
    assert "hunter2" in caplog.text
    engine.answer = StoreFull("/var/lib is full")
    full = Host(site(engine), {}, rpc())
    await full.run()
    assert b"/var/lib" not in full.body


async def test_a_request_leaves_one_structured_line_when_asked_for(caplog: pytest.LogCaptureFixture) -> None:
    engine = ScriptedEngine()
    logged = site(engine, settings=ServerSettings(access_log=True))
    caplog.set_level(logging.INFO, "dragoman.request")
    scope = {"client": ("127.0.0.1", 5), "query_string": b"key=secret"}
    await Host(logged, scope, rpc()).run()
    engine.answer = StoreFull("full")
    await Host(logged, scope, rpc("SendStreamingMessage")).run()
    engine.answer = view()
    stream = Host(logged, scope, rpc("SendStreamingMessage"))
    running = asyncio.create_task(stream.run())
    await engine.followed.wait()
    engine.follows[0].put(Batch([], ended=True))
    await running
    await Host(logged, scope | {"headers": [(b"host", b"evil.example")]}, rpc()).run()
    told = [vars(record) for record in caplog.records if record.name == "dragoman.request"]
    assert [record["status"] for record in told] == [200, 200, 200, 403]
    assert [record.get("a2a.method") for record in told] == ["SendMessage", *["SendStreamingMessage"] * 2, None]
    assert told[0]["a2a.task.state"] == "TASK_STATE_COMPLETED"
    assert told[0]["a2a.dialect"] == "1.0"
    assert told[2]["a2a.task.id"] == engine.follows[0].ref.id
    assert all(record["duration_ms"] >= 0 and record["client"] == "127.0.0.1" for record in told)
    assert "secret" not in caplog.text.replace("secret of", "")


async def test_a_client_that_left_leaves_its_line_too(caplog: pytest.LogCaptureFixture) -> None:
    engine = ScriptedEngine()
    engine.blocks = True
    logged = site(engine, settings=ServerSettings(access_log=True))
    caplog.set_level(logging.INFO, "dragoman.request")
    for method, begun in (("SendMessage", engine.blocked), ("SendStreamingMessage", engine.followed)):
        host = Host(logged, {}, rpc(method))
        running = asyncio.create_task(host.run())
        await begun.wait()
        host.leave()
        await running
    told = [(vars(record)["a2a.method"], vars(record)["status"]) for record in caplog.records]
    assert told == [("SendMessage", 499), ("SendStreamingMessage", 499)]


@pytest.mark.parametrize(("length", "status"), [(b"x", 400), (b"-5", 400), (b"9" * 40, 413), (b"70000000", 413)])
async def test_a_length_is_checked_where_the_host_did_not(length: bytes, status: int) -> None:
    headers = [*JSON, (b"content-length", length)]
    host = Host(site(ScriptedEngine()), {"headers": headers, "path": "/message:send"}, rpc())
    await host.run()
    assert host.status == status


async def test_a_lifespan_is_left_to_the_application_around() -> None:
    """Servers take the refusal for "has none"."""
    with pytest.raises(NotImplementedError):
        await Host(site(ScriptedEngine()), {"type": "lifespan"}).run()


async def test_no_line_is_written_unless_asked_for(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    await Host(site(ScriptedEngine()), {}, rpc()).run()
    assert not [record for record in caplog.records if record.name.startswith("dragoman")]


async def test_a_websocket_is_declined() -> None:
    sent: list[Any] = []

    async def receive() -> Any:
        return {"type": "websocket.connect"}

    async def send(message: Any) -> None:
        sent.append(message)

    await site(ScriptedEngine())({"type": "websocket"}, receive, send)
    assert sent[0]["type"] == "websocket.close"


async def test_a_trusted_proxy_is_known_by_the_address_it_connects_from() -> None:
    headers = [*JSON, (b"x-forwarded-host", b"desk.example")]
    behind = site(ScriptedEngine(), gateway=GatewaySettings(proxies=("10.0.0.0/8",), hosts=("*.example",)))
    for client, status in ((("10.1.2.3", 9), 200), (("192.0.2.1", 9), 403), (None, 403)):
        host = Host(behind, {"headers": headers, "client": client}, rpc())
        await host.run()
        assert host.status == status
