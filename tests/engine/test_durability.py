"""What is promised at each commit, seen through a store whose commits a test holds back, loses or refuses."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import pytest

from dragoman.engine.engine import Limits
from dragoman.model.errors import OutcomeUnknown, Overloaded, StoreFull
from dragoman.model.facts import (
    AnyFact,
    Asked,
    CancelRequested,
    Chunk,
    Created,
    Entry,
    Received,
    Settled,
    Started,
    Stepped,
)
from dragoman.model.messages import Part
from dragoman.model.tasks import TaskState, Usage
from dragoman.ports import Append, Told, TurnHandle
from dragoman.store.memory import MemoryStore
from tests.engine.rig import SCOPE, Rig, chunk, rest, rig, state_of, text_of, texts, until

pytestmark = pytest.mark.anyio


def with_fact(kind: type[AnyFact]) -> Callable[[Append], bool]:
    return lambda append: any(isinstance(fact, kind) for fact in append.facts)


class Held(MemoryStore):
    """Commits what it is given only while its gate is open, in the order it came. `appends` is what came."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = asyncio.Event()
        self.gate.set()
        self.appends: list[Append] = []
        self.waiting = 0
        self._order = asyncio.Lock()
        self._late: set[asyncio.Task[None]] = set()

    def write(self, append: Append, told: Told) -> None:
        self.appends.append(append)
        late = asyncio.ensure_future(self._later(append, told))
        self._late.add(late)
        late.add_done_callback(self._late.discard)

    async def _later(self, append: Append, told: Told) -> None:
        self.waiting += 1
        async with self._order:
            await self.gate.wait()
            self.waiting -= 1
            super().write(append, told)

    async def come(self, some: int = 1) -> None:
        """Wait until so many appends wait for the gate."""
        await until(lambda: self.waiting >= some)


class Troubled(MemoryStore):
    """Fails the appends that `trouble` names, once each time it is set: before they are written, or after."""

    def __init__(self) -> None:
        super().__init__()
        self.trouble: Callable[[Append], bool] | None = None
        self.error: Exception = OutcomeUnknown()
        self.written = False
        self.times = 1

    def write(self, append: Append, told: Told) -> None:
        if self.trouble is None or not self.trouble(append):
            super().write(append, told)
            return
        self.times -= 1
        if not self.times:
            self.trouble = None
        if self.written:
            super().write(append, lambda _: None)
        asyncio.get_running_loop().call_soon(told, self.error)


def facts(appends: Sequence[Append]) -> list[list[str]]:
    return [[type(fact).__name__ for fact in append.facts] for append in appends]


async def echo(turn: TurnHandle) -> None:
    await chunk(turn, text_of(turn.message), append=False)


class TestVisible:
    """Nothing is shown before its commit."""

    @pytest.mark.proves("D-2-1", "S-3-3")
    async def test_a_message_is_accepted_once_it_is_committed(self) -> None:
        store = Held()
        async with rig(echo, store=store) as r:
            store.gate.clear()
            sending = asyncio.ensure_future(r.begin())
            await store.come()
            assert not sending.done() and (await r.list()).total == 0 and not r.agent.runs
            store.gate.set()
            assert (await sending).task.id

    async def test_a_send_whose_commit_comes_after_the_drain_is_told_to_come_back(self) -> None:
        store = Held()

        async def never(turn: TurnHandle) -> None:
            await asyncio.Event().wait()

        async with rig(never, store=store) as r, asyncio.timeout(5):
            store.gate.clear()
            sending = asyncio.ensure_future(r.send())
            await store.come()
            await r.engine.drain(0)
            store.gate.set()
            with pytest.raises(Overloaded, match="shutting down"):
                await sending

    @pytest.mark.proves("D-2-1")
    async def test_output_reaches_streams_and_readers_once_it_is_committed(self) -> None:
        store, emitted = Held(), asyncio.Event()

        async def speaks(turn: TurnHandle) -> None:
            store.gate.clear()
            await turn.say([Part(text="one")])
            await chunk(turn, "two", append=False)
            emitted.set()
            await asyncio.Event().wait()

        async with rig(speaks, store=store) as r:
            follow = await r.stream()
            assert [type(e.fact).__name__ for e in await batch(follow.batch)] == ["Started"]
            await emitted.wait()
            await store.come()
            assert await follow.batch(0.01) is None
            seen = await r.get(follow.ref.id)
            assert texts(seen) == [] and len(seen.task.history) == 1
            store.gate.set()
            assert [type(e.fact).__name__ for e in await batch(follow.batch)] == ["Said", "Chunk"]
            follow.close()

    @pytest.mark.proves("D-2-1", "S-3-3")
    async def test_an_end_is_told_once_it_is_committed(self) -> None:
        store = Held()

        async def ends(turn: TurnHandle) -> None:
            store.gate.clear()

        async with rig(ends, store=store) as r:
            sending = asyncio.ensure_future(r.send())
            await until(lambda: r.agent.runs)
            await store.come()
            assert not sending.done()
            (view,) = (await r.list()).views
            assert state_of(view) is TaskState.WORKING
            store.gate.set()
            assert state_of(await sending) is TaskState.COMPLETED

    @pytest.mark.proves("S-4-12")
    async def test_a_cancel_reaches_the_code_once_it_is_committed(self) -> None:
        store, reached = Held(), asyncio.Event()

        async def waits(turn: TurnHandle) -> None:
            try:
                await asyncio.Event().wait()
            finally:
                reached.set()

        async with rig(waits, store=store) as r:
            view = await r.begin()
            await until(lambda: r.agent.runs)
            store.gate.clear()
            cancelling = asyncio.ensure_future(r.cancel(view.task.id))
            await store.come()
            assert facts(store.appends[-1:]) == [["CancelRequested"]] and not reached.is_set()
            store.gate.set()
            assert state_of(await cancelling) is TaskState.CANCELED and reached.is_set()


