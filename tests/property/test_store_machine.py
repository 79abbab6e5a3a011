"""A machine that does to a store whatever comes to its mind, beside a model that is a few dictionaries."""

import asyncio
import shutil
import tempfile
from collections.abc import Coroutine
from copy import copy
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from dragoman.core.heads import admits, advance, born
from dragoman.model.errors import Conflict, KeyTaken
from dragoman.model.facts import AnyFact
from dragoman.model.tasks import Head, Scope, Task, TaskState
from dragoman.ports import Append, Appended, Checkpoint, KeyRecord, Lifecycle, New, Query, Snapshot, Store, Turn
from dragoman.store.memory import MemoryStore
from dragoman.store.sqlite import SqliteStore
from tests.conformance.store.adapters import HeldClock
from tests.conformance.store.logs import OTHERS, OURS, asked, cancel, chunk, created, received, said, settled, started

T = TypeVar("T")

SCOPES = st.sampled_from((OURS, OTHERS[0]))
CONTEXTS = st.sampled_from(("c", "d"))
UIDS = [f"u{n}" for n in range(6)]


class Model:
    """What a store promises, said as plainly as possible."""

    def __init__(self) -> None:
        self.heads: dict[str, Head] = {}
        self.logs: dict[str, list[AnyFact]] = {}
        self.keys: dict[tuple[Scope, str], str] = {}
        self.snapshots: dict[str, Snapshot] = {}

    def append(self, append: Append) -> str:
        """What happens: "ok", "conflict" or "key"."""
        guard, uid, scope = append.guard, append.uid, append.scope
        head = self.heads.get(uid)
        if isinstance(guard, New):
            if guard.key and (scope, guard.key.key) in self.keys:
                return "key"
            if head or any((h.scope, h.id) == (scope, guard.id) for h in self.heads.values()):
                return "conflict"
            head = born(uid, scope, guard)
            if guard.key:
                self.keys[scope, guard.key.key] = uid
        elif head is None or head.scope != scope or not admits(head, guard, append.facts):
            return "conflict"
        self.heads[uid] = advance(head, append.facts, append.size)
        self.logs.setdefault(uid, []).extend(append.facts)
        return "ok"


