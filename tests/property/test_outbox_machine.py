"""A machine that keeps hooks, makes news and attempts, fails and forgets, beside a model that looks at everything.

What becomes of a line is `core.outbox`'s to say, which has its own tests; here it is whether the stores keep lines as
it says, find what is due among them, and tell the right fact, whatever else happens in the same moment.
"""

import asyncio
import itertools
import shutil
import tempfile
from collections.abc import Awaitable, Coroutine
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test
from msgspec.structs import replace

from dragoman.core import outbox
from dragoman.core.addresses import lane
from dragoman.core.notices import notices
from dragoman.core.outbox import Line
from dragoman.model.errors import Conflict
from dragoman.model.facts import AnyFact
from dragoman.ports import Delivery, Hook, HookedStore, Outcome
from dragoman.store.memory import MemoryStore
from dragoman.store.sqlite import SqliteStore
from tests.conformance.store.adapters import HeldClock
from tests.conformance.store.logs import OURS, asked, chunk, created, hook, new, output, said, settled, started

T = TypeVar("T")
Key = tuple[str, str]

PAUSE = 1_500
NOBODY = ("", "")
UIDS = st.sampled_from(["u", "v"])
IDS = st.sampled_from(["a", "b"])
HOSTS = st.sampled_from(["one.example", "two.example"])
KINDS = st.sampled_from(["said", "asked", "settled", "chunk"])
STEPS = st.one_of(
    st.tuples(st.just("tell"), UIDS, KINDS),
    st.tuples(st.just("tell"), UIDS, KINDS),
    st.tuples(st.just("keep"), UIDS, IDS, HOSTS),
    st.tuples(st.just("drop"), UIDS, IDS),
    st.tuples(st.just("renew"), UIDS, IDS, HOSTS),
    st.tuples(st.just("record"), st.sampled_from(["made", "failed", "died"]), st.integers(0, 3)),
    st.tuples(st.just("resend"), st.integers(0, 3)),
)


class Sent(NamedTuple):
    """A delivery under way: whose, which slip of the model, whether calm."""

    key: Key
    slip: str
    calm: bool