async def batch(read: Callable[[float], Awaitable[object]]) -> Sequence[Entry]:
    found = await read(5)
    assert found is not None
    return found.entries  # pyright: ignore[reportAttributeAccessIssue]


class TestWaiting:
    """What returns at once, and what returns after the commit."""

    @pytest.mark.proves("S-3-1")
    async def test_words_and_pieces_return_at_once_and_leave_together(self) -> None:
        store, said = Held(), asyncio.Event()

        async def speaks(turn: TurnHandle) -> None:
            store.gate.clear()
            await turn.say([Part(text="one")])
            await chunk(turn, "two", append=False)
            turn.usage(Usage(input_tokens=1))
            await chunk(turn, "three")
            said.set()

        async with rig(speaks, store=store) as r:
            view = await r.begin()
            async with asyncio.timeout(5):
                await said.wait()
            await store.come()
            store.gate.set()
            await r.settled(view.task.id, TaskState.COMPLETED)
            assert facts(store.appends)[1:] == [["Said", "Chunk", "Used", "Chunk", "Settled"]]

    @pytest.mark.proves("S-3-2")
    async def test_a_full_buffer_makes_the_handler_wait_and_none_of_it_is_lost(self) -> None:
        store, emitted = Held(), 0

        async def speaks(turn: TurnHandle) -> None:
            nonlocal emitted
            store.gate.clear()
            for n in range(500):
                await chunk(turn, f"{n} ", append=n > 0)
                emitted += 1

        async with rig(speaks, store=store, limits=Limits(buffer_facts=100)) as r:
            view = await r.begin()
            for _ in range(1_000):
                await asyncio.sleep(0)
            assert 64 <= emitted <= 200, "it stands at what may be on its way"
            store.gate.set()
            view = await r.settled(view.task.id, TaskState.COMPLETED)
            assert texts(view) == ["".join(f"{n} " for n in range(500))]

    @pytest.mark.proves("S-3-2")
    async def test_the_buffer_is_bounded_in_bytes_too(self) -> None:
        store, emitted = Held(), 0

        async def speaks(turn: TurnHandle) -> None:
            nonlocal emitted
            store.gate.clear()
            for _ in range(50):
                await chunk(turn, "x" * 100_000, append=False)
                emitted += 1

        async with rig(speaks, store=store, limits=Limits(buffer_bytes=300_000)) as r:
            view = await r.begin()
            for _ in range(1_000):
                await asyncio.sleep(0)
            assert emitted < 10
            store.gate.set()
            await r.settled(view.task.id, TaskState.COMPLETED)

    @pytest.mark.proves("S-3-3")
    @pytest.mark.parametrize("what", ["step", "ask", "require_auth"])
    async def test_steps_questions_and_authorizations_wait_for_their_commit(self, what: str) -> None:
        store, went_on = Held(), asyncio.Event()

        async def work(step_id: str) -> int:
            return 1

        async def acts(turn: TurnHandle) -> None:
            store.gate.clear()
            try:
                if what == "step":
                    await turn.step("s", [], work)
                else:
                    await getattr(turn, what)([Part(text="?")])
            finally:
                went_on.set()

        async with rig(acts, store=store) as r:
            await r.begin()
            await store.come()
            assert not went_on.is_set()
            store.gate.set()
            async with asyncio.timeout(5):
                await went_on.wait()
            kind = Stepped if what == "step" else Asked
            assert any(with_fact(kind)(append) for append in store.appends)


