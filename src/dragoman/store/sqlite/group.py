"""Decides what one transaction writes. No I/O: it asks for heads and answers with statements.

Guards are checked here, in the order of arrival, against heads that already include what this group decided before; so
one refused append never touches the others, and the transaction itself needs no savepoint.
"""

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from itertools import chain
from typing import Any, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from dragoman.core.heads import admits, advance, born
from dragoman.core.notices import Notice, notices
from dragoman.model.errors import Conflict, DragomanError, KeyTaken, StoreError
from dragoman.model.facts import AnyFact
from dragoman.model.tasks import Head, Scope
from dragoman.ports import BOUNDLESS, Append, Appended, Checkpoint, Hook, KeyRecord, New, Turn
from dragoman.store.keys import written
from dragoman.store.lanes import Taken
from dragoman.store.leases import claimed, deadline, unattended
from dragoman.store.sqlite.outbox import DropHook, KeepHook, Numbers, Outbox, Record, Resend
from dragoman.store.sqlite.reading import STATES, Known, blob
from dragoman.store.sqlite.recent import Committed
from dragoman.store.sqlite.statements import SQL, fitting, rows
from dragoman.store.tallies import admit

# A row of facts is read and decoded whole, so its size bounds what a reader takes more than it asked for. No row
# reaches over a multiple of ROW_FACTS: the stretches in which logs are read begin and end with rows.
ROW_FACTS = 64
ROW_BYTES = 65_536

Row = tuple[Any, ...]
Counts = dict[tuple[Scope, str], list[int]]


class Claim(Struct, frozen=True):
    """Take the task for a new epoch, if it is still not finished."""

    scope: Scope
    uid: str


class Keep(Struct, frozen=True):
    """Remember a direct reply under its key."""

    scope: Scope
    record: KeyRecord


Wish = Append | Checkpoint | Claim | Keep | KeepHook | DropHook | Record | Resend


class Waiting(NamedTuple):
    """Something to be written, and who hears what became of it."""

    wish: Wish
    told: Callable[[Any], None]


class Webhooks(NamedTuple):
    """What deciding about hooks needs: numbers, which deliveries are under way, and how far apart calm news lie."""

    numbers: Numbers
    under_way: Mapping[str, Taken]
    interval: int