class OutboxMachine(RuleBasedStateMachine):
    durable = True

    def make(self) -> HookedStore:
        raise NotImplementedError

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.folder = Path(tempfile.mkdtemp())
        self.clock = HeldClock()
        self.names = map(str, itertools.count())
        self.logs: dict[str, list[AnyFact]] = {}
        self.over: set[str] = set()
        self.hooks: dict[Key, Hook] = {}
        self.lines: dict[Key, Line] = {}
        self.sent: dict[str, Sent] = {}  # by the store's id
        self.real: dict[str, str] = {}  # the store's id by the model's, of all that was ever answered
        self.errors: dict[str, str] = {}  # by the model's id
        self.store = self.make()
        self.run(self.store.open())

    def run(self, doing: Coroutine[Any, Any, T]) -> T:
        return self.loop.run_until_complete(doing)

    def teardown(self) -> None:
        self.run(self.store.close())
        self.loop.run_until_complete(self.loop.shutdown_default_executor())
        self.loop.close()
        shutil.rmtree(self.folder)

    # --- the model

    def tell(self, uid: str, first: int, facts: list[AnyFact]) -> None:
        self.logs[uid] += facts
        for key, line in self.lines.items():
            if key[0] == uid:
                busy = next((sent.slip for sent in self.sent.values() if sent.key == key), "")
                for notice in notices(first, facts):
                    line = outbox.told(line, notice, next(self.names), self.clock.at, PAUSE, busy)
                self.lines[key] = line

    def kept(self, uid: str, id: str, hook: Hook) -> None:
        key = (uid, id)
        if key in self.hooks:
            line = outbox.afresh(self.lines[key], self.clock.at)
        else:
            line = Line()
        if uid in self.over:
            line = outbox.ended(line, len(self.logs[uid]), next(self.names), self.clock.at)
        self.hooks[key], self.lines[key] = replace(hook, at=self.clock.at), line

    # --- what happens, several at once

    @rule(uid=UIDS, ids=st.lists(IDS, unique=True), host=HOSTS)
    def begin(self, uid: str, ids: list[str], host: str) -> None:
        if uid in self.logs:
            return
        self.logs[uid] = []
        hooks = tuple(hook(uid, id, host) for id in ids)
        for each in hooks:
            self.kept(uid, each.config.id, each)
        facts: list[AnyFact] = [created(), started()]
        self.tell(uid, 1, facts)

        async def append() -> None:
            await self.store.append(new(uid, *facts, hooks=hooks))

        self.run(append())

    @rule(steps=st.lists(STEPS, min_size=2, max_size=8))
    def at_once(self, steps: list[tuple[Any, ...]]) -> None:
        async def together() -> None:
            doing: list[tuple[Awaitable[Any], Any]] = []
            recorded: set[str] = set()
            for word, *rest in steps:
                doing += getattr(self, f"_{word}")(*rest, **({"recorded": recorded} if word == "record" else {}))
            answers = await asyncio.gather(*(each for each, _ in doing), return_exceptions=True)
            for answer, (_, expected) in zip(answers, doing, strict=True):
                if isinstance(expected, type):
                    assert isinstance(answer, expected), (answer, expected)
                elif expected is not None:
                    assert answer == expected

        self.run(together())

    def _tell(self, uid: str, kind: str) -> list[tuple[Awaitable[Any], Any]]:
        makes: dict[str, AnyFact] = {"said": said(), "asked": asked(), "settled": settled(), "chunk": chunk()}
        fact = makes[kind]
        if kind in ("said", "chunk"):  # tell them apart
            fact = replace(fact, at=len(self.logs.get(uid, ())))
        if uid not in self.logs or uid in self.over:
            return [(self.store.append(output(uid, fact)), Conflict)]
        if kind == "settled":
            self.over.add(uid)
        self.tell(uid, len(self.logs[uid]) + 1, [fact])
        return [(self.store.append(output(uid, fact)), None)]

    def _keep(self, uid: str, id: str, host: str) -> list[tuple[Awaitable[Any], Any]]:
        wanted = hook(uid, id, host)
        if uid not in self.logs:
            return [(self.store.keep_hook(wanted), Conflict)]
        self.kept(uid, id, wanted)
        return [(self.store.keep_hook(wanted), self.hooks[uid, id])]

    def _drop(self, uid: str, id: str) -> list[tuple[Awaitable[Any], Any]]:
        there = self.hooks.pop((uid, id), None) is not None
        self.lines.pop((uid, id), None)
        # What is being sent to it is nobody's now: who is kept under that id next is somebody else.
        self.sent = {
            each: sent._replace(key=NOBODY) if sent.key == (uid, id) else sent for each, sent in self.sent.items()
        }
        return [(self.store.drop_hook(OURS, uid, id), there)]

    def _renew(self, uid: str, id: str, host: str) -> list[tuple[Awaitable[Any], Any]]:
        return self._drop(uid, id) + self._keep(uid, id, host)

    def _record(self, how: str, nth: int, recorded: set[str]) -> list[tuple[Awaitable[Any], Any]]:
        known = [id for id in self.sent if id not in recorded]
        if nth >= len(known):
            return []
        id = known[nth]
        recorded.add(id)
        sent = self.sent.pop(id)
        outcome = Outcome(
            id=id,
            delivered=how == "made",
            dead=how == "died",
            due=self.clock.at + 3_000,
            error="" if how == "made" else how,
        )
        line = self.lines.get(sent.key)
        if line is not None:
            self.errors[sent.slip] = how
            mine = replace(outcome, id=sent.slip)
            self.lines[sent.key] = outbox.tried(line, mine, sent.calm, self.clock.at, PAUSE)
        return [(self.store.record([outcome]), None)]

    def _resend(self, nth: int) -> list[tuple[Awaitable[Any], Any]]:
        dead = [(key, slip) for key, line in self.lines.items() for slip in line.dead]
        if nth >= len(dead):
            return [(self.store.resend("nothing"), False)]
        key, slip = dead[nth]
        line = outbox.resent(self.lines[key], slip.id, self.clock.at)
        assert line is not None
        self.lines[key] = line
        return [(self.store.resend(self.real[slip.id]), True)]

    # --- deliveries

    def free(self, busy: str = "") -> list[Key]:
        taken = {sent.key for sent in self.sent.values()}
        return [
            key
            for key, line in self.lines.items()
            if line.due and key not in taken and lane(self.hooks[key].config.url) != busy
        ]

    @rule(limit=st.integers(1, 4), share=st.integers(1, 3), busy=st.sampled_from(["", "https://one.example"]))
    def take(self, limit: int, share: int, busy: str) -> None:
        found = self.run(self.store.due_deliveries(limit, busy=[busy] if busy else (), share=share))
        due = [key for key in self.free(busy) if self.lines[key].due <= self.clock.at]
        lanes: dict[str, int] = {}
        for key in due:
            where = lane(self.hooks[key].config.url)
            lanes[where] = lanes.get(where, 0) + 1
        assert len(found) == min(limit, sum(min(share, waiting) for waiting in lanes.values()))
        for each in found:
            key = (each.hook.uid, each.hook.config.id)
            assert key in due
            first = self.lines[key].waiting[0]
            self.compare(each, key, first)
            self.sent[each.id] = Sent(key, first.id, first.calm)
            self.real[first.id] = each.id
            due.remove(key)

    def compare(self, delivery: Delivery, key: Key, slip: outbox.Slip, dead: bool = False) -> None:
        assert delivery.hook == self.hooks[key]
        assert (delivery.seq, delivery.attempts, delivery.dead) == (slip.seq, slip.attempts, dead)
        assert delivery.fact == self.logs[key[0]][slip.seq - 1]
        assert delivery.error == self.errors.get(slip.id, "")
        assert self.real.get(slip.id, delivery.id) == delivery.id, "the same id over retries and resends"
        if not dead:
            assert delivery.due == slip.due

    @rule(some=st.sets(st.integers(0, 3)))
    def put_back(self, some: set[int]) -> None:
        ids = [id for nth, id in enumerate(self.sent) if nth in some]
        for id in ids:
            del self.sent[id]

        async def back() -> None:
            self.store.put_back([*ids, "nothing"])

        self.run(back())

    @rule(ms=st.sampled_from([1, 500, 1_500, 3_000]))
    def later(self, ms: int) -> None:
        self.clock.at += ms

    @rule()
    def reopen(self) -> None:
        if self.durable:
            self.run(self.store.close())
            self.store = self.make()
            self.run(self.store.open())
            self.sent.clear()

    # --- what must hold

    @invariant()
    def hooks_agree(self) -> None:
        assert sorted(self.run(self.store.hooks(OURS)), key=_key) == sorted(self.hooks.values(), key=_key)

    @invariant()
    def the_next_time_agrees(self) -> None:
        for busy in ("", "https://two.example"):
            times = [self.lines[key].due for key in self.free(busy)]
            found = self.run(self.store.next_delivery_at(busy=[busy] if busy else ()))
            if not times or min(times) > self.clock.at:
                assert found == min(times, default=0)
            else:
                assert 0 < found <= self.clock.at

    @invariant()
    def the_dead_agree(self) -> None:
        dead = {self.real[slip.id]: (key, slip) for key, line in self.lines.items() for slip in line.dead}
        found = self.run(self.store.dead_deliveries(1_000))
        assert [each.id for each in found] == sorted(dead, reverse=True)
        for each in found:
            self.compare(each, *dead[each.id], dead=True)

    @invariant()
    def what_was_answered_can_be_looked_up(self) -> None:
        waiting = {slip.id for line in self.lines.values() for slip in (*line.waiting, *line.dead)}
        for slip, id in self.real.items():
            assert (self.run(self.store.delivery(id)) is not None) == (slip in waiting)


