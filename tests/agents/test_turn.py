"""What a turn knows and can do."""

import asyncio
import functools
import inspect
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from dragoman.agents import Agent, Reply, SyncTurn, Turn
from dragoman.model.messages import Part
from dragoman.model.tasks import TaskState
from dragoman.ports import Parked
from tests.agents.handle import Handle, run, said, words

pytestmark = pytest.mark.anyio

FILE = Part(raw=b"x", filename="x.bin")
LINK = Part(url="https://x.test/y.png")


class City(msgspec.Struct):
    name: str
    people: int = 0


@pytest.mark.proves("D-6-2")
async def test_a_turn_shows_the_message_and_who_asks() -> None:
    agent = Agent("a")
    seen: list[Any] = []

    @agent.skill
    async def look(turn: Turn) -> None:
        seen.extend([turn.text, turn.parts, turn.files, turn.data, turn.metadata, turn.task_id, turn.context_id])
        seen.extend([turn.principal.id, turn.extensions, turn.attempt, turn.cancelled, turn.deadline])
        seen.extend([turn.history, len(await turn.conversation(3)), turn.message.message_id])

    message = said("one", FILE, "two", LINK, Part(data=[1]), Part(data=2), metadata={"asked": "by message"})
    await run(agent, message)
    assert seen[:5] == ["one\ntwo", message.parts, (FILE, LINK), [1], {"asked": "by message"}]
    assert seen[5:] == ["task", "context", "anna", ("urn:x",), 1, False, None, (message,), 3, "m1"]


@pytest.mark.proves("D-6-2")
async def test_a_deadline_is_a_moment_in_utc() -> None:
    handle = Handle(said("x"))
    handle.deadline = 1_800_000_000_500
    agent = Agent("a")
    seen: list[datetime | None] = []

    @agent.skill
    async def look(turn: Turn) -> None:
        seen.append(turn.deadline)

    await agent.run(agent.route(handle.message, None), handle)
    assert seen == [datetime(2027, 1, 15, 8, 0, 0, 500_000, UTC)]


@pytest.mark.proves("S-5-1")
async def test_a_question_unwinds_the_handler_and_its_answer_comes_on_the_rerun() -> None:
    agent = Agent("a")
    closed: list[str] = []

    @agent.skill
    async def convert(turn: Turn) -> AsyncIterator[str]:
        try:
            yield "so "
            reply = await turn.ask("Which?", Part(data=1))
            yield reply.text
        except Exception:
            closed.append("swallowed")
        finally:
            closed.append("closed")

    handle = Handle(said("hi"))
    with pytest.raises(Parked):
        await agent.run(agent.route(handle.message, None), handle)
    assert handle.questions == [(Part(text="Which?"), Part(data=1))]
    assert closed == ["closed"]
    again = await run(agent, answers=[said("EUR")])
    assert [each[0] for each in again.chunks] == ["so ", "EUR", ""]


async def test_an_answer_is_a_reply_with_text_data_parts_and_files() -> None:
    agent = Agent("a")
    replies: list[Reply] = []

    @agent.skill
    async def convert(turn: Turn) -> None:
        replies.append(await turn.ask("Which?", schema={"type": "object"}))

    turn = await run(agent, answers=[said("a", FILE, Part(data={"b": 1}))])
    (reply,) = replies
    assert (reply.text, reply.data, reply.files, reply.value) == ("a", {"b": 1}, (FILE,), {"b": 1})
    assert reply.message.parts == reply.parts
    assert turn.questions[0][1] == Part(data={"type": "object"}, media_type="application/schema+json")


async def test_an_answer_that_does_not_fit_its_type_is_asked_for_again() -> None:
    agent = Agent("a")
    values: list[Any] = []

    @agent.skill
    async def place(turn: Turn) -> None:
        values.append((await turn.ask("Where?", schema=City)).value)
        values.append((await turn.ask("How many?", schema=int)).value)

    answers = [said("Rome"), said(Part(data={"name": 3})), said(Part(data={"name": "Rome"})), said(" 12 ")]
    turn = await run(agent, answers=answers)
    assert values == [City("Rome"), 12]
    assert words(turn.questions[2]) == "That does not fit. name: Expected str, got intWhere?"
    assert turn.questions[0][1].data["required"] == ["name"]


async def test_require_auth_waits_for_a_message_or_for_something_else() -> None:
    agent = Agent("a")
    outcomes: list[Any] = []

    @agent.skill
    async def signed(turn: Turn) -> None:
        reply = await turn.require_auth("Sign in")
        outcomes.append(reply and reply.text)
        outcomes.append(await turn.require_auth("Sign in", until=asyncio.sleep(0)))

    await run(agent, answers=[said("done")])
    assert outcomes == ["done", None]


@pytest.mark.proves("S-5-9")
async def test_a_step_runs_once_and_gives_back_its_type_both_times() -> None:
    agent = Agent("a")
    calls: list[Any] = []
    results: list[Any] = []

    async def fetch(name: str, *, step_id: str, scale: int = 1) -> City:
        calls.append((name, step_id))
        return City(name, 10 * scale)

    def blocking(names: tuple[str, ...]):
        calls.append(names)
        return {"names": names, 1: b"x"}

    @agent.skill
    async def work(turn: Turn) -> None:
        results.append(await turn.step("fetch", fetch, "Rome", scale=2))
        results.append(await turn.step("block", blocking, ("a", "b")))
        results.append(await turn.step("partial", functools.partial(fetch, "Oslo")))

    steps: dict[str, Any] = {}
    await run(agent, steps=steps)
    await run(agent, steps=steps)
    assert calls == [("Rome", "id of fetch"), ("a", "b"), ("Oslo", "id of partial")]
    assert results[:2] == [City("Rome", 20), {"names": ["a", "b"], "1": "eA=="}] == results[3:5]