class StoreMachine(RuleBasedStateMachine):
    """Rules act on the store and the model alike; invariants compare what can be read."""

    durable = True
    tasks = Bundle("tasks")

    def make(self) -> Store:
        raise NotImplementedError

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.folder = Path(tempfile.mkdtemp())
        self.clock = HeldClock()
        self.model = Model()
        self.store = self.make()
        self.run(self.store.open())

    def run(self, doing: Coroutine[Any, Any, T]) -> T:
        return self.loop.run_until_complete(doing)

    def teardown(self) -> None:
        self.run(self.store.close())
        self.loop.run_until_complete(self.loop.shutdown_default_executor())
        self.loop.close()
        shutil.rmtree(self.folder)

    def tick(self) -> int:
        self.clock.at += 1
        return self.clock.at

    def append_all(self, appends: list[Append]) -> None:
        """In one tick, so that they may share a transaction; each must have its own outcome all the same."""
        expected = [self.model.append(append) for append in appends]
        heads = [copy(self.model.heads.get(append.uid)) for append in appends]

        async def together() -> list[Any]:
            return await asyncio.gather(*(self.store.append(append) for append in appends), return_exceptions=True)

        for append, outcome, head, answer in zip(appends, expected, heads, self.run(together()), strict=True):
            if outcome == "ok":
                assert isinstance(answer, Appended), answer
                assert answer.head.seq - answer.first + 1 == len(append.facts)
                if sum(other.uid == append.uid for other in appends) == 1:
                    assert answer.head == head
            else:
                assert isinstance(answer, KeyTaken if outcome == "key" else Conflict), (outcome, answer)

    @rule(target=tasks, uid=st.sampled_from(UIDS), scope=SCOPES, context=CONTEXTS, key=st.sampled_from(["", "k", "l"]))
    def begin(self, uid: str, scope: Scope, context: str, key: str) -> str:
        at = self.tick()
        record = KeyRecord(key, "digest") if key else None
        self.append_all([Append(uid, scope, (created(at), started(at)), New(uid, context, key=record), 10)])
        return uid

    @rule(uid=tasks, id=st.sampled_from(["x", "y"]), scope=SCOPES)
    def begin_with_a_chosen_id(self, uid: str, id: str, scope: Scope) -> None:
        self.append_all([Append(f"{uid}-{id}", scope, (created(self.tick()),), New(id, "c"))])

    @rule(uid=tasks, sizes=st.lists(st.integers(1, 70), max_size=4), stale=st.booleans(), scope=SCOPES)
    def output(self, uid: str, sizes: list[int], stale: bool, scope: Scope) -> None:
        at = self.tick()
        guard = Turn("t1", 7 if stale else 1)
        self.append_all([Append(uid, scope, tuple(chunk(at, str(n)) for n in range(size)), guard, 5) for size in sizes])

    @rule(
        some=st.lists(tasks, min_size=1, max_size=5),
        fact=st.sampled_from(("said", "asked", "cancel", "received", "settled", "failed")),
        lag=st.sampled_from((0, 0, 0, 1)),
    )
    def operate(self, some: list[str], fact: str, lag: int) -> None:
        at = self.tick()
        facts: dict[str, AnyFact] = {
            "said": said(at),
            "asked": asked(at, expires=at + 5),
            "cancel": cancel(at, at + 3),
            "received": received(at),
            "settled": settled(at),
            "failed": settled(at, TaskState.FAILED),
        }
        appends: list[Append] = []
        for uid in some:
            head = self.model.heads.get(uid)
            version = head.version - lag if head else 1
            appends.append(Append(uid, head.scope if head else OURS, (facts[fact],), Lifecycle(version)))
        self.append_all(appends)

    @rule(uid=tasks, back=st.integers(0, 3))
    def checkpoint(self, uid: str, back: int) -> None:
        head = self.model.heads.get(uid)
        if head is None:
            return
        seq = head.seq - back
        snapshot = Snapshot(task=Task(id=uid, metadata={"seq": seq}))
        self.run(self._checkpoint(Checkpoint(uid=uid, scope=head.scope, seq=seq, snapshot=snapshot)))
        if seq > head.checkpoint_seq:
            head = self.model.heads[uid] = copy(head)
            head.checkpoint_seq = seq
            self.model.snapshots[uid] = snapshot

    async def _checkpoint(self, checkpoint: Checkpoint) -> None:
        await self.store.checkpoint(checkpoint)

    @rule(uid=tasks)
    def claim(self, uid: str) -> None:
        head = self.model.heads.get(uid)
        self.run(self.store.release("r", [uid]))
        epoch = self.run(self.store.claim(head.scope if head else OURS, uid, "r", 1_000))
        if head is None or head.state in (TaskState.COMPLETED, TaskState.FAILED):
            assert epoch is None
        else:
            head = self.model.heads[uid] = copy(head)
            head.epoch += 1
            head.version += 1
            assert epoch == head.epoch

    @rule(ago=st.integers(0, 30))
    def sweep(self, ago: int) -> None:
        before = self.clock.at - ago
        gone = {
            uid
            for uid, head in self.model.heads.items()
            if head.state in (TaskState.COMPLETED, TaskState.FAILED) and head.status_at < before
        }
        assert set(self.run(self.store.sweep(terminal_before=before))) == gone
        for uid in gone:
            del self.model.heads[uid], self.model.logs[uid]
            self.model.snapshots.pop(uid, None)
        self.model.keys = {key: uid for key, uid in self.model.keys.items() if uid not in gone}

    @rule()
    def reopen(self) -> None:
        if self.durable:
            self.run(self.store.close())
            self.store = self.make()
            self.run(self.store.open())

    @rule(uid=tasks, after=st.integers(-1, 100), limit=st.integers(1, 80))
    def read_on(self, uid: str, after: int, limit: int) -> None:
        head = self.model.heads.get(uid)
        log = self.model.logs.get(uid, [])
        entries = self.run(self.store.since(head.scope if head else OURS, uid, after, limit))
        after = max(0, after)
        assert len(entries) <= limit and bool(entries) == (len(log) > after)
        assert [(entry.seq, entry.fact) for entry in entries] == [
            (after + 1 + n, fact) for n, fact in enumerate(log[after : after + len(entries)])
        ]

    @invariant()
    def heads_logs_and_keys_agree(self) -> None:
        for uid, head in self.model.heads.items():
            loaded = self.run(self.store.load(head.scope, uid))
            assert loaded is not None and loaded.head == head
            assert self.run(self.store.find(head.scope, head.id)) == head
            assert loaded.snapshot == self.model.snapshots.get(uid)
            rest = self.model.logs[uid][head.checkpoint_seq :]
            assert [entry.fact for entry in loaded.entries] == rest
            assert [entry.seq for entry in loaded.entries] == list(range(head.checkpoint_seq + 1, head.seq + 1))
        for (scope, key), uid in self.model.keys.items():
            record = self.run(self.store.key(scope, key))
            assert record is not None and record.uid == uid

    @invariant()
    def lists_and_totals_agree(self) -> None:
        for query in (Query(), Query(context_id="c"), Query(state=TaskState.WORKING), Query(state=TaskState.COMPLETED)):
            heads = [
                head
                for head in self.model.heads.values()
                if head.scope == OURS
                and query.context_id in ("", head.context_id)
                and query.state in (None, head.state)
            ]
            heads.sort(key=lambda head: (head.status_at, head.uid), reverse=True)
            page = self.run(self.store.list(OURS, query))
            assert [item.head for item in page.items] == heads
            assert (page.total, page.more) == (len(heads), False)

    @invariant()
    def tallies_agree(self) -> None:
        heads = self.model.heads.values()
        has = self.run(self.store.tally(OURS.owner))
        assert has.tasks == sum(not head.terminal for head in heads)
        finished = sum(head.size for head in heads if head.terminal)
        assert finished <= has.bytes <= sum(head.size for head in heads)

    @invariant()
    def what_is_due_and_claimable_agrees(self) -> None:
        due = {
            head.uid
            for head in self.model.heads.values()
            if not head.terminal and any(0 < at <= self.clock.at for at in (head.cancel_by, head.expires_at))
        }
        assert {head.uid for head in self.run(self.store.due(100))} == due


class MemoryMachine(StoreMachine):
    durable = False

    def make(self) -> Store:
        return MemoryStore(clock=self.clock)


class SqliteMachine(StoreMachine):
    def make(self) -> Store:
        return SqliteStore(self.folder / "log.db", clock=self.clock)


class ColdSqliteMachine(StoreMachine):
    def make(self) -> Store:
        return SqliteStore(self.folder / "log.db", clock=self.clock, recent_tasks=1, recent_bytes=0)


BOUNDS = settings(
    max_examples=25, stateful_step_count=30, deadline=None, suppress_health_check=[HealthCheck.too_slow], database=None
)


@pytest.mark.proves("D-5-2")
def test_memory_does_what_the_model_does() -> None:
    run_state_machine_as_test(MemoryMachine, settings=BOUNDS)


@pytest.mark.proves("D-5-2")
def test_sqlite_does_what_the_model_does() -> None:
    run_state_machine_as_test(SqliteMachine, settings=BOUNDS)


def test_sqlite_without_anything_in_memory_does_what_the_model_does() -> None:
    run_state_machine_as_test(ColdSqliteMachine, settings=BOUNDS)
