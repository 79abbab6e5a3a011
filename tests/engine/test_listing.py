"""How much one page of a list may hold."""

import pytest

from dragoman.engine.limits import Limits
from dragoman.model.messages import Artifact, Part
from dragoman.model.operations import TaskPage
from dragoman.ports import TurnHandle
from tests.engine.rig import Rig, rig

pytestmark = pytest.mark.anyio


async def heavy(turn: TurnHandle) -> None:
    await turn.artifact(Artifact(artifact_id="a", parts=(Part(text="x" * 5_000),)))


async def pages(rig: Rig, size: int) -> list[TaskPage]:
    found = [await rig.list(page_size=size, include_artifacts=True)]
    while token := found[-1].next_page_token:
        found.append(await rig.list(page_size=size, include_artifacts=True, page_token=token))
    return found


async def test_a_page_ends_where_it_weighs_enough_and_the_next_goes_on_there() -> None:
    async with rig(heavy, limits=Limits(page_bytes=500_000)) as here:
        sent = [(await here.send()).task.id for _ in range(250)]
        found = await pages(here, 1_000)
        assert [view.task.id for page in found for view in page.views] == sent[::-1]
        *full, last = (len(page.views) for page in found)
        assert len(full) == 2 and all(90 < count <= 100 for count in full) and last < 70
        assert {page.total for page in found} == {250} and {page.page_size for page in found} == {1_000}


async def test_a_page_of_light_tasks_is_as_long_as_was_asked_for() -> None:
    async with rig(heavy) as here:
        sent = [(await here.send()).task.id for _ in range(230)]
        assert [len(page.views) for page in await pages(here, 220)] == [220, 10]
        (whole,) = await pages(here, 10_000)
        assert [view.task.id for view in whole.views] == sent[::-1] and whole.total == 230
