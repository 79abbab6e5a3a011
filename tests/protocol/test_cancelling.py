"""Cancelling: what it ends, what it leaves alone, and what its caller is told."""

import pytest

from tests.protocol.speaking import Refused, Speaker, serving

pytestmark = pytest.mark.anyio


@pytest.mark.proves("W-019", "W-088")
async def test_a_working_task_is_canceled_and_its_stream_says_so(speaker: Speaker) -> None:
    async with speaker.stream("steps") as stream:
        first = await stream.next()
        assert first is not None
        await speaker.stage.working.wait()
        canceled = await speaker.cancel(first.id)
        events = await stream.rest()
    assert (canceled.kind, canceled.id, canceled.state) == ("task", first.id, "CANCELED")
    assert events[-1].state == "CANCELED"
    speaker.stage.gate.set()
    assert (await speaker.get(first.id)).raw == canceled.raw
    assert canceled.artifacts == ["before "]


@pytest.mark.proves("W-019")
@pytest.mark.parametrize("text", ["ask", "login", "signin"])
async def test_a_task_that_waits_for_somebody_is_canceled(speaker: Speaker, text: str) -> None:
    asked = await speaker.send(text)
    canceled = await speaker.cancel(asked.id)
    assert (canceled.id, canceled.state) == (asked.id, "CANCELED")
    assert canceled.history == [text, asked.words]


async def test_a_send_that_waits_is_answered_with_the_canceled_task(speaker: Speaker) -> None:
    first = await speaker.send("wait", now=True)
    await speaker.stage.working.wait()
    async with speaker.subscribe(first.id) as stream:
        await stream.next()
        await speaker.cancel(first.id)
        assert (await stream.rest())[-1].state == "CANCELED"


@pytest.mark.proves("W-019")
@pytest.mark.parametrize("text", ["echo hi", "fail", "reject"])
async def test_a_task_that_ended_otherwise_is_not_cancelable_and_stays_as_it_was(speaker: Speaker, text: str) -> None:
    seen = await speaker.send(text)
    with pytest.raises(Refused) as caught:
        await speaker.cancel(seen.id)
    assert caught.value.code == -32002
    assert (await speaker.get(seen.id)).raw == seen.raw


@pytest.mark.proves("W-019", "W-053")
async def test_an_unknown_task_is_not_found(speaker: Speaker) -> None:
    with pytest.raises(Refused) as caught:
        await speaker.cancel("nobody-made-this")
    assert caught.value.code == -32001


@pytest.mark.proves("W-042", "S-12-12")
async def test_cancelling_again_has_the_effect_of_cancelling_once(modern: Speaker) -> None:
    asked = await modern.send("ask")
    canceled = await modern.cancel(asked.id)
    again = await modern.cancel(asked.id)
    assert again.raw == canceled.raw == (await modern.get(asked.id)).raw


@pytest.mark.proves("W-088", "S-12-12")
@pytest.mark.parametrize("binding", ["JSONRPC", "HTTP+JSON"])
async def test_0_3_is_told_that_it_was_canceled_before(binding: str) -> None:
    async with serving() as (stage, app):
        old = Speaker("0.3", binding, stage, app)
        asked = await old.send("ask")
        canceled = await old.cancel(asked.id)
        with pytest.raises(Refused) as caught:
            await old.cancel(asked.id)
        assert caught.value.code == -32002
        assert (await old.get(asked.id)).raw == canceled.raw