async def test_a_step_may_take_arguments_that_json_cannot_hold() -> None:
    agent = Agent("a")

    class Connection: ...

    @agent.skill
    async def work(turn: Turn) -> Any:
        return await turn.step("use", lambda connection, options, rest: 1, Connection(), {"c": Connection()}, [2])

    steps: dict[str, Any] = {}
    await run(agent, steps=steps)
    (recorded,) = [msgspec.json.decode(each)["arguments"] for each in steps.values()]
    kind = "<test_a_step_may_take_arguments_that_json_cannot_hold.<locals>.Connection>"
    assert recorded == [[kind, {"c": kind}, [2]], {}]


async def test_errors_and_cancellation_pass_through_and_close_the_generator() -> None:
    agent = Agent("a")
    closed: list[str] = []
    reached = asyncio.Event()

    @agent.skill
    async def broken(turn: Turn) -> AsyncIterator[str]:
        yield "a"
        raise LookupError("secret")

    @agent.skill
    async def endless(turn: Turn) -> AsyncIterator[str]:
        try:
            yield "a"
            reached.set()
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            closed.append("endless")

    with pytest.raises(LookupError, match="secret"):
        await run(agent, said("x", metadata={"skill": "broken"}))
    task = asyncio.create_task(run(agent, said("x", metadata={"skill": "endless"})))
    await reached.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert closed == ["endless"]


async def test_a_full_buffer_that_fails_closes_the_generator_whatever_its_cleanup_does(
    caplog: pytest.LogCaptureFixture,
) -> None:
    agent = Agent("a")

    @agent.skill
    async def stubborn(turn: Turn) -> AsyncIterator[str]:
        try:
            yield "a"
        finally:
            raise LookupError("while closing")

    handle = Handle(said("x"))

    async def refuse(*_: Any, **__: Any) -> None:
        raise asyncio.CancelledError

    handle.artifact = refuse
    with pytest.raises(asyncio.CancelledError):
        await agent.run(agent.route(handle.message, None), handle)
    assert "while it was closed" in caplog.text


async def test_a_task_group_around_a_question_or_an_end_does_not_hide_it() -> None:
    agent = Agent("a")

    @agent.skill
    async def grouped(turn: Turn) -> None:
        async with asyncio.TaskGroup():
            await turn.ask("Which?")

    @agent.skill
    async def ended(turn: Turn) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(turn.reject("no"))

    @agent.skill
    async def broken(turn: Turn) -> None:
        async with asyncio.TaskGroup():
            raise LookupError

    handle = Handle(said("hi"))
    with pytest.raises(Parked):
        await agent.run(agent.route(said("hi", metadata={"skill": "grouped"}), None), handle)
    turn = await run(agent, said("x", metadata={"skill": "ended"}))
    assert turn.end[0] is TaskState.REJECTED
    with pytest.raises(ExceptionGroup):
        await run(agent, said("x", metadata={"skill": "broken"}))


async def test_sync_handlers_have_the_same_words_and_wait() -> None:
    agent = Agent("a")

    def double(n: int) -> int:
        return 2 * n

    @agent.skill
    def work(turn: SyncTurn) -> str:
        turn.say("hello ", turn.text)
        turn.usage(input_tokens=1)
        reply = turn.ask("Which?", schema=int)
        turn.artifact("a", "b")
        turn.require_auth("Sign in")
        return f"{turn.step('double', double, reply.value)} {len(turn.conversation(2))}"

    turn = await run(agent, answers=[said("4"), said("signed")])
    assert turn.log[0] == ("say", "hello hi")
    assert [each[0] for each in turn.chunks] == ["b", "8 2"]


@pytest.mark.parametrize(("word", "state"), [("reject", TaskState.REJECTED), ("fail", TaskState.FAILED)])
async def test_sync_handlers_end_and_park_as_async_ones(word: str, state: TaskState) -> None:
    agent = Agent("a")
    went_on: list[bool] = []

    @agent.skill
    def work(turn: SyncTurn) -> None:
        try:
            turn.ask("Sure?")
        except Exception:
            went_on.append(True)
        turn.reject("no") if word == "reject" else turn.fail("no")
        went_on.append(True)

    with pytest.raises(Parked):
        await run(agent)
    turn = await run(agent, answers=[said("yes")])
    assert turn.end[:2] == (state, (Part(text="no"),))
    assert not went_on


@pytest.mark.proves("S-12-2")
def test_what_is_awaited_and_what_is_not() -> None:
    awaited = ("say", "ask", "step", "artifact", "require_auth", "reject", "fail")
    assert all(inspect.iscoroutinefunction(getattr(Turn, name)) for name in awaited)
    assert not inspect.iscoroutinefunction(Turn.usage)
    assert not any(inspect.iscoroutinefunction(getattr(SyncTurn, name)) for name in (*awaited, "usage"))
