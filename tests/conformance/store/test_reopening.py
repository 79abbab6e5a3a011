"""What a durable store gives back after it was closed."""

from pathlib import Path

import pytest

from dragoman.model.errors import StoreError
from dragoman.model.tasks import TaskState
from dragoman.ports import KeyRecord, Query
from tests.conformance.store.adapters import Adapter, HeldClock
from tests.conformance.store.logs import OURS, asked, chunk, created, finished, new, output, started

pytestmark = pytest.mark.anyio


async def test_everything_is_there_again(durable: Adapter, clock: HeldClock, tmp_path: Path) -> None:
    first = durable.make(tmp_path, clock)
    await first.open()
    await finished(first, "done", key=KeyRecord("k", "d"))
    await first.append(new("parked", created(), started(replica="r1")))
    await first.append(output("parked", asked()))
    await first.append(new("running", created(), started(replica="r1")))
    await first.append(output("running", chunk(at=7), size=50))
    await first.close()
    second = durable.make(tmp_path, clock)
    await second.open()
    await second.recover()
    page = await second.list(OURS, Query())
    assert page.total == 3
    assert {item.head.uid: item.head.state for item in page.items} == {
        "done": TaskState.COMPLETED,
        "parked": TaskState.INPUT_REQUIRED,
        "running": TaskState.WORKING,
    }
    head = await second.head(OURS, "running")
    assert head and (head.seq, head.size, head.updated_at) == (3, 50, 7)
    assert [head.uid for head in await second.claimable(10)] == ["running"]
    assert await second.key(OURS, "k") is not None
    assert (await second.append(output("running", chunk()))).first == 4
    assert (await second.append(new("next"))).head.uid == "next"
    await second.close()


async def test_closing_writes_what_waits(durable: Adapter, clock: HeldClock, tmp_path: Path) -> None:
    first = durable.make(tmp_path, clock)
    await first.open()
    pending = [first.append(new(f"u{n}")) for n in range(100)]
    await first.close()
    assert len([await appended for appended in pending]) == 100
    second = durable.make(tmp_path, clock)
    await second.open()
    assert (await second.list(OURS, Query())).total == 100
    await second.close()


async def test_a_closed_store_refuses_appends(durable: Adapter, clock: HeldClock, tmp_path: Path) -> None:
    store = durable.make(tmp_path, clock)
    await store.open()
    await store.close()
    with pytest.raises(StoreError):
        await store.append(new("u"))
    await store.close()
