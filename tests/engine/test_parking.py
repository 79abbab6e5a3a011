"""Questions and authorizations: what waits, where, for how long, and what wakes it."""

import asyncio

import pytest

from dragoman.engine.engine import Limits
from dragoman.model.errors import Busy, TaskNotFound
from dragoman.model.facts import Asked, Started, StatusFact
from dragoman.model.messages import Part
from dragoman.model.tasks import Scope, TaskState
from dragoman.ports import TurnHandle
from dragoman.store.memory import MemoryStore
from tests.engine.rig import SCOPE, Clock, Rig, chunk, rest, rig, state_of, text_of, texts, until
from tests.engine.test_replaying import crash

pytestmark = pytest.mark.anyio


async def asks(turn: TurnHandle) -> None:
    answer = await turn.ask([Part(text="which?")])
    await chunk(turn, text_of(answer), append=False)


async def guarded(turn: TurnHandle) -> None:
    reply = await turn.require_auth([Part(text="log in")])
    await chunk(turn, "in " + (text_of(reply) if reply else "by another way"), append=False)


async def log(r: Rig, uid: str) -> list[object]:
    return [entry.fact for entry in await r.store.since(SCOPE, uid, 0)]


async def idle(r: Rig) -> None:
    """No handler is in memory any more."""
    await until(lambda: not r.engine.turns.runs)


class TestReplay:
    @pytest.mark.proves("S-5-1", "S-5-2")
    async def test_a_question_frees_everything_and_its_answer_runs_the_handler_again_in_the_same_process(self) -> None:
        async with rig(asks) as r:
            view = await r.send()
            await idle(r)
            assert texts(await r.send("this", task_id=view.task.id)) == ["this"]
            assert r.agent.runs == 2

    @pytest.mark.proves("S-5-5")
    async def test_a_second_question_beside_the_first_is_an_error(self) -> None:
        raised: list[str] = []

        async def twice(turn: TurnHandle) -> None:
            first = asyncio.ensure_future(turn.ask([Part(text="one?")]))
            await asyncio.sleep(0)
            try:
                await turn.ask([Part(text="two?")])
            except RuntimeError as error:
                raised.append(str(error))
            await first

        async with rig(twice) as r:
            view = await r.send()
            assert state_of(view) is TaskState.INPUT_REQUIRED and "one question at a time" in raised[0]

    @pytest.mark.proves("S-5-7")
    async def test_what_was_emitted_before_the_question_is_not_emitted_again_whatever_it_says_now(self) -> None:
        async def drifts(turn: TurnHandle) -> None:
            await turn.say([Part(text=f"attempt {turn.attempt}")])
            await chunk(turn, f"attempt {turn.attempt} ", append=False)
            await turn.ask([Part(text="?")])
            await chunk(turn, "and on")

        async with rig(drifts) as r:
            id = (await r.send()).task.id
            view = await r.send("yes", task_id=id)
            assert texts(view) == ["attempt 1 and on"]
            assert "attempt 2" not in [text_of(said) for said in view.task.history]

    @pytest.mark.proves("S-5-9")
    async def test_a_step_that_did_not_commit_runs_again_under_the_same_id(self) -> None:
        store, ids = MemoryStore(), list[str]()

        async def steps(turn: TurnHandle) -> None:
            async def work(step_id: str) -> int:
                ids.append(step_id)
                if turn.attempt == 1:
                    await asyncio.Event().wait()
                return 1

            await turn.step("pay", ["x"], work)

        async with rig(steps, store=store, on_restart="rerun") as r:
            id = (await r.begin()).task.id
            await until(lambda: ids)
            await crash(r)
        async with rig(steps, store=store, on_restart="rerun") as r:
            await r.settled(id, TaskState.COMPLETED)
        assert len(ids) == 2 and ids[0] == ids[1]