@pytest.mark.proves("S-3-4")
async def test_a_turn_that_is_just_being_started_does_not_outlive_the_engine() -> None:
    store, gate, running = Held(), asyncio.Event(), 0

    async def works(turn: TurnHandle) -> None:
        nonlocal running
        running += 1
        try:
            await gate.wait()
        finally:
            running -= 1

    async with rig(works, store=store, serialize="context") as r:
        await r.begin(context_id="c")
        await until(lambda: running)
        await r.begin(context_id="c")
        store.gate.clear()
        gate.set()
        await store.come()  # the first turn ends
        gate.clear()
        store.gate.set()
        await until(lambda: not running)
        store.gate.clear()
        await store.come()  # the second is about to begin
        closing = asyncio.ensure_future(r.engine.close())
        await asyncio.sleep(0)
        store.gate.set()
        await closing
        assert not running and not r.engine.turns.runs


async def test_an_agent_that_awaits_a_millisecond_between_its_words_loses_and_repeats_none() -> None:
    """A commit that looked again at what was decided meanwhile would show here."""

    async def speaks(turn: TurnHandle) -> None:
        for n in range(20):
            await chunk(turn, f"{n} ", append=n > 0)
            await asyncio.sleep(0.001)

    whole = "".join(f"{n} " for n in range(20))
    async with rig(speaks) as r:
        follow, view = await r.stream(), await r.send()
        entries = await rest(follow)
        pieces = [e.fact for e in entries if isinstance(e.fact, Chunk)]
        assert "".join(str(each.artifact.parts[0].text) for each in pieces) == whole
        assert sum(isinstance(e.fact, Settled) for e in entries) == 1
        assert texts(view) == [whole]


@pytest.mark.proves("S-3-4")
async def test_what_an_append_writes_is_fixed_when_it_is_built() -> None:
    """The handler goes on while its words are being written, and even ends; the append under way stays as it is."""
    store, emitted = Held(), asyncio.Event()

    async def speaks(turn: TurnHandle) -> None:
        store.gate.clear()
        await chunk(turn, "one ", append=False)
        await asyncio.sleep(0.001)
        await chunk(turn, "two")
        emitted.set()

    async with rig(speaks, store=store) as r:
        view = await r.begin()
        await store.come()
        under_way = store.appends[-1]
        assert facts([under_way]) == [["Chunk"]]
        await emitted.wait()
        await asyncio.sleep(0.001)
        assert facts([under_way]) == [["Chunk"]] and isinstance(under_way.facts, tuple)
        assert store.waiting == 1, "one append of a turn at a time"
        store.gate.set()
        await r.settled(view.task.id, TaskState.COMPLETED)
        written = [name for names in facts(store.appends)[1:] for name in names]
        assert written == ["Chunk", "Chunk", "Settled"]


