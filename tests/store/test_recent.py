"""The ends of logs in memory: right while they are there, bounded, and never a part taken for the whole."""

from dragoman.model.facts import AnyFact
from dragoman.model.tasks import Head
from dragoman.store.sqlite.reading import Known
from dragoman.store.sqlite.recent import Recent
from tests.conformance.store.logs import OTHERS, OURS, chunk


def head(uid: str, seq: int) -> Head:
    return Head(uid=uid, scope=OURS, id=uid, context_id="c", seq=seq)


def facts(count: int) -> tuple[AnyFact, ...]:
    return tuple(chunk(text=str(n)) for n in range(count))


def test_a_cursor_before_what_is_here_is_not_answered_from_here() -> None:
    recent = Recent(10, 1_000_000)
    recent.extend("u", 101, facts(5), 500)
    assert recent.since(head("u", 105), 99, 10, 10_000) is None
    assert [e.seq for e in recent.since(head("u", 105), 100, 10, 10_000) or ()] == [101, 102, 103, 104, 105]
    assert recent.all(head("u", 105)) is None


def test_the_same_entry_goes_to_every_reader_so_that_it_is_encoded_once() -> None:
    recent = Recent(10, 1_000_000)
    recent.extend("u", 1, facts(3), 300)
    one, two = recent.since(head("u", 3), 1, 10, 10_000), recent.since(head("u", 3), 2, 10, 10_000)
    assert one and two and one[1] is two[0]


def test_nothing_new_is_an_answer_without_any_entries_here() -> None:
    assert Recent(10, 1_000).since(head("u", 3), 3, 10, 10_000) == ()


def test_the_oldest_entries_go_first_and_what_is_left_still_answers() -> None:
    recent = Recent(10, 200 * 1_700)
    for n in range(1_000):
        recent.extend("u", n * 2 + 1, facts(2), 2_000)
        entries = recent.since(head("u", n * 2 + 2), n * 2, 10, 10_000_000)
        assert entries and [e.seq for e in entries] == [n * 2 + 1, n * 2 + 2]
    assert recent.since(head("u", 2_000), 1_000, 10, 10_000) is None
    kept = next(after for after in range(2_000) if recent.since(head("u", 2_000), after, 10, 10_000) is not None)
    assert 1_500 <= kept <= 1_810  # at least the bound's worth, at most twice that and a little


def test_tasks_that_went_quiet_leave_nothing() -> None:
    recent = Recent(10, 10_000)
    for n in range(100):
        recent.extend(f"u{n}", 1, facts(1), 300)
    assert len(recent._tails) <= 10 and len(recent._blocks) <= 10
    assert recent.all(head("u0", 1)) is None and recent.all(head("u99", 1)) is not None


def test_a_forgotten_task_may_come_back_while_its_old_blocks_are_still_in_line() -> None:
    recent = Recent(10, 5_000)
    recent.extend("u", 1, facts(3), 300)
    recent.forget(["u"])
    recent.extend("u", 4, facts(1), 100)
    assert [e.seq for e in recent.since(head("u", 4), 3, 10, 10_000) or ()] == [4]
    recent.extend("v", 1, facts(3), 300)
    assert [e.seq for e in recent.since(head("u", 4), 3, 10, 10_000) or ()] == [4]


def test_heads_answer_their_scope_only_and_the_longest_untouched_go_first() -> None:
    recent = Recent(2, 1_000)
    for uid in ("a", "b", "c"):
        recent.keep(uid, Known(1, head(uid, 1)))
    assert recent.known(OURS, "a") is None
    assert recent.known(OURS, "c") is not None
    assert recent.known(OTHERS[0], "c") is None
