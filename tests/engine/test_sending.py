"""Messages in: what becomes of them, and what their senders are told."""

import asyncio
from contextvars import ContextVar

import pytest

from dragoman.engine.engine import Limits
from dragoman.model.errors import Busy, InvalidParams, TaskNotFound, UnsupportedOperation
from dragoman.model.facts import Created, StatusFact
from dragoman.model.messages import Message, Part
from dragoman.model.operations import Call, GetTask, PushConfig
from dragoman.model.tasks import Head, Scope, TaskState, Usage, View
from dragoman.ports import Append, Hook, Page, Query, Told, TurnHandle
from dragoman.store.memory import MemoryStore
from tests.engine.rig import SCOPE, call, chunk, rest, rig, state_of, text_of, texts, until

pytestmark = pytest.mark.anyio


async def echo(turn: TurnHandle) -> None:
    await chunk(turn, "echo " + text_of(turn.message), append=False)


async def asks_twice(turn: TurnHandle) -> None:
    await turn.say([Part(text="thinking")])
    await chunk(turn, "a", append=False)
    first = await turn.ask([Part(text="first?")])
    await chunk(turn, text_of(first))
    second = await turn.ask([Part(text="second?")])
    await chunk(turn, text_of(second))
    turn.usage(Usage(input_tokens=1))


async def test_a_blocking_send_answers_the_finished_task_with_its_artifact_and_history() -> None:
    async with rig(echo) as r:
        view = await r.send("hello")
        assert state_of(view) is TaskState.COMPLETED
        assert texts(view) == ["echo hello"]
        assert [m.message_id for m in view.task.history] == ["m1"]
        assert view.task.history[0].task_id == view.task.id
        assert view.task.context_id == view.task.history[0].context_id != ""


async def test_return_immediately_answers_before_the_agent_ends() -> None:
    gate = asyncio.Event()

    async def waits(turn: TurnHandle) -> None:
        await gate.wait()

    async with rig(waits) as r:
        view = await r.begin()
        assert state_of(view) in (TaskState.WORKING, TaskState.SUBMITTED)
        gate.set()
        assert state_of(await r.settled(view.task.id)) is TaskState.COMPLETED


@pytest.mark.proves("S-1-5")
async def test_an_unknown_task_and_somebody_elses_task_get_the_same_answer() -> None:
    async with rig(echo) as r:
        view = await r.send()
        errors: list[str] = []
        for scope, id in ((Scope("agent"), "nope"), (Scope("agent", "t"), view.task.id)):
            with pytest.raises(TaskNotFound) as raised:
                await r.engine.get(call(scope), GetTask(id=id))
            errors.append(str(raised.value))
        assert errors[0] == errors[1]
        with pytest.raises(TaskNotFound):
            await r.send(task_id="nope")


async def test_a_message_to_a_finished_task_is_refused() -> None:
    async with rig(echo) as r:
        view = await r.send()
        with pytest.raises(UnsupportedOperation):
            await r.send(task_id=view.task.id)


async def test_a_foreign_context_is_refused_and_an_absent_one_is_inferred() -> None:
    async with rig(asks_twice) as r:
        view = await r.send()
        with pytest.raises(InvalidParams):
            await r.send("x", task_id=view.task.id, context_id="other")
        again = await r.send("b", task_id=view.task.id)
        assert again.task.context_id == view.task.context_id


@pytest.mark.proves("S-5-7")
async def test_questions_are_answered_by_replays_that_deliver_nothing_twice() -> None:
    async with rig(asks_twice) as r:
        view = await r.send()
        assert state_of(view) is TaskState.INPUT_REQUIRED
        assert view.task.status and view.task.status.message and text_of(view.task.status.message) == "first?"
        view = await r.send("b", task_id=view.task.id)
        assert state_of(view) is TaskState.INPUT_REQUIRED
        view = await r.send("c", task_id=view.task.id)
        assert state_of(view) is TaskState.COMPLETED
        assert texts(view) == ["abc"]
        assert view.usage == Usage(input_tokens=1)
        assert r.agent.runs == 3
        said = [text_of(m) for m in view.task.history]
        assert said == ["hi", "thinking", "first?", "b", "second?", "c"]


