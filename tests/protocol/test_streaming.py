"""Streams: how they begin, what they carry, when they end, and how they go on after a break."""

import asyncio
import json
from contextlib import AsyncExitStack

import pytest

from dragoman import Turn
from tests.protocol.speaking import Refused, Seen, Speaker, serving
from tests.protocol.stage import Stage

pytestmark = pytest.mark.anyio

UPDATES = {"status", "artifact"}


def kinds(events: list[Seen]) -> list[str]:
    return [event.kind for event in events]


def pieces(events: list[Seen]) -> list[str]:
    return [text for event in events if event.kind == "artifact" for text in event.artifacts]


def states(events: list[Seen]) -> list[str]:
    return [event.state for event in events if event.kind == "status"]


class TestSending:
    @pytest.mark.proves("W-005", "W-007", "W-008", "W-167", "S-2-8")
    async def test_a_stream_is_the_task_and_its_updates_until_it_has_ended(self, speaker: Speaker) -> None:
        async with speaker.stream("count 3") as stream:
            events = await stream.rest()
            assert stream.headers["content-type"] == "text/event-stream"
        assert events[0].kind == "task"
        assert events[0].history == ["count 3"]
        assert set(kinds(events[1:])) == UPDATES
        assert states(events) == ["WORKING", "COMPLETED"]
        assert events[-1].state == "COMPLETED"
        assert pieces(events) == ["0 ", "1 ", "2 ", ""]
        assert {event.id for event in events} == {events[0].id}
        assert {event.context for event in events} == {events[0].context}
        assert (await speaker.get(events[0].id)).artifacts == ["0 1 2 "]

    @pytest.mark.proves("W-006")
    async def test_a_direct_answer_is_the_only_item(self, speaker: Speaker) -> None:
        async with speaker.stream("direct") as stream:
            (event,) = await stream.rest()
        assert (event.kind, event.words) == ("message", "At once")

    @pytest.mark.proves("W-009")
    async def test_progress_arrives_while_the_agent_works(self, speaker: Speaker) -> None:
        async with speaker.stream("steps") as stream:
            early: list[Seen] = []
            while not pieces(early):
                event = await stream.next()
                assert event is not None
                early.append(event)
            assert not speaker.stage.gate.is_set()
            assert "Half way" in [event.words for event in early if event.kind == "status"]
            speaker.stage.gate.set()
            late = await stream.rest()
        assert pieces(early) == ["before "]
        assert pieces(late)[0] == "after"

    @pytest.mark.proves("W-008", "D-2-5")
    @pytest.mark.parametrize(("text", "state"), [("fail", "FAILED"), ("reject", "REJECTED"), ("crash", "FAILED")])
    async def test_every_end_closes_the_stream_with_its_state(self, speaker: Speaker, text: str, state: str) -> None:
        async with speaker.stream(text) as stream:
            events = await stream.rest()
        assert events[-1].state == state
        assert "secret" not in events[-1].words

    async def test_a_question_closes_the_stream_and_its_answer_streams_on(self, speaker: Speaker) -> None:
        async with speaker.stream("ask") as stream:
            asked = await stream.rest()
        assert (asked[-1].state, asked[-1].words) == ("INPUT_REQUIRED", "Which one?")
        async with speaker.stream("blue", taskId=asked[0].id) as stream:
            answered = await stream.rest()
        assert answered[0].kind == "task" and answered[0].id == asked[0].id
        assert answered[-1].state == "COMPLETED"
        assert pieces(answered) == ["You said blue"]

    async def test_the_last_frame_of_0_3_says_so_and_no_other(self, speaker: Speaker) -> None:
        for text in ("count 2", "ask", "fail"):
            async with speaker.stream(text) as stream:
                events = await stream.rest()
            finals = [bool(event.raw.get("final")) for event in events]
            assert finals == [False] * (len(events) - 1) + [not speaker.modern]

    async def test_a_stream_carries_its_request_in_every_frame(self, speaker: Speaker) -> None:
        async with speaker.stream("count 2") as stream:
            events = await stream.rest()
        envelopes = [event.envelope for event in events]
        if speaker.rest:
            assert not any("jsonrpc" in each for each in envelopes)
        else:
            assert len({each["id"] for each in envelopes}) == 1
            assert all(set(each) == {"jsonrpc", "id", "result"} for each in envelopes)

    @pytest.mark.proves("W-039")
    async def test_the_first_frame_has_as_much_history_as_asked_for(self, modern: Speaker) -> None:
        asked = await modern.send("ask")
        async with modern.stream("blue", taskId=asked.id, history=1) as stream:
            first = await stream.next()
        assert first is not None and first.history == ["blue"]


