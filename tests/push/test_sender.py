"""The sender over real stores and real sockets: order, retries, repeats, and receivers that misbehave."""

import asyncio
import logging
import sqlite3
from collections.abc import AsyncGenerator
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from dragoman.model.errors import StoreError
from dragoman.model.tasks import TaskState
from dragoman.ports import Delivery
from dragoman.push import sender as module
from dragoman.push.settings import PushSettings
from tests.client.receivers import GOOD, Answer, hang_up, never, receiving, saying, with_status
from tests.conformance.store.adapters import HookedStore
from tests.conformance.store.logs import OURS, asked, said, settled
from tests.push.nameserver import Asking, naming
from tests.push.rig import (
    LOCAL,
    STORES,
    begin,
    dead,
    deliveries,
    done,
    end,
    hook,
    opened,
    render,
    sending,
    tasks,
    tell,
    told,
)

pytestmark = pytest.mark.anyio


@pytest.fixture(params=STORES)
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[HookedStore]:
    async with opened(request.param, tmp_path) as store:
        yield store


async def test_news_are_posted_as_they_were_rendered_with_what_the_hook_asked_for(store: HookedStore) -> None:
    async with receiving() as receiver, sending(store) as sender:
        await end(store, "u", hook("u", receiver, token="s3cr3t"))
        (request,) = await receiver.received(1)
        await done(store, sender)
    assert request.line == "POST /hook HTTP/1.1"
    assert request.headers["content-type"] == "application/test+json"
    assert request.headers["authorization"] == "Bearer s3cr3t"
    assert told(receiver) == [{"task": "u", "seq": 4, "state": "TASK_STATE_COMPLETED"}]


async def test_what_was_waiting_when_it_starts_is_sent(store: HookedStore) -> None:
    async with receiving() as receiver:
        for number in range(20):
            await end(store, f"u{number}", hook(f"u{number}", receiver))
        async with sending(store) as sender:
            await done(store, sender)
        assert sorted(tasks(receiver)) == sorted(f"u{number}" for number in range(20))


async def test_each_hook_hears_in_the_order_of_the_log(store: HookedStore) -> None:
    async with receiving() as receiver, sending(store) as sender:
        await begin(store, "u", hook("u", receiver))
        await receiver.received(1)
        for fact in (asked, said, asked, settled):
            await tell(store, "u", fact(store.now()))
        await done(store, sender)
    seen = [each["seq"] for each in told(receiver)]
    assert seen == sorted(seen)
    assert [each["state"] for each in told(receiver)][-1] == TaskState.COMPLETED


async def test_what_failed_holds_back_what_follows_it_for_that_hook_alone(store: HookedStore) -> None:
    failing = [with_status(500), with_status(500), GOOD]
    async with receiving(failing) as bad, receiving() as good, sending(store) as sender:
        await begin(store, "u")
        await store.keep_hook(hook("u", bad, "bad"))
        await store.keep_hook(hook("u", good, "good"))
        await tell(store, "u", asked(store.now()))
        await tell(store, "u", settled(store.now()))
        await good.received(2)
        await done(store, sender)
    assert [each["seq"] for each in told(good)] == [3, 4]
    assert [each["seq"] for each in told(bad)] == [3, 3, 3, 4]


@pytest.mark.proves("S-8-3")
async def test_a_failure_is_tried_again_on_schedule_with_the_same_body_and_id_until_it_is_dead(
    store: HookedStore,
) -> None:
    rendered: list[str] = []

    async def once(delivery: Delivery) -> tuple[bytes, str]:
        rendered.append(delivery.id)
        return await render(delivery)

    settings = PushSettings(seconds=5, retries=(50, 150, 300))
    async with receiving(with_status(500)) as receiver, sending(store, tell=once, settings=settings):
        await end(store, "u", hook("u", receiver))
        (letter,) = await dead(store)
        requests = list(receiver.requests)
    assert len(requests) == 4 and len(rendered) == 1
    assert {request.body for request in requests} == {letter.body} and set(deliveries(receiver)) == {letter.id}
    gaps = [after.at - before.at for before, after in pairwise(requests)]
    assert all(gap >= wait for gap, wait in zip(gaps, (0.05, 0.15, 0.3), strict=True))
    assert (letter.attempts, letter.error) == (4, "answered with status 500")


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (with_status(404), "answered with status 404"),
        (with_status(410), "answered with status 410"),
        (with_status(429, "Retry-After: 1"), "answered with status 429"),
    ],
)
async def test_a_refusal_is_dead_at_once(store: HookedStore, answer: Answer, error: str) -> None:
    async with receiving(answer) as receiver, sending(store):
        await end(store, "u", hook("u", receiver))
        (letter,) = await dead(store)
        assert (letter.attempts, letter.error) == (1, error)
    assert len(receiver.requests) == 1


