"""Webhooks through the whole server, over sockets: set in every dialect, told in its words, with its credentials."""

import asyncio
import json
import logging
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx2
import pytest

from dragoman import Agent, News, Receiver, TaskState, Turn
from dragoman.auth.keys import generate
from tests.client.receivers import GOOD, never, receiving, with_status
from tests.client.receivers import Receiver as Server
from tests.protocol.stage import Stage
from tests.push.ways import COMPLETED, JSON, WAYS, Way, post, rpc, said, said_10
from tests.server.whole import Whole, whole
from tests.webhooks.hosting import hosted

pytestmark = pytest.mark.anyio

WAYS_BY_NAME = {way.name: way for way in WAYS}
EACH = pytest.mark.parametrize("way", WAYS, ids=[way.name for way in WAYS])


@asynccontextmanager
async def serving(agent: Agent, **settings: Any) -> AsyncGenerator[tuple[httpx2.AsyncClient, Whole]]:
    given: dict[str, Any] = {"push_allow_loopback": True, **settings}
    async with whole(agent, **given) as server, calling(server) as client:
        yield client, server


def calling(server: Whole) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(base_url=f"http://127.0.0.1:{server.port}", timeout=20)


@pytest.fixture
async def client() -> AsyncIterator[httpx2.AsyncClient]:
    async with serving(Stage().agent) as (client, _):
        yield client


def bodies(receiver: Server) -> list[JSON]:
    return [json.loads(body) for body in receiver.bodies]


# --- in every dialect


@pytest.mark.proves("W-023", "W-084", "W-103", "01-21", "003-d20", "004-42", "004-47")
@EACH
async def test_a_webhook_set_after_the_end_is_told_it_at_once_in_the_words_it_was_set_in(
    client: httpx2.AsyncClient, way: Way
) -> None:
    async with receiving() as receiver:
        task = await way.send(client, "echo hello")
        await way.set(client, task, {"url": receiver.url()})
        (request,) = await receiver.received(1)
    assert request.line == "POST /hook HTTP/1.1"
    assert request.headers["content-type"] == way.media_type
    state, text = way.shape(json.loads(request.body))
    assert (state, text) == (COMPLETED.get(way.name, "completed"), "echo hello")
    assert task.encode() in request.body


@EACH
async def test_whatever_words_it_comes_in_the_receiver_hears_the_same(client: httpx2.AsyncClient, way: Way) -> None:
    heard: asyncio.Queue[News] = asyncio.Queue()
    async with hosted(Receiver(heard.put, token="s3cr3t")) as base:
        task = await way.send(client, "echo hello")
        bearer = {"schemes": ["Bearer"], "credentials": "s3cr3t"}
        await way.set(client, task, {"url": f"{base}/", "authentication": bearer})
        async with asyncio.timeout(10):
            news = await heard.get()
    assert (news.task.id, news.state) == (task, TaskState.COMPLETED)
    assert news.task.artifacts[0].parts[0].text == "echo hello"
    assert news.delivery


@pytest.mark.proves("W-098", "W-197")
@EACH
@pytest.mark.parametrize(
    ("scheme", "credentials", "value"),
    [("Bearer", "s3cr3t", "Bearer s3cr3t"), ("Basic", "bWU6eA==", "Basic bWU6eA==")],
)
async def test_it_is_called_with_the_credentials_it_was_registered_with(
    client: httpx2.AsyncClient, way: Way, scheme: str, credentials: str, value: str
) -> None:
    async with receiving() as receiver:
        task = await way.send(client, "echo hello")
        authentication = {"schemes": [scheme], "credentials": credentials}
        await way.set(client, task, {"url": receiver.url(), "authentication": authentication})
        (request,) = await receiver.received(1)
    assert request.headers["authorization"] == value


