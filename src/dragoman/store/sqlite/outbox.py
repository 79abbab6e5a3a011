"""Decides what one transaction writes about webhooks: hooks kept and dropped, news put in line, attempts recorded.

A part of a `Group`, made when the group first meets a hook. Like it, it asks for what is committed and answers with
statements: the difference between the lines as they are in the file and as this group leaves them.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from dragoman.core import outbox
from dragoman.core.addresses import lane
from dragoman.core.notices import Notice
from dragoman.core.outbox import Line
from dragoman.model.tasks import Scope
from dragoman.ports import Hook, Outcome
from dragoman.store.lanes import Taken
from dragoman.store.names import Names
from dragoman.store.sqlite import hooks
from dragoman.store.sqlite.hooks import Standing
from dragoman.store.sqlite.reading import encode
from dragoman.store.sqlite.recent import Committed

Row = tuple[Any, ...]


class KeepHook(Struct, frozen=True):
    hook: Hook


class DropHook(Struct, frozen=True):
    scope: Scope
    uid: str
    id: str


class Record(Struct, frozen=True):
    """How attempts ended; `taken` are those of them that are under way."""

    outcomes: Sequence[Outcome]
    taken: Mapping[str, Taken]


class Resend(Struct, frozen=True):
    id: str


class Numbers:
    """Where hooks and deliveries get theirs. What a group that failed has used is not used again."""

    def __init__(self, last_hook: int) -> None:
        self.hook = last_hook
        self.names = Names()


class Outbox:
    def __init__(self, committed: Committed, numbers: Numbers, interval: int, now: int) -> None:
        self._committed = committed
        self._numbers = numbers
        self._interval = interval
        self._now = now
        self._standings: dict[int, Standing] = {}
        self._of: dict[int, dict[str, Standing]] = {}  # by task and id: of tasks that were opened
        self._put: dict[int, tuple[Hook, bytearray]] = {}
        self._replaced: list[int] = []
        self._moved: set[int] = set()
        self._dropped: set[int] = set()
        self._errors: dict[str, str] = {}
        self._bodies: dict[str, tuple[str, bytes]] = {}
        self.recorded: set[str] = set()

    # --- hooks

    def open(self, task: int, new: bool = False) -> None:
        """Look up a task's hooks. To be called before anything about the task is decided: reading may fail."""
        if task not in self._of:
            found = [] if new else self._committed.look(lambda connection: hooks.lines_of_task(connection, task))
            self._of[task] = {each.id: self._standings.setdefault(each.n, each) for each in found}

    def hooked(self, task: int) -> bool:
        return bool(self._of[task])

    def keep(self, task: int, hook: Hook, body: bytearray) -> None:
        """Keep or replace a hook of an opened task. `body` is the hook, encoded."""
        of = self._of[task]
        standing = of.get(hook.config.id)
        if standing is None:
            self._numbers.hook += 1
            standing = Standing(self._numbers.hook, task, hook.config.id, "", Line(), None)
            of[hook.config.id] = self._standings[standing.n] = standing
        else:
            standing.line = outbox.afresh(standing.line, self._now)
            self._replaced.append(standing.n)
        standing.lane = lane(hook.config.url)
        self._put[standing.n] = (hook, body)
        self._moved.add(standing.n)

    def end(self, task: int, id: str, seq: int) -> None:
        """That hook was kept after its task's end, which is the fact of that number."""
        standing = self._of[task][id]
        standing.line = outbox.ended(standing.line, seq, self._name(standing, seq), self._now)

    def drop(self, task: int, id: str) -> bool:
        standing = self._of[task].pop(id, None)
        if standing is None:
            return False
        del self._standings[standing.n]
        self._put.pop(standing.n, None)
        self._dropped.add(standing.n)
        return True

    # --- news

    def tell(self, task: int, notices: Sequence[Notice], under_way: Mapping[str, Taken]) -> None:
        for standing in self._of[task].values():
            line = standing.line
            ids = (each.id for each in line.waiting)
            sent = next((id for id in ids if id in under_way and id not in self.recorded), "")
            for notice in notices:
                line = outbox.told(line, notice, self._name(standing, notice.seq), self._now, self._interval, sent)
            standing.line = line
            self._moved.add(standing.n)

    def record(self, wish: Record) -> None:
        self._look(taken.hook for taken in wish.taken.values())
        for outcome in wish.outcomes:
            taken = wish.taken.get(outcome.id)
            standing = self._standings.get(taken.hook) if taken else self._whose(outcome.id)
            if standing is not None:
                self._tried(standing, outcome, taken)
        self.recorded.update(outcome.id for outcome in wish.outcomes)

    def _tried(self, standing: Standing, outcome: Outcome, taken: Taken | None) -> None:
        self._moved.add(standing.n)
        was = standing.line.find(outcome.id)
        calm = taken.calm if taken else was is not None and was.calm
        standing.line = outbox.tried(standing.line, outcome, calm, self._now, self._interval)
        if was is not None and not outcome.delivered:
            self._errors[was.id] = outcome.error
            if outcome.body:
                self._bodies[was.id] = (outcome.media_type, outcome.body)

    def resend(self, id: str) -> bool:
        standing = self._whose(id)
        line = outbox.resent(standing.line, id, self._now) if standing else None
        if standing is None or line is None:
            return False
        standing.line = line
        self._moved.add(standing.n)
        return True

    def _whose(self, id: str) -> Standing | None:
        hook = self._committed.look(lambda connection: hooks.hook_of(connection, id))
        if hook is None:
            return None
        self._look([hook])
        return self._standings.get(hook)

    def _look(self, numbers: Iterable[int]) -> None:
        missing = set(numbers) - self._standings.keys() - self._dropped
        if missing:
            for each in self._committed.look(lambda connection: hooks.lines_of_hooks(connection, missing)):
                self._standings[each.n] = each

    def _name(self, standing: Standing, seq: int) -> str:
        return self._numbers.names.name(self._now, standing.n, seq)

    # --- the transaction

    def waiting(self) -> Iterator[tuple[str, int]]:
        """Lane and time of each hook whose line moved here and is not empty."""
        for standing in self._standings.values():
            if standing.line.due and standing.n in self._moved:
                yield standing.lane, standing.line.due

    def rows(self) -> dict[str, list[Row]]:
        """The rows of each statement, in the order in which they are to be written."""
        put: list[Row] = []
        moved: list[Row] = []
        gone: list[str] = []
        added: list[Row] = []
        placed: list[Row] = []
        for standing in self._standings.values():
            line, before = standing.line, standing.before or Line()
            if kept := self._put.get(standing.n):
                put.append(_row(standing, *kept))
            elif (line.due, line.calm_at) != (before.due, before.calm_at):
                moved.append((standing.n, line.due, line.calm_at))
            old, new = _rows(before), _rows(line)
            gone += old.keys() - new.keys()
            for id, row in new.items():
                if id not in old:
                    added.append((id, standing.n, self._now, *row))
                elif old[id] != row:
                    _, due, _, attempts, dead = row
                    placed.append((id, due, attempts, dead))
        return {
            "drop_deliveries_of": _these(self._dropped),
            "drop_hooks": _these(self._dropped),
            "forget_bodies": _these(self._replaced),
            "drop_deliveries": _these(gone),
            "put_hooks": put,
            "move_hooks": moved,
            "add_deliveries": added,
            "move_deliveries": placed,
            "note_errors": list(self._errors.items()),
            "keep_bodies": [(id, *kept) for id, kept in self._bodies.items()],
        }


def _these(some: Collection[int] | Collection[str]) -> list[Row]:
    """One row for a statement that takes any number."""
    return [(encode(list(some)).decode(),)] if some else []


def _row(standing: Standing, hook: Hook, body: bytearray) -> Row:
    line = standing.line
    return (standing.n, standing.task, *hook.scope, standing.id, standing.lane, line.due, line.calm_at, body)


def _rows(line: Line) -> dict[str, Row]:
    """Number, time, kind, attempts and death of each delivery, by its id."""
    found: dict[str, Row] = {}
    for dead, slips in enumerate((line.waiting, line.dead)):
        for each in slips:
            found[each.id] = (each.seq, each.due, int(each.calm), each.attempts, dead)
    return found
