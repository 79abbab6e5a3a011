"""Whose turn it is: which lanes have something due, and what of them is under way.

The stores keep, for every hook, when the oldest of its news is due; this keeps, for every lane, not before when looking
there is worth it. So finding work costs what is found, however much waits, and memory grows with the receivers, not
with what waits for them. Lanes that have something due are served in turn: what piled up in one never stands before
another's, however long it waits already.
"""

from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from heapq import heappop, heappush
from typing import NamedTuple

_AT_ONCE = 256


class First(NamedTuple):
    """A hook with something to send: when its oldest news are due."""

    due: int
    hook: int


class Taken(NamedTuple):
    """A delivery that was answered. `calm` is what kind of news it is."""

    hook: int
    lane: str
    calm: bool


# The first so many of a lane, by due: `peek(lane, count)`. What is under way is among them.
Peek = Callable[[str, int], Sequence[First]]


class Lanes:
    def __init__(self, peek: Peek) -> None:
        self._peek = peek
        self._turn: OrderedDict[str, None] = OrderedDict()  # lanes to look into now, the next one first
        self._at: dict[str, int] = {}  # the others: nothing of them is due earlier than this
        self._later: list[tuple[int, str]] = []  # these by time; what `_at` no longer says is passed over
        self._hooks: set[int] = set()  # under way
        self._busy: dict[str, int] = {}  # how many of a lane
        self._sent: dict[str, Taken] = {}
        self._listeners: list[Callable[[], None]] = []
        self._news = False

    # --- what waits

    def queue(self, lane: str, due: int) -> None:
        """Something of this lane is due then, or later."""
        self._news = True
        if lane in self._turn:
            return
        known = self._at.get(lane)
        if known is None or due < known:
            self._at[lane] = due
            heappush(self._later, (due, lane))

    def take(self, now: int, limit: int, busy: Collection[str], share: int) -> list[tuple[int, str]]:
        """Hook and lane of what is due, at most `share` of one lane. They are under way until they are released."""
        self._ripen(now, max(limit, _AT_ONCE))
        busy = frozenset(busy)
        found: list[tuple[int, str]] = []
        passed: list[str] = []
        for _ in range(len(self._turn)):
            if len(found) >= limit:
                break
            lane, _ = self._turn.popitem(last=False)
            if lane in busy:
                passed.append(lane)
            else:
                found += [(hook, lane) for hook in self._from(lane, now, min(share, limit - len(found)))]
        for lane in reversed(passed):  # they keep their place
            self._turn[lane] = None
            self._turn.move_to_end(lane, last=False)
        for hook, lane in found:
            self._hooks.add(hook)
            self._busy[lane] = self._busy.get(lane, 0) + 1
        return found

    def _ripen(self, now: int, most: int) -> None:
        """Give lanes that have something due by now their turn, but not thousands in one call."""
        while most and self._later and self._later[0][0] <= now:
            at, lane = heappop(self._later)
            if self._at.get(lane) == at:
                del self._at[lane]
                self._turn[lane] = None
                most -= 1

    def _from(self, lane: str, now: int, most: int) -> list[int]:
        free = self._free(lane, most + 1)
        due = [each.hook for each in free[:most] if each.due <= now]
        if len(due) < len(free):
            following = free[len(due)].due
            if following <= now:
                self._turn[lane] = None
            else:
                self.queue(lane, following)
        return due

    def _free(self, lane: str, count: int) -> Sequence[First]:
        """The first so many of the lane that are not under way."""
        asked = count + self._busy.get(lane, 0)
        while True:
            found = self._peek(lane, asked)
            free = [each for each in found if each.hook not in self._hooks]
            if len(free) >= count or len(found) < asked:
                return free[:count]
            asked *= 2  # hooks moved here from another lane while they were under way

    def next_at(self, now: int, busy: Collection[str]) -> int:
        """When the next one that is not under way is due, leaving out busy lanes; 0 for never."""
        busy = frozenset(busy)
        best = 0
        for lane in self._turn:
            if lane not in busy and (free := self._free(lane, 1)):
                best = min(best or free[0].due, free[0].due)
                if best <= now:
                    return best
        passed: list[tuple[int, str]] = []
        while self._later:
            at, lane = self._later[0]
            if self._at.get(lane) != at:
                heappop(self._later)
            elif best and best <= at:
                break
            elif lane in busy:
                passed.append(heappop(self._later))
            elif not (free := self._free(lane, 1)):
                heappop(self._later)
                del self._at[lane]
            elif free[0].due > at:
                heappop(self._later)
                del self._at[lane]
                self.queue(lane, free[0].due)
            else:
                best = at
        for each in passed:
            heappush(self._later, each)
        return best

    # --- what is under way

    @property
    def under_way(self) -> Mapping[str, Taken]:
        """By delivery. It changes as they come and go."""
        return self._sent

    def send(self, id: str, taken: Taken) -> None:
        """What was taken is this delivery."""
        self._sent[id] = taken

    def release(self, ids: Iterable[str]) -> list[int]:
        """These are no longer under way; their hooks. Whatever still waits for them has to be queued again."""
        hooks: list[int] = []
        for id in ids:
            taken = self._sent.pop(id, None)
            if taken is not None:
                self.miss(taken.lane, taken.hook)
                hooks.append(taken.hook)
        return hooks

    def miss(self, lane: str, hook: int) -> None:
        """What was taken was not there."""
        self._hooks.discard(hook)
        self._busy[lane] -= 1
        if not self._busy[lane]:
            del self._busy[lane]

    # --- who waits for work

    def listen(self, wake: Callable[[], None]) -> Callable[[], None]:
        self._listeners.append(wake)
        return lambda: self._listeners.remove(wake) if wake in self._listeners else None

    def ring(self) -> None:
        """Tell them, if anything was queued since they were told."""
        if self._news:
            self._news = False
            for wake in tuple(self._listeners):
                wake()