class TestHold:
    @pytest.mark.proves("S-5-11")
    async def test_a_held_question_is_answered_in_place(self) -> None:
        async with rig(asks, parking="hold") as r:
            view = await r.send()
            assert state_of(view) is TaskState.INPUT_REQUIRED and len(r.engine.turns.runs) == 1
            assert texts(await r.send("yes", task_id=view.task.id)) == ["yes"] and r.agent.runs == 1

    @pytest.mark.proves("S-4-10")
    @pytest.mark.parametrize("parking", ["hold", "replay"])
    async def test_of_two_answers_the_first_answers_and_the_other_waits_for_its_turn(self, parking: str) -> None:
        gate = asyncio.Event()

        async def waits(turn: TurnHandle) -> None:
            answer = await turn.ask([Part(text="which?")])
            await gate.wait()
            await chunk(turn, text_of(answer), append=False)

        async with rig(waits, parking=parking) as r:
            id = (await r.send()).task.id
            await asyncio.gather(*[r.begin(text, task_id=id) for text in ("one", "two")])
            gate.set()
            view = await r.settled(id, TaskState.INPUT_REQUIRED)
            assert texts(view) == ["one"]
            said = [text_of(each) for each in view.task.history]
            assert said == ["hi", "which?", "one", "two"], "the second message began a turn, and that asks again"

    @pytest.mark.proves("S-5-11")
    async def test_its_claim_is_kept_while_it_waits(self) -> None:
        clock = Clock()
        store = MemoryStore(clock=clock, lease_ttl=1_000)
        async with rig(asks, store=store, parking="hold") as r:
            view = await r.send()
            clock.ms += 900
            await r.engine.keeper._beat()
            clock.ms += 900
            assert not await store.claimable(10)
            assert await store.claim(SCOPE, view.uid, "another", 1_000) is None
            assert texts(await r.send("yes", task_id=view.task.id)) == ["yes"]

    @pytest.mark.proves("D-2-8", "S-5-12")
    async def test_as_many_as_may_are_held_and_the_next_is_told_why_not(self) -> None:
        async with rig(asks, parking="hold", limits=Limits(held=2)) as r:
            held = [await r.send() for _ in range(2)]
            refused = await r.send()
            assert state_of(refused) is TaskState.FAILED
            assert refused.task.status and refused.task.status.message
            assert "wait for an answer" in text_of(refused.task.status.message)
            await r.send("yes", task_id=held[0].task.id)
            assert state_of(await r.send()) is TaskState.INPUT_REQUIRED, "there is room again"

    async def test_it_can_be_canceled(self) -> None:
        async with rig(asks, parking="hold") as r:
            view = await r.send()
            assert state_of(await r.cancel(view.task.id)) is TaskState.CANCELED
            await idle(r)

    @pytest.mark.proves("S-5-13")
    async def test_it_fails_after_a_restart(self) -> None:
        store = MemoryStore()
        async with rig(asks, store=store, parking="hold") as r:
            id = (await r.send()).task.id
            await crash(r)
        async with rig(asks, store=store, parking="hold") as r:
            view = await r.get(id)
            assert state_of(view) is TaskState.FAILED
            assert view.task.status and view.task.status.message
            assert text_of(view.task.status.message) == "interrupted by server restart"

    @pytest.mark.proves("S-5-13")
    async def test_or_is_asked_again_where_the_skill_says_so(self) -> None:
        store = MemoryStore()
        async with rig(asks, store=store, parking="hold", on_restart="rerun") as r:
            id = (await r.send()).task.id
            await crash(r)
        async with rig(asks, store=store, parking="hold", on_restart="rerun") as r:
            await r.settled(id, TaskState.INPUT_REQUIRED)
            assert texts(await r.send("this", task_id=id)) == ["this"]

    @pytest.mark.proves("S-10-3")
    async def test_it_does_not_keep_a_server_from_stopping_that_waits_for_running_turns(self) -> None:
        async with rig(asks, parking="hold") as r:
            view = await r.send()
            async with asyncio.timeout(5):
                await r.engine.drain(3600)
            assert await r.store.claim(SCOPE, view.uid, "another", 1_000), "its claim was released"

    async def test_nor_does_one_that_is_asked_while_the_server_stops(self) -> None:
        gate = asyncio.Event()

        async def works_and_asks(turn: TurnHandle) -> None:
            await gate.wait()
            await turn.ask([Part(text="?")])

        async with rig(works_and_asks, parking="hold") as r:
            view = await r.begin()
            draining = asyncio.ensure_future(r.engine.drain(3600))
            await asyncio.sleep(0)
            gate.set()
            async with asyncio.timeout(5):
                await draining
            assert state_of(await r.get(view.task.id)) is TaskState.INPUT_REQUIRED