@pytest.mark.proves("S-5-9")
async def test_a_step_runs_once_however_often_its_handler_is_replayed() -> None:
    calls: list[str] = []

    async def steps(turn: TurnHandle) -> None:
        async def work(step_id: str) -> int:
            calls.append(step_id)
            return len(calls)

        one = await turn.step("one", ["x"], work)
        answer = await turn.ask([Part(text="?")])
        two = await turn.step("one", ["y"], work)
        await chunk(turn, f"{one}{two}{text_of(answer)}", append=False)

    async with rig(steps) as r:
        view = await r.send()
        view = await r.send("!", task_id=view.task.id)
        assert texts(view) == ["12!"]
        assert len(calls) == len(set(calls)) == 2


@pytest.mark.proves("S-5-4")
async def test_a_handler_that_changed_while_parked_fails_its_task() -> None:
    question = ["one?"]

    async def shifty(turn: TurnHandle) -> None:
        await turn.ask([Part(text=question[0])])

    async with rig(shifty) as r:
        view = await r.send()
        question[0] = "two?"
        view = await r.send("x", task_id=view.task.id)
        assert state_of(view) is TaskState.FAILED
        assert view.task.status and view.task.status.message
        assert text_of(view.task.status.message) == "the handler changed while it was parked"


@pytest.mark.proves("S-4-8")
async def test_messages_to_a_working_task_wait_in_a_bounded_inbox_and_each_gets_its_turn() -> None:
    gate = asyncio.Event()

    async def works(turn: TurnHandle) -> None:
        await gate.wait()
        await chunk(turn, text_of(turn.message), append=False, id=text_of(turn.message))

    async with rig(works, limits=Limits(inbox=2)) as r:
        view = await r.begin("one")
        first = await r.begin("two", task_id=view.task.id)
        assert first.task.id == view.task.id
        waiting = asyncio.ensure_future(r.send("three", task_id=view.task.id))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        with pytest.raises(Busy):
            await r.begin("four", task_id=view.task.id)
        gate.set()
        done = await waiting
        assert state_of(done) is TaskState.COMPLETED
        assert texts(done) == ["one", "two", "three"]
        assert [text_of(m) for m in done.task.history] == ["one", "two", "three"]


@pytest.mark.proves("S-5-17", "D-2-8")
async def test_a_caller_with_too_many_unfinished_tasks_is_told_which_limit_and_others_are_served() -> None:
    gate = asyncio.Event()

    async def works(turn: TurnHandle) -> None:
        if text_of(turn.message) == "ask":
            await turn.ask([Part(text="Which?")])
        await gate.wait()

    def theirs(owner: str) -> Call:
        return call(scope=Scope("agent", "", owner))

    async with rig(works, limits=Limits(tasks_per_caller=2)) as r:
        asked = await r.engine.send(theirs("a"), r.op("ask"))
        assert isinstance(asked, View)
        await r.engine.send(theirs("a"), r.op("work", now=True))
        with pytest.raises(Busy) as refused:
            await r.engine.send(theirs("a"), r.op("work", now=True))
        assert (refused.value.limit, refused.value.most) == ("limits.tasks_per_caller", "2")
        assert refused.value.retry_after > 1
        await r.engine.send(theirs("b"), r.op("work", now=True))
        # An answer is no further task.
        answered = asyncio.ensure_future(r.engine.send(theirs("a"), r.op("red", task_id=asked.task.id)))
        gate.set()
        for done in (await answered, await r.engine.send(theirs("a"), r.op("work"))):
            assert isinstance(done, View) and state_of(done) is TaskState.COMPLETED


async def test_a_caller_whose_tasks_take_too_much_is_told_which_limit() -> None:
    async with rig(echo, limits=Limits(bytes_per_caller=2_000)) as r:
        for _ in range(20):
            try:
                await r.send("x" * 300)
            except Busy as busy:
                assert (busy.limit, busy.most) == ("limits.bytes_per_caller", "2000")
                assert busy.retry_after == 60
                break
        else:
            raise AssertionError("nobody counted")


async def test_a_further_message_that_takes_too_much_is_refused_and_the_task_goes_on() -> None:
    gate = asyncio.Event()

    async def works(turn: TurnHandle) -> None:
        await gate.wait()

    async with rig(works, limits=Limits(bytes_per_caller=2_000)) as r:
        view = await r.begin("one")
        with pytest.raises(Busy):
            await r.begin("x" * 3_000, task_id=view.task.id)
        await r.begin("two", task_id=view.task.id)
        gate.set()
        assert state_of(await r.settled(view.task.id)) is TaskState.COMPLETED


