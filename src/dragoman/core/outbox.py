"""How news wait for a hook: what gives way to what, and when the next attempt may start.

Both stores use these functions inside their commit, so the rules of the outbox exist once. A line never changes; what
is to be written is the difference between the line before and the line after.

Calm news (`core.notices`) are worth nothing once there are newer ones: they wait only as long as nothing does, and at
most one of them. So whatever a task says, its hooks' lines stay short; a line that is long all the same, because its
receiver is slow and the task asks and asks, forgets its oldest questions.
"""

from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import replace

from dragoman.core.notices import Notice
from dragoman.ports import Outcome

LONGEST = 32  # news that wait for one hook, and dead letters kept of one


class Slip(Struct, frozen=True, gc=False):
    """A delivery's place in a line. `attempts` counts those that failed."""

    id: str
    seq: int
    due: int
    calm: bool = False
    attempts: int = 0


class Line(Struct, frozen=True):
    """What waits for one hook and what died waiting, oldest first. `calm_at` is when calm news were last tried."""

    waiting: tuple[Slip, ...] = ()
    dead: tuple[Slip, ...] = ()
    calm_at: int = 0

    @property
    def due(self) -> int:
        """When the next attempt may start; 0 when nothing waits."""
        return self.waiting[0].due if self.waiting else 0

    def find(self, id: str) -> Slip | None:
        """What waits under that id."""
        return _find(self.waiting, id)


# --- news ----------------------------------------------------------------------------------------------------


def told(line: Line, notice: Notice, id: str, now: int, interval: int, under_way: str = "") -> Line:
    """The line with news at its end. Calm ones before them are gone, but for one that is being sent."""
    calm = [each for each in line.waiting if each.calm and each.id != under_way]
    rest = [each for each in line.waiting if each not in calm]
    if len(rest) >= LONGEST:
        rest.remove(next(each for each in rest if each.id != under_way))
    if notice.urgent:
        due = now
    else:
        # In the place of what they replace: who always has something new would else never have its turn.
        due = calm[-1].due if calm else max(now, line.calm_at + interval)
    return replace(line, waiting=(*rest, Slip(id, notice.seq, due, calm=not notice.urgent)))


def ended(line: Line, seq: int, id: str, now: int) -> Line:
    """The line of a hook that was kept after the task's end: it is told the end, once."""
    if any(each.seq == seq for each in line.waiting):
        return line
    return replace(line, waiting=(*line.waiting, Slip(id, seq, now)))


# --- attempts ------------------------------------------------------------------------------------------------


def tried(line: Line, outcome: Outcome, calm: bool, now: int, interval: int) -> Line:
    """The line after an attempt. `calm` says what was sent: it may have left the line in the meantime."""
    was = line.find(outcome.id)
    rest = tuple(each for each in line.waiting if each is not was)
    if calm:
        rest = _spaced(rest, now + interval)
        line = replace(line, calm_at=now)
    if was is None or outcome.delivered:
        return replace(line, waiting=rest)
    failed = Slip(was.id, was.seq, outcome.due, was.calm, was.attempts + 1)
    if outcome.dead:
        return replace(line, waiting=rest, dead=_buried(line.dead, failed))
    if was.calm and any(each.seq > was.seq for each in rest):
        # Newer news wait already. Calm ones need not be sent at once to a receiver that just failed.
        return replace(line, waiting=_spaced(rest, outcome.due))
    return replace(line, waiting=_placed(rest, failed))


def resent(line: Line, id: str, now: int) -> Line | None:
    """The line with that delivery in its place, as if it had never been tried; None when it is not here."""
    slip = line.find(id) or _find(line.dead, id)
    if slip is None:
        return None
    others = tuple(each for each in line.waiting if each.id != id)
    dead = tuple(each for each in line.dead if each.id != id)
    return replace(line, waiting=_placed(others, _anew(slip, now)), dead=dead)


def afresh(line: Line, now: int) -> Line:
    """The line of a hook that was replaced: what failed so far may have failed because of what was replaced."""
    return replace(line, waiting=tuple(_anew(each, now) if each.attempts else each for each in line.waiting))


def _find(slips: Iterable[Slip], id: str) -> Slip | None:
    return next((each for each in slips if each.id == id), None)


def _anew(slip: Slip, now: int) -> Slip:
    return Slip(slip.id, slip.seq, now, slip.calm)


def _placed(slips: tuple[Slip, ...], slip: Slip) -> tuple[Slip, ...]:
    return tuple(sorted((*slips, slip), key=lambda each: each.seq))


def _spaced(slips: tuple[Slip, ...], soonest: int) -> tuple[Slip, ...]:
    """Calm news that were not tried yet are not due before then."""
    return tuple(
        replace(each, due=soonest) if each.calm and not each.attempts and each.due < soonest else each for each in slips
    )


def _buried(dead: tuple[Slip, ...], slip: Slip) -> tuple[Slip, ...]:
    """The dead letters with one more: of calm ones the latest, and not too many in all."""
    rest = tuple(each for each in dead if not (each.calm and slip.calm))
    return _placed(rest, slip)[-LONGEST:]
