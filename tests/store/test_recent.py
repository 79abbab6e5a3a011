"""What is kept in memory: right while it is there, bounded, shared, and never a part taken for the whole."""

from pathlib import Path

import pytest

from dragoman.model.facts import Entry
from dragoman.model.tasks import Head, TaskState
from dragoman.store.sqlite import SqliteStore
from dragoman.store.sqlite.reading import Known
from dragoman.store.sqlite.recent import STRETCH, Heads, Stretches
from tests.conformance.store.logs import OTHERS, OURS, chunk, new, output, settled


def head(uid: str, seq: int, state: TaskState = TaskState.WORKING) -> Head:
    return Head(uid=uid, scope=OURS, id=uid, context_id="c", seq=seq, state=state, size=100 * seq)


def entries(first: int, last: int) -> list[Entry]:
    return [Entry(seq, chunk(text=str(seq))) for seq in range(first, last + 1)]


def test_heads_answer_their_scope_only_and_the_longest_untouched_go_first() -> None:
    heads = Heads(2)
    for uid in ("a", "b", "c"):
        heads.keep(uid, Known(1, head(uid, 1)))
    assert heads.get(OURS, "a") is None
    assert heads.get(OURS, "c") is not None
    assert heads.get(OTHERS[0], "c") is None


def test_a_stretch_that_may_still_grow_is_not_kept() -> None:
    stretches = Stretches(10_000_000)
    stretches.keep(head("u", 10), 0, entries(1, 10))
    assert stretches.since(head("u", 10), 0, 10) is None
    stretches.keep(head("u", 10, TaskState.FAILED), 0, entries(1, 10))
    assert stretches.since(head("u", 10), 4, 3) == entries(5, 7)


def test_a_stretch_that_was_read_in_part_is_not_kept() -> None:
    stretches = Stretches(10_000_000)
    stretches.keep(head("u", 1_000), 0, entries(1, 100))
    stretches.keep(head("u", 1_000), 1, entries(300, 512))
    assert stretches.since(head("u", 1_000), 0, 10) is None
    assert stretches.since(head("u", 1_000), STRETCH, 10) is None


@pytest.mark.proves("S-2-24")
def test_stretches_are_bounded_by_bytes_and_the_longest_unread_go_first() -> None:
    stretches = Stretches(3 * STRETCH * 800)
    for number in range(4):
        stretches.keep(head("u", 4 * STRETCH), number, entries(number * STRETCH + 1, (number + 1) * STRETCH))
        stretches.since(head("u", 4 * STRETCH), 0, 1)
    kept = [stretches.since(head("u", 4 * STRETCH), number * STRETCH, 1) is not None for number in range(4)]
    assert kept == [True, False, True, True]


def test_a_forgotten_log_is_gone() -> None:
    stretches = Stretches(10_000_000)
    stretches.keep(head("u", STRETCH), 0, entries(1, STRETCH))
    stretches.forget(["u"])
    assert stretches.since(head("u", STRETCH), 0, 10) is None
    assert stretches._bytes == 0


@pytest.mark.anyio
@pytest.mark.parametrize("length", [40, 700])
async def test_readers_of_one_log_share_its_entries_whatever_their_cursors(tmp_path: Path, length: int) -> None:
    """An event is encoded once because all readers get the same entry."""
    store = SqliteStore(tmp_path / "log.db")
    await store.open()
    await store.append(new("u"))
    await store.append(output("u", *(chunk(text=str(n)) for n in range(length)), settled()))

    async def read(after: int, limit: int) -> dict[int, Entry]:
        seen: dict[int, Entry] = {}
        while found := await store.since(OURS, "u", after, limit):
            after = found[-1].seq
            seen |= {entry.seq: entry for entry in found}
        return seen

    one, two, three = await read(0, 256), await read(7, 100), await read(length // 2, 16)
    assert len(one) == length + 3
    assert all(two[seq] is one[seq] for seq in two)
    assert all(three[seq] is one[seq] for seq in three)
    await store.close()