class Group:
    """One transaction in the making. `careful` looks before it leaps where otherwise a unique index would object.

    `vital` ones may use the room that a full store keeps for them: they end tasks, or make room themselves.
    """

    def __init__(self, committed: Committed, webhooks: Webhooks, next_n: int, now: int, careful: bool = False) -> None:
        self.waiting: list[Waiting] = []
        self.answers: list[tuple[Callable[[Any], None], Any]] = []
        self.extensions: list[tuple[str, Sequence[AnyFact]]] = []
        self.heads: dict[str, Known] = {}
        self.size = 0
        self.next_n = next_n
        self.vital = False
        self.outbox: Outbox | None = None
        self.counts: Counts = {}
        self._has: dict[str, list[int]] = {}  # what owners have, with what this group gives them
        self._committed = committed
        self._webhooks = webhooks
        self._now = now
        self._careful = careful
        self._before: dict[str, Known | None] = {}
        self._facts: list[Row] = []
        self._keys: list[Row] = []
        self._folds: list[tuple[str, Sequence[Any]]] = []

    def take(self, waiting: Waiting) -> None:
        """Decide one wish. What is refused is answered with the group, never before what it was refused for."""
        self.waiting.append(waiting)
        try:
            answer = self._decide(waiting.wish)
        except DragomanError as error:
            answer = error
        except Exception as error:
            # It concerns this caller only.
            answer = StoreError("This cannot be kept: it has no form in JSON")
            answer.__cause__ = error
        self.answers.append((waiting.told, answer))

    def _decide(self, wish: Wish) -> Any:
        if isinstance(wish, Append):
            return self._append(wish)
        if isinstance(wish, Checkpoint):
            return self._checkpoint(wish)
        if isinstance(wish, Claim):
            return self._claim(wish)
        if isinstance(wish, Keep):
            return self._keep(wish)
        if isinstance(wish, KeepHook):
            return self._keep_hook(wish.hook)
        if isinstance(wish, DropHook):
            return self._drop_hook(wish)
        return self._deliver(wish)

    # --- wishes ---

    def _append(self, wish: Append) -> Appended:
        guard = wish.guard
        facts, uid = wish.facts, wish.uid
        key = None if isinstance(guard, Turn) else guard.key
        if key and (record := self._committed.key(wish.scope, key.key)):
            raise KeyTaken(record)
        new = isinstance(guard, New)
        if new:
            task = self._begin(wish, guard)
        else:
            task = self._task(wish.scope, uid)
            if task is None:
                raise Conflict
            if not admits(task.head, guard, facts):
                raise Conflict(task.head)
        n, before = task.n, task.head
        if not isinstance(guard, Turn) and guard.most is not BOUNDLESS:
            self._afford(wish)
        head = advance(before, facts, wish.size)
        hooked = task.hooked or bool(wish.hooks)
        news = notices(before.seq + 1, facts) if hooked else ()
        hooks = self._prepared(n, wish) if news or wish.hooks else ()
        self._log(n, head, before.seq, facts)
        if key:
            self._use(wish.scope, written(key, uid, self._now))
        if new:
            self.next_n += 1
            self._before[uid] = None
        self.heads[uid] = Known(n, head, hooked, task.counted)
        if facts:
            self.extensions.append((uid, facts))
            self.vital = self.vital or head.terminal
        if news or hooks:
            self._tell(n, hooks, news)
        return Appended(head, before.seq + 1)

    def _begin(self, wish: Append, guard: New) -> Known:
        if (self._careful or guard.id != wish.uid) and (other := self._committed.named(wish.scope, guard.id)):
            raise Conflict(other.head)
        if wish.uid in self.heads:
            raise Conflict
        return Known(self.next_n, born(wish.uid, wish.scope, guard))

    def _checkpoint(self, wish: Checkpoint) -> None:
        task = self._task(wish.scope, wish.uid)
        if task is None or not task.head.checkpoint_seq < wish.seq <= task.head.seq:
            return
        folds = _folds(task.n, wish)
        head = copy(task.head)
        head.checkpoint_seq = wish.seq
        self.heads[wish.uid] = Known(task.n, head, task.hooked, task.counted)
        self._folds += folds

    def _claim(self, wish: Claim) -> int | None:
        task = self._task(wish.scope, wish.uid)
        if task is None or task.head.terminal:
            return None
        head = claimed(task.head)
        self.heads[wish.uid] = Known(task.n, head, task.hooked, task.counted)
        return head.epoch

    def _keep(self, wish: Keep) -> None:
        if record := self._committed.key(wish.scope, wish.record.key):
            raise KeyTaken(record)
        self._use(wish.scope, written(wish.record, "", self._now))

    # --- wishes about webhooks ---

    def _outbox(self) -> Outbox:
        if self.outbox is None:
            self.outbox = Outbox(self._committed, self._webhooks.numbers, self._webhooks.interval, self._now)
        return self.outbox

    def _prepared(self, n: int, wish: Append) -> list[tuple[Hook, bytearray]]:
        """What may fail about a task's hooks, before anything of the append is decided."""
        self._outbox().open(n, new=isinstance(wish.guard, New))
        return [self._encoded(hook) for hook in wish.hooks]

    def _encoded(self, hook: Hook) -> tuple[Hook, bytearray]:
        hook = hook if hook.at else replace(hook, at=self._now)
        return hook, blob(hook)

    def _tell(self, n: int, hooks: Sequence[tuple[Hook, bytearray]], news: Sequence[Notice]) -> None:
        outbox = self._outbox()
        for hook, body in hooks:
            outbox.keep(n, hook, body)
        if news:
            outbox.tell(n, news, self._webhooks.under_way)

    def _keep_hook(self, wish: Hook) -> Hook:
        task = self._task(wish.scope, wish.uid)
        if task is None:
            raise Conflict
        outbox = self._outbox()
        outbox.open(task.n)
        hook, body = self._encoded(wish)
        outbox.keep(task.n, hook, body)
        if task.head.terminal:
            outbox.end(task.n, hook.config.id, task.head.seq)
        self.heads[wish.uid] = Known(task.n, task.head, True, task.counted)
        return hook

    def _drop_hook(self, wish: DropHook) -> bool:
        task = self._task(wish.scope, wish.uid)
        if task is None:
            return False
        outbox = self._outbox()
        outbox.open(task.n)
        self.vital = True
        dropped = outbox.drop(task.n, wish.id)
        self.heads[wish.uid] = Known(task.n, task.head, outbox.hooked(task.n), task.counted)
        return dropped

    def _deliver(self, wish: Record | Resend) -> bool:
        if isinstance(wish, Resend):
            return self._outbox().resend(wish.id)
        self.vital = True
        self.size += sum(len(outcome.body) for outcome in wish.outcomes)
        self._outbox().record(wish)
        return True

    # --- parts ---

    def _task(self, scope: Scope, uid: str) -> Known | None:
        task = self.heads.get(uid)
        if task is None:
            task = self._committed.task(scope, uid)
            if task is not None:
                self._before[uid] = task
        return task if task is not None and task.head.scope == scope else None

    def _afford(self, wish: Append) -> None:
        """Raises OverBudget when the owner has too much, with what this group gives them already."""
        owner = wish.scope.owner
        has = self._has.get(owner)
        if has is None:
            has = self._has[owner] = self._committed.tally(owner).copy()
        admit(wish, *has)
        has[0] += isinstance(wish.guard, New)
        has[1] += wish.size

    def _use(self, scope: Scope, record: KeyRecord) -> None:
        self._keys.append((*scope, record.key, record.uid, record.at, blob(record)))

    def _log(self, n: int, head: Head, seq: int, facts: Sequence[AnyFact]) -> None:
        """Rows for these facts. Nothing is kept if one of them cannot be encoded."""
        for end, body in _bodies(seq, facts):
            self._facts.append((n, end, head.size, head.updated_at, body))
            self.size += len(body)

    # --- the transaction ---

    def statements(self) -> list[tuple[str, Sequence[Any]]]:
        """What is to be executed, in order, with its values."""
        tasks: list[Row] = []
        moves: list[Row] = []
        counts = self.counts
        for uid, task in self.heads.items():
            n, head, before = task.n, task.head, self._before[uid]
            state = STATES[head.state]
            if before is None:
                tasks.append(_row(n, head, state))
                _count(counts, (head.scope, state), 1, head.size)
            elif _moved(before.head, head):
                moves.append((n, state, head.status_at, int(unattended(head)), deadline(head), blob(head)))
                if before.head.state is not head.state:
                    _count(counts, (head.scope, state), 1, head.size)
                    _count(counts, (head.scope, STATES[before.head.state]), -1, -before.counted)
                elif head.size != before.counted:
                    _count(counts, (head.scope, state), 0, head.size - before.counted)
            else:
                continue
            task.counted = head.size
        statements: list[tuple[str, Sequence[Any]]] = []
        _spread(statements, "add_tasks", tasks)
        _spread(statements, "move_tasks", moves)
        _spread(statements, "add_facts", self._facts)
        moved = [(*scope, state, *by) for (scope, state), by in counts.items() if by[0] or by[1]]
        _spread(statements, "add_counts", moved)
        _spread(statements, "add_keys", self._keys)
        if self.outbox is not None:
            for name, some in self.outbox.rows().items():
                _spread(statements, name, some)
        return statements + self._folds

    def answer(self) -> None:
        """Tell everybody; after the commit."""
        for told, answer in self.answers:
            told(answer)

    def refuse(self, error: DragomanError) -> None:
        """The transaction did not happen, or nobody knows."""
        for told, answer in self.answers:
            told(answer if isinstance(answer, KeyTaken) else error)