async def test_simple_a2a_s_tokens_and_headers_of_their_own(client: httpx2.AsyncClient) -> None:
    way = WAYS_BY_NAME["simple"]
    async with receiving() as receiver:
        for info in (
            {"scheme": "token", "value": "s3cr3t"},
            {"scheme": "apiKey", "value": "s3cr3t", "headerName": "X-Hook-Key"},
        ):
            task = await way.send(client, "echo hello")
            config = {"webhookUrl": receiver.url(), "authenticationInfo": info}
            await rpc(client, "/", "tasks/pushNotification/set", {"id": task, "pushNotificationConfig": config})
        first, second = sorted(await receiver.received(2), key=lambda each: "x-hook-key" in each.headers)
    assert first.headers["authorization"] == "Token s3cr3t"
    assert second.headers["x-hook-key"] == "s3cr3t" and "authorization" not in second.headers


@pytest.mark.proves("002-d24")
async def test_simple_a2a_s_webhook_hears_what_it_asked_for(client: httpx2.AsyncClient) -> None:
    async with receiving() as some, receiving() as all_:
        tasks: list[str] = []
        for receiver, types in ((some, ["completed"]), (all_, [])):
            task = (await rpc(client, "/", "tasks/send", {"message": said("ask")}))["id"]
            config = {"webhookUrl": receiver.url(), "eventTypes": types}
            await rpc(client, "/", "tasks/pushNotification/set", {"id": task, "pushNotificationConfig": config})
            await rpc(client, "/", "tasks/send", {"id": task, "message": said("this")})
            tasks.append(task)
        async with asyncio.timeout(10):
            while not any(b'"completed"' in body for body in all_.bodies):
                await asyncio.sleep(0.005)
        (told,) = [json.loads(request.body) for request in await some.received(1)]
    assert (told["type"], told["taskId"], told["status"]["state"]) == ("TaskStatusUpdateEvent", tasks[0], "completed")
    assert "jsonrpc" not in told


# --- as it happens


@pytest.mark.proves("004-43", "004-44", "004-45", "004-46", "004-c8")
@pytest.mark.parametrize(
    ("config", "token"),
    [
        ({"token": "shared-secret"}, "shared-secret"),
        ({"authentication": {"schemes": ["Bearer"], "credentials": "inner"}}, "inner"),
        ({"token": "top", "authentication": {"schemes": ["Bearer"], "credentials": "inner"}}, "top"),
    ],
)
@pytest.mark.parametrize("name", ["proto", "proto-http"])
async def test_protoagents_two_shapes_of_a_token_make_both_headers(
    client: httpx2.AsyncClient, name: str, config: JSON, token: str
) -> None:
    way = WAYS_BY_NAME[name]
    async with receiving() as receiver:
        task = await way.send(client, "echo hello")
        await way.set(client, task, {"url": receiver.url(), **config})
        (request,) = await receiver.received(1)
    assert request.headers["authorization"] == f"Bearer {token}"
    assert request.headers["x-a2a-notification-token"] == token


@pytest.mark.parametrize("way", ["1.0", "1.0-http", "0.3", "proto", "coding", "a2x"])
async def test_a_webhook_that_comes_with_a_message_hears_from_the_beginning(
    client: httpx2.AsyncClient, way: str
) -> None:
    async with receiving() as receiver:
        config = {"url": receiver.url(), "token": "s3cr3t"}
        if way == "1.0":
            sent = {"message": said_10("ask"), "configuration": {"taskPushNotificationConfig": config}}
            await rpc(client, "/", "SendMessage", sent)
        elif way == "1.0-http":
            sent = {"message": said_10("ask"), "configuration": {"taskPushNotificationConfig": config}}
            await post(client, "/message:send", sent)
        else:
            path = {"0.3": "/", "proto": "/a2a", "coding": "/a2a/jsonrpc", "a2x": "/api/a2a"}[way]
            sent = {"message": said("ask"), "configuration": {"pushNotificationConfig": config}}
            await rpc(client, path, "message/send", sent)
        async with asyncio.timeout(10):
            while b"Which one?" not in (receiver.bodies or [b""])[-1]:
                await asyncio.sleep(0.005)
    assert {request.headers["x-a2a-notification-token"] for request in receiver.requests} == {"s3cr3t"}