@pytest.mark.parametrize(("status", "settings"), [(503, {}), (429, {"retry_busy": True})])
async def test_a_busy_receiver_says_when_to_come_again(
    store: HookedStore, status: int, settings: dict[str, Any]
) -> None:
    quick = PushSettings(seconds=5, retries=(1,), **settings)
    answers = [with_status(status, "Retry-After: 1"), GOOD]
    async with receiving(answers) as receiver, sending(store, settings=quick) as sender:
        await end(store, "u", hook("u", receiver))
        first, second = await receiver.received(2)
        await done(store, sender)
    assert second.at - first.at >= 0.99


HUGE = b"HTTP/1.1 200 OK\r\nContent-Length: 10000000000\r\n\r\n" + b"x" * 1_000_000


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (hang_up, "closed the connection without an answer"),
        (saying(b"HTTP/1.1 200", close=True), "closed the connection without an answer"),
        (saying(b"SSH-2.0-OpenSSH_9.9\r\n"), "answered something that is not HTTP"),
        (saying(b"HTTP/1.1 200 OK\r\n" + b"X-Filler: x\r\n" * 10_000), "answered with endless headers"),
        (never, "did not answer in time"),
    ],
)
async def test_whoever_gives_no_answer_is_tried_again(store: HookedStore, answer: Answer, reason: str) -> None:
    settings = PushSettings(seconds=0.3, retries=(1,))
    async with receiving(answer) as receiver, sending(store, settings=settings):
        await end(store, "u", hook("u", receiver))
        (letter,) = await dead(store)
        assert (letter.attempts, letter.error) == (2, reason)
        assert receiver.connections >= 2


@pytest.mark.parametrize("answer", [saying(HUGE), saying(b"HTTP/1.1 204 No Content\r\n\r\n", close=True)])
async def test_the_status_counts_however_the_answer_goes_on(store: HookedStore, answer: Answer) -> None:
    async with receiving(answer) as receiver, sending(store) as sender:
        await end(store, "u", hook("u", receiver))
        await receiver.received(1)
        await done(store, sender)
        assert not await store.dead_deliveries()
    assert len(receiver.requests) == 1


async def test_a_redirect_is_not_followed(store: HookedStore) -> None:
    async with receiving() as elsewhere:
        async with receiving(with_status(307, f"Location: {elsewhere.url()}")) as receiver, sending(store):
            await end(store, "u", hook("u", receiver, token="s3cr3t"))
            (letter,) = await dead(store)
        assert letter.error == "answered with status 307"
        assert elsewhere.connections == 0


async def test_nobody_listening_is_tried_again(store: HookedStore) -> None:
    async with receiving() as gone:
        url = gone.url()
    async with sending(store):
        await end(store, "u", hook("u", url))
        (letter,) = await dead(store)
    assert (letter.attempts, letter.error) == (4, "could not be reached")


async def test_a_name_that_turns_inside_is_given_up_and_never_connected_to(store: HookedStore) -> None:
    """It was public when it was registered; DNS says something else now."""
    async with receiving() as victim, naming(evil_example=[["127.0.0.1", "10.0.0.1"]]) as names:
        async with sending(store, resolver=Asking(names)):
            await end(store, "u", hook("u", victim.url(host="evil.example")))
            (letter,) = await dead(store)
        assert victim.connections == 0
    assert letter.attempts == 1 and "may not be called" in letter.error
    assert "10.0.0.1" not in letter.error


