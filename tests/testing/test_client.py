"""An agent behind the whole server, in protocol 1.0, without sockets."""

import asyncio
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from dragoman import Agent, Message, Part, Reply, Role, Task, TaskState, Turn
from dragoman.agents import SyncTurn
from dragoman.testing import Client, Event, RpcError, text

pytestmark = pytest.mark.anyio


def make() -> Agent:
    agent = Agent("Tester", description="For tests.", version="2.0.0")

    @agent.skill
    async def echo(turn: Turn) -> str:
        return turn.text

    @agent.skill
    async def stream(turn: Turn) -> AsyncIterator[str]:
        await turn.say("starting")
        yield "a"
        yield "b"

    agent.skill(ask)

    @agent.skill
    async def wait(turn: Turn) -> None:
        await turn.say("waiting")
        await asyncio.Event().wait()

    @agent.skill(on_restart="rerun")
    async def survive(turn: Turn) -> AsyncIterator[str]:
        yield "first "
        if turn.attempt == 1:
            await asyncio.Event().wait()
        yield "second"

    @agent.skill(direct=True)
    async def direct(turn: Turn) -> Reply:
        return Reply("hello", {"from": turn.text})

    @agent.skill
    async def broken(turn: Turn) -> None:
        raise LookupError("secret")

    return agent


async def ask(turn: Turn) -> AsyncIterator[str]:
    """Asks between two chunks."""
    yield "so, "
    reply = await turn.ask("Which?")
    count = await turn.step("count", counted)
    yield f"{reply.text} ({count})"


def asking() -> Agent:
    agent = Agent("Asker")
    agent.skill(ask)
    return agent


COUNT: list[int] = []


async def counted() -> int:
    COUNT.append(1)
    return len(COUNT)


def state(task: Any) -> TaskState | None:
    assert isinstance(task, Task)
    return task.status.state if task.status else None


async def test_a_send_waits_and_brings_the_task_back_as_a_struct() -> None:
    async with Client(make()) as client:
        task = await client.send("hi", Part(data={"a": 1}), skill="echo")
        assert isinstance(task, Task)
        assert (state(task), text(task)) == (TaskState.COMPLETED, "hi")
        assert task.history[0].parts == (Part(text="hi"), Part(data={"a": 1}))
        assert await client.get(task) == await client.get(task.id)
        assert (await client.get(task, history_length=0)).history == ()


async def test_a_direct_skill_answers_with_a_message() -> None:
    async with Client(make()) as client:
        answer = await client.send("me", skill="direct")
        assert isinstance(answer, Message)
        assert (answer.role, answer.parts) == (Role.AGENT, (Part(text="hello"), Part(data={"from": "me"})))


async def test_a_direct_skill_refuses_with_its_reason_and_fails_without_one() -> None:
    agent = Agent("Direct")

    @agent.skill(direct=True)
    def answer(turn: SyncTurn) -> str:
        if turn.text == "fail":
            raise LookupError("secret")
        return turn.text if turn.text != "reject" else turn.reject("not this")

    async with Client(agent) as client:
        assert text(await client.send("hi")) == "hi"
        with pytest.raises(RpcError, match="-32602: not this"):
            await client.send("reject")
        with pytest.raises(RpcError, match="-32006: The agent failed"):
            await client.send("fail")


async def test_a_stream_shows_each_event_when_it_happens() -> None:
    async with Client(make()) as client:
        events = [event async for event in client.stream("go", skill="stream")]
    assert events[0].task is not None
    chunks = [each.artifact_update for each in events if each.artifact_update]
    assert [(text(each.artifact), each.append, each.last_chunk) for each in chunks] == [
        ("a", False, False),
        ("b", True, False),
        ("", True, True),
    ]
    assert [each.text for each in events if each.status_update and each.text] == ["starting"]
    assert events[-1].state is TaskState.COMPLETED
    cursors = [each.cursor for each in events]
    assert all(cursors) and len(set(cursors)) == len(cursors)


async def test_a_stream_can_be_left_and_resumed_after_its_cursor_without_gap_or_repeat() -> None:
    async with Client(make()) as client:
        seen: list[Event] = []
        async for event in client.stream("go", skill="wait"):
            seen.append(event)
            if event.text == "waiting":
                break
        assert seen[0].task is not None
        task = seen[0].task
        rest = client.subscribe(task, cursor=seen[-1].cursor)
        cancelled = await client.cancel(task)
        assert state(cancelled) is TaskState.CANCELED
        assert [event.state async for event in rest] == [TaskState.CANCELED]


@pytest.mark.proves("S-5-2")
async def test_a_question_is_answered_and_its_handler_run_again() -> None:
    COUNT.clear()
    async with Client(asking()) as client:
        task = await client.send("go")
        assert isinstance(task, Task)
        assert (state(task), text(task)) == (TaskState.INPUT_REQUIRED, "so, \nWhich?")
        done = await client.answer(task, "this")
        assert (state(done), text(done)) == (TaskState.COMPLETED, "so, this (1)")


async def test_an_answer_names_no_skill_even_where_the_agent_has_several() -> None:
    async with Client(make()) as client:
        task = await client.send("go", skill="ask")
        assert isinstance(task, Task)
        assert state(await client.answer(task, "this")) is TaskState.COMPLETED