class TestAuthorization:
    @pytest.mark.proves("S-5-15")
    async def test_without_anything_to_wait_for_it_parks_until_a_message_comes(self) -> None:
        async with rig(guarded) as r:
            view = await r.send()
            assert state_of(view) is TaskState.AUTH_REQUIRED
            await idle(r)
            assert texts(await r.send("token", task_id=view.task.id)) == ["in token"]

    @pytest.mark.proves("S-5-14")
    async def test_with_something_to_wait_for_the_same_handler_goes_on_and_the_stream_stays_open(self) -> None:
        granted = asyncio.Event()

        async def waits(turn: TurnHandle) -> None:
            assert await turn.require_auth([Part(text="log in")], until=granted.wait()) is None
            await chunk(turn, "in", append=False)

        async with rig(waits) as r:
            follow = await r.stream()
            view = await r.settled(follow.ref.id, TaskState.AUTH_REQUIRED)
            granted.set()
            states = [e.fact.status.state for e in await rest(follow) if isinstance(e.fact, StatusFact)]
            assert states == [TaskState.WORKING, TaskState.AUTH_REQUIRED, TaskState.WORKING, TaskState.COMPLETED]
            assert r.agent.runs == 1 and texts(await r.get(view.task.id)) == ["in"]

    async def test_a_message_may_come_before_what_was_waited_for(self) -> None:
        answers: list[str] = []
        cancelled = asyncio.Event()

        async def never() -> None:
            try:
                await asyncio.Event().wait()
            finally:
                cancelled.set()

        async def waits(turn: TurnHandle) -> None:
            answer = await turn.require_auth([Part(text="log in")], until=never())
            answers.append(text_of(answer) if answer else "")

        async with rig(waits) as r:
            view = await r.send()
            await r.send("token", task_id=view.task.id)
            await asyncio.sleep(0)
            assert answers == ["token"] and cancelled.is_set() and r.agent.runs == 1

    async def test_what_was_waited_for_may_fail_and_the_handler_hears_of_it(self) -> None:
        heard: list[str] = []

        async def denied() -> None:
            raise PermissionError("denied")

        async def waits(turn: TurnHandle) -> None:
            try:
                await turn.require_auth([Part(text="log in")], until=denied())
            except PermissionError as error:
                heard.append(str(error))

        async with rig(waits) as r:
            follow = await r.stream()
            await rest(follow)
            assert heard == ["denied"]
            assert state_of(await r.get(follow.ref.id)) is TaskState.COMPLETED

    @pytest.mark.proves("S-5-15")
    async def test_a_callback_wakes_what_parked_by_running_it_again(self) -> None:
        async with rig(guarded) as r:
            view = await r.send()
            woken = await r.engine.resume(SCOPE, view.task.id)
            assert state_of(woken) is TaskState.WORKING
            done = await r.settled(view.task.id, TaskState.COMPLETED)
            assert texts(done) == ["in by another way"] and r.agent.runs == 2
            assert [text_of(said) for said in done.task.history] == ["hi", "log in"]
            assert await r.engine.resume(SCOPE, view.task.id) == done, "a second callback changes nothing"

    async def test_a_callback_wakes_what_parked_before_a_restart(self) -> None:
        store = MemoryStore()
        async with rig(guarded, store=store) as r:
            id = (await r.send()).task.id
        async with rig(guarded, store=store) as r:
            await r.engine.resume(SCOPE, id)
            assert texts(await r.settled(id, TaskState.COMPLETED)) == ["in by another way"]

    @pytest.mark.parametrize("until", [True, False])
    async def test_a_callback_wakes_a_held_handler_in_place(self, until: bool) -> None:
        async def waits(turn: TurnHandle) -> None:
            waiting = asyncio.Event().wait() if until else None
            assert await turn.require_auth([Part(text="log in")], until=waiting) is None
            await chunk(turn, "in", append=False)

        async with rig(waits, parking="hold") as r:
            view = await r.send()
            await r.engine.resume(SCOPE, view.task.id)
            assert texts(await r.settled(view.task.id, TaskState.COMPLETED)) == ["in"] and r.agent.runs == 1

    async def test_two_callbacks_at_once_wake_once(self) -> None:
        async with rig(guarded) as r:
            view = await r.send()
            await asyncio.gather(*[r.engine.resume(SCOPE, view.task.id) for _ in range(3)])
            await r.settled(view.task.id, TaskState.COMPLETED)
            assert sum(isinstance(fact, Started) for fact in await log(r, view.uid)) == 2

    async def test_a_callback_wakes_no_question_and_nobody_elses_task(self) -> None:
        async with rig(asks) as r:
            view = await r.send()
            assert state_of(await r.engine.resume(SCOPE, view.task.id)) is TaskState.INPUT_REQUIRED
            for scope in (Scope("agent", "", "eve"), Scope("agent", "tenant")):
                with pytest.raises(TaskNotFound):
                    await r.engine.resume(scope, view.task.id)
            await r.engine.drain(0)
            assert state_of(await r.engine.resume(SCOPE, view.task.id)) is TaskState.INPUT_REQUIRED

    async def test_a_callback_while_the_server_stops_is_refused_and_may_come_again(self) -> None:
        store = MemoryStore()
        async with rig(guarded, store=store) as r:
            id = (await r.send()).task.id
            await r.engine.drain(0)
            with pytest.raises(Busy):
                await r.engine.resume(SCOPE, id)
        async with rig(guarded, store=store) as r:
            assert state_of(await r.get(id)) is TaskState.AUTH_REQUIRED