class TestSubscribing:
    @pytest.mark.proves("W-021", "W-022", "W-007")
    async def test_a_subscription_is_the_task_as_it_is_and_then_its_updates(self, speaker: Speaker) -> None:
        async with speaker.stream("steps") as stream:
            seen = await stream.until("WORKING")
            await speaker.stage.working.wait()
            half = await speaker.settled(seen[0].id, "WORKING")
            async with speaker.subscribe(half.id) as late:
                first = await late.next()
                assert first is not None
                assert (first.kind, first.state, first.artifacts) == ("task", "WORKING", ["before "])
                speaker.stage.gate.set()
                events = await late.rest()
        assert set(kinds(events)) == UPDATES
        assert pieces(events)[0] == "after"
        assert events[-1].state == "COMPLETED"

    @pytest.mark.proves("W-020", "S-2-13")
    @pytest.mark.parametrize("text", ["echo hi", "fail", "reject"])
    async def test_a_finished_task_has_no_more_events(self, modern: Speaker, text: str) -> None:
        seen = await modern.send(text)
        code, message = await refused_subscription(modern, seen.id)
        assert code == -32004
        assert "get it instead" in message

    @pytest.mark.parametrize("binding", ["JSONRPC", "HTTP+JSON"])
    async def test_0_3_is_told_how_a_finished_task_ended(self, binding: str) -> None:
        async with serving() as (stage, app):
            old = Speaker("0.3", binding, stage, app)
            done = await old.send("echo hi")
            async with old.subscribe(done.id) as stream:
                (event,) = await stream.rest()
            assert event.raw == done.raw

    @pytest.mark.proves("W-053")
    async def test_an_unknown_task_cannot_be_followed(self, speaker: Speaker) -> None:
        assert (await refused_subscription(speaker, "nobody-made-this"))[0] == -32001

    async def test_a_question_is_followed_until_the_task_ends(self, speaker: Speaker) -> None:
        asked = await speaker.send("ask")
        async with speaker.subscribe(asked.id) as stream:
            first = await stream.next()
            assert first is not None and first.state == "INPUT_REQUIRED"
            await speaker.send("blue", taskId=asked.id)
            events = await stream.rest()
        assert pieces(events) == ["You said blue"]
        assert events[-1].state == "COMPLETED"


class TestManyStreams:
    @pytest.mark.proves("W-080", "W-081", "W-082", "W-083", "W-182")
    async def test_all_get_the_same_events_in_order_and_one_that_leaves_changes_nothing(self, speaker: Speaker) -> None:
        async with AsyncExitStack() as stack:
            sending = await stack.enter_async_context(speaker.stream("steps"))
            seen = await sending.until("WORKING")
            await speaker.stage.working.wait()
            await speaker.settled(seen[0].id, "WORKING")
            others = [await stack.enter_async_context(speaker.subscribe(seen[0].id)) for _ in range(3)]
            for stream in others:
                assert await stream.next() is not None
            async with speaker.subscribe(seen[0].id) as leaving:
                assert await leaving.next() is not None
            speaker.stage.gate.set()
            told = await asyncio.gather(sending.rest(), *[stream.rest() for stream in others])
        mine = seen + told[0]
        assert pieces(mine) == ["before ", "after", ""]
        for events in told[1:]:
            assert [event.raw for event in events] == [event.raw for event in mine[-len(events) :]]
            assert pieces(events) == ["after", ""]
        assert (await speaker.get(seen[0].id)).artifacts == ["before after"]

    @pytest.mark.proves("W-083", "S-4-2")
    async def test_a_client_that_leaves_stops_nothing(self, speaker: Speaker) -> None:
        async with speaker.stream("steps") as stream:
            first = await stream.next()
            await speaker.stage.working.wait()
        assert first is not None
        speaker.stage.gate.set()
        assert (await speaker.settled(first.id, "COMPLETED")).artifacts == ["before after"]


