"""Who gets how much of what can be under way at once, so that no receiver stands in another's way.

Every receiver has a lane. How many attempts a lane may have under way follows from how it answered so far: one to begin
with, twice as many after every quick answer up to the limit, a few while it is slow, and one again after it did not
answer at all. Lanes that have not answered quickly the last time share three quarters of the whole: however many of
them hang, the rest is free for receivers that answer.

A lane that answers quickly also has some deliveries waiting in memory, so that the store is asked for many at a time.
"""

from collections import OrderedDict, deque
from collections.abc import Iterator

from dragoman.ports import Delivery

QUICK_SECONDS = 1.0
SLOW = 4  # at once to a receiver that answers, and takes its time
AHEAD = 8  # times as many in memory as may be under way, of a quick lane
REMEMBERED = 4_096  # idle lanes whose pace is known
STALLED = 1_024  # lanes that wait for room; with more, nobody else is asked for until there is some


class Lane:
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


class Lanes:
    def __init__(self, total: int, per_receiver: int) -> None:
        self._total = total
        self._others = max(1, total - total // 4)  # for all that are not quick, together
        self._per_receiver = per_receiver
        self._lanes: dict[str, Lane] = {}  # with something under way or waiting
        # Of those, with something to begin, in turn.
        self._quick_ready: OrderedDict[str, Lane] = OrderedDict()
        self._others_ready: OrderedDict[str, Lane] = OrderedDict()
        self._idle: OrderedDict[str, Lane] = OrderedDict()
        self._stalled: dict[str, None] = {}  # had something and there was no room to begin it
        self._running = 0
        self._tried = 0  # of those, to lanes that were not quick when it began

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
        """Whether the delivery is ours to make now. If not, the lane is among the busy ones from now on."""
        lane = self._lanes.get(name) or self._idle.get(name) or Lane(name)
        if lane.room <= 0:
            return False
        if not (lane.running or lane.waiting) and not self._may_run(lane):
            self._stalled[name] = None
            return False
        self._idle.pop(name, None)
        self._lanes[name] = lane
        lane.waiting.append(delivery)
        self._note(lane)
        return True

    def begin(self) -> Iterator[tuple[Lane, Delivery, bool]]:
        """What is to be attempted now, one of each lane in turn. The last of each says to `end` as what it was begun.

        Lanes that are not quick come first: they need few, and could otherwise wait for ever."""
        while self._running < self._total and self._others_ready and self._tried < self._others:
            yield self._next(self._others_ready)
        while self._running < self._total and self._quick_ready:
            yield self._next(self._quick_ready)

    def _next(self, ready: OrderedDict[str, Lane]) -> tuple[Lane, Delivery, bool]:
        _, lane = ready.popitem(last=False)
        tried = not lane.quick
        lane.running += 1
        self._running += 1
        self._tried += tried
        delivery = lane.waiting.popleft()
        self._note(lane)
        return lane, delivery, tried

    def end(self, lane: Lane, tried: bool, *, answered: bool, seconds: float) -> list[Delivery]:
        """An attempt is over: how the receiver does decides what it gets next. Answers what it is not to have any
        more of what waited for it."""
        lane.running -= 1
        self._running -= 1
        self._tried -= tried
        lane.quick = answered and seconds < QUICK_SECONDS
        if lane.quick:
            lane.most = min(self._per_receiver, lane.most * 2)
        else:
            lane.most = min(self._per_receiver, SLOW, lane.most + 1) if answered else 1
        if self._running < self._total and self._tried < self._others:
            self._stalled.clear()
        back = [lane.waiting.pop() for _ in range(min(-lane.room, len(lane.waiting)))]
        self._note(lane)
        if not lane.running and not lane.waiting:
            del self._lanes[lane.name]
            self._idle[lane.name] = lane
            if len(self._idle) > REMEMBERED:
                self._idle.popitem(last=False)
        return back

    def _note(self, lane: Lane) -> None:
        """Put the lane where its turn comes, if it has something to begin."""
        mine, other = self._quick_ready, self._others_ready
        if not lane.quick:
            mine, other = other, mine
        other.pop(lane.name, None)
        if not lane.waiting or lane.running >= lane.most:
            mine.pop(lane.name, None)
        elif lane.name not in mine:
            mine[lane.name] = lane

    def _may_run(self, lane: Lane) -> bool:
        return self._running < self._total and (lane.quick or self._tried < self._others)
