"""Whatever callers do in whatever order, over either store, through crashes: the engine keeps its promises.

A state machine sends, answers, cancels, streams, subscribes, lists and crashes; after every move it compares
each task with a simple model, and its log with everything ever shown of it.
"""

import asyncio
import itertools
import tempfile
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import msgspec
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from dragoman.bus.local import LocalBus
from dragoman.core.cursors import cursor
from dragoman.core.fold import folded
from dragoman.engine.engine import Engine, Follow, Limits
from dragoman.model.errors import Busy, InvalidParams, TaskNotCancelable, TaskNotFound, UnsupportedOperation
from dragoman.model.facts import Chunk, Entry, StatusFact
from dragoman.model.messages import Message, Part, Role
from dragoman.model.operations import (
    Call,
    CancelTask,
    Configuration,
    GetTask,
    ListTasks,
    Policy,
    SendMessage,
    SubscribeToTask,
)
from dragoman.model.stamps import moment
from dragoman.model.tasks import TERMINAL, Head, Scope, TaskState, View
from dragoman.ports import Store
from dragoman.store.memory import MemoryStore
from dragoman.store.sqlite import SqliteStore
from tests.engine.rig import Clock, Ids
from tests.property.scripts import Program, ScriptedAgent, Shadow

T = TypeVar("T")

SCOPE = Scope("agent", "", "ada")
ELSEWHERE = Scope("agent", "", "eve")
TIGHT = Limits(
    inbox=2,
    tail_facts=4,
    span_facts=5,
    span_bytes=2_000,
    snapshot_bytes=1_500,
    whole_bytes=600,
    cached_tasks=2,
    batch=3,
    buffer_facts=4,
)
LOOSE = Limits(inbox=2)

acts = st.text("ccssuuwap", max_size=7).flatmap(
    lambda body: st.sampled_from([body] * 5 + [body + end for end in "frx"])
)
contexts = st.sampled_from(["", "", "one", "two"])
picks = st.integers(0, 10_000)


def pick(choices: list[T], n: int) -> T:
    return choices[n % len(choices)]


class Reader:
    """A stream somebody reads now and then: what it should see follows from the log and where it began."""

    def __init__(self, shadow: Shadow, follow: Follow, after: int, closes: frozenset[TaskState]) -> None:
        self.shadow, self.follow, self.closes = shadow, follow, closes
        self.first = follow.first
        self.after = after
        self.refilled = follow.first.seq if follow.first is not None and follow.first.partial else 0
        self.seen: list[int] = []
        self.over = False

    @property
    def last(self) -> int:
        return self.seen[-1] if self.seen else self.after

    def expected(self, log: list[Entry]) -> list[int]:
        return [
            entry.seq
            for entry in log
            if entry.fact.public
            and (entry.seq > self.after or (entry.seq <= self.refilled and isinstance(entry.fact, Chunk)))
        ]