@pytest.mark.proves("D-2-8", "S-4-8")
async def test_eight_messages_may_wait_unless_said_otherwise() -> None:
    gate = asyncio.Event()

    async def works(turn: TurnHandle) -> None:
        await gate.wait()

    async with rig(works) as r:
        id = (await r.begin("0")).task.id
        for n in range(8):
            await r.begin(str(n), task_id=id)
        with pytest.raises(Busy, match="8 messages already wait"):
            await r.begin("9", task_id=id)
        gate.set()
        assert state_of(await r.settled(id)) is TaskState.COMPLETED


@pytest.mark.proves("S-4-9")
async def test_a_turn_that_ends_while_messages_wait_begins_the_next_in_the_same_append() -> None:
    gate, store = asyncio.Event(), MemoryStore()
    appends: list[list[str]] = []
    write = store.write

    def noted(append: Append, told: Told) -> None:
        appends.append([type(fact).__name__ for fact in append.facts])
        write(append, told)

    store.write = noted

    async def works(turn: TurnHandle) -> None:
        await gate.wait()
        await chunk(turn, text_of(turn.message), append=False, id=text_of(turn.message))

    async with rig(works, store=store) as r:
        follow = await r.stream("one")
        first = asyncio.ensure_future(r.send("two", task_id=follow.ref.id))
        async with asyncio.timeout(5):
            while not (head := await store.find(SCOPE, follow.ref.id)) or not head.queued:
                await asyncio.sleep(0)
        gate.set()
        states = [e.fact.status.state for e in await rest(follow) if isinstance(e.fact, StatusFact)]
        assert states == [TaskState.WORKING, TaskState.WORKING, TaskState.COMPLETED], "it never looked finished"
        assert texts(await first) == ["one", "two"], "who waits for the second message waits for its turn"
        assert appends[-2:] == [["Chunk", "Started"], ["Chunk", "Settled"]]


@pytest.mark.proves("S-4-18")
async def test_a_waiting_send_can_be_told_how_long_at_most_and_then_answers_the_task_as_it_is() -> None:
    gate = asyncio.Event()

    async def waits(turn: TurnHandle) -> None:
        await gate.wait()

    assert Limits().hold_ms == 0, "by default it waits for as long as its client does"
    async with rig(waits, limits=Limits(hold_ms=20)) as r:
        async with asyncio.timeout(5):
            view = await r.send()
        assert state_of(view) is TaskState.WORKING
        gate.set()
        assert state_of(await r.settled(view.task.id)) is TaskState.COMPLETED


WHO: ContextVar[str] = ContextVar("who", default="nobody")


@pytest.mark.proves("S-4-1")
async def test_a_turn_has_a_context_of_its_own_and_nothing_of_its_requests() -> None:
    seen: list[str] = []

    async def looks(turn: TurnHandle) -> None:
        seen.append(WHO.get())
        WHO.set("the turn")
        if text_of(turn.message) == "ask":
            await turn.ask([Part(text="?")])

    async with rig(looks) as r:
        WHO.set("a middleware")
        view = await r.send("ask")
        await r.send("yes", task_id=view.task.id)
        assert seen == ["nobody", "nobody"] and WHO.get() == "a middleware"


async def test_an_agents_exception_fails_the_task_without_telling_what_it_was() -> None:
    async def broken(turn: TurnHandle) -> None:
        raise RuntimeError("secret path /etc")

    async with rig(broken) as r:
        view = await r.send()
        assert state_of(view) is TaskState.FAILED
        assert view.task.status and view.task.status.message
        assert "secret" not in text_of(view.task.status.message)


@pytest.mark.proves("S-4-19")
async def test_a_direct_skill_answers_a_message_and_leaves_no_task() -> None:
    async with rig(echo, direct=True) as r:
        reply = await r.engine.send(call(), r.op("hi", context_id="c"))
        assert isinstance(reply, Message)
        assert text_of(reply) == "direct hi" and reply.context_id == "c" and reply.message_id
        assert (await r.list()).total == 0


async def test_conversations_show_earlier_tasks_of_the_context() -> None:
    seen: list[list[str]] = []

    async def remembers(turn: TurnHandle) -> None:
        seen.append([text_of(m) for m in await turn.conversation()])

    async with rig(remembers) as r:
        await r.send("one", context_id="c")
        await r.send("two", context_id="c")
        await r.send("else", context_id="d")
    assert seen == [[], ["one"], []]


@pytest.mark.proves("D-6-2")
async def test_conversations_hold_what_the_agent_said_and_delivered() -> None:
    seen: list[list[str]] = []

    async def answers(turn: TurnHandle) -> None:
        seen.append([text_of(m) for m in await turn.conversation(5)])
        await turn.say([Part(text="Looking")])
        await chunk(turn, f"{text_of(turn.message)}, ", append=False)
        await chunk(turn, "I see.")

    async with rig(answers) as r:
        await r.send("one", context_id="c")
        await r.send("two", context_id="c")
        await r.send("three", context_id="c")
    first, second = ["one", "Looking", "one, I see."], ["two", "Looking", "two, I see."]
    assert seen == [[], first, [*first[1:], *second]], "the last five messages"