class TestExpiry:
    @pytest.mark.proves("S-5-16")
    async def test_a_question_says_until_when_it_waits_and_thirty_days_are_the_default(self) -> None:
        async with rig(asks) as r:
            view = await r.send()
            asked = next(fact for fact in await log(r, view.uid) if isinstance(fact, Asked))
            assert asked.expires - asked.at == 30 * 86_400_000

    @pytest.mark.proves("S-5-16")
    @pytest.mark.parametrize(("handler", "parking"), [(asks, "replay"), (asks, "hold"), (guarded, "replay")])
    async def test_a_task_nobody_answers_in_time_fails_with_the_reason(self, handler: object, parking: str) -> None:
        clock = Clock()
        async with rig(handler, store=MemoryStore(clock=clock), limits=Limits(parked_ms=1), parking=parking) as r:  # pyright: ignore[reportArgumentType]
            view = await r.send()
            clock.ms += 10_000
            await r.engine.keeper.expire()
            view = await r.get(view.task.id)
            assert state_of(view) is TaskState.FAILED
            assert view.task.status and view.task.status.message
            assert text_of(view.task.status.message) == "Nobody answered in time."
            await idle(r)

    async def test_an_answered_question_does_not_expire(self) -> None:
        clock, gate = Clock(), asyncio.Event()

        async def works(turn: TurnHandle) -> None:
            await turn.ask([Part(text="?")])
            await gate.wait()

        async with rig(works, store=MemoryStore(clock=clock), limits=Limits(parked_ms=1_000)) as r:
            view = await r.send()
            await r.begin("yes", task_id=view.task.id)
            clock.ms += 100_000
            await r.engine.keeper.expire()
            assert state_of(await r.get(view.task.id)) is TaskState.WORKING
            gate.set()
            assert state_of(await r.settled(view.task.id)) is TaskState.COMPLETED

    @pytest.mark.proves("S-5-16", "S-10-8")
    async def test_a_task_still_parked_after_a_restart_expires_then(self) -> None:
        clock = Clock()
        store = MemoryStore(clock=clock)
        async with rig(asks, store=store, limits=Limits(parked_ms=1_000)) as r:
            id = (await r.send()).task.id
        clock.ms += 100_000
        async with rig(asks, store=store) as r:
            await r.engine.keeper.expire()
            assert state_of(await r.get(id)) is TaskState.FAILED


