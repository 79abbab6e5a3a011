"""From rows about webhooks to model objects, and to what deciding needs. As in `reading`, connections only read."""

from collections.abc import Callable, Iterable, Sequence
from sqlite3 import Connection
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.json import Decoder

from dragoman.core.outbox import Line, Slip
from dragoman.model.facts import AnyFact
from dragoman.model.tasks import Scope
from dragoman.ports import Delivery, Hook
from dragoman.store.lanes import First
from dragoman.store.sqlite.reading import encode
from dragoman.store.sqlite.statements import SQL

_decode_hook = Decoder(Hook).decode
_decode_fact = Decoder(AnyFact).decode
_split: Callable[[bytes], list[Any]] = Decoder(list[msgspec.Raw]).decode

LAST = "~"  # after every delivery's id: where a list begins


class Standing(Struct):
    """A hook as deciding sees it. `before` is the line as it is in the file; None of a hook that is not there yet."""

    n: int
    task: int
    id: str
    lane: str
    line: Line
    before: Line | None


def lines_of_task(connection: Connection, task: int) -> list[Standing]:
    return _lines(connection.execute(SQL["lines_of_task"], (task,)))


def lines_of_hooks(connection: Connection, hooks: Iterable[int]) -> list[Standing]:
    return _lines(connection.execute(SQL["lines_of_hooks"], (encode(list(hooks)).decode(),)))


def _lines(rows: Iterable[Sequence[Any]]) -> list[Standing]:
    found: dict[int, tuple[Sequence[Any], list[Slip], list[Slip]]] = {}
    for row in rows:
        _, waiting, dead = found.setdefault(row[0], (row, [], []))
        id, seq, due, calm, attempts, died = row[5:]
        if id is not None:
            (dead if died else waiting).append(Slip(id, seq, due, bool(calm), attempts))
    standings: list[Standing] = []
    for (n, task, id, lane, calm_at, *_), *slips in found.values():
        waiting, dead = (tuple(sorted(each, key=lambda slip: slip.seq)) for each in slips)
        line = Line(waiting, dead, calm_at)
        standings.append(Standing(n, task, id, lane, line, line))
    return standings


def hook_of(connection: Connection, id: str) -> int | None:
    """The number of the hook that a delivery is for."""
    row = connection.execute(SQL["hook_of_delivery"], (id,)).fetchone()
    return row[0] if row else None


def peek(connection: Connection, lane: str, count: int) -> list[First]:
    return [First(due, n) for due, n in connection.execute(SQL["due_in_lane"], (lane, count))]


def places(connection: Connection, hooks: Iterable[int]) -> Sequence[tuple[str, int]]:
    return connection.execute(SQL["places"], (encode(list(hooks)).decode(),)).fetchall()


def lanes(connection: Connection) -> Sequence[tuple[str, int]]:
    return connection.execute(SQL["lanes"]).fetchall()


def hook(connection: Connection, scope: Scope, uid: str, id: str) -> Hook | None:
    row = connection.execute(SQL["hook"], (uid, *scope, id)).fetchone()
    return _decode_hook(row[0]) if row else None


def hooks(connection: Connection, scope: Scope, uid: str) -> list[Hook]:
    name, values = ("hooks_of_task", (uid, *scope)) if uid else ("hooks_of_scope", scope)
    return [_decode_hook(row[0]) for row in connection.execute(SQL[name], values)]


def count(connection: Connection, owner: str, most: int) -> int:
    return connection.execute(SQL["count_hooks"], (owner, most)).fetchone()[0]


def first_deliveries(connection: Connection, hooks: Iterable[int]) -> list[tuple[int, bool, Delivery]]:
    """Of each of these hooks its number and its oldest news that wait, and whether they are calm."""
    rows = connection.execute(SQL["first_deliveries"], (encode(list(hooks)).decode(),))
    return [(row[0], bool(row[1]), _delivery(row)) for row in rows]


def delivery(connection: Connection, id: str) -> Delivery | None:
    row = connection.execute(SQL["delivery"], (id,)).fetchone()
    return _delivery(row) if row else None


def dead_deliveries(connection: Connection, limit: int, before: str) -> list[Delivery]:
    return [_delivery(row) for row in connection.execute(SQL["dead_deliveries"], (before or LAST, limit))]


def _delivery(row: Sequence[Any]) -> Delivery:
    _, _, hook, task_id, context_id, id, seq, due, attempts, dead, error, at, media_type, body, last, facts = row
    raw = _split(facts)
    return Delivery(
        id=id,
        hook=_decode_hook(hook),
        task_id=task_id,
        context_id=context_id,
        seq=seq,
        fact=_decode_fact(raw[seq - last - 1]),
        due=due,
        attempts=attempts,
        body=body,
        media_type=media_type,
        error=error,
        dead=bool(dead),
        at=at,
    )
