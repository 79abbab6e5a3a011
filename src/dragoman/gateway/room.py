"""Large bodies, of requests and of answers: how many bytes of them are in memory at once, of each caller and in total.

Who would need more waits, and meanwhile is not read from (or not answered), so that the bytes stay where they are. Room
goes to the callers in turn: however many bodies of one wait, the next one of another is not behind them.
"""

import asyncio
from collections import OrderedDict, deque
from typing import NamedTuple

from dragoman.model.errors import Busy, Overloaded

SMALL = 65_536
"""What is no larger is read at once: connections hold as much anyway."""


class Waiting(NamedTuple):
    size: int
    turn: "asyncio.Future[None]"


class Refusals(NamedTuple):
    """What is said where there is no room, and the limit that says how much there is."""

    limit: str
    mine: str
    total: str


UPLOADS = Refusals(
    "limits.uploads",
    "Your other requests are still being read; send large ones one after the other",
    "Too many large requests are being read",
)
ANSWERS = Refusals(
    "limits.answers",
    "You have not read your other answers yet; read large ones one after the other",
    "Too many large answers are being read",
)


class Room:
    """Whoever enters leaves, in a `finally`."""

    def __init__(self, most: int, each: int, seconds: float, refusals: Refusals) -> None:
        self._most = most
        self._most_each = each
        self._seconds = seconds
        self._refusals = refusals
        self._mine: dict[str, int] = {}
        self._waiting: OrderedDict[str, deque[Waiting]] = OrderedDict()
        self.total = 0

    def enter_now(self, caller: str, size: int) -> bool:
        """Whether there was room at once."""
        if caller in self._waiting or not self._fits(caller, size):
            return False
        self.take(caller, size)
        return True

    async def enter(self, caller: str, size: int) -> None:
        """Wait until there is room. A body larger than all room there is enters alone. Raises Busy."""
        if self.enter_now(caller, size):
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(caller, deque()).append(Waiting(size, turn))
        try:
            async with asyncio.timeout(self._seconds):
                await turn
        except BaseException as error:
            if turn.cancelled():
                self._hand_out()
            else:
                self.leave(caller, size)
            if isinstance(error, TimeoutError):
                raise self._refusal(caller) from None
            raise

    def leave(self, caller: str, size: int) -> None:
        self.total -= size
        left = self._mine[caller] - size
        if left:
            self._mine[caller] = left
        else:
            del self._mine[caller]
        self._hand_out()

    def _fits(self, caller: str, size: int) -> bool:
        mine = self._mine.get(caller, 0)
        return (not mine or mine + size <= self._most_each) and (not self.total or self.total + size <= self._most)

    def take(self, caller: str, size: int) -> None:
        """Enter whether there is room or not."""
        self.total += size
        self._mine[caller] = self._mine.get(caller, 0) + size

    def _hand_out(self) -> None:
        """Give what room there is to those who wait, one body each in turn."""
        given = True
        while given:
            given = False
            for caller in list(self._waiting):
                waiting = self._waiting[caller]
                while waiting and waiting[0].turn.cancelled():
                    waiting.popleft()
                if waiting and self._fits(caller, waiting[0].size):
                    size, turn = waiting.popleft()
                    self.take(caller, size)
                    turn.set_result(None)
                    given = True
                    self._waiting.move_to_end(caller)
                if not waiting:
                    del self._waiting[caller]

    def _refusal(self, caller: str) -> Busy:
        limit, mine, total = self._refusals
        if self._mine.get(caller):
            return Busy(mine, limit=f"{limit}_per_caller", most=self._most_each)
        return Overloaded(total, limit=limit, most=self._most)