class EngineMachine(RuleBasedStateMachine):
    make: ClassVar[Callable[[Path, Clock], Store]]

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.folder = tempfile.TemporaryDirectory()
        self.clock, self.ids, self.numbers = Clock(), Ids(), itertools.count(1)
        self.shadows: list[Shadow] = []
        self.logs: dict[str, list[bytes]] = {}
        self.readers: list[Reader] = []
        self.keys: dict[str, tuple[SendMessage, Shadow]] = {}
        self.opened: set[int] = set()
        self.touched: list[Shadow] = []

    def do(self, work: Coroutine[Any, Any, T]) -> T:
        async def bounded() -> T:
            async with asyncio.timeout(10):
                return await work

        return self.runner.run(bounded())

    # --- life

    @initialize(tight=st.booleans())
    def begin(self, tight: bool) -> None:
        self.limits = TIGHT if tight else LOOSE
        self.store = type(self).make(Path(self.folder.name), self.clock)
        self.do(self._start())

    async def _start(self) -> None:
        self.agent = ScriptedAgent()
        for number in self.opened:
            self.agent.gate(number).set()
        agents = {"agent": self.agent}
        self.engine = Engine(
            store=self.store, bus=LocalBus(), agents=agents, clock=self.clock, ids=self.ids, limits=self.limits
        )
        await self.engine.start()

    async def _stop(self) -> None:
        for reader in self.readers:
            reader.follow.close()
        await self.engine.close()

    def teardown(self) -> None:
        try:
            if hasattr(self, "engine"):
                self.do(self._stop())
        finally:
            self.runner.close()
            self.folder.cleanup()

    # --- helpers

    def call(self, scope: Scope = SCOPE, **members: Any) -> Call:
        return Call(scope=scope, origin="test", **members)

    def program(self, acts: str, rerun: bool) -> Program:
        return Program(next(self.numbers), acts, rerun)

    def op(self, program: Program, *, now: bool = True, **members: Any) -> SendMessage:
        message = Message(message_id="m", role=Role.USER, parts=(Part(text=program.text),), **members)
        return SendMessage(message=message, configuration=Configuration(return_immediately=now))

    def adopt(self, view: View, program: Program) -> Shadow:
        assert all(view.uid != shadow.uid for shadow in self.shadows), "a new task has an id of its own"
        shadow = Shadow(view.task.id, view.uid, view.task.context_id, program)
        shadow.open_gates = self.opened.__contains__
        self.shadows.append(shadow)
        shadow.start()
        self.touched.append(shadow)
        return shadow

    async def log(self, shadow: Shadow) -> list[Entry]:
        entries: list[Entry] = []
        while more := await self.store.since(SCOPE, shadow.uid, entries[-1].seq if entries else 0, 7):
            entries += more
        return entries

    def refused(self, kind: type[BaseException], work: Coroutine[Any, Any, Any]) -> None:
        with pytest.raises(kind):
            self.do(work)

    # --- sending

    @rule(acts=acts, rerun=st.booleans(), context=contexts)
    def send(self, acts: str, rerun: bool, context: str) -> None:
        program = self.program(acts, rerun)
        view = self.do(self.engine.send(self.call(), self.op(program, context_id=context)))
        assert isinstance(view, View)
        assert not context or view.task.context_id == context
        self.adopt(view, program)

    @rule(acts=acts, rerun=st.booleans())
    def send_and_wait(self, acts: str, rerun: bool) -> None:
        program = self.program(acts.replace("w", ""), rerun)
        view = self.do(self.engine.send(self.call(), self.op(program, now=False)))
        assert isinstance(view, View)
        shadow = self.adopt(view, program)
        assert not shadow.differs(view.task, view.usage)

    @rule(acts=acts, rerun=st.booleans(), first=st.booleans())
    def stream(self, acts: str, rerun: bool, first: bool) -> None:
        program = self.program(acts, rerun)
        call = self.call(policy=Policy(first=first))
        follow = self.do(self.engine.stream(call, self.op(program)))
        assert isinstance(follow, Follow)
        assert (follow.first is not None) == first
        view = self.do(self.engine.get(self.call(), GetTask(id=follow.ref.id)))
        shadow = self.adopt(view, program)
        self.readers.append(Reader(shadow, follow, follow.first.seq if follow.first else 0, Policy().closes))

    @precondition(lambda self: self.shadows)
    @rule(acts=acts, n=picks, named=st.sampled_from(["", "right", "wrong"]))
    def follow_up(self, acts: str, n: int, named: str) -> None:
        shadow = pick(self.shadows, n)
        program = self.program(acts, rerun=True)
        context = {"": "", "right": shadow.context_id, "wrong": "another"}[named]
        sending = self.engine.send(self.call(), self.op(program, task_id=shadow.id, context_id=context))
        if named == "wrong":
            self.refused(InvalidParams, sending)
        elif shadow.terminal:
            self.refused(UnsupportedOperation, sending)
        elif not shadow.waiting and len(shadow.inbox) >= self.limits.inbox:
            self.refused(Busy, sending)
        else:
            self.do(sending)
            shadow.receive(program)
            self.touched.append(shadow)

    @precondition(lambda self: any(shadow.waiting for shadow in self.shadows))
    @rule(n=picks)
    def answer(self, n: int) -> None:
        self.follow_up_to(pick([shadow for shadow in self.shadows if shadow.waiting], n))

    def follow_up_to(self, shadow: Shadow) -> None:
        program = self.program("", rerun=True)
        self.do(self.engine.send(self.call(), self.op(program, task_id=shadow.id)))
        shadow.receive(program)
        self.touched.append(shadow)

    @precondition(lambda self: any(not shadow.terminal for shadow in self.shadows))
    @rule(n=picks)
    def open_a_gate(self, n: int) -> None:
        shadow = pick([shadow for shadow in self.shadows if not shadow.terminal], n)

        async def opening() -> None:
            self.agent.gate(shadow.program.number).set()

        self.opened.add(shadow.program.number)
        self.do(opening())
        if shadow.state is TaskState.WORKING:
            shadow.go_on()
            self.touched.append(shadow)

    @precondition(lambda self: self.shadows)
    @rule(n=picks)
    def cancel(self, n: int) -> None:
        shadow = pick(self.shadows, n)
        canceling = self.engine.cancel(self.call(), CancelTask(id=shadow.id))
        if shadow.terminal and shadow.state is not TaskState.CANCELED:
            self.refused(TaskNotCancelable, canceling)
            return
        view = self.do(canceling)
        shadow.cancel()
        assert not shadow.differs(view.task, view.usage)
        self.touched.append(shadow)

    @precondition(lambda self: self.shadows)
    @rule(n=picks, waiting=st.booleans())
    def resume(self, n: int, waiting: bool) -> None:
        """A callback says that somebody signed in. It may say so of any task, and as often as it likes."""
        asked = [shadow for shadow in self.shadows if shadow.state is TaskState.AUTH_REQUIRED]
        shadow = pick(asked if asked and waiting else self.shadows, n)
        self.do(self.engine.resume(SCOPE, shadow.id))
        shadow.resume()
        self.touched.append(shadow)

    # --- keys

    @rule(acts=acts, key=st.sampled_from("kl"), other=st.booleans())
    def send_with_a_key(self, acts: str, key: str, other: bool) -> None:
        known = self.keys.get(key)
        if known is None or other:
            program = self.program(acts, rerun=False)
            op = self.op(program)
            sending = self.engine.send(self.call(idempotency_key=key), op)
            if known is not None:
                self.refused(InvalidParams, sending)
                return
            view = self.do(sending)
            assert isinstance(view, View)
            self.keys[key] = op, self.adopt(view, program)
        else:
            op, shadow = known
            view = self.do(self.engine.send(self.call(idempotency_key=key), op))
            assert isinstance(view, View) and view.uid == shadow.uid

    @precondition(lambda self: any(not shadow.terminal for shadow in self.shadows))
    @rule(acts=acts, n=picks, times=st.integers(1, 3))
    def follow_up_with_a_key(self, acts: str, n: int, times: int) -> None:
        """However often it comes, and whatever became of its task meanwhile, it is taken in once."""
        shadow = pick([shadow for shadow in self.shadows if not shadow.terminal], n)
        if not shadow.waiting and len(shadow.inbox) >= self.limits.inbox:
            return
        program = self.program(acts, rerun=True)
        key, op = f"follow {program.number}", self.op(program, task_id=shadow.id)
        for _ in range(times):
            view = self.do(self.engine.send(self.call(idempotency_key=key), op))
            assert isinstance(view, View) and view.uid == shadow.uid
        self.keys[key] = op, shadow
        shadow.receive(program)
        self.touched.append(shadow)

    @precondition(lambda self: self.keys)
    @rule(n=picks)
    def repeat_any_request_with_a_key(self, n: int) -> None:
        key, (op, shadow) = pick(list(self.keys.items()), n)
        view = self.do(self.engine.send(self.call(idempotency_key=key), op))
        assert isinstance(view, View) and view.uid == shadow.uid

    # --- what others see

    @precondition(lambda self: self.shadows)
    @rule(n=picks)
    def strangers_see_nothing(self, n: int) -> None:
        id, eve = pick(self.shadows, n).id, self.call(ELSEWHERE)
        self.refused(TaskNotFound, self.engine.get(eve, GetTask(id=id)))
        self.refused(TaskNotFound, self.engine.cancel(eve, CancelTask(id=id)))
        self.refused(TaskNotFound, self.engine.subscribe(eve, SubscribeToTask(id=id)))
        self.refused(TaskNotFound, self.engine.send(eve, self.op(self.program("", rerun=False), task_id=id)))
        assert self.do(self.engine.list(eve, ListTasks())).total == 0

    # --- reading

    @precondition(lambda self: self.shadows)
    @rule(n=picks, at=st.one_of(st.none(), picks))
    def subscribe(self, n: int, at: int | None) -> None:
        """From a snapshot, or after any number the log ever had."""
        shadow = pick(self.shadows, n)
        log = self.do(self.log(shadow))
        after = None if at is None else at % (len(log) + 1)
        self.do(self._subscribe(shadow, log, after))

    async def _subscribe(self, shadow: Shadow, log: list[Entry], after: int | None) -> None:
        text = "" if after is None else cursor(shadow.uid, after)
        subscribing = self.engine.subscribe(self.call(cursor=text), SubscribeToTask(id=shadow.id))
        rest = after is not None and any(entry.fact.public for entry in log[after:])
        if shadow.terminal and not rest:
            with pytest.raises(UnsupportedOperation):
                await subscribing
            return
        follow = await subscribing
        assert (follow.first is None) == (after is not None)
        start = after if follow.first is None else follow.first.seq
        assert start is not None
        self.readers.append(Reader(shadow, follow, start, TERMINAL))

    @precondition(lambda self: self.readers)
    @rule(n=picks, batches=st.integers(1, 4))
    def read(self, n: int, batches: int) -> None:
        self.do(self._read(pick(self.readers, n), batches))

    async def _read(self, reader: Reader, batches: int) -> None:
        for _ in range(batches):
            batch = None if reader.over else await reader.follow.batch(0.0005)
            if batch is None:
                return
            reader.seen += [entry.seq for entry in batch.entries]
            assert all(entry.fact.public for entry in batch.entries)
            if batch.ended:
                reader.over = True
                assert batch.closing or not batch.entries
                if batch.closing:
                    last = [e.fact for e in batch.entries if isinstance(e.fact, StatusFact)][-1]
                    assert last.status.state in reader.closes

    @precondition(lambda self: self.readers)
    @rule(n=picks)
    def drop_and_come_back(self, n: int) -> None:
        """The socket breaks; the client goes on after the last id it received."""
        reader = pick(self.readers, n)
        self.readers.remove(reader)
        self.do(self._come_back(reader))

    async def _come_back(self, reader: Reader) -> None:
        reader.follow.close()
        log = await self.log(reader.shadow)
        before = len(self.readers)
        if reader.refilled and (not reader.seen or reader.last < reader.refilled):
            # The snapshot came without bodies and not all of them had come after it: they come again.
            await self._subscribe(reader.shadow, log, reader.seen[-1] if reader.seen else 0)
            return
        await self._subscribe(reader.shadow, log, reader.last)
        for again in self.readers[before:]:
            again.after, again.seen, again.refilled = reader.after, reader.seen, reader.refilled
        if len(self.readers) == before:
            assert reader.seen == reader.expected(log), "nothing was left to come back for"

    # --- lists

    @rule(
        context=contexts,
        state=st.one_of(st.none(), st.sampled_from(TaskState)),
        size=st.integers(1, 4),
        since=st.one_of(st.none(), picks),
    )
    def list_tasks(self, context: str, state: TaskState | None, size: int, since: int | None) -> None:
        self.do(self._list(context, state, size, since))

    async def _list(self, context: str, state: TaskState | None, size: int, since: int | None) -> None:
        heads = [await self._head(shadow) for shadow in self.shadows]
        after = ""
        if since is not None and self.shadows:
            view = await self.engine.get(self.call(), GetTask(id=pick(self.shadows, since).id))
            assert view.task.status is not None
            after = view.task.status.timestamp
        wanted = [
            head
            for head in heads
            if (not context or head.context_id == context)
            and (state is None or head.state is state)
            and (not after or head.status_at >= moment(after))
        ]
        wanted.sort(key=lambda head: (head.status_at, head.uid), reverse=True)
        found: list[str] = []
        token = ""
        while True:
            page = await self.engine.list(
                self.call(),
                ListTasks(
                    context_id=context, status=state, page_size=size, page_token=token, status_timestamp_after=after
                ),
            )
            assert page.total == len(wanted)
            assert page.page_size == size and len(page.views) <= size
            assert not any(view.task.artifacts for view in page.views)
            found += [view.uid for view in page.views]
            token = page.next_page_token
            if not token:
                break
            assert len(page.views) == size
        assert found == [head.uid for head in wanted]

    async def _head(self, shadow: Shadow) -> Head:
        head = await self.store.head(SCOPE, shadow.uid)
        assert head is not None and head.state is shadow.state
        return head

    # --- crashes

    @rule()
    def crash_and_restart(self) -> None:
        self.do(self._crash())
        for shadow in self.shadows:
            shadow.crash()
        self.touched = self.shadows.copy()
        self.all_is_as_the_model_says()
        readers, self.readers = self.readers, []
        for reader in readers:
            self.do(self._come_back(reader))

    async def _crash(self) -> None:
        """Runs stop without writing anything, then another process opens the same store."""
        for run in [*self.engine.turns.runs]:
            run.stop("lost")
        await asyncio.sleep(0)
        await self._stop()
        if not isinstance(self.store, MemoryStore):
            self.store = type(self).make(Path(self.folder.name), self.clock)
        await self._start()

    # --- what must hold after every move

    @invariant()
    def all_is_as_the_model_says(self) -> None:
        if not self.touched:
            return
        touched, self.touched = self.touched, []
        for shadow in touched:
            self.do(self._settle(shadow))

    async def _settle(self, shadow: Shadow) -> None:
        """Wait until the task is as it should be, then hold its log to what was ever seen of it."""
        loop = asyncio.get_running_loop()
        end = loop.time() + 2
        while True:
            view = await self.engine.get(self.call(), GetTask(id=shadow.id))
            differs = shadow.differs(view.task, view.usage)
            if not differs:
                return
            assert loop.time() < end, f"task {shadow.id}: {differs}"
            await asyncio.sleep(0.0002)

    @invariant()
    def logs_only_grow_and_tell_the_task(self) -> None:
        for shadow in self.shadows:
            self.do(self._check(shadow))

    async def _check(self, shadow: Shadow) -> None:
        # What is committed is told to the engine a moment later: until then it shows what came before.
        while (view := await self.engine.get(self.call(), GetTask(id=shadow.id))).seq != len(
            log := await self.log(shadow)
        ):
            await asyncio.sleep(0)
        assert [entry.seq for entry in log] == list(range(1, len(log) + 1))
        lines = [msgspec.json.encode(entry.fact) for entry in log]
        before = self.logs.get(shadow.uid, [])
        assert lines[: len(before)] == before, "what was written never changes"
        ends = [entry for entry in log if isinstance(entry.fact, StatusFact) and entry.fact.status.state in TERMINAL]
        assert len(ends) == shadow.terminal and (not ends or ends[0] is log[-1]), "terminal is final"
        self.logs[shadow.uid] = lines
        head = await self.store.head(SCOPE, shadow.uid)
        assert head is not None
        assert view == folded(head, ((entry.seq, entry.fact) for entry in log)), "a task is the fold of its log"
        for reader in self.readers:
            if reader.shadow is shadow:
                expected = reader.expected(log)
                assert reader.seen == expected[: len(reader.seen)], "no gap, no repeat"
                if reader.over and reader.shadow.terminal and reader.closes <= TERMINAL:
                    assert reader.seen == expected, "a stream ends with the task"


class OverMemory(EngineMachine):
    make = staticmethod(lambda folder, clock: MemoryStore(clock=clock))


class OverSqlite(EngineMachine):
    make = staticmethod(lambda folder, clock: SqliteStore(folder / "log.db", clock=clock))


class OverColdSqlite(EngineMachine):
    """Nothing recent in memory: every read comes from the file."""

    make = staticmethod(
        lambda folder, clock: SqliteStore(folder / "log.db", clock=clock, recent_tasks=1, recent_bytes=0)
    )


@pytest.mark.proves("D-2-4", "S-1-5", "S-2-4")
@pytest.mark.parametrize(("machine", "runs"), [(OverMemory, 50), (OverSqlite, 15), (OverColdSqlite, 15)])
def test_the_engine_keeps_its_promises_over(machine: type[EngineMachine], runs: int) -> None:
    bounded = settings(
        max_examples=runs,
        stateful_step_count=30,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    run_state_machine_as_test(machine, settings=bounded)
