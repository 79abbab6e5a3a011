"""What happens while somebody waits for the store: heads and logs that were read a moment too early."""

import asyncio
from collections.abc import Sequence
from typing import NoReturn

import pytest

from dragoman.engine.engine import Limits
from dragoman.model.errors import OutcomeUnknown, StoreFull, TaskNotFound, TaskOver
from dragoman.model.facts import Received, Settled, Started
from dragoman.model.messages import Part
from dragoman.model.tasks import Head, Scope, TaskState
from dragoman.ports import Loaded, TurnHandle
from dragoman.store.memory import MemoryStore
from tests.engine.rig import SCOPE, Clock, Rig, call, chunk, rest, rig, state_of, text_of, texts
from tests.engine.test_durability import Held, Troubled, with_fact

pytestmark = pytest.mark.anyio


class Late(MemoryStore):
    """Answers the next read of a kind only when its gate opens; what it answers is what it saw before."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = asyncio.Event()
        self.reading = asyncio.Event()
        self.hold = ""

    async def _held(self, kind: str) -> None:
        if self.hold == kind:
            self.hold = ""
            self.reading.set()
            await self.gate.wait()

    async def find(self, scope: Scope, id: str) -> Head | None:
        head = await super().find(scope, id)
        await self._held("find")
        return head

    async def load(self, scope: Scope, uid: str) -> Loaded | None:
        loaded = await super().load(scope, uid)
        await self._held("load")
        return loaded


async def at_rest(r: Rig, id: str) -> None:
    """Wait until nobody is busy with the task."""
    async with asyncio.timeout(5):
        while r.engine.turns.lives.get(SCOPE, id) is not None:
            await asyncio.sleep(0)


async def asks(turn: TurnHandle) -> None:
    answer = await turn.ask([Part(text="?")])
    await chunk(turn, text_of(answer), append=False)


async def test_a_log_read_before_the_task_moved_is_read_again() -> None:
    store = Late()
    async with rig(asks, store=store) as r, asyncio.timeout(5):
        id = (await r.send()).task.id
        await at_rest(r, id)
        store.hold = "load"
        answering = asyncio.create_task(r.send("yes", task_id=id))
        await store.reading.wait()
        canceling = asyncio.create_task(r.cancel(id))
        while (head := await MemoryStore.find(store, call().scope, id)) is None or not head.terminal:
            await asyncio.sleep(0)
        store.gate.set()
        with pytest.raises(TaskOver):
            await answering
        assert state_of(await canceling) is TaskState.CANCELED
        assert state_of(await r.get(id)) is TaskState.CANCELED


async def test_who_looked_before_the_task_ended_learns_its_end() -> None:
    store = Late()
    async with rig(asks, store=store) as r, asyncio.timeout(5):
        asked = await r.send()
        id = asked.task.id
        await at_rest(r, id)
        store.hold = "find"
        subscribing = asyncio.create_task(r.subscribe(id, cursor=f"{asked.uid}.{asked.seq}"))
        await store.reading.wait()
        answering = asyncio.create_task(r.send("yes", task_id=id))
        for _ in range(100):  # as long as it would take to answer and to end
            await asyncio.sleep(0)
        store.gate.set()
        assert state_of(await answering) is TaskState.COMPLETED
        entries = await rest(await subscribing)
        assert isinstance(entries[-1].fact, Settled)


async def test_an_answer_whose_client_left_before_its_commit_runs_where_everybody_sees_it() -> None:
    store = Held()
    async with rig(asks, store=store) as r, asyncio.timeout(5):
        asked = await r.send()
        id = asked.task.id
        await at_rest(r, id)
        store.gate.clear()
        answering = asyncio.create_task(r.send("yes", task_id=id))
        await store.come()
        answering.cancel()
        await asyncio.gather(answering, return_exceptions=True)
        follow = await r.subscribe(id, cursor=f"{asked.uid}.{asked.seq}")
        store.gate.set()
        assert isinstance((await rest(follow))[-1].fact, Settled)
        assert texts(await r.get(id)) == ["yes"]


async def test_a_turn_runs_on_a_task_others_find_though_its_client_left() -> None:
    """Nobody has it open but the turn itself."""
    store, hold = Held(), asyncio.Event()

    async def asks_and_holds(turn: TurnHandle) -> None:
        await asks(turn)
        await hold.wait()

    async with rig(asks_and_holds, store=store) as r, asyncio.timeout(5):
        id = (await r.send()).task.id
        await at_rest(r, id)
        store.gate.clear()
        answering = asyncio.create_task(r.send("yes", task_id=id))
        await store.come()
        answering.cancel()
        await asyncio.gather(answering, return_exceptions=True)
        store.gate.set()
        while not r.engine.turns.runs:
            await asyncio.sleep(0)
        live = r.engine.turns.lives.get(SCOPE, id)
        assert live is not None and {live.run} == r.engine.turns.runs
        hold.set()
        await r.settled(id, TaskState.COMPLETED)


async def test_a_message_refused_after_its_client_left_frees_its_context() -> None:
    store = Held()

    async def quick(turn: TurnHandle) -> None:
        pass

    async with rig(quick, store=store, serialize="context") as r, asyncio.timeout(5):
        await r.send(key="k", context_id="other")
        store.gate.clear()
        sending = asyncio.create_task(r.send(key="k2", context_id="c"))
        twin = asyncio.create_task(r.send(key="k2", context_id="d", message_id="m2"))
        await store.come(2)
        for each in (sending, twin):
            each.cancel()
        await asyncio.gather(sending, twin, return_exceptions=True)
        store.gate.set()
        for context in ("c", "d"):
            assert state_of(await r.send(context_id=context)) is TaskState.COMPLETED


@pytest.mark.parametrize("left", [False, True], ids=["waits", "left"])
async def test_an_answer_nobody_knows_the_fate_of_goes_on_if_it_was_written(left: bool) -> None:
    store = Troubled()
    async with rig(asks, store=store) as r, asyncio.timeout(5):
        id = (await r.send()).task.id
        store.trouble, store.written = with_fact(Received), True
        answering = asyncio.create_task(r.send("yes", task_id=id))
        if left:
            while store.trouble is not None:
                await asyncio.sleep(0)
            answering.cancel()
        with pytest.raises((OutcomeUnknown, asyncio.CancelledError)):
            await answering
        view = await r.settled(id, TaskState.COMPLETED)
        assert texts(view) == ["yes"] and r.agent.runs == 2


async def test_an_answer_that_was_not_written_leaves_the_question_open() -> None:
    store = Troubled()
    async with rig(asks, store=store) as r, asyncio.timeout(5):
        id = (await r.send()).task.id
        store.trouble = with_fact(Received)
        with pytest.raises(OutcomeUnknown):
            await r.send("yes", task_id=id)
        assert state_of(await r.get(id)) is TaskState.INPUT_REQUIRED
        assert texts(await r.send("again", task_id=id)) == ["again"] and r.agent.runs == 2


async def test_an_authorization_nobody_knows_the_fate_of_goes_on_if_it_was_written() -> None:
    async def signs_in(turn: TurnHandle) -> None:
        await turn.require_auth([Part(text="sign in")])

    store = Troubled()
    async with rig(signs_in, store=store) as r, asyncio.timeout(5):
        id = (await r.send()).task.id
        store.trouble, store.written = with_fact(Started), True
        with pytest.raises(OutcomeUnknown):
            await r.engine.resume(SCOPE, id)
        await r.settled(id, TaskState.COMPLETED)


@pytest.mark.parametrize(
    ("error", "written"),
    [(StoreFull(), False), (OutcomeUnknown(), False), (OutcomeUnknown(), True)],
    ids=["full", "lost", "written"],
)
async def test_a_turn_that_waited_for_its_context_starts_once_the_store_takes_it(
    error: Exception, written: bool
) -> None:
    store, hold = Troubled(), asyncio.Event()

    async def waits(turn: TurnHandle) -> None:
        await hold.wait()

    async with rig(waits, store=store, serialize="context") as r, asyncio.timeout(5):
        first, second = await r.begin(context_id="c"), await r.begin(context_id="c")
        store.error, store.written, store.trouble = error, written, with_fact(Started)
        hold.set()
        await r.settled(first.task.id, TaskState.COMPLETED)
        while state_of(view := await r.get(second.task.id)) is not TaskState.COMPLETED:
            await asyncio.sleep(0.01)
        assert r.agent.runs == 2, view


async def test_an_answer_in_time_keeps_a_task_from_expiring() -> None:
    """The store named the task as due a moment before the answer was committed."""
    hold = asyncio.Event()

    class Hasty(MemoryStore):
        async def due(self, limit: int) -> Sequence[Head]:
            found = await super().due(limit)
            assert found
            await hold.wait()
            return found

    async def asks_and_works(turn: TurnHandle) -> None:
        await asks(turn)
        await asyncio.sleep(0.05)

    async with (
        rig(asks_and_works, store=Hasty(clock=Clock()), limits=Limits(parked_ms=-100_000)) as r,
        asyncio.timeout(5),
    ):
        id = (await r.send()).task.id
        expiring = asyncio.create_task(r.engine.keeper.expire())
        await asyncio.sleep(0)
        answering = asyncio.create_task(r.send("yes", task_id=id))
        while state_of(await r.get(id)) is not TaskState.WORKING:
            await asyncio.sleep(0)
        hold.set()
        await expiring
        assert state_of(await answering) is TaskState.COMPLETED


async def test_the_end_of_a_turn_that_cannot_be_run_again_is_written_once_there_is_room(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """However long the store stays full."""
    monkeypatch.setattr("dragoman.engine.run.BACKOFF", (0.001,))
    store = Troubled()
    async with rig(asks, store=store) as r, asyncio.timeout(5):
        id = (await r.send()).task.id
        await at_rest(r, id)

        def refuses(message: object, metadata: object) -> NoReturn:
            raise RuntimeError

        r.agent.route = refuses
        store.error, store.trouble, store.times = StoreFull(), with_fact(Settled), 20
        await r.begin("yes", task_id=id)
        view = await r.settled(id, TaskState.FAILED)
        assert view.task.status is not None and view.task.status.message is not None


async def test_a_stream_of_a_log_that_is_gone_ends_without_a_word() -> None:
    """A finished task may be deleted while somebody slowly reads what it said."""
    store = MemoryStore()

    async def speaks(turn: TurnHandle) -> None:
        for _ in range(100):
            await turn.say([Part(text="word")])

    async with rig(speaks, store=store, limits=Limits(tail_facts=8, batch=8)) as r, asyncio.timeout(5):
        follow = await r.stream()
        await r.settled(follow.ref.id, TaskState.COMPLETED)
        first = await follow.batch(1)
        assert first is not None and first.entries and not first.ended
        await store.sweep(terminal_before=2**60)
        last = await follow.batch(1)
        assert last is not None and last.ended and not last.entries and not last.closing
        follow.close()
        await at_rest(r, follow.ref.id)
        with pytest.raises(TaskNotFound):
            await r.subscribe(follow.ref.id, cursor=f"{follow.ref.uid}.{first.entries[-1].seq}")