@pytest.mark.proves("004-26")
async def test_a_question_is_told_at_once_and_what_follows_it_in_order() -> None:
    """The interval is a minute: whatever comes sooner was not held back by it."""
    async with serving(Stage().agent, push_interval="1m") as (client, _), receiving() as receiver:
        sent = {"message": said("ask"), "configuration": {"pushNotificationConfig": {"url": receiver.url()}}}
        task = await rpc(client, "/a2a", "message/send", sent)
        assert task["status"]["state"] == "input-required"
        async with asyncio.timeout(10):
            while not receiver.bodies or bodies(receiver)[-1]["status"]["state"] != "input-required":
                await asyncio.sleep(0.005)
        (asked,) = [each for each in bodies(receiver) if each["status"]["state"] == "input-required"]
        assert asked["status"]["message"]["parts"][0]["text"] == "Which one?" and asked["final"] is True
        await rpc(client, "/a2a", "message/send", {"message": said("this", taskId=task["id"])})
        async with asyncio.timeout(10):
            while bodies(receiver)[-1]["status"]["state"] != "completed":
                await asyncio.sleep(0.005)
    states = [each["status"]["state"] for each in bodies(receiver)]
    assert states in (["working", "input-required", "completed"], ["input-required", "completed"])


def steps(count: int, seconds: float) -> Agent:
    """An agent that uses so many tools in that time."""
    agent = Agent("Steps", description="Takes steps.")

    @agent.skill
    async def walk(turn: Turn) -> AsyncIterator[str]:
        """Walks."""
        for number in range(count):
            await turn.say(f"step {number}")
            await asyncio.sleep(seconds / count)
        yield "arrived"

    return agent


@pytest.mark.proves("004-39", "004-40", "004-41", "004-c9")
async def test_fifty_steps_in_five_seconds_are_about_four_calls_and_the_end_with_what_was_made() -> None:
    """A quarter of the times, which are a setting: 1.25 s for the steps, 375 ms between calls."""
    async with serving(steps(50, 1.25), push_interval="375ms") as (client, _), receiving() as receiver:
        sent = {"message": said("go"), "configuration": {"pushNotificationConfig": {"url": receiver.url()}}}
        await rpc(client, "/a2a", "message/send", sent)
        ended = asyncio.get_running_loop().time()
        async with asyncio.timeout(10):
            while not receiver.bodies or bodies(receiver)[-1]["status"]["state"] != "completed":
                await asyncio.sleep(0.005)
    *working, end = bodies(receiver)
    assert {each["status"]["state"] for each in working} == {"working"}
    assert 3 <= len(working) <= 6
    told = [each["status"]["message"]["parts"][0]["text"] for each in working if "message" in each["status"]]
    numbers = [int(each.split()[1]) for each in told]
    assert numbers == sorted(numbers) and numbers[-1] > 25, "the latest of them, not the first"
    calls = [request.at for request in receiver.requests[:-1]]
    assert all(after - before >= 0.37 for before, after in pairwise(calls))
    assert receiver.requests[-1].at - ended < 0.3, "the end waited for the interval"
    assert end["artifact"]["parts"][0]["text"] == "arrived" and end["final"] is True


@pytest.mark.proves("W-029")
async def test_nothing_is_sent_to_a_webhook_that_was_deleted(client: httpx2.AsyncClient) -> None:
    async with receiving() as deleted, receiving() as kept:
        task = await rpc(client, "/", "SendMessage", {"message": said_10("ask")})
        id = task["task"]["id"]
        for name, receiver in (("d", deleted), ("k", kept)):
            await rpc(
                client, "/", "CreateTaskPushNotificationConfig", {"taskId": id, "id": name, "url": receiver.url()}
            )
        await rpc(client, "/", "DeleteTaskPushNotificationConfig", {"taskId": id, "id": "d"})
        await rpc(client, "/", "SendMessage", {"message": said_10("this", taskId=id)})
        async with asyncio.timeout(10):
            while not any(b"COMPLETED" in body for body in kept.bodies):
                await asyncio.sleep(0.005)
        assert deleted.connections == 0