async def test_an_address_that_may_no_longer_be_called_is_given_up(store: HookedStore) -> None:
    async with sending(store):
        await end(store, "u", hook("u", "http://10.0.0.1/hook"))
        (letter,) = await dead(store)
    assert letter.error == "may not be called: its address names a private address; only public addresses may be called"


@pytest.mark.parametrize(
    "config",
    [
        {"token": "a\r\nX-Evil: 1"},
        {"token": "☃"},
        {"authentication": {"scheme": "token", "credentials": "x"}, "header_name": "Content-Length"},
        {"authentication": {"scheme": "token", "credentials": "x"}, "header_name": "X Y"},
    ],
)
async def test_credentials_no_header_can_carry_are_no_request(store: HookedStore, config: dict[str, Any]) -> None:
    async with receiving() as receiver, sending(store):
        await end(store, "u", hook("u", receiver, **config))
        (letter,) = await dead(store)
    assert letter.error == "cannot be called: no header can carry its credentials"
    assert receiver.connections == 0


async def test_what_a_hook_is_not_told_is_done_without_a_call(store: HookedStore) -> None:
    async def nothing(delivery: Delivery) -> tuple[bytes, str]:
        return b"", "application/json"

    async with receiving() as receiver, sending(store, tell=nothing) as sender:
        await end(store, "u", hook("u", receiver))
        await done(store, sender)
        assert not await store.dead_deliveries()
    assert receiver.connections == 0


async def test_news_of_a_task_that_is_gone_are_given_up(store: HookedStore) -> None:
    async def gone(delivery: Delivery) -> None:
        return None

    async with receiving() as receiver, sending(store, tell=gone):
        await end(store, "u", hook("u", receiver))
        (letter,) = await dead(store)
    assert letter.error == "was not told: its task is gone" and receiver.connections == 0