async def test_tasks_are_listed_and_filtered() -> None:
    async with Client(make()) as client:
        first = await client.send("one", skill="echo", context="room")
        await client.send("two", skill="ask")
        everything = await client.list()
        assert (len(everything.tasks), everything.total_size) == (2, 2)
        assert [each.id for each in (await client.list(context="room")).tasks] == [getattr(first, "id", "")]
        assert len((await client.list(state=TaskState.INPUT_REQUIRED)).tasks) == 1
        assert (await client.list(pageSize=1)).next_page_token


async def test_errors_carry_their_code_and_hide_the_handlers_text() -> None:
    async with Client(make()) as client:
        with pytest.raises(RpcError) as refused:
            await client.get("nobody")
        assert refused.value.code == -32001
        with pytest.raises(RpcError, match="-32602"):
            await client.send("hi")
        with pytest.raises(RpcError, match="-32602"):
            async for _ in client.stream("hi", skill="unknown"):
                pass
        task = await client.send("hi", skill="broken")
        assert state(task) is TaskState.FAILED
        assert "secret" not in text(task if isinstance(task, Task) else None)


async def test_a_parked_task_survives_a_restart_and_remembers(tmp_path: Path) -> None:
    COUNT.clear()
    async with Client(asking(), store=tmp_path / "tasks.db") as client:
        task = await client.send("go")
        assert isinstance(task, Task)
        await client.restart()
        assert await client.get(task) == task
        assert text(task) == "so, \nWhich?"
        done = await client.answer(task, "this")
        assert (state(done), text(done)) == (TaskState.COMPLETED, "so, this (1)")


@pytest.mark.proves("D-6-6")
async def test_a_working_turn_fails_at_a_restart_or_runs_again_as_its_skill_says(tmp_path: Path) -> None:
    async with Client(make(), store=tmp_path / "tasks.db") as client:
        lost = await client.send("go", skill="wait", returnImmediately=True)
        kept = await client.send("go", skill="survive", returnImmediately=True)
        assert isinstance(lost, Task) and isinstance(kept, Task)
        async for event in client.subscribe(kept):
            if event.text == "first " or (event.task and event.task.artifacts):
                break
        await client.restart()
        assert state(await client.settled(lost)) is TaskState.FAILED
        again = await client.settled(kept)
        assert (state(again), text(again)) == (TaskState.COMPLETED, "first second")
        assert len(again.artifacts) == 1


async def test_memory_cannot_be_restarted() -> None:
    async with Client(make()) as client:
        with pytest.raises(ValueError, match="memory:// forgets"):
            await client.restart()


async def test_a_client_serves_only_inside_its_block() -> None:
    client = Client(make())
    with pytest.raises(RuntimeError, match="inside its `async with`"):
        await client.get("x")


async def test_any_request_can_be_made_and_the_card_read() -> None:
    async with Client(make()) as client:
        card = await client.card()
        assert (card["name"], card["version"]) == ("Tester", "2.0.0")
        assert [each["id"] for each in card["skills"]][:2] == ["echo", "stream"]
        response = await client.request("POST", "/", body=b"{oops", headers={"content-type": "application/json"})
        assert (response.status, response.json()["error"]["code"]) == (200, -32700)


async def test_a_whole_message_may_be_sent_as_it_is() -> None:
    message = Message(message_id="mine", role=Role.USER, parts=(Part(text="hi"),), metadata={"skill": "echo"})
    async with Client(make()) as client:
        task = await client.send(message)
        assert isinstance(task, Task)
        assert task.history[0].message_id == "mine"


@pytest.mark.proves("S-4-16")
async def test_a_thread_that_does_not_look_is_canceled_all_the_same_and_keeps_its_slot() -> None:
    agent = Agent("Threads", threads=1)
    begun, release = threading.Event(), threading.Event()

    @agent.skill(cancel_within=60)
    def stubborn(turn: SyncTurn) -> str:
        begun.set()
        assert release.wait(10)
        return "too late"

    @agent.skill
    def quick() -> str:
        return "done"

    async with Client(agent) as client:
        task = await client.send("x", skill="stubborn", returnImmediately=True)
        assert isinstance(task, Task)
        await asyncio.get_running_loop().run_in_executor(None, begun.wait, 10)
        assert state(await client.cancel(task)) is TaskState.CANCELED
        waiting = asyncio.ensure_future(client.send("y", skill="quick"))
        done, _ = await asyncio.wait({waiting}, timeout=0.05)
        assert not done, "its thread still runs, and there is only one"
        release.set()
        assert text(await waiting) == "done"
        assert text(await client.get(task)) == "", "what it returned in the end is nobody's"


async def test_a_sync_handler_may_hold_its_question_and_is_let_go_when_it_is_canceled() -> None:
    agent = Agent("Threads", threads=1)
    unwound: list[str] = []

    @agent.skill(parking="hold")
    def ask(turn: SyncTurn) -> str:
        try:
            return f"{turn.text}, {turn.ask('Which?').text}"
        except asyncio.CancelledError:
            unwound.append(turn.text)
            raise

    async with Client(agent) as client:
        task = await client.send("one")
        assert state(task) is TaskState.INPUT_REQUIRED and isinstance(task, Task)
        assert text(await client.answer(task, "this")) == "one, this"
        task = await client.send("two")
        assert isinstance(task, Task) and state(await client.cancel(task)) is TaskState.CANCELED
        task = await client.send("three")
        assert isinstance(task, Task)
        assert text(await client.answer(task, "that")) == "three, that", "its thread is free again"
    assert unwound == ["two"]