async def test_a_large_result_is_told_within_a_megabyte_and_says_what_is_missing(client: httpx2.AsyncClient) -> None:
    async with receiving() as receiver:
        task = await WAYS_BY_NAME["0.3"].send(client, "echo " + "x" * 3_000_000)
        await WAYS_BY_NAME["0.3"].set(client, task, {"url": receiver.url()})
        (request,) = await receiver.received(1)
    assert len(request.body) < 1_100_000
    assert json.loads(request.body)["metadata"]["dragoman.omitted"] == ["artifacts", "history"]


# --- receivers that do not answer


@pytest.mark.proves("004-48", "004-49", "004-c10", "W-198")
async def test_500_is_tried_again_after_growing_pauses_and_404_is_not() -> None:
    """A tenth of the times, which are a setting; tests/push/test_verdict.py holds the defaults."""
    settings = {"push_retries": "100ms,300ms,900ms"}
    async with (
        serving(Stage().agent, **settings) as (client, _),
        receiving(with_status(500)) as broken,
        receiving(with_status(404)) as missing,
    ):
        task = await WAYS_BY_NAME["proto"].send(client, "echo hello")
        for receiver in (broken, missing):
            await WAYS_BY_NAME["proto"].set(client, task, {"url": receiver.url(), "id": str(receiver.port)})
        await broken.received(4)
        assert len(missing.requests) == 1
    times = [request.at for request in broken.requests]
    gaps = [after - before for before, after in pairwise(times)]
    assert all(0 <= gap - wait < 0.25 for gap, wait in zip(gaps, (0.1, 0.3, 0.9), strict=True)), gaps


async def test_a_receiver_that_hangs_holds_up_neither_answers_nor_streams_nor_others(
    client: httpx2.AsyncClient,
) -> None:
    async with receiving(never) as hanging, receiving() as good:
        for number in range(20):
            for receiver in (hanging, good):
                sent = {
                    "message": said_10(f"echo {number}"),
                    "configuration": {"taskPushNotificationConfig": {"url": receiver.url()}},
                }
                await rpc(client, "/", "SendMessage", sent)
        async with client.stream("POST", "/message:stream", json={"message": said_10("count 50")}) as stream:
            assert len([line async for line in stream.aiter_lines() if line.startswith("data:")]) >= 50
        async with asyncio.timeout(10):
            while sum(b"COMPLETED" in body for body in good.bodies) < 20:
                await asyncio.sleep(0.005)
        assert hanging.most_open == 1


# --- who it is


@pytest.mark.proves("002-d25")
@pytest.mark.parametrize("algorithm", ["ES256", "RS256"])
async def test_what_a_server_with_a_key_sends_is_believed_by_who_knows_its_published_keys(
    tmp_path: Path, algorithm: str
) -> None:
    key = tmp_path / "key.json"
    key.write_bytes(generate(algorithm))
    key.chmod(0o600)
    heard: asyncio.Queue[News] = asyncio.Queue()
    settings = {"signing_keys": str(key), "push_issuer": "https://desk.example"}
    async with serving(Stage().agent, **settings) as (client, _):
        jwks = f"{client.base_url}/.well-known/jwks.json"
        async with hosted(Receiver(heard.put, jwks=jwks, issuer="https://desk.example")) as base:
            task = await WAYS_BY_NAME["1.0"].send(client, "echo hello")
            await WAYS_BY_NAME["1.0"].set(client, task, {"url": f"{base}/hook?key=1"})
            async with asyncio.timeout(10):
                assert (await heard.get()).task.id == task
        async with receiving() as receiver:
            config = {"webhookUrl": receiver.url(), "authenticationInfo": {"scheme": "bearer"}}
            task = await WAYS_BY_NAME["simple"].send(client, "echo hello")
            await rpc(client, "/", "tasks/pushNotification/set", {"id": task, "pushNotificationConfig": config})
            (request,) = await receiver.received(1)
        headers = {name: request.headers[name] for name in ("authorization", "idempotency-key")}
        answer = await Receiver(heard.put, jwks=jwks, url=receiver.url()).receive(headers, request.body)
        assert answer.status == 204


