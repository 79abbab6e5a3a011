"""One suite, every store."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from dragoman.ports import HookedStore
from tests.conformance.store.adapters import ADAPTERS, Adapter, HeldClock


@pytest.fixture
def clock() -> HeldClock:
    return HeldClock()


@pytest.fixture(params=ADAPTERS, ids=lambda adapter: adapter.name)
def adapter(request: pytest.FixtureRequest) -> Adapter:
    return request.param


@pytest.fixture(params=[a for a in ADAPTERS if a.durable], ids=lambda adapter: adapter.name)
def durable(request: pytest.FixtureRequest) -> Adapter:
    return request.param


@pytest.fixture
async def store(adapter: Adapter, clock: HeldClock, tmp_path: Path) -> AsyncIterator[HookedStore]:
    store = adapter.make(tmp_path, clock)
    await store.open()
    yield store
    await store.close()