class TestSerialized:
    """`serialize="context"`: one turn at a time in a conversation."""

    @pytest.mark.proves("S-4-11")
    async def test_turns_of_one_context_run_one_after_the_other_and_of_others_beside_them(self) -> None:
        now, most = dict[str, int](), dict[str, int]()

        async def counts(turn: TurnHandle) -> None:
            for name in (turn.context_id, "all"):
                now[name] = now.get(name, 0) + 1
                most[name] = max(most.get(name, 0), now[name])
            await asyncio.sleep(0.001)
            for name in (turn.context_id, "all"):
                now[name] -= 1

        async with rig(counts, serialize="context") as r:
            sends = [r.send(str(n), context_id=context) for n in range(4) for context in "cd"]
            assert {state_of(view) for view in await asyncio.gather(*sends)} == {TaskState.COMPLETED}
        assert most == {"c": 1, "d": 1, "all": 2}

    @pytest.mark.proves("S-4-11")
    async def test_turns_of_one_context_run_beside_each_other_unless_said_otherwise(self) -> None:
        all_there, gate = asyncio.Event(), asyncio.Event()
        here = 0

        async def meets(turn: TurnHandle) -> None:
            nonlocal here
            here += 1
            if here == 3:
                all_there.set()
            await gate.wait()

        async with rig(meets) as r:
            for n in range(3):
                await r.begin(str(n), context_id="c")
            async with asyncio.timeout(5):
                await all_there.wait()
            gate.set()

    @pytest.mark.proves("S-4-15")
    async def test_they_run_in_the_order_they_came_and_wait_as_submitted(self) -> None:
        gate, ran = asyncio.Event(), list[str]()

        async def notes(turn: TurnHandle) -> None:
            ran.append(text_of(turn.message))
            await gate.wait()

        async with rig(notes, serialize="context") as r:
            views = [await r.begin(str(n), context_id="c") for n in range(4)]
            assert [state_of(view) for view in views] == [TaskState.WORKING] + [TaskState.SUBMITTED] * 3
            assert state_of(await r.cancel(views[2].task.id)) is TaskState.CANCELED, "what waits ends at once"
            gate.set()
            await r.settled(views[3].task.id, TaskState.COMPLETED)
            assert ran == ["0", "1", "3"]

    @pytest.mark.proves("S-4-11")
    async def test_an_answer_waits_until_the_context_is_free(self) -> None:
        gate, inside = asyncio.Event(), list[str]()

        async def either(turn: TurnHandle) -> None:
            if text_of(turn.message) == "ask":
                await turn.ask([Part(text="?")])
            else:
                await gate.wait()
            inside.append(text_of(turn.message))

        async with rig(either, serialize="context") as r:
            asking = await r.send("ask", context_id="c")
            working = await r.begin("work", context_id="c")
            answered = asyncio.ensure_future(r.send("yes", task_id=asking.task.id))
            async with asyncio.timeout(5):
                while state_of(await r.get(asking.task.id)) is not TaskState.WORKING:
                    await asyncio.sleep(0)
            for _ in range(20):
                await asyncio.sleep(0)
            assert r.agent.runs == 2 and not answered.done()
            gate.set()
            assert state_of(await answered) is TaskState.COMPLETED
            await r.settled(working.task.id, TaskState.COMPLETED)
            assert inside == ["work", "ask"]

    async def test_messages_to_what_waits_for_its_context_keep_their_order_over_a_restart(self) -> None:
        store, gate = MemoryStore(), asyncio.Event()
        ran: list[str] = []

        async def works(turn: TurnHandle) -> None:
            if text_of(turn.message) == "first":
                await gate.wait()
            ran.append(text_of(turn.message))

        async with rig(works, store=store, serialize="context", on_restart="rerun") as r:
            await r.begin("first", context_id="c")
            waiting = (await r.begin("second", context_id="c")).task.id
            await r.begin("third", task_id=waiting)
        async with rig(works, store=store, serialize="context", on_restart="rerun") as r:
            await r.begin("fourth", task_id=waiting)
            gate.set()
            await r.settled(waiting, TaskState.COMPLETED)
        assert ran == ["first", "second", "third", "fourth"]

    async def test_what_waits_for_its_context_survives_a_restart_and_still_waits(self) -> None:
        store, gate = MemoryStore(), asyncio.Event()
        now = most = 0

        async def counts(turn: TurnHandle) -> None:
            nonlocal now, most
            now += 1
            most = max(most, now)
            try:
                await gate.wait()
            finally:
                now -= 1

        async with rig(counts, store=store, serialize="context", on_restart="rerun") as r:
            ids = [(await r.begin(str(n), context_id="c")).task.id for n in range(3)]
            await crash(r)
        gate.set()
        async with rig(counts, store=store, serialize="context", on_restart="rerun") as r:
            for id in ids:
                await r.settled(id, TaskState.COMPLETED)
        assert most == 1
