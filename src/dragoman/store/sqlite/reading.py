"""From rows to model objects. Every function takes a connection that only reads."""

from collections.abc import Iterable, Sequence
from contextlib import closing
from heapq import merge, nlargest
from itertools import chain, islice
from operator import itemgetter
from sqlite3 import Connection
from typing import Any

from msgspec import Struct
from msgspec.json import Decoder, Encoder

from dragoman.model.facts import AnyFact, Entry
from dragoman.model.tasks import EVERYONE, Head, Scope, TaskState
from dragoman.ports import KeyRecord, Loaded, Page, Query, Segment, Snapshot, Tally
from dragoman.store.sqlite.statements import SQL

_encoder = Encoder()
encode = _encoder.encode
decode_head = Decoder(Head).decode
decode_facts = Decoder(list[AnyFact]).decode
decode_snapshot = Decoder(Snapshot).decode
decode_segment = Decoder(Segment).decode
decode_key = Decoder(KeyRecord).decode

# States as the tables spell them: without the specification's prefix, which every index entry would repeat.
STATES = {state: state.value.removeprefix("TASK_STATE_") for state in TaskState}

Row = tuple[int, bytes, int, str]  # of a list: number, head, status_at, uid

LATEST = (2**62, "")  # before every task: where a list begins


def blob(value: Any) -> bytearray:
    """As JSON, in the kind of bytes that sqlite3 takes as it is. The other kind it first offers to every adapter."""
    body = bytearray()
    _encoder.encode_into(value, body)
    return body


class Known(Struct, gc=False):
    """A task's head, the number of its row, whether it may have hooks, and how many of its bytes its owner's counters
    hold already."""

    n: int
    head: Head
    hooked: bool = False
    counted: int = 0


def _known(row: Sequence[Any], hooked: bool = False) -> Known:
    """The head in a row, moved to the end of its log: mere output rewrites neither the task's row nor the counters."""
    n, body, seq, size, at = row[:5]
    head = decode_head(body)
    counted = head.size
    if seq is not None and seq > head.seq:
        head.seq, head.size, head.updated_at = seq, size, at
    return Known(n, head, hooked, counted)


def by_uid(connection: Connection, scope: Scope, uid: str) -> Known | None:
    row = connection.execute(SQL["head_by_uid"], (uid, *scope)).fetchone()
    return _known(row, bool(row[5])) if row else None


def by_id(connection: Connection, scope: Scope, id: str) -> Known | None:
    if scope.owner == EVERYONE:
        whose = scope[:2]
        row = connection.execute(SQL["head_by_id_of_anyone"], (id, *whose, *whose, id)).fetchone()
    else:
        row = connection.execute(SQL["head_by_id"], (id, *scope, *scope, id)).fetchone()
    return _known(row) if row else None


def tally(connection: Connection, owner: str) -> Tally:
    return Tally(*connection.execute(SQL["tally"], (owner,)).fetchone())


def key(connection: Connection, scope: Scope, key: str) -> KeyRecord | None:
    row = connection.execute(SQL["key"], (*scope, key)).fetchone()
    return decode_key(row[0]) if row else None


def since(connection: Connection, scope: Scope, uid: str, after: int, limit: int, max_bytes: int) -> list[Entry]:
    """Entries after a number, at most `limit` of them and about `max_bytes`, at least one if any."""
    after = max(0, after)
    bodies: list[bytes] = []
    last = 0
    with closing(connection.execute(SQL["facts_after"], (uid, *scope, after, limit))) as found:
        for seq, body in found:
            last = seq
            bodies.append(body)
            max_bytes -= len(body)
            if max_bytes <= 0 or seq - after >= limit:
                break
    if not bodies:
        return []
    # Rows are JSON arrays of consecutive facts; one array decodes faster than many.
    facts = decode_facts(b"[" + b",".join([body[1:-1] for body in bodies]) + b"]" if len(bodies) > 1 else bodies[0])
    first = last + 1 - len(facts)
    entries = list(map(Entry, range(first, last + 1), facts))
    skip = max(0, after + 1 - first)
    return entries[skip : skip + limit] if skip or len(entries) > limit else entries


def load(connection: Connection, scope: Scope, uid: str) -> Loaded | None:
    connection.execute("BEGIN")
    try:
        row = connection.execute(SQL["head_by_uid"], (uid, *scope)).fetchone()
        return _loaded(connection, [_known(row)], artifacts=True)[0] if row else None
    finally:
        connection.execute("COMMIT")


