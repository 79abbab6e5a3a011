"""Heads and log ends of tasks in motion: what a follower reads next is here and costs no query."""

from array import array
from collections import OrderedDict, deque
from collections.abc import Iterable, Sequence

from msgspec import Struct

from dragoman.model.facts import AnyFact, Entry
from dragoman.model.tasks import Head, Scope
from dragoman.store.sqlite.reading import Known

# What a decoded fact weighs beyond its JSON, roughly: objects, its number, the frames encoded from it.
_WEIGHT = 700


class _Tail(Struct, gc=False):
    """The end of one log: consecutive entries from `base` on. `gone` of them are given up and removed in bulk."""

    base: int
    entries: list[Entry]
    sizes: "array[int]"
    gone: int = 0

    def give_up(self, count: int) -> None:
        self.gone += count
        if self.gone > 64 and self.gone * 2 > len(self.entries):
            del self.entries[: self.gone], self.sizes[: self.gone]
            self.base += self.gone
            self.gone = 0


class _Block(Struct, frozen=True, gc=False):
    """What one append brought, in the order in which it is given up again."""

    uid: str
    tail: _Tail
    count: int
    weight: int


class Recent:
    """Bounded by number of heads and by bytes of entries; the longest known heads and the oldest entries go first.

    It is right because the file has one owner and everything that is committed passes here first.
    """

    def __init__(self, max_heads: int, max_bytes: int) -> None:
        self._max_heads = max_heads
        self._max_bytes = max_bytes
        self._heads: OrderedDict[str, Known] = OrderedDict()
        self._tails: dict[str, _Tail] = {}
        self._blocks: deque[_Block] = deque()
        self._bytes = 0

    def known(self, scope: Scope, uid: str) -> Known | None:
        task = self._heads.get(uid)
        return task if task is not None and task.head.scope == scope else None

    def keep(self, uid: str, task: Known) -> None:
        self._heads[uid] = task
        self._heads.move_to_end(uid)
        if len(self._heads) > self._max_heads:
            self._heads.popitem(last=False)

    def extend(self, uid: str, first: int, facts: Sequence[AnyFact], size: int) -> None:
        """Facts that were just committed."""
        tail = self._tails.get(uid)
        if tail is None:
            tail = self._tails[uid] = _Tail(first, [], array("q"))
        count = len(facts)
        tail.entries.extend(map(Entry, range(first, first + count), facts))
        tail.sizes.extend([size // count] * count)
        weight = size + _WEIGHT * count
        self._blocks.append(_Block(uid, tail, count, weight))
        self._bytes += weight
        while self._bytes > self._max_bytes:
            self._give_up(self._blocks.popleft())

    def _give_up(self, block: _Block) -> None:
        self._bytes -= block.weight
        tail = block.tail
        tail.give_up(block.count)
        if tail.gone >= len(tail.entries) and self._tails.get(block.uid) is tail:
            del self._tails[block.uid]

    def since(self, head: Head, after: int, limit: int, max_bytes: int) -> Sequence[Entry] | None:
        """Entries after a number, or None when they are not all here any more."""
        if after >= head.seq:
            return ()
        tail = self._tails.get(head.uid)
        if tail is None or after + 1 < tail.base:
            return None
        start = after + 1 - tail.base
        end = min(start + limit, len(tail.entries))
        if end - start > 1:
            for at in range(start, end):
                max_bytes -= tail.sizes[at]
                if max_bytes <= 0:
                    end = at + 1
                    break
        return tail.entries[start:end]

    def all(self, head: Head) -> tuple[Entry, ...] | None:
        """The whole log, or None when some of it is not here any more."""
        tail = self._tails.get(head.uid)
        return tuple(tail.entries) if tail is not None and tail.base == 1 else None

    def forget(self, uids: Iterable[str]) -> None:
        for uid in uids:
            self._heads.pop(uid, None)
            if tail := self._tails.pop(uid, None):
                # Its blocks stay in line and find nothing left.
                tail.entries.clear()
                del tail.sizes[:]