async def test_what_cannot_be_rendered_is_given_up_in_the_end_and_others_are_sent(
    store: HookedStore, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken(delivery: Delivery) -> tuple[bytes, str]:
        if delivery.task_id == "bad":
            raise RuntimeError("no words")
        return await render(delivery)

    async with receiving() as receiver:
        with caplog.at_level(logging.ERROR, "dragoman.push"):
            async with sending(store, tell=broken) as sender:
                await end(store, "bad", hook("bad", receiver))
                await end(store, "good", hook("good", receiver))
                (letter,) = await dead(store)
                await done(store, sender)
        assert tasks(receiver) == ["good"]
    assert letter.error == "was not called: its message could not be made" and letter.attempts == 4
    assert "no words" in caplog.text


async def test_a_store_that_cannot_be_read_costs_no_attempt(
    store: HookedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "TROUBLE_SECONDS", 0.02)
    failures = [StoreError("The store could not be read")] * 10

    async def troubled(delivery: Delivery) -> tuple[bytes, str]:
        if failures:
            raise failures.pop()
        return await render(delivery)

    async with receiving() as receiver, sending(store, tell=troubled) as sender:
        await end(store, "u", hook("u", receiver))
        await receiver.received(1)
        await done(store, sender)
    assert not failures and len(receiver.requests) == 1


async def test_a_store_that_cannot_be_asked_or_written_is_asked_again(
    store: HookedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Real stores cannot be made to fail at will, so their methods are made to, a few times each."""
    monkeypatch.setattr(module, "TROUBLE_SECONDS", 0.02)
    left = {"due_deliveries": 3, "next_delivery_at": 3, "record": 3}
    for name in left:
        real = getattr(store, name)

        def failing(*given: Any, name: str = name, real: Any = real, **named: Any) -> Any:
            if left[name]:
                left[name] -= 1
                raise StoreError("The store could not be read")
            return real(*given, **named)

        monkeypatch.setattr(store, name, failing)
    async with receiving() as receiver, sending(store) as sender:
        await end(store, "u", hook("u", receiver))
        await receiver.received(1)
        await done(store, sender)
    assert not any(left.values()) and len(receiver.requests) == 1


async def test_a_hook_that_was_deleted_is_not_called_even_if_its_news_were_taken_already(store: HookedStore) -> None:
    """One attempt at a time to a receiver nobody knows: the second waits in memory or in the store."""
    gate = asyncio.Event()

    async def hold(request: Any, writer: asyncio.StreamWriter) -> None:
        await gate.wait()
        writer.write(b"HTTP/1.1 204 No Content\r\n\r\n")

    async with receiving() as receiver:
        async with sending(store) as sender:
            for number in range(30):  # until it is known as a quick one, with some waiting in memory
                await end(store, f"w{number}", hook(f"w{number}", receiver))
            await done(store, sender)
            receiver.answer = hold
            for number in range(60):
                await end(store, f"u{number}", hook(f"u{number}", receiver))
            await receiver.received(31)
            await store.drop_hook(OURS, "u59", "h")
            gate.set()
            await done(store, sender)
        assert "u59" not in tasks(receiver) and "u58" in tasks(receiver)
        assert not await store.dead_deliveries()


async def test_a_hook_that_was_replaced_is_called_as_it_is_now(store: HookedStore) -> None:
    async with receiving(with_status(500)) as old, receiving() as new:
        settings = PushSettings(seconds=5, retries=(60_000,))
        async with sending(store, settings=settings) as sender:
            await end(store, "u", hook("u", old, token="old"))
            await old.received(1)
            async with asyncio.timeout(10):
                while not await store.next_delivery_at():
                    await asyncio.sleep(0.005)
            await store.keep_hook(hook("u", new, token="new"))
            await new.received(1)
            await done(store, sender)
        (request,) = new.requests
        assert request.headers["authorization"] == "Bearer new"


async def test_a_dead_letter_is_sent_again_with_the_body_and_id_it_had(store: HookedStore) -> None:
    async with receiving(with_status(404)) as receiver, sending(store) as sender:
        await end(store, "u", hook("u", receiver))
        (letter,) = await dead(store)
        receiver.answer = GOOD
        assert await store.resend(letter.id)
        await receiver.received(2)
        await done(store, sender)
        assert not await store.dead_deliveries()
    first, second = receiver.requests
    assert first.body == second.body
    assert first.headers["idempotency-key"] == second.headers["idempotency-key"] == letter.id


@pytest.mark.proves("W-104")
def test_an_attempt_ends_after_10_to_30_seconds() -> None:
    assert 10 <= PushSettings().seconds <= 30


async def test_nothing_secret_is_logged(store: HookedStore, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        async with receiving([with_status(500), GOOD, with_status(404)]) as receiver, sending(store) as sender:
            url = receiver.url("/hook/s3cr3t?key=s3cr3t")
            for number in range(2):
                await end(store, f"u{number}", hook(f"u{number}", url, token="s3cr3t"))
            await dead(store)
            await done(store, sender)
    records = [record for record in caplog.records if record.name == "dragoman.push"]
    assert {record.levelname for record in records} == {"DEBUG", "INFO", "WARNING"}
    assert "s3cr3t" not in str([vars(record) for record in records])
    assert all(vars(record)["a2a.push.receiver"] == f"http://127.0.0.1:{receiver.port}" for record in records)


# --- receivers that hang


async def test_one_that_hangs_delays_no_other(store: HookedStore) -> None:
    settings = PushSettings(seconds=30, retries=(1,), total=32)
    async with receiving(never) as hanging, receiving() as good, sending(store, settings=settings):
        for number in range(200):
            await end(store, f"bad{number}", hook(f"bad{number}", hanging))
        for number in range(200):
            await end(store, f"good{number}", hook(f"good{number}", good))
        await good.received(200)
        assert len(hanging.requests) == hanging.most_open == 1


async def test_many_that_hang_leave_room_for_those_that_answer(store: HookedStore) -> None:
    settings = PushSettings(seconds=30, retries=(1,), total=16)
    async with (
        receiving() as good,
        receiving(never, host="0.0.0.0") as hanging,
        sending(store, settings=settings) as sender,
    ):
        await end(store, "first", hook("first", good))
        await good.received(1)
        await done(store, sender)
        for number in range(100):
            await end(store, f"bad{number}", hook(f"bad{number}", f"http://127.0.1.{number}:{hanging.port}/"))
        for number in range(50):
            await end(store, f"good{number}", hook(f"good{number}", good))
        await good.received(51)
        assert 1 < len(hanging.requests) <= 12


async def test_a_receiver_gets_no_more_at_once_than_is_set(store: HookedStore) -> None:
    async def slowly(request: Any, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(0.002)  # so that requests overlap
        writer.write(b"HTTP/1.1 204 No Content\r\n\r\n")

    settings = PushSettings(per_receiver=3)
    async with receiving(slowly) as receiver, sending(store, settings=settings) as sender:
        for number in range(100):
            await end(store, f"u{number}", hook(f"u{number}", receiver))
        await done(store, sender)
    assert receiver.most_open == 3
    assert len(receiver.requests) == 100


# --- the end


async def test_what_is_due_is_still_sent_when_it_closes(store: HookedStore) -> None:
    async with receiving() as receiver:
        async with sending(store, grace=10):
            for number in range(50):
                await end(store, f"u{number}", hook(f"u{number}", receiver))
        assert len(receiver.requests) == 50
        assert not await store.next_delivery_at()


async def test_what_hangs_when_it_closes_is_put_back_and_sent_by_the_next(store: HookedStore) -> None:
    async with receiving(never) as receiver:
        async with sending(store, grace=0.05):
            await end(store, "u", hook("u", receiver))
            await receiver.received(1)
        receiver.answer = GOOD
        assert await store.next_delivery_at()
        async with sending(store) as sender:
            await receiver.received(2)
            await done(store, sender)
    assert len(set(deliveries(receiver))) == 1


async def test_a_sender_that_never_started_closes(store: HookedStore) -> None:
    from dragoman.client.dialler import Dialler
    from dragoman.client.poster import Poster
    from dragoman.push.letters import Letters
    from dragoman.push.sender import Sender
    from tests.client.receivers import Names

    poster = Poster(Dialler(LOCAL, Names()))
    await Sender(store, tell=render, poster=poster, letters=Letters(agent="a", issuer="i"), now=store.now).close()


async def test_a_file_keeps_what_waits_over_a_restart_and_its_schedule(tmp_path: Path) -> None:
    """Retries are not begun anew: what had one left has one left."""
    settings = PushSettings(seconds=5, retries=(1, 400))
    async with receiving(with_status(500)) as receiver:
        async with opened("sqlite", tmp_path) as store, sending(store, settings=settings):
            await end(store, "u", hook("u", receiver))
            await receiver.received(2)
            async with asyncio.timeout(10):
                while not await store.next_delivery_at():
                    await asyncio.sleep(0.005)
        async with opened("sqlite", tmp_path) as store, sending(store, settings=settings):
            (letter,) = await dead(store)
    assert letter.attempts == 3 == len(receiver.requests)
    assert receiver.requests[2].at - receiver.requests[1].at >= 0.39
    assert len({request.body for request in receiver.requests}) == 1


@pytest.mark.proves("S-8-4")
async def test_a_file_holds_a_hooks_secrets_with_the_hook_and_nowhere_else(tmp_path: Path) -> None:
    async with opened("sqlite", tmp_path) as store, receiving(with_status(404)) as receiver, sending(store):
        secret = {"scheme": "Bearer", "credentials": "s3cr3t"}
        await end(store, "u", hook("u", receiver.url("/hook?key=s3cr3t"), token="s3cr3t", authentication=secret))
        await dead(store)
    with closing(sqlite3.connect(tmp_path / "push.db")) as db:
        tables = [name for (name,) in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        holding = [table for table in tables if "s3cr3t" in str(db.execute(f"SELECT * FROM {table}").fetchall())]
    assert len(tables) > 3 and holding == ["hooks"]
