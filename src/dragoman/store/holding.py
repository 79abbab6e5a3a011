"""Hooks and their deliveries in memory: the half of `MemoryStore` that is about webhooks."""

from bisect import bisect_left, insort
from collections.abc import Collection, Sequence
from itertools import count

from msgspec import Struct
from msgspec.structs import replace

from dragoman.core import outbox
from dragoman.core.addresses import lane
from dragoman.core.notices import Notice
from dragoman.core.outbox import Line
from dragoman.model.facts import AnyFact
from dragoman.model.tasks import Head, Scope
from dragoman.ports import Delivery, Hook, Outcome
from dragoman.store.lanes import First, Lanes, Taken
from dragoman.store.names import Names


class _Letter(Struct):
    """What a delivery is beside its place in the line."""

    seq: int
    fact: AnyFact
    at: int
    error: str = ""
    body: bytes = b""
    media_type: str = ""


class _Kept(Struct):
    n: int
    hook: Hook
    lane: str
    task_id: str
    context_id: str
    line: Line
    letters: dict[str, _Letter]


class Holding:
    """Everything happens at once here; whoever calls has decided that it may."""

    def __init__(self, interval: int) -> None:
        self._interval = interval
        self._numbers = count(1)
        self._names = Names()
        self._hooks: dict[int, _Kept] = {}
        self._of: dict[str, dict[str, _Kept]] = {}  # by task and id
        self._with: dict[str, _Kept] = {}  # by delivery
        self._by_lane: dict[str, list[First]] = {}
        self.lanes = Lanes(lambda lane, most: self._by_lane.get(lane, [])[:most])

    # --- hooks

    def keep(self, head: Head, hook: Hook, now: int, end: AnyFact | None = None) -> Hook:
        """Keep or replace. `end` is how the task ended, if it did."""
        if not hook.at:
            hook = replace(hook, at=now)
        of = self._of.setdefault(head.uid, {})
        kept = of.get(hook.config.id)
        if kept is None:
            n = next(self._numbers)
            kept = _Kept(n, hook, lane(hook.config.url), head.id, head.context_id, Line(), {})
            of[hook.config.id] = self._hooks[n] = kept
        else:
            self._leave(kept)
            kept.hook, kept.lane, kept.line = hook, lane(hook.config.url), outbox.afresh(kept.line, now)
            self._enter(kept)
            for letter in kept.letters.values():
                letter.body, letter.media_type = b"", ""
        if end is not None:
            id = self._name(kept, head.seq, now)
            line = outbox.ended(kept.line, head.seq, id, now)
            if line is not kept.line:
                self._add(kept, id, head.seq, end, now)
                self._put(kept, line)
        return hook

    def hook(self, scope: Scope, uid: str, id: str) -> Hook | None:
        kept = self._of.get(uid, {}).get(id)
        return kept.hook if kept is not None and kept.hook.scope == scope else None

    def hooks(self, scope: Scope, uid: str) -> Sequence[Hook]:
        some = self._of.get(uid, {}) if uid else self._hooks
        return [kept.hook for kept in some.values() if kept.hook.scope == scope]

    def count(self, owner: str) -> int:
        return sum(kept.hook.scope.owner == owner for kept in self._hooks.values())

    def drop(self, scope: Scope, uid: str, id: str) -> bool:
        if self.hook(scope, uid, id) is None:
            return False
        self._drop(self._of[uid].pop(id))
        if not self._of[uid]:
            del self._of[uid]
        return True

    def forget(self, uid: str) -> None:
        """The task is gone."""
        for kept in self._of.pop(uid, {}).values():
            self._drop(kept)

    def _drop(self, kept: _Kept) -> None:
        self._leave(kept)
        for id in kept.letters:
            del self._with[id]
        del self._hooks[kept.n]

    # --- news

    def tell(self, uid: str, notices: Sequence[Notice], now: int) -> None:
        for kept in self._of.get(uid, {}).values():
            line, under_way = kept.line, self._under_way(kept)
            for notice in notices:
                id = self._name(kept, notice.seq, now)
                line = outbox.told(line, notice, id, now, self._interval, under_way)
                self._add(kept, id, notice.seq, notice.fact, now)
            self._put(kept, line)

    def hooked(self, uid: str) -> bool:
        return uid in self._of

    def waits(self, uid: str) -> bool:
        """Whether anybody is still to hear of this task."""
        return any(kept.line.waiting for kept in self._of.get(uid, {}).values())

    def due(self, now: int, limit: int, busy: Collection[str], share: int) -> Sequence[Delivery]:
        found: list[Delivery] = []
        for n, where in self.lanes.take(now, limit, busy, share):
            kept = self._hooks[n]
            first = kept.line.waiting[0]
            self.lanes.send(first.id, Taken(n, where, first.calm))
            found.append(self._delivery(kept, first.id))
        return found

    def put_back(self, ids: Sequence[str]) -> None:
        for n in self.lanes.release(ids):
            if kept := self._hooks.get(n):
                self._queue(kept)

    def record(self, outcomes: Sequence[Outcome], now: int) -> None:
        for outcome in outcomes:
            taken = self.lanes.under_way.get(outcome.id)
            self.lanes.release([outcome.id])
            kept = self._hooks.get(taken.hook) if taken else self._with.get(outcome.id)
            if kept is not None:
                self._tried(kept, outcome, taken, now)
                self._queue(kept)

    def _tried(self, kept: _Kept, outcome: Outcome, taken: Taken | None, now: int) -> None:
        was = kept.line.find(outcome.id)
        calm = taken.calm if taken else was is not None and was.calm
        if was is not None and not outcome.delivered:
            letter = kept.letters[was.id]
            letter.error = outcome.error
            if outcome.body:
                letter.body, letter.media_type = outcome.body, outcome.media_type
        self._put(kept, outbox.tried(kept.line, outcome, calm, now, self._interval))

    def resend(self, id: str, now: int) -> bool:
        kept = self._with.get(id)
        line = outbox.resent(kept.line, id, now) if kept else None
        if kept is None or line is None:
            return False
        self._put(kept, line)
        return True

    def dead(self, limit: int, before: str) -> Sequence[Delivery]:
        ids = [slip.id for kept in self._hooks.values() for slip in kept.line.dead if not before or slip.id < before]
        return [self._delivery(self._with[id], id) for id in sorted(ids, reverse=True)[:limit]]

    def delivery(self, id: str) -> Delivery | None:
        kept = self._with.get(id)
        return self._delivery(kept, id) if kept else None

    def _delivery(self, kept: _Kept, id: str) -> Delivery:
        letter, line = kept.letters[id], kept.line
        place = next(each for each in (*line.waiting, *line.dead) if each.id == id)
        return Delivery(
            id=id,
            hook=kept.hook,
            task_id=kept.task_id,
            context_id=kept.context_id,
            seq=letter.seq,
            fact=letter.fact,
            due=place.due,
            attempts=place.attempts,
            body=letter.body,
            media_type=letter.media_type,
            error=letter.error,
            dead=place in line.dead,
            at=letter.at,
        )

    # --- the books

    def _name(self, kept: _Kept, seq: int, now: int) -> str:
        return self._names.name(now, kept.n, seq)

    def _under_way(self, kept: _Kept) -> str:
        return next((each.id for each in kept.line.waiting if each.id in self.lanes.under_way), "")

    def _add(self, kept: _Kept, id: str, seq: int, fact: AnyFact, now: int) -> None:
        kept.letters[id] = _Letter(seq, fact, now)
        self._with[id] = kept

    def _put(self, kept: _Kept, line: Line) -> None:
        """The line as it is now. What neither waits nor is dead is forgotten."""
        if line.due != kept.line.due:
            self._leave(kept)
            kept.line = line
            self._enter(kept)
        kept.line = line
        stay = {each.id for each in (*line.waiting, *line.dead)}
        for id in [id for id in kept.letters if id not in stay]:
            del kept.letters[id], self._with[id]

    def _enter(self, kept: _Kept) -> None:
        if kept.line.due:
            insort(self._by_lane.setdefault(kept.lane, []), First(kept.line.due, kept.n))
            self._queue(kept)

    def _leave(self, kept: _Kept) -> None:
        if kept.line.due:
            places = self._by_lane[kept.lane]
            del places[bisect_left(places, First(kept.line.due, kept.n))]
            if not places:
                del self._by_lane[kept.lane]

    def _queue(self, kept: _Kept) -> None:
        if kept.line.due:
            self.lanes.queue(kept.lane, kept.line.due)