def page(connection: Connection, scope: Scope, query: Query) -> Page:
    """One page, read in one snapshot of the file."""
    connection.execute("BEGIN")
    try:
        state = STATES[query.state] if query.state else ""
        if scope.owner == EVERYONE:
            total, rows = _everyones(connection, scope, query, state)
        else:
            states = [state] if state else [each for (each,) in connection.execute(SQL["states"], scope)]
            total = _total(connection, scope, query, state, states)
            rows = list(islice(_listed(connection, scope, query, state, states), query.limit + 1))
        some = [Known(n, decode_head(body)) for n, body, *_ in rows[: query.limit]]
        if query.max_bytes:
            some = some[: _within(connection, some, query.max_bytes)]
        items = tuple(_loaded(connection, some, query.artifacts))
    finally:
        connection.execute("COMMIT")
    return Page(items=items, total=total, more=len(rows) > len(items))


def _within(connection: Connection, some: Sequence[Known], most: int) -> int:
    """How many of these tasks make a page of that many bytes. Known before any of them is read."""
    these = (encode([task.n for task in some]).decode(),)
    sizes: dict[int, int] = dict(connection.execute(SQL["sizes_of_tasks"], these).fetchall())
    weight = 0
    for count, task in enumerate(some, 1):
        weight += sizes[task.n] or 0
        if weight >= most:
            return count
    return len(some)


def _listed(connection: Connection, scope: Scope, query: Query, state: str, states: Sequence[str]) -> Iterable[Row]:
    """The rows of a list in its order. One of all states is merged from those of each."""
    rest = (query.since, *(query.before or LATEST), query.limit + 1)
    if query.context_id:
        return connection.execute(SQL["list_in_context"], (*scope, query.context_id, state, state, *rest))
    lists = [connection.execute(SQL["list_in_state"], (*scope, each, *rest)) for each in states]
    return lists[0] if len(lists) == 1 else merge(*lists, key=itemgetter(2, 3), reverse=True)


def _everyones(connection: Connection, scope: Scope, query: Query, state: str) -> tuple[int, list[Row]]:
    """The total and the first rows of a list of all owners' tasks. Owner after owner, and never more rows at once than
    the page needs: there may be thousands of them, and few ask."""
    states: dict[str, list[str]] = {}
    for owner, found in connection.execute(SQL["owners"], (scope.agent, scope.tenant)):
        states.setdefault(owner, []).extend([found] if state in ("", found) else [])
    scopes = [(scope._replace(owner=owner), some) for owner, some in states.items() if some]
    total = sum(_total(connection, each, query, state, some) for each, some in scopes)
    rows = chain.from_iterable(_listed(connection, each, query, state, some) for each, some in scopes)
    return total, nlargest(query.limit + 1, rows, key=itemgetter(2, 3))


def _total(connection: Connection, scope: Scope, query: Query, state: str, states: Sequence[str]) -> int:
    if query.context_id:
        name, values = "count_in_context", [(query.context_id, state, state, query.since)]
    elif query.since <= 0:
        name, values = "count_by_counters", [(state, state)]
    else:
        name, values = "count_in_state_since", [(each, query.since) for each in states]
    return sum(connection.execute(SQL[name], (*scope, *some)).fetchone()[0] for some in values)


def _loaded(connection: Connection, some: Sequence[Known], artifacts: bool) -> list[Loaded]:
    these = (encode([task.n for task in some]).decode(),)
    bodies: dict[int, list[bytes]] = {}
    ends: dict[int, tuple[int, int, int]] = {}
    for n, seq, size, at, body in connection.execute(SQL["facts_of_tasks"], these):
        bodies.setdefault(n, []).append(body)
        ends[n] = (seq, size, at)
    snapshots = {n: (seq, body) for n, seq, body in connection.execute(SQL["checkpoints_of_tasks"], these)}
    segments: dict[int, list[Segment]] = {}
    if artifacts and snapshots:
        for n, body in connection.execute(SQL["segments_of_tasks"], these):
            segments.setdefault(n, []).append(decode_segment(body))
    loaded: list[Loaded] = []
    for task in some:
        n, head = task.n, task.head
        seq, size, at = ends.get(n, (0, 0, 0))
        if seq > head.seq:
            head.seq, head.size, head.updated_at = seq, size, at
        head.checkpoint_seq, snapshot = snapshots.get(n, (0, None))
        facts: list[AnyFact] = list(chain.from_iterable(map(decode_facts, bodies.get(n, ()))))
        entries = list(map(Entry, range(head.seq + 1 - len(facts), head.seq + 1), facts))
        while entries and entries[0].seq <= head.checkpoint_seq:  # the checkpoint may lie inside a row
            del entries[0]
        loaded.append(
            Loaded(
                head=head,
                snapshot=decode_snapshot(snapshot) if snapshot is not None else None,
                segments=tuple(segments.get(n, ())),
                entries=tuple(entries),
            )
        )
    return loaded


def heads(connection: Connection, name: str, values: tuple[int, ...] = ()) -> Iterable[Head]:
    """The heads a statement finds, one by one, so that whoever has enough stops reading."""
    with closing(connection.execute(SQL[name], values)) as rows:
        for row in rows:
            yield _known(row).head
