"""Who gets how much of what can be under way at once, so that no receiver stands in another's way.

Every receiver has a lane. How many attempts a lane may have under way follows from how it answered so far: one to begin
with, twice as many after every quick answer up to the limit, a few while it is slow, and one again after it did not
answer at all. Lanes that have not answered quickly the last time share three quarters of the whole: however many of
them hang, the rest is free for receivers that answer.

A lane that answers quickly also has some deliveries waiting in memory, so that the store is asked for many at a time.
"""

from collections import OrderedDict, deque
from collections.abc import Iterator
from typing import NamedTuple

from dragoman.ports import Delivery

QUICK_SECONDS = 1.0
SLOW = 4  # at once to a receiver that answers, and takes its time
AHEAD = 8  # times as many in memory as may be under way, of a quick lane
REMEMBERED = 4_096  # idle lanes whose pace is known
STALLED = 4_096  # lanes that wait for room; with more, nobody else is asked for until there is some


class Lane:
    """`waiting` are deliveries taken from the store and not begun: a quick lane has some, no other."""

    __slots__ = ("most", "name", "quick", "running", "waiting")

    def __init__(self, name: str) -> None:
        self.name = name
        self.most = 1
        self.quick = False
        self.running = 0
        self.waiting: deque[Delivery] = deque()

    @property
    def room(self) -> int:
        """How many more deliveries it can take."""
        most = self.most * AHEAD if self.quick else self.most
        return most - self.running - len(self.waiting)

    @property
    def hungry(self) -> bool:
        """Whether asking for more is worth it: a quick lane waits until half of what it had is gone."""
        return self.room > (self.most * AHEAD // 2 if self.quick else 0)


class Begun(NamedTuple):
    """An attempt that may be made now. `trial` says that the lane was not quick when it was begun."""

    lane: Lane
    delivery: Delivery
    trial: bool


class Lanes:
    def __init__(self, total: int, per_receiver: int) -> None:
        self._total = total
        self._most_trials = max(1, total - total // 4)
        self._per_receiver = per_receiver
        self._lanes: dict[str, Lane] = {}  # with something under way or waiting
        self._idle: OrderedDict[str, Lane] = OrderedDict()
        self._stalled: dict[str, None] = {}  # had something, and there was no room to begin it
        self._trials: list[Begun] = []  # taken, with room kept for them
        self._ready: OrderedDict[str, Lane] = OrderedDict()  # quick lanes with something to begin, in turn
        self._running = 0
        self._trying = 0  # of those, trials

    def busy(self) -> list[str]:
        """Lanes that take nothing now."""
        return [*(name for name, lane in self._lanes.items() if not lane.hungry), *self._stalled]

    @property
    def open(self) -> bool:
        return self._running < self._total and len(self._stalled) < STALLED

    @property
    def share(self) -> int:
        """How much of one lane is worth asking for at once."""
        return max((lane.room for lane in self._lanes.values() if lane.hungry), default=1)

    def take(self, name: str, delivery: Delivery) -> bool:
        """Whether the delivery is ours to make. If not, its lane is among the busy ones from now on."""
        lane = self._lanes.get(name) or self._idle.get(name) or Lane(name)
        if lane.room <= 0:
            return False
        if not lane.quick and not self._room_for_trials:
            self._stalled[name] = None
            return False
        self._idle.pop(name, None)
        self._lanes[name] = lane
        if lane.quick:
            lane.waiting.append(delivery)
            self._note(lane)
        else:
            self._trials.append(self._begun(lane, delivery))
        return True

    def begin(self) -> Iterator[Begun]:
        """What is to be attempted now; of several quick lanes, one of each in turn."""
        while self._trials:
            yield self._trials.pop()
        while self._ready and self._running < self._total:
            _, lane = self._ready.popitem(last=False)
            begun = self._begun(lane, lane.waiting.popleft())
            self._note(lane)
            yield begun

    def _begun(self, lane: Lane, delivery: Delivery) -> Begun:
        trial = not lane.quick
        lane.running += 1
        self._running += 1
        self._trying += trial
        return Begun(lane, delivery, trial)

    def end(self, begun: Begun, *, answered: bool, seconds: float) -> list[Delivery]:
        """An attempt is over: how the receiver does decides what it gets next. Answers what it is not to have any
        more of what waited for it."""
        lane = begun.lane
        lane.running -= 1
        self._running -= 1
        self._trying -= begun.trial
        lane.quick = answered and seconds < QUICK_SECONDS
        back: list[Delivery] = []
        if lane.quick:
            lane.most = min(self._per_receiver, lane.most * 2)
        else:
            lane.most = min(self._per_receiver, SLOW, lane.most + 1) if answered else 1
            back = list(lane.waiting)
            lane.waiting.clear()
        if self._room_for_trials:
            self._stalled.clear()
        self._note(lane)
        if not lane.running and not lane.waiting:
            del self._lanes[lane.name]
            self._idle[lane.name] = lane
            if len(self._idle) > REMEMBERED:
                self._idle.popitem(last=False)
        return back

    def _note(self, lane: Lane) -> None:
        """Put a lane where its turn comes, if it has something to begin."""
        if not lane.waiting or lane.running >= lane.most:
            self._ready.pop(lane.name, None)
        elif lane.name not in self._ready:
            self._ready[lane.name] = lane

    @property
    def _room_for_trials(self) -> bool:
        return self._running < self._total and self._trying < self._most_trials
