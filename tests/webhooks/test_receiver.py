"""The receiver's end: genuine or not, any dialect, each piece of news once, and the answers senders act on."""

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import httpx2
import pytest

from dragoman import News, Receiver, TaskState
from dragoman.webhooks import receiver as module
from dragoman.wire.news import newsroom
from dragoman.wire.settings import WireSettings
from tests.webhooks.hosting import hosted
from tests.wire.test_news import DONE, MADE, ORIGINS, hook, view

pytestmark = pytest.mark.anyio

BODY = b'{"statusUpdate":{"taskId":"t-1","contextId":"c-1","status":{"state":"TASK_STATE_WORKING"}}}'


class Told(list[News]):
    """A handler that remembers, and does first what the test says."""

    def __init__(self, first: Callable[[], Awaitable[None]] | None = None) -> None:
        super().__init__()
        self.first = first

    async def __call__(self, news: News) -> None:
        if self.first is not None:
            await self.first()
        self.append(news)


@pytest.mark.parametrize("origin", ORIGINS)
async def test_news_of_every_dialect_are_handed_over_as_the_same(origin: str) -> None:
    body, media_type = newsroom(WireSettings())(hook(origin), DONE, view(DONE.status, MADE))
    told = Told()
    answer = await Receiver(told, token="s3cr3t").receive(
        {"Content-Type": media_type, "X-A2A-Notification-Token": "s3cr3t", "Idempotency-Key": "d-1"}, body
    )
    assert answer.status == 204
    (news,) = told
    assert (news.delivery, news.task.id, news.state) == ("d-1", "t-77", TaskState.COMPLETED)
    assert news.task.artifacts[0].parts[0].text == "square"


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"X-A2A-Notification-Token": "s3cr3t"}, 204),
        ({"Authorization": "Bearer s3cr3t"}, 204),
        ({"authorization": "bearer  s3cr3t"}, 204),
        ({"X-A2A-Notification-Token": "wrong", "Authorization": "Bearer s3cr3t"}, 204),
        ({}, 401),
        ({"X-A2A-Notification-Token": ""}, 401),
        ({"X-A2A-Notification-Token": "wrong"}, 401),
        ({"X-A2A-Notification-Token": "s3cr3t\xe9"}, 401),
        ({"Authorization": "s3cr3t"}, 401),
        ({"Authorization": "Basic s3cr3t"}, 401),
        ({"Authorization": "Bearer"}, 401),
    ],
)
async def test_a_sender_is_known_by_its_token_in_either_header(headers: dict[str, str], status: int) -> None:
    told = Told()
    assert (await Receiver(told, token="s3cr3t").receive(headers, BODY)).status == status
    assert len(told) == (status == 204)


async def test_who_is_not_known_is_not_even_read() -> None:
    assert (await Receiver(Told(), token="s3cr3t").receive({}, b"no json")).status == 401


async def test_each_task_may_have_a_token_of_its_own() -> None:
    tokens = {"t-1": "s3cr3t", "t-2": "other"}
    told = Told()
    receiver = Receiver(told, token=tokens.get)
    assert (await receiver.receive({"X-A2A-Notification-Token": "s3cr3t"}, BODY)).status == 204
    assert (await receiver.receive({"X-A2A-Notification-Token": "other"}, BODY)).status == 401
    assert (await receiver.receive({"X-A2A-Notification-Token": "s3cr3t"}, BODY.replace(b"t-1", b"t-3"))).status == 404
    assert len(told) == 1


async def test_a_task_nobody_expects_is_turned_away() -> None:
    told = Told()
    receiver = Receiver(told, unchecked=True, expects={"t-1"}.__contains__)
    assert (await receiver.receive({}, BODY.replace(b"t-1", b"t-2"))).status == 404
    assert (await receiver.receive({}, BODY)).status == 204
    assert [news.task.id for news in told] == ["t-1"]


def test_a_receiver_has_to_know_its_senders_by_something() -> None:
    with pytest.raises(ValueError, match="how to know the sender"):
        Receiver(Told())


@pytest.mark.parametrize("body", [b"", b"{}", b"[]", b"\xff", b'{"taskId":"t-1"}'])
async def test_what_is_no_news_is_refused_for_good(body: bytes) -> None:
    told = Told()
    answer = await Receiver(told, unchecked=True).receive({}, body)
    assert answer.status == 400 and answer.text
    assert told == []


async def test_what_is_too_large_is_refused_unread() -> None:
    assert (await Receiver(Told(), unchecked=True, largest_body=10).receive({}, b"x" * 11)).status == 413


@pytest.mark.proves("W-100")
async def test_a_repeat_is_answered_and_not_handed_over_again() -> None:
    told = Told()
    receiver = Receiver(told, unchecked=True)
    for delivery, count in (("d-1", 1), ("d-1", 1), ("d-2", 2), ("d-1", 2)):
        assert (await receiver.receive({"Idempotency-Key": delivery}, BODY)).status == 204
        assert len(told) == count
    for count in (3, 4):  # senders that give no id are taken at their word
        assert (await receiver.receive({}, BODY)).status == 204
        assert len(told) == count