@pytest.mark.proves("W-202")
async def test_secrets_stay_inside_and_addresses_can_be_held_to_encrypted_ones(
    client: httpx2.AsyncClient, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    async with receiving(with_status(404)) as receiver:
        task = await WAYS_BY_NAME["1.0"].send(client, "echo hello")
        bearer = {"schemes": ["Bearer"], "credentials": "hidden"}
        config = {"id": "h", "url": receiver.url(), "token": "s3cr3t", "authentication": bearer}
        shown = [await WAYS_BY_NAME["1.0"].set(client, task, config)]
        shown.append(await rpc(client, "/", "GetTaskPushNotificationConfig", {"taskId": task, "id": "h"}))
        shown.append(await rpc(client, "/", "ListTaskPushNotificationConfigs", {"taskId": task}))
        await receiver.received(1)
    assert receiver.url() in str(shown) and "Bearer" in str(shown)
    said = str(shown) + str([vars(record) for record in caplog.records])
    assert "s3cr3t" not in said and "hidden" not in said
    async with serving(Stage().agent, push_https_only=True) as (strict, _):
        task = await WAYS_BY_NAME["1.0"].send(strict, "echo hello")
        answer = await strict.post(f"/tasks/{task}/pushNotificationConfigs", json={"url": "http://93.184.215.14/"})
        assert answer.status_code == 400 and "https://" in answer.text


# --- what lasts


@pytest.mark.proves("004-50", "W-024")
async def test_webhooks_and_what_waits_for_them_outlive_the_process(tmp_path: Path) -> None:
    store = {"store": f"{tmp_path}/tasks.db", "push_retries": "100ms,1m"}
    async with receiving(with_status(500)) as receiver:
        async with serving(Stage().agent, **store) as (client, _):
            asked = (await rpc(client, "/a2a", "message/send", {"message": said("ask")}))["id"]
            ended = (await rpc(client, "/a2a", "message/send", {"message": said("echo")}))["id"]
            for task in (asked, ended):
                await WAYS_BY_NAME["proto"].set(client, task, {"url": receiver.url(), "token": "s3cr3t"})
            await receiver.received(1)
        receiver.answer = GOOD
        before = len(receiver.requests)
        async with serving(Stage().agent, **store) as (client, _):
            for task in (asked, ended):
                (config,) = await rpc(client, "/a2a", "tasks/pushNotificationConfig/list", {"id": task})
                assert config["pushNotificationConfig"]["url"] == receiver.url()
            await rpc(client, "/a2a", "message/send", {"message": said("this", taskId=asked)})
            async with asyncio.timeout(10):
                while not any(asked.encode() in body and b"completed" in body for body in receiver.bodies[before:]):
                    await asyncio.sleep(0.005)
    assert {request.headers["authorization"] for request in receiver.requests} == {"Bearer s3cr3t"}


async def test_what_is_told_at_the_very_end_still_leaves() -> None:
    """A memory store has no second chance: the server gives what is due a moment."""
    async with receiving() as receiver:
        stage = Stage()
        async with serving(stage.agent, drain="5s") as (client, server):
            sent = {
                "message": said_10("wait"),
                "configuration": {
                    "returnImmediately": True,
                    "taskPushNotificationConfig": {"url": receiver.url()},
                },
            }
            await rpc(client, "/", "SendMessage", sent)
            await stage.working.wait()
            server.listener.stop()
            stage.gate.set()
            async with asyncio.timeout(10):
                while not any(b"COMPLETED" in body for body in receiver.bodies):
                    await asyncio.sleep(0.005)