class TestUnknownOutcomes:
    """A failed commit may have happened: read again, then decide."""

    @pytest.mark.proves("S-2-18")
    @pytest.mark.parametrize("written", [True, False])
    async def test_an_end_is_found_there_or_written_again_but_never_twice(self, written: bool) -> None:
        store = Troubled()
        async with rig(echo, store=store) as r:
            store.trouble, store.written = with_fact(Settled), written
            async with asyncio.timeout(5):
                view = await r.send()
            assert state_of(view) is TaskState.COMPLETED and texts(view) == ["hi"]
            assert await count(r, view.uid, Settled) == 1

    @pytest.mark.proves("S-2-18")
    @pytest.mark.parametrize("written", [True, False])
    async def test_a_task_nobody_was_told_of_does_not_go_on_working(self, written: bool) -> None:
        store, ran = Troubled(), list[str]()

        async def notes(turn: TurnHandle) -> None:
            ran.append(text_of(turn.message))

        async with rig(notes, store=store) as r:
            store.trouble, store.written = with_fact(Created), written
            with pytest.raises(OutcomeUnknown):
                await r.send()
            page = await r.list()
            assert page.total == written and not ran
            for view in page.views:
                await r.settled(view.task.id, TaskState.FAILED)

    @pytest.mark.proves("S-2-18")
    @pytest.mark.parametrize("written", [True, False])
    async def test_an_answer_that_was_written_goes_on_and_one_that_was_not_may_be_given_again(
        self, written: bool
    ) -> None:
        async def asks(turn: TurnHandle) -> None:
            await chunk(turn, text_of(await turn.ask([Part(text="?")])), append=False)

        store = Troubled()
        async with rig(asks, store=store) as r:
            id = (await r.send()).task.id
            store.trouble, store.written = with_fact(Received), written
            with pytest.raises(OutcomeUnknown):
                await r.send("this", task_id=id)
            if not written:
                assert state_of(await r.get(id)) is TaskState.INPUT_REQUIRED
                await r.send("this", task_id=id)
            view = await r.settled(id, TaskState.COMPLETED)
            assert texts(view) == ["this"] and await count(r, view.uid, Received) == 1

    @pytest.mark.proves("S-2-18")
    @pytest.mark.parametrize("written", [True, False])
    async def test_the_next_turn_begins_once_whether_or_not_its_beginning_was_written(self, written: bool) -> None:
        gate = asyncio.Event()

        async def works(turn: TurnHandle) -> None:
            await gate.wait()
            await chunk(turn, text_of(turn.message), append=False, id=turn.turn)

        store = Troubled()
        async with rig(works, store=store) as r:
            id = (await r.begin("one")).task.id
            await r.begin("two", task_id=id)
            await r.begin("three", task_id=id)
            store.trouble, store.written = with_fact(Started), written
            gate.set()
            assert texts(await r.settled(id, TaskState.COMPLETED)) == ["one", "two", "three"]

    @pytest.mark.parametrize("written", [True, False])
    async def test_output_of_which_nobody_knows_ends_the_turn_and_stays_in_order(self, written: bool) -> None:
        async def speaks(turn: TurnHandle) -> None:
            await chunk(turn, "one ", append=False)
            await asyncio.sleep(0.001)
            await chunk(turn, "two ")
            await asyncio.Event().wait()

        store = Troubled()
        async with rig(speaks, store=store) as r:
            store.trouble, store.written, store.times = with_fact(Chunk), written, 1
            async with asyncio.timeout(5):
                view = await r.send()
            assert state_of(view) is TaskState.FAILED
            assert view.task.status and view.task.status.message
            assert text_of(view.task.status.message) == "The task's results could not be stored."
            assert texts(view) == (["one "] if written else [])
            assert view == await r.get(view.task.id)


class TestNoRoom:
    """A full store: the caller hears of it, the turn is stopped, its failure is written as soon as it can be."""

    @pytest.mark.proves("S-3-5")
    async def test_a_message_that_cannot_be_stored_is_an_error_and_no_task(self) -> None:
        store = Troubled()
        async with rig(echo, store=store) as r:
            store.trouble, store.error = with_fact(Created), StoreFull("full")
            with pytest.raises(StoreFull):
                await r.send()
            assert (await r.list()).total == 0
            assert state_of(await r.send()) is TaskState.COMPLETED

    @pytest.mark.proves("S-3-5")
    async def test_the_turn_is_cancelled_and_its_failure_retried_until_there_is_room(self) -> None:
        store, reached = Troubled(), asyncio.Event()

        async def speaks(turn: TurnHandle) -> None:
            try:
                await chunk(turn, "kept", append=False)
                await asyncio.sleep(0.001)
                await chunk(turn, " lost")
                await asyncio.Event().wait()
            finally:
                reached.set()

        async with rig(speaks, store=store) as r:
            store.error, store.times = StoreFull("full"), 3
            store.trouble = lambda append: any(
                isinstance(fact, Settled) or (isinstance(fact, Chunk) and fact.append) for fact in append.facts
            )
            async with asyncio.timeout(5):
                view = await r.send()
            assert reached.is_set() and store.trouble is None
            assert state_of(view) is TaskState.FAILED and texts(view) == ["kept"]
            assert view.task.status and view.task.status.message
            assert text_of(view.task.status.message) == "The task's results could not be stored."

    async def test_a_cancel_that_cannot_be_stored_is_an_error_and_the_turn_goes_on(self) -> None:
        gate = asyncio.Event()

        async def waits(turn: TurnHandle) -> None:
            await gate.wait()

        store = Troubled()
        async with rig(waits, store=store) as r:
            view = await r.begin()
            await until(lambda: r.agent.runs)
            store.trouble, store.error = with_fact(CancelRequested), StoreFull("full")
            with pytest.raises(StoreFull):
                await r.cancel(view.task.id)
            gate.set()
            assert state_of(await r.settled(view.task.id)) is TaskState.COMPLETED


async def count(r: Rig, uid: str, kind: type[AnyFact]) -> int:
    return sum(isinstance(entry.fact, kind) for entry in await r.store.since(SCOPE, uid, 0))
