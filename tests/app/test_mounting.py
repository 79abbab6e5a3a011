"""`asgi()`: by itself, and inside Starlette and FastAPI applications."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Mount, Route

import dragoman
from dragoman.app.mounting import Application
from dragoman.app.settings import SettingsError
from dragoman.testing.inprocess import Exchange, Lifespan

pytestmark = pytest.mark.anyio


def echo(name: str = "Echo") -> dragoman.Agent:
    agent = dragoman.Agent(name)

    @agent.skill(tags=["text"])
    async def say(turn: dragoman.Turn):
        """Says it back."""
        yield f"{name}: {turn.text}"

    return agent


@asynccontextmanager
async def serving(*agents: dragoman.Agent, **settings: Any) -> AsyncGenerator[Application]:
    given: dict[str, Any] = {"store": "memory://", "drain": 0, **settings}
    app = dragoman.asgi(agents or echo(), **given)
    try:
        yield app
    finally:
        await app.stop()


@asynccontextmanager
async def calling(app: Any, base: str = "http://127.0.0.1") -> AsyncGenerator[httpx2.AsyncClient]:
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url=base) as client:
        yield client


def saying(text: str) -> dict[str, Any]:
    return {"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": text}]}}


def heard(response: httpx2.Response) -> str:
    assert response.status_code == 200, response.text
    return response.json()["task"]["artifacts"][0]["parts"][0]["text"]


@pytest.mark.proves("S-10-5")
async def test_the_first_request_starts_it() -> None:
    async with serving() as app, calling(app) as client:
        assert not app.ready
        assert heard(await client.post("/message:send", json=saying("hi"))) == "Echo: hi"
        assert app.ready


@pytest.mark.proves("S-10-5")
async def test_many_first_requests_start_it_once() -> None:
    async with serving() as app, calling(app) as client:
        works = {id(each) for each in await asyncio.gather(*(app.start() for _ in range(10)))}
        assert len(works) == 1
        answers = await asyncio.gather(*(client.post("/message:send", json=saying(str(n))) for n in range(10)))
        assert sorted(heard(each) for each in answers) == [f"Echo: {n}" for n in range(10)]
        assert (await client.get("/tasks")).json()["totalSize"] == 10


async def test_an_asgi_servers_lifespan_starts_and_stops_it() -> None:
    async with serving() as app:
        life = Lifespan(app)
        await life.start()
        assert app.ready
        await life.stop()
        assert not app.ready


async def test_a_store_that_cannot_be_opened_fails_the_start_and_not_every_request(tmp_path: Path) -> None:
    (tmp_path / "folder.db").mkdir()
    async with serving(store=f"{tmp_path}/folder.db") as app:
        sent: list[Any] = []

        async def receive() -> Any:
            return {"type": "lifespan.startup"}

        async def send(message: Any) -> None:
            sent.append(message)

        await app({"type": "lifespan"}, receive, send)
        assert sent[0]["type"] == "lifespan.startup.failed"
        assert sent[0]["message"]
        assert not app.ready


async def test_it_starts_again_after_it_was_stopped_and_remembers(tmp_path: Path) -> None:
    async with serving(store=f"{tmp_path}/tasks.db") as app, calling(app) as client:
        task = (await client.post("/message:send", json=saying("hi"))).json()["task"]
        await app.stop()
        again = (await client.get(f"/tasks/{task['id']}")).json()
        assert again["artifacts"] == task["artifacts"]


HOSTS: list[Callable[..., Any]] = [
    lambda app, lifespan=None: Starlette(routes=[Mount("/desk", app)], lifespan=lifespan),
    lambda app, lifespan=None: _fastapi(app, lifespan),
]


def _fastapi(app: Application, lifespan: Any) -> FastAPI:
    host = FastAPI(lifespan=lifespan)
    host.mount("/desk", app)
    return host


@pytest.mark.proves("S-10-6")
@pytest.mark.parametrize("host", HOSTS, ids=["starlette", "fastapi"])
async def test_mounted_it_answers_below_its_path_and_its_card_says_so(host: Callable[..., Any]) -> None:
    async with serving() as app, calling(host(app)) as client:
        assert heard(await client.post("/desk/message:send", json=saying("hi"))) == "Echo: hi"
        rpc = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": saying("you")}
        answer = await client.post("/desk/", json=rpc, headers={"A2A-Version": "1.0"})
        assert answer.json()["result"]["task"]["artifacts"][0]["parts"][0]["text"] == "Echo: you"
        card = (await client.get("/desk/.well-known/agent-card.json")).json()
        assert {each["url"] for each in card["supportedInterfaces"]} == {
            "http://127.0.0.1/desk",
            "http://127.0.0.1/desk/",
            "http://127.0.0.1/desk/a2a",
            "http://127.0.0.1/desk/a2a/jsonrpc",
            "http://127.0.0.1/desk/api/a2a",
        }
        assert (await client.get("/elsewhere")).status_code == 404


@pytest.mark.proves("S-10-5")
@pytest.mark.parametrize("host", HOSTS, ids=["starlette", "fastapi"])
async def test_a_hosts_lifespan_may_be_ours(host: Callable[..., Any]) -> None:
    async with serving() as app:
        life = Lifespan(host(app, app.lifespan))
        await life.start()
        assert app.ready
        await life.stop()
        assert not app.ready


@pytest.mark.proves("S-4-2")
async def test_a_stream_under_a_host_ends_with_the_task_and_a_client_that_leaves_stops_nothing() -> None:
    async with serving() as app:
        host = HOSTS[0](app)
        body = b'{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"hi"}]}}'
        exchange = Exchange(host, "POST", "/desk/message:stream", {"content-type": "application/json"}, body)
        await exchange.open()
        assert exchange.status == 200
        assert exchange.headers["content-type"].startswith("text/event-stream")
        await exchange.close()
        async with calling(host) as client:
            assert heard(await client.post("/desk/message:send", json=saying("again"))) == "Echo: again"


@pytest.mark.proves("S-5-15")
async def test_a_callback_route_of_the_host_resumes_a_task_that_waits_for_it() -> None:
    agent = echo()

    @agent.skill
    async def guarded(turn: dragoman.Turn) -> str:
        answer = await turn.require_auth(f"https://login.example/?state={turn.task_id}")
        return "signed in" if answer is None else answer.text

    async with serving(agent, echo("Other")) as app:

        async def callback(request: Request) -> PlainTextResponse:
            try:
                task = await app.resume(request.query_params["state"])
            except dragoman.errors.TaskNotFound:
                return PlainTextResponse("unknown", 404)
            assert task.status is not None and task.status.state is dragoman.TaskState.WORKING
            return PlainTextResponse("You may close this window.")

        host = Starlette(routes=[Route("/callback", callback), Mount("/desk", app)])
        async with calling(host) as client:
            message = saying("x") | {"metadata": {"skill": "guarded"}}
            task = (await client.post("/desk/message:send", json=message)).json()["task"]
            assert task["status"]["state"] == "TASK_STATE_AUTH_REQUIRED"
            assert (await client.get(f"/callback?state={task['id']}")).status_code == 200
            assert (await client.get("/callback?state=nobody")).status_code == 404
            async with asyncio.timeout(5):
                while (task := (await client.get(f"/desk/tasks/{task['id']}")).json())["status"]["state"].endswith(
                    "ING"
                ):
                    await asyncio.sleep(0)
            assert task["artifacts"][0]["parts"][0]["text"] == "signed in"
        with pytest.raises(dragoman.errors.TaskNotFound):
            await app.resume(task["id"], agent="other")
        with pytest.raises(dragoman.errors.TaskNotFound):
            await app.resume(task["id"], owner="eve")


async def test_several_agents_live_under_their_slugs_and_the_first_at_the_root() -> None:
    async with serving(echo("One"), echo("Number two")) as app, calling(app) as client:
        assert heard(await client.post("/message:send", json=saying("hi"))) == "One: hi"
        assert heard(await client.post("/agents/number-two/message:send", json=saying("hi"))) == "Number two: hi"
        card = (await client.get("/agents/number-two/.well-known/agent-card.json")).json()
        assert card["name"] == "Number two"
        assert card["supportedInterfaces"][0]["url"] == "http://127.0.0.1/agents/number-two/"
        assert (await client.get("/agents/nobody/.well-known/agent-card.json")).status_code == 404
        assert (await client.get("/tasks")).json()["totalSize"] == 1  # the other agent's task is not ours


async def test_a_dictionary_names_the_slugs() -> None:
    app = dragoman.asgi({"a": echo("One"), "b": echo("Two")}, store="memory://")
    async with calling(app) as client:
        assert heard(await client.post("/agents/a/message:send", json=saying("hi"))) == "One: hi"
        assert heard(await client.post("/agents/b/message:send", json=saying("hi"))) == "Two: hi"
    await app.stop()


@pytest.mark.proves("S-9-7")
async def test_the_rules_of_loopback_hold_under_a_host_too() -> None:
    async with serving() as app:
        async with calling(app, "http://evil.example") as client:
            assert (await client.post("/message:send", json=saying("hi"))).status_code == 403
        async with calling(app) as client:
            crossed = await client.post("/message:send", json=saying("hi"), headers={"Origin": "https://evil.example"})
            assert crossed.status_code == 403
            assert (await client.get("/tasks")).json()["totalSize"] == 0


async def test_public_url_is_what_cards_say_and_its_host_is_answered_to() -> None:
    async with serving(public_url="https://desk.example/a") as app, calling(app, "https://desk.example") as client:
        card = (await client.get("/.well-known/agent-card.json")).json()
        assert card["supportedInterfaces"][0]["url"] == "https://desk.example/a/"


@pytest.mark.proves("S-10-5")
async def test_drain_refuses_new_messages_and_says_it_is_not_ready() -> None:
    async with serving() as app, calling(app) as client:
        assert (await client.get("/readyz")).status_code == 200
        await app.drain(0)
        assert (await client.get("/readyz")).status_code == 503
        assert (await client.post("/message:send", json=saying("hi"))).status_code in (429, 503)
        assert (await client.get("/healthz")).status_code == 200


async def test_a_setting_is_enforced() -> None:
    async with serving(limit_body="1KiB") as app, calling(app) as client:
        assert (await client.post("/message:send", json=saying("x" * 2000))).status_code == 413


@pytest.mark.parametrize(
    ("agents", "settings", "words"),
    [
        ([], {}, "no agent"),
        ("desk.py", {}, "Cannot serve"),
        (lambda: None, {}, "Cannot serve a function"),
        ([echo("A"), echo("B"), echo("B")], {}, "Two agents are called 'b'"),
        ({"a/b": echo()}, {}, "No agent can be called 'a/b'"),
        ({"tasks": echo()}, {}, "No agent can be called 'tasks'"),
        (echo(), {"stoer": "memory://"}, r"Unknown setting stoer. Did you mean store\?"),
        (echo(), {"store": "redis://x"}, "no store called redis"),
    ],
)
def test_what_cannot_be_served_is_refused_at_once(agents: Any, settings: dict[str, Any], words: str) -> None:
    with pytest.raises(SettingsError, match=words):
        dragoman.asgi(agents, **settings)