async def test_a_repeat_that_comes_while_the_first_is_being_handled_waits_for_it() -> None:
    gate = asyncio.Event()
    told = Told(gate.wait)  # pyright: ignore[reportArgumentType]
    receiver = Receiver(told, unchecked=True)
    both = [asyncio.create_task(receiver.receive({"Idempotency-Key": "d-1"}, BODY)) for _ in range(2)]
    await asyncio.sleep(0)
    assert not any(each.done() for each in both)
    gate.set()
    assert [answer.status for answer in await asyncio.gather(*both)] == [204, 204]
    assert len(told) == 1


async def test_a_sender_that_leaves_does_not_stop_the_handling() -> None:
    gate = asyncio.Event()
    told = Told(gate.wait)  # pyright: ignore[reportArgumentType]
    receiver = Receiver(told, unchecked=True)
    first = asyncio.create_task(receiver.receive({"Idempotency-Key": "d-1"}, BODY))
    await asyncio.sleep(0)
    first.cancel()
    await asyncio.wait([first])
    again = asyncio.create_task(receiver.receive({"Idempotency-Key": "d-1"}, BODY))
    await asyncio.sleep(0)
    gate.set()
    assert (await again).status == 204
    assert len(told) == 1


async def test_what_could_not_be_handled_is_asked_for_again(caplog: pytest.LogCaptureFixture) -> None:
    failures = [OSError("no database"), None]

    async def maybe() -> None:
        if failure := failures.pop(0):
            raise failure

    told = Told(maybe)
    receiver = Receiver(told, unchecked=True)
    with caplog.at_level(logging.ERROR, "dragoman.webhooks"):
        answer = await receiver.receive({"Idempotency-Key": "d-1"}, BODY)
    assert answer.status == 500 and "database" not in answer.text
    assert "could not be handled" in caplog.text
    assert (await receiver.receive({"Idempotency-Key": "d-1"}, BODY)).status == 204
    assert len(told) == 1


async def test_how_many_deliveries_are_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "REMEMBERED", 2)
    told = Told()
    receiver = Receiver(told, unchecked=True)
    for delivery in ("d-1", "d-2", "d-3", "d-3", "d-1"):
        await receiver.receive({"Idempotency-Key": delivery}, BODY)
    assert [news.delivery for news in told] == ["d-1", "d-2", "d-3", "d-1"]


async def test_it_is_an_application_at_a_port() -> None:
    told = Told()
    async with hosted(Receiver(told, token="s3cr3t", largest_body=10_000)) as base, httpx2.AsyncClient() as client:
        headers = {"X-A2A-Notification-Token": "s3cr3t", "Idempotency-Key": "d-1"}
        for _ in range(2):
            answer = await client.post(f"{base}/any/path", content=BODY, headers=headers)
            assert (answer.status_code, answer.content) == (204, b"")
        assert [news.delivery for news in told] == ["d-1"]
        answer = await client.post(base, content=BODY)
        assert (answer.status_code, answer.text) == (401, "The token is missing or wrong")
        assert (await client.post(base, content=b"x" * 100_000, headers=headers)).status_code == 413
        answer = await client.get(base)
        assert (answer.status_code, answer.headers["allow"]) == (405, "POST")


async def test_it_works_inside_a_framework() -> None:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import PlainTextResponse, Response
    from starlette.routing import Mount, Route

    told = Told()
    receiver = Receiver(told, token="s3cr3t")

    async def endpoint(request: Request) -> Response:
        answer = await receiver.receive(request.headers, await request.body())
        return PlainTextResponse(answer.text, answer.status)

    app: Any = Starlette(routes=[Route("/mine", endpoint, methods=["POST"]), Mount("/mounted", receiver)])
    async with hosted(app) as base, httpx2.AsyncClient() as client:
        for number, path in enumerate(("/mine", "/mounted/")):
            headers = {"Authorization": "Bearer s3cr3t", "Idempotency-Key": f"d-{number}"}
            answer = await client.post(base + path, content=json.dumps(json.loads(BODY)), headers=headers)
            assert answer.status_code == 204
    assert [news.delivery for news in told] == ["d-0", "d-1"]


async def test_the_example_keeps_the_results_of_tasks_that_ended() -> None:
    from examples import receiver

    body, _ = newsroom(WireSettings())(hook("0.3"), DONE, view(DONE.status, MADE))
    async with hosted(receiver.app) as base, httpx2.AsyncClient() as client:
        headers = {"X-A2A-Notification-Token": receiver.TOKEN}
        assert (await client.post(base, content=BODY, headers=headers)).status_code == 204
        assert (await client.post(base, content=body, headers=headers)).status_code == 204
        assert (await client.post(base, content=body)).status_code == 401
    assert receiver.results == {"t-77": "square"}