def _key(hook: Hook) -> Key:
    return hook.uid, hook.config.id


class OverMemory(OutboxMachine):
    durable = False

    def make(self) -> HookedStore:
        return MemoryStore(clock=self.clock, calm_interval=PAUSE)


class OverSqlite(OutboxMachine):
    def make(self) -> HookedStore:
        return SqliteStore(self.folder / "log.db", clock=self.clock, calm_interval=PAUSE)


class OverColdSqlite(OutboxMachine):
    def make(self) -> HookedStore:
        return SqliteStore(
            self.folder / "log.db", clock=self.clock, calm_interval=PAUSE, recent_tasks=1, recent_bytes=0
        )


BOUNDS = settings(
    max_examples=30, stateful_step_count=40, deadline=None, suppress_health_check=[HealthCheck.too_slow], database=None
)


def test_memory_keeps_lines_as_the_rules_say() -> None:
    run_state_machine_as_test(OverMemory, settings=BOUNDS)


def test_sqlite_keeps_lines_as_the_rules_say() -> None:
    run_state_machine_as_test(OverSqlite, settings=BOUNDS)


def test_sqlite_without_anything_in_memory_keeps_lines_as_the_rules_say() -> None:
    run_state_machine_as_test(OverColdSqlite, settings=BOUNDS)
