"""What shares a transaction shares nothing else."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from dragoman.model.errors import Conflict, OutcomeUnknown, StoreError
from dragoman.model.facts import Stepped
from dragoman.model.tasks import Task, TaskState
from dragoman.ports import Appended, Checkpoint, KeyRecord, Query, Snapshot
from dragoman.store.sqlite import SqliteStore
from dragoman.store.sqlite.group import ROW_FACTS, _bodies
from dragoman.store.sqlite.reading import decode_facts
from dragoman.store.sqlite.writer import Done, Work, Writer
from tests.conformance.store.logs import OURS, chunk, hook, new, output, settled

pytestmark = pytest.mark.anyio


@pytest.mark.proves("S-2-17")
async def test_what_cannot_be_written_as_json_hurts_only_its_caller(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "log.db")
    await store.open()
    await store.append(new("u"))
    odd = Stepped(turn="t1", name="s", result=object())
    snapshot = Snapshot(task=Task(id="u", metadata={"odd": object()}))
    answers = await asyncio.gather(
        store.append(output("u", chunk(text="before"))),
        store.append(output("u", chunk(), odd)),
        store.checkpoint(Checkpoint(uid="u", scope=OURS, seq=2, snapshot=snapshot)),
        store.append(output("u", chunk(text="after"))),
        return_exceptions=True,
    )
    assert [isinstance(answer, Exception) for answer in answers] == [False, True, True, False]
    assert [entry.seq for entry in await store.since(OURS, "u", 0)] == [1, 2, 3, 4]
    loaded = await store.load(OURS, "u")
    assert loaded and loaded.snapshot is None
    await store.close()


@pytest.mark.parametrize("odd", ["\ud800", "nul\x00inside"])
async def test_a_name_sqlite_cannot_take_hurts_only_its_caller(tmp_path: Path, odd: str) -> None:
    store = SqliteStore(tmp_path / "log.db")
    await store.open()
    answers = await asyncio.gather(
        store.append(new("u")),
        store.append(new("v", id=odd)),
        store.append(new("w", context=odd)),
        store.append(new("x")),
        return_exceptions=True,
    )
    assert isinstance(answers[0], Appended) and isinstance(answers[3], Appended)
    for answer in answers[1:3]:
        assert isinstance(answer, Appended) or "ud800" not in str(answer)
    assert (await store.append(output("u", chunk()))).first == 3
    written = sum(isinstance(answer, Appended) for answer in answers)
    assert (await store.list(OURS, Query())).total == written
    await store.close()


@pytest.mark.proves("D-5-1")
async def test_more_than_one_groups_worth_is_written_in_order(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "log.db")
    await store.open()
    pending = [store.append(new(f"u{n}")) for n in range(1_300)]
    pending += [store.append(output(f"u{n}", settled())) for n in range(1_300)]
    answers = await asyncio.gather(*pending)
    assert [answer.first for answer in answers] == [1] * 1_300 + [3] * 1_300
    assert (await store.list(OURS, Query(state=TaskState.COMPLETED))).total == 1_300
    await store.close()


async def test_a_sweep_waits_its_turn_and_later_appends_see_what_it_did(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "log.db")
    await store.open()
    await store.append(new("u"))
    await store.append(output("u", settled()))
    answers = await asyncio.gather(
        store.append(new("v")),
        store.sweep(terminal_before=store.now()),
        store.append(output("u", chunk())),
        store.append(output("v", chunk())),
        return_exceptions=True,
    )
    assert answers[1] == ["u"]
    assert isinstance(answers[2], Conflict) and isinstance(answers[3], Appended)
    await store.close()


async def test_a_file_that_breaks_while_open_is_a_plain_store_error(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "log.db", recent_tasks=1, recent_bytes=0)
    await store.open()
    await store.append(new("u"))
    await store.append(new("v"))
    store._committed.close()
    with pytest.raises(StoreError) as failed:
        await store.head(OURS, "u")
    assert "log.db" not in str(failed.value)
    await store.close()


def test_rows_hold_all_facts_in_order_and_none_reaches_over_a_boundary() -> None:
    for seq, count, size in ((0, 1, 1), (63, 2, 1), (10, 300, 1), (0, 64, 3_000), (5, 7, 100_000), (0, 0, 0)):
        facts = [chunk(text=str(n) + "x" * size) for n in range(count)]
        bodies = _bodies(seq, facts)
        decoded = [decode_facts(body) for _, body in bodies]
        assert [fact for row in decoded for fact in row] == facts
        last = seq
        for (end, _), row in zip(bodies, decoded, strict=True):
            assert end == last + len(row)
            assert (end - 1) // ROW_FACTS == last // ROW_FACTS
            last = end


async def test_an_idempotency_key_without_a_form_in_json_hurts_only_its_caller(tmp_path: Path) -> None:
    """Half of what it came with must not be left for the next task to stumble over."""
    store = SqliteStore(tmp_path / "log.db")
    await store.open()
    odd = KeyRecord(key="\ud800", digest="d")
    answers = await asyncio.gather(
        store.append(new("u", key=odd)), store.append(new("v")), store.append(new("w")), return_exceptions=True
    )
    assert [isinstance(answer, StoreError) for answer in answers] == [True, False, False]
    with pytest.raises(StoreError):
        await store.append(new("x", key=odd))
    assert (await store.append(new("y"))).first == 1
    assert (await store.list(OURS, Query())).total == 3
    await store.close()


class Doubtful(Writer):
    """Writes, and says nobody knows whether it did."""

    doubts = False

    def submit(self, work: Work[Any], done: Done) -> None:
        def doubting(result: Any, error: BaseException | None) -> None:
            done(result, OutcomeUnknown() if self.doubts and error is None else error)

        super().submit(work, doubting)


async def test_a_commit_of_unknown_outcome_leaves_room_for_what_comes_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dragoman.store.sqlite.store.Writer", Doubtful)
    store = SqliteStore(tmp_path / "log.db")
    await store.open()
    await store.append(new("u"))
    monkeypatch.setattr(Doubtful, "doubts", True)
    pending = store.append(new("v", hooks=(hook("v"),))), store.append(new("w"))
    first = await asyncio.gather(*pending, return_exceptions=True)
    assert all(isinstance(answer, OutcomeUnknown) for answer in first)
    monkeypatch.setattr(Doubtful, "doubts", False)
    for uid in ("x", "y"):
        await store.append(new(uid))
    assert (await store.append(output("v", settled()))).first == 3
    assert (await store.list(OURS, Query())).total == 5
    assert [delivery.hook.config.id for delivery in await store.due_deliveries(10)] == ["h"]
    await store.close()


async def test_deliveries_of_a_commit_of_unknown_outcome_are_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dragoman.store.sqlite.store.Writer", Doubtful)
    store = SqliteStore(tmp_path / "log.db")
    await store.open()
    await store.append(new("u", hooks=(hook("u"),)))
    monkeypatch.setattr(Doubtful, "doubts", True)
    with pytest.raises(OutcomeUnknown):
        await store.append(output("u", settled()))
    assert [delivery.hook.config.id for delivery in await store.due_deliveries(10)] == ["h"]
    await store.close()