def _count(counts: Counts, what: tuple[Scope, str], tasks: int, size: int) -> None:
    """Move a counter of the group: how many tasks of that state a scope has, and their bytes."""
    by = counts.get(what)
    if by is None:
        counts[what] = [tasks, size]
    else:
        by[0] += tasks
        by[1] += size


def _folds(n: int, checkpoint: Checkpoint) -> list[tuple[str, Sequence[Any]]]:
    statements: list[tuple[str, Sequence[Any]]] = []
    _spread(statements, "put_checkpoints", [(n, checkpoint.seq, blob(checkpoint.snapshot))])
    for segment in checkpoint.segments:
        artifact = segment.artifact.artifact_id
        if segment.replace:
            statements.append((SQL["drop_segments"], (n, artifact)))
        _spread(statements, "add_segments", [(n, artifact, blob(segment))])
    return statements


def _row(n: int, head: Head, state: str) -> Row:
    scope = head.scope
    return (
        *(n, head.uid, *scope, head.id, head.context_id, state),
        *(head.status_at, head.created_at, int(unattended(head)), deadline(head), blob(head)),
    )


def _moved(before: Head, after: Head) -> bool:
    """Whether more changed than what the facts' own rows say."""
    if after.version != before.version or after.status_at != before.status_at:
        return True
    probe = copy(after)
    probe.seq, probe.size, probe.updated_at = before.seq, before.size, before.updated_at
    return probe != before


def _bodies(seq: int, facts: Sequence[AnyFact]) -> list[tuple[int, bytearray]]:
    """The facts as JSON arrays of bounded size, each with the number of its last fact."""
    if seq % ROW_FACTS + len(facts) <= ROW_FACTS:
        return _halves(seq, facts) if facts else []
    bodies: list[tuple[int, bytearray]] = []
    start = 0
    while start < len(facts):
        stop = start + ROW_FACTS - (seq + start) % ROW_FACTS
        bodies += _halves(seq + start, facts[start:stop])
        start = stop
    return bodies


def _halves(seq: int, facts: Sequence[AnyFact]) -> list[tuple[int, bytearray]]:
    body = blob(facts)
    if len(body) <= ROW_BYTES or len(facts) == 1:
        return [(seq + len(facts), body)]
    half = len(facts) // 2
    return _halves(seq, facts[:half]) + _halves(seq + half, facts[half:])


def _spread(statements: list[tuple[str, Sequence[Any]]], name: str, some: list[Row]) -> None:
    """Few statements of many rows each."""
    while some:
        size = fitting(len(some))
        statements.append((rows(name, size), some[0] if size == 1 else list(chain.from_iterable(some[:size]))))
        some = some[size:]