class TestCursors:
    @pytest.mark.proves("S-2-3")
    async def test_frames_are_numbered_by_task_and_rising(self, speaker: Speaker) -> None:
        async with speaker.stream("count 3") as stream:
            events = await stream.rest()
        uids, numbers = zip(*[event.cursor.rsplit(".", 1) for event in events], strict=True)
        assert len(set(uids)) == 1
        assert [int(n) for n in numbers] == sorted({int(n) for n in numbers})

    @pytest.mark.proves("S-2-4", "S-2-12")
    async def test_any_cursor_goes_on_exactly_after_it_also_after_the_end(self, speaker: Speaker) -> None:
        async with speaker.stream("count 3") as stream:
            events = await stream.rest()
        for place, event in enumerate(events[:-1]):
            async with speaker.subscribe(events[0].id, event.cursor) as again:
                rest = await again.rest()
            assert [each.raw for each in rest] == [each.raw for each in events[place + 1 :]]
            assert [each.cursor for each in rest] == [each.cursor for each in events[place + 1 :]]
        if speaker.modern:
            assert (await refused_subscription(speaker, events[0].id, events[-1].cursor))[0] == -32004

    @pytest.mark.proves("D-2-3", "S-2-9")
    async def test_a_dropped_stream_goes_on_while_the_task_runs(self, speaker: Speaker) -> None:
        async with speaker.stream("steps") as stream:
            seen: list[Seen] = []
            while not pieces(seen):
                event = await stream.next()
                assert event is not None
                seen.append(event)
        async with speaker.subscribe(seen[0].id, seen[-1].cursor) as again:
            speaker.stage.gate.set()
            rest = await again.rest()
        assert pieces(seen + rest) == ["before ", "after", ""]
        assert "task" not in kinds(rest)

    @pytest.mark.proves("S-2-10")
    @pytest.mark.parametrize("cursor", ["nonsense", "{other}", "{uid}.999999", "{uid}.-1", ".1"])
    async def test_a_cursor_that_is_not_this_tasks_is_refused(self, speaker: Speaker, cursor: str) -> None:
        async with speaker.stream("echo one") as stream:
            one = await stream.rest()
        async with speaker.stream("echo two") as stream:
            two = await stream.rest()
        given = cursor.format(other=two[0].cursor, uid=one[0].cursor.rsplit(".", 1)[0])
        assert (await refused_subscription(speaker, one[0].id, given))[0] == -32602

    @pytest.mark.proves("S-2-14")
    async def test_a_send_with_a_cursor_resumes_and_never_starts_a_second_turn(self, speaker: Speaker) -> None:
        params = speaker.sending("echo once")
        async with speaker._stream("stream", params, {}) as stream:
            events = await stream.rest()
        async with speaker._stream("stream", params, {"last-event-id": events[0].cursor}) as stream:
            again = await stream.rest()
        assert [each.raw for each in again] == [each.raw for each in events[1:]]
        assert speaker.stage.runs == ["echo once"]
        other = speaker.sending("echo another")
        with pytest.raises(Refused) as caught:
            async with speaker._stream("stream", other, {"last-event-id": events[0].cursor}):
                pass
        assert caught.value.code == -32602
        assert speaker.stage.runs == ["echo once"]


