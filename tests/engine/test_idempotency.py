"""Requests that come twice under one key: whatever they were, they happen once."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from dragoman.core.cursors import cursor
from dragoman.engine.engine import Follow
from dragoman.model.errors import Busy, InvalidParams, TaskNotFound
from dragoman.model.messages import Message, Part, Role
from dragoman.model.operations import Call, Policy, Principal
from dragoman.model.tasks import Scope, TaskState
from dragoman.ports import Route, Store, TurnHandle
from dragoman.store.memory import MemoryStore
from dragoman.store.sqlite import SqliteStore
from tests.engine.rig import SCOPE, Rig, call, chunk, rest, rig, state_of, text_of, texts, until

pytestmark = pytest.mark.anyio

Stores = Callable[[], Store]


@pytest.fixture(params=["memory", "sqlite"])
def stores(request: pytest.FixtureRequest, tmp_path: Path) -> Stores:
    """The same log at every call, as the next process would open it."""
    if request.param == "memory":
        store = MemoryStore()
        return lambda: store
    return lambda: SqliteStore(tmp_path / "log.db")


async def echo(turn: TurnHandle) -> None:
    await chunk(turn, "echo " + text_of(turn.message), append=False)


async def asks(turn: TurnHandle) -> None:
    answer = await turn.ask([Part(text="which?")])
    await chunk(turn, text_of(answer), append=False, id=turn.turn)


class Gated:
    """Works until its gate opens."""

    def __init__(self) -> None:
        self.gate = asyncio.Event()

    async def __call__(self, turn: TurnHandle) -> None:
        await self.gate.wait()
        await chunk(turn, text_of(turn.message), append=False, id=turn.turn)


@pytest.mark.proves("S-7-2")
async def test_the_same_request_gets_the_same_task_and_another_body_under_its_key_an_error(stores: Stores) -> None:
    async with rig(echo, store=stores()) as r:
        one = await r.send("x", key="k", message_id="m")
        assert await r.send("x", key="k", message_id="m") == one
        assert r.agent.runs == 1
        with pytest.raises(InvalidParams, match="used before"):
            await r.send("y", key="k", message_id="m")
        assert (await r.list()).total == 1


@pytest.mark.proves("D-5-9")
async def test_the_key_may_come_with_the_call_or_in_the_configuration(stores: Stores) -> None:
    async with rig(echo, store=stores()) as r:
        beside = Call(scope=SCOPE, idempotency_key="k")
        one = await r.engine.send(beside, r.op("x", message_id="m"))
        assert await r.send("x", key="k", message_id="m") == one


@pytest.mark.proves("S-7-2")
async def test_the_hash_covers_the_configuration_and_the_metadata_too(stores: Stores) -> None:
    async with rig(echo, store=stores()) as r:
        await r.send("x", key="k", message_id="m")
        with pytest.raises(InvalidParams):
            await r.begin("x", key="k", message_id="m")


@pytest.mark.proves("S-7-2")
async def test_a_message_without_an_id_is_still_the_same_message(stores: Stores) -> None:
    async with rig(echo, store=stores()) as r:
        one = await r.send("x", key="k", message_id="")
        assert await r.send("x", key="k", message_id="") == one


@pytest.mark.proves("S-7-1")
async def test_keys_belong_to_agent_tenant_and_owner(stores: Stores) -> None:
    async with rig(echo, store=stores()) as r:
        ours = await r.send("x", key="k", message_id="m")
        for scope in (Scope("agent", "tenant"), Scope("agent", "", "owner")):
            theirs = await r.engine.send(call(scope), r.op("y", key="k", message_id="m"))
            assert not isinstance(theirs, Message) and theirs.task.id != ours.task.id


@pytest.mark.proves("S-7-3")
async def test_a_repeat_waits_for_the_running_task_and_starts_nothing(stores: Stores) -> None:
    works = Gated()
    async with rig(works, store=stores()) as r:
        first = asyncio.ensure_future(r.send("x", key="k", message_id="m"))
        second = asyncio.ensure_future(r.send("x", key="k", message_id="m"))
        await until(lambda: r.agent.runs)
        third = asyncio.ensure_future(r.send("x", key="k", message_id="m"))
        await asyncio.sleep(0)
        assert not (first.done() or second.done() or third.done())
        works.gate.set()
        assert await first == await second == await third
        assert r.agent.runs == 1


@pytest.mark.proves("S-7-4")
async def test_a_streamed_repeat_begins_at_the_start_or_after_its_cursor(stores: Stores) -> None:
    async with rig(echo, store=stores()) as r:
        everything = await rest(await r.stream("x", key="k", message_id="m"))
        again = await r.stream("x", key="k", message_id="m")
        assert again.first is not None and state_of(again.first) is TaskState.SUBMITTED
        assert await rest(again) == everything
        later = await r.stream("x", cursor(again.ref.uid, everything[0].seq), key="k", message_id="m")
        assert later.first is None and await rest(later) == everything[1:]
        assert r.agent.runs == 1


@pytest.mark.proves("S-7-3")
async def test_an_answer_that_comes_twice_answers_once_and_gets_its_task(stores: Stores) -> None:
    async with rig(asks, store=stores()) as r:
        id = (await r.send()).task.id
        one = await r.send("this", key="k", message_id="m", task_id=id)
        assert state_of(one) is TaskState.COMPLETED and texts(one) == ["this"]
        assert await r.send("this", key="k", message_id="m", task_id=id) == one
        with pytest.raises(InvalidParams):
            await r.send("that", key="k", message_id="m", task_id=id)
        follow = await r.stream("this", key="k2", message_id="m2")
        assert follow.ref.id != id, "another key, another request"
        follow.close()


@pytest.mark.proves("S-7-3")
async def test_of_two_answers_at_once_with_one_key_one_is_the_answer(stores: Stores) -> None:
    async with rig(asks, store=stores()) as r:
        id = (await r.send()).task.id
        answers = [r.send("this", key="k", message_id="m", task_id=id) for _ in range(3)]
        one, two, three = await asyncio.gather(*answers)
        assert one.task == two.task == three.task
        assert texts(one) == ["this"]
        assert [text_of(said) for said in one.task.history] == ["hi", "which?", "this"]


@pytest.mark.proves("S-7-3")
async def test_a_message_to_a_working_task_that_comes_twice_waits_once(stores: Stores) -> None:
    works = Gated()
    async with rig(works, store=stores()) as r:
        id = (await r.begin("one")).task.id
        await asyncio.gather(*[r.begin("two", key="k", message_id="m", task_id=id) for _ in range(3)])
        works.gate.set()
        assert texts(await r.settled(id, TaskState.COMPLETED)) == ["one", "two"]


async def test_a_repeat_is_served_where_a_new_request_would_be_refused(stores: Stores) -> None:
    """The inbox is full and the server drains; what was accepted before is told all the same."""
    works = Gated()
    async with rig(works, store=stores()) as r:
        id = (await r.begin("one", key="k", message_id="m")).task.id
        await r.engine.drain(0)
        assert (await r.begin("one", key="k", message_id="m")).task.id == id
        with pytest.raises(Busy):
            await r.begin("one", key="other", message_id="m")


@pytest.mark.proves("S-7-5")
async def test_a_refused_request_does_not_use_up_its_key(stores: Stores) -> None:
    async with rig(asks, store=stores()) as r:
        with pytest.raises(TaskNotFound):
            await r.send("x", key="k", message_id="m", task_id="nope")
        asking = await r.send("x", key="k", message_id="m")
        with pytest.raises(InvalidParams):
            await r.send("x", key="l", message_id="m", task_id=asking.task.id, context_id="another")
        assert state_of(await r.send("x", key="l", message_id="m", task_id=asking.task.id)) is TaskState.COMPLETED


@pytest.mark.proves("S-7-6")
async def test_a_repeated_message_id_starts_a_task_of_its_own(stores: Stores) -> None:
    async with rig(echo, store=stores()) as r:
        one = await r.send("x", message_id="same", context_id="c")
        two = await r.send("x", message_id="same", context_id="c")
        assert one.task.id != two.task.id


@pytest.mark.proves("S-7-7")
async def test_keys_survive_a_restart(stores: Stores) -> None:
    async with rig(asks, store=stores()) as r:
        asking = await r.send("x", key="begin", message_id="m")
    async with rig(asks, store=stores()) as r:
        assert (await r.send("x", key="begin", message_id="m")).task == asking.task
        assert r.agent.runs == 0
        done = await r.send("this", key="answer", message_id="n", task_id=asking.task.id)
    async with rig(asks, store=stores()) as r:
        assert (await r.send("this", key="answer", message_id="n", task_id=asking.task.id)).task == done.task
        assert r.agent.runs == 0


async def test_a_key_used_where_unknown_tasks_begin_afresh_gets_the_fresh_one(stores: Stores) -> None:
    async with rig(echo, store=stores()) as r:
        fresh = Call(scope=SCOPE, policy=Policy(unknown="fresh", terminal="fresh"), principal=Principal())
        one = await r.engine.send(fresh, r.op("x", key="k", message_id="m", task_id="gone"))
        assert await r.engine.send(fresh, r.op("x", key="k", message_id="m", task_id="gone")) == one
        assert (await r.list()).total == 1


class TestDirectReplies:
    async def reply(self, r: Rig, text: str = "hi") -> Message:
        answer = await r.engine.send(call(), r.op(text, key="k", message_id="m"))
        assert isinstance(answer, Message)
        return answer

    @pytest.mark.proves("S-4-20")
    async def test_the_message_is_remembered_and_not_made_again(self, stores: Stores) -> None:
        async with rig(echo, store=stores(), direct=True) as r:
            made = counted(r)
            one = await self.reply(r)
            assert await self.reply(r) == one and len(made) == 1
            with pytest.raises(InvalidParams):
                await self.reply(r, "another")

    @pytest.mark.proves("S-7-8")
    async def test_who_repeats_while_it_is_made_gets_the_same_one(self, stores: Stores) -> None:
        async with rig(echo, store=stores(), direct=True) as r:
            gate = asyncio.Event()
            made = counted(r, gate)
            asking = [asyncio.ensure_future(self.reply(r)) for _ in range(3)]
            await until(lambda: made)
            with pytest.raises(InvalidParams):
                await self.reply(r, "another")
            asking.pop().cancel()
            gate.set()
            one, two = await asyncio.gather(*asking)
            assert one == two == await self.reply(r) and len(made) == 1

    @pytest.mark.proves("S-7-5")
    async def test_one_that_failed_may_be_tried_again(self, stores: Stores) -> None:
        async with rig(echo, store=stores(), direct=True) as r:
            made = counted(r)
            working, r.agent.reply = r.agent.reply, refuses
            with pytest.raises(InvalidParams, match="not today"):
                await self.reply(r)
            r.agent.reply = working
            await self.reply(r)
            assert len(made) == 1

    @pytest.mark.proves("S-7-7")
    async def test_it_is_remembered_over_a_restart(self, stores: Stores) -> None:
        async with rig(echo, store=stores(), direct=True) as r:
            one = await self.reply(r)
        async with rig(echo, store=stores(), direct=True) as r:
            made = counted(r)
            assert await self.reply(r) == one and not made

    @pytest.mark.proves("S-7-8")
    async def test_another_replica_may_have_been_quicker(self) -> None:
        store = MemoryStore()
        async with rig(echo, store=store, direct=True) as here, rig(echo, store=store, direct=True) as there:
            gate = asyncio.Event()
            made = counted(here, gate)
            slow = asyncio.ensure_future(self.reply(here))
            await until(lambda: made)
            quick = await self.reply(there)
            gate.set()
            assert await slow == quick


def counted(r: Rig, gate: asyncio.Event | None = None) -> list[str]:
    """Let the agent answer something new each time, once the gate (if any) is open."""
    made: list[str] = []

    async def reply(route: Route, turn: TurnHandle) -> Message:
        made.append(text_of(turn.message))
        if gate is not None:
            await gate.wait()
        return Message(role=Role.AGENT, parts=(Part(text=f"answer {len(made)}"),))

    r.agent.reply = reply
    return made


async def refuses(route: Route, turn: TurnHandle) -> Message:
    raise InvalidParams("not today")


async def test_a_stream_of_a_repeated_direct_request_is_that_message(stores: Stores) -> None:
    async with rig(echo, store=stores(), direct=True) as r:
        one = await r.engine.send(call(), r.op("hi", key="k", message_id="m"))
        two = await r.engine.stream(call(), r.op("hi", key="k", message_id="m"))
        assert isinstance(one, Message) and not isinstance(two, Follow) and one == two