class Slow(MemoryStore):
    """Takes a task in that must wait for another one only when it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.go_on = asyncio.Event()
        self.waits = asyncio.Event()

    def write(self, append: Append, told: Told) -> None:
        if [type(fact) for fact in append.facts] == [Created]:
            self._late = asyncio.ensure_future(self._write_later(append, told))
        else:
            super().write(append, told)

    async def _write_later(self, append: Append, told: Told) -> None:
        self.waits.set()
        await self.go_on.wait()
        super().write(append, told)


async def test_a_task_whose_context_becomes_free_while_it_is_stored_starts_at_once() -> None:
    leave = asyncio.Event()

    async def stays(turn: TurnHandle) -> None:
        await leave.wait()

    store = Slow()
    async with rig(stays, store=store, serialize="context") as r, asyncio.timeout(5):
        await r.begin("one", context_id="c")
        second = asyncio.create_task(r.send("two", context_id="c"))
        await store.waits.wait()
        leave.set()
        await until(lambda: not r.engine.turns.runs)
        store.go_on.set()
        assert state_of(await second) is TaskState.COMPLETED
        assert state_of(await r.send("three", context_id="c")) is TaskState.COMPLETED


async def test_a_turn_past_its_time_is_failed() -> None:
    async def slow(turn: TurnHandle) -> None:
        await asyncio.Event().wait()

    async with rig(slow, timeout_ms=20) as r:
        view = await r.send()
        assert state_of(view) is TaskState.FAILED
        assert view.task.status and view.task.status.message
        assert "in time" in text_of(view.task.status.message)


@pytest.mark.proves("S-4-2")
async def test_a_client_that_leaves_while_its_message_is_committed_does_not_stop_the_turn() -> None:
    async with rig(echo) as r:
        sending = asyncio.ensure_future(r.send("hello"))
        await asyncio.sleep(0)
        sending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sending
        page = await r.list()
        assert page.total == 1
        view = await r.settled(page.views[0].task.id, TaskState.COMPLETED)
        assert texts(view) == ["echo hello"]


@pytest.mark.proves("S-4-2")
async def test_a_client_that_leaves_right_after_its_answer_does_not_stop_the_replay() -> None:
    async with rig(asks_twice) as r:
        view = await r.send()
        answering = asyncio.ensure_future(r.send("b", task_id=view.task.id))
        await asyncio.sleep(0)
        answering.cancel()
        with pytest.raises(asyncio.CancelledError):
            await answering
        view = await r.settled(view.task.id, TaskState.INPUT_REQUIRED)
        async with asyncio.timeout(5):
            while texts(view) != ["ab"]:
                await asyncio.sleep(0)
                view = await r.get(view.task.id)


@pytest.mark.proves("000-d4", "002-d17")
@pytest.mark.parametrize("late", ["while it is looked for", "while it is answered"])
async def test_who_answers_in_a_context_a_moment_too_late_begins_a_task_there(
    late: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def asks(turn: TurnHandle) -> None:
        if text_of(turn.message) == "ask":
            await turn.ask([Part(text="which?")])

    async with rig(asks) as r:
        asked = await r.send("ask", context_id="c")
        looking, hooking = r.store.list, r.engine._sending._hooking.further

        async def quicker() -> None:
            monkeypatch.undo()
            await r.send("quick", task_id=asked.task.id)

        async def listed(scope: Scope, query: Query) -> Page:
            page = await looking(scope, query)
            if page.items:
                await quicker()
            return page

        async def hooked(call: Call, config: PushConfig | None, head: Head) -> tuple[Hook, ...]:
            await quicker()
            return await hooking(call, config, head)

        if late == "while it is looked for":
            monkeypatch.setattr(r.store, "list", listed)
        else:
            monkeypatch.setattr(r.engine._sending._hooking, "further", hooked)
        view = await r.engine.send(call(resume_by_context=True), r.op("late", context_id="c"))
        assert isinstance(view, View) and state_of(view) is TaskState.COMPLETED
        assert view.task.id != asked.task.id and view.task.context_id == "c"
        assert [text_of(said) for said in (await r.get(asked.task.id)).task.history] == ["ask", "which?", "quick"]