class TestLarge:
    """Above a mebibyte a stream's first frame is the task without what its artifacts hold, which comes after it."""

    PIECE = "x" * 100_000

    async def asking(self, speaker: Speaker, size: int) -> Seen:
        @speaker.stage.agent.skill
        async def large(turn: Turn):
            for _ in range(size):
                yield self.PIECE
            await turn.ask("Enough?")

        return await speaker.send("large")

    @pytest.mark.proves("S-2-22")
    async def test_a_large_task_is_shown_first_and_filled_after(self, speaker: Speaker) -> None:
        task = await self.asking(speaker, 12)
        async with speaker.subscribe(task.id) as stream:
            first = await stream.next()
            assert first is not None and first.kind == "task"
            assert first.state == "INPUT_REQUIRED" and first.words == "Enough?" and first.history == ["large"]
            assert first.artifacts == [], "one frame of megabytes would hold everybody up"
            filled: list[Seen] = []
            while len("".join(pieces(filled))) < 1_200_000:
                event = await stream.next()
                assert event is not None
                filled.append(event)
            assert set(kinds(filled)) == {"artifact"}, "what the first frame said is not said again"
            assert "".join(pieces(filled)) == self.PIECE * 12
            await speaker.send("yes", taskId=task.id)
            assert (await stream.rest())[-1].state == "COMPLETED"
        seen = await speaker.get(task.id)
        assert seen.artifacts == [self.PIECE * 12], "asked for, it is told whole"

    async def test_a_smaller_one_is_shown_whole(self, speaker: Speaker) -> None:
        task = await self.asking(speaker, 9)
        async with speaker.subscribe(task.id) as stream:
            first = await stream.next()
        assert first is not None and first.artifacts == [self.PIECE * 9]


class TestAuthorization:
    @pytest.mark.proves("W-129", "W-130", "W-131", "W-132", "W-133", "S-5-14")
    async def test_a_stream_stays_open_until_the_authorization_came_by_another_way(self, speaker: Speaker) -> None:
        async with speaker.stream("signin") as stream:
            seen = await stream.until("AUTH_REQUIRED")
            task = await speaker.get(seen[0].id)
            assert task.state == "AUTH_REQUIRED"
            assert "https://example.com/login" in task.words
            async with speaker.subscribe(task.id) as other:
                first = await other.next()
                assert first is not None and first.state == "AUTH_REQUIRED"
                speaker.stage.gate.set()  # nobody sends a message: what was awaited happened
                assert (await other.rest())[-1].state == "COMPLETED"
            rest = await stream.rest()
        assert states(rest) == ["WORKING", "COMPLETED"]
        assert pieces(rest) == ["signed in"]


@pytest.mark.proves("W-061")
@pytest.mark.parametrize("operation", ["stream", "subscribe"])
async def test_an_agent_that_does_not_stream_says_so(speaker: Speaker, operation: str) -> None:
    async with serving(Stage(streaming=False)) as (stage, app):
        still = Speaker(speaker.version, speaker.binding, stage, app)
        asked = await still.send("ask")
        if operation == "subscribe":
            code, message = await refused_subscription(still, asked.id)
            assert code == -32004
            assert "does not stream" in message
        else:
            with pytest.raises(Refused) as caught:
                async with still.stream("echo hi"):
                    pass
            assert caught.value.code == -32004
            assert not stage.runs


async def refused_subscription(speaker: Speaker, id: str, cursor: str = "") -> tuple[int, str]:
    """The error a subscription is answered with. Old clients accept nothing but a stream, so it comes in one."""
    verb, path, body = speaker.spelled("subscribe", {"id": id})
    response = await speaker.ask(verb, path, body, {"last-event-id": cursor} if cursor else None)
    if response.headers["content-type"].startswith("text/event-stream"):
        assert not speaker.modern
        error = json.loads(response.text.partition("data: ")[2])["error"]
        return error["code"], error["message"]
    with pytest.raises(Refused) as caught:
        speaker.result(response)
    return caught.value.code, caught.value.message
