"""Every version over every binding."""

from collections.abc import AsyncIterator

import pytest

from tests.protocol.speaking import SPEAKERS, Speaker, serving


@pytest.fixture(params=SPEAKERS, ids="-".join)
async def speaker(request: pytest.FixtureRequest) -> AsyncIterator[Speaker]:
    version, binding = request.param
    async with serving() as (stage, app):
        yield Speaker(version, binding, stage, app)


@pytest.fixture(params=SPEAKERS[:2], ids="-".join)
async def modern(request: pytest.FixtureRequest) -> AsyncIterator[Speaker]:
    """1.0 only, for what only 1.0 says."""
    version, binding = request.param
    async with serving() as (stage, app):
        yield Speaker(version, binding, stage, app)
