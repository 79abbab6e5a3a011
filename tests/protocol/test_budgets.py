"""What one caller may have, over every binding in every version; the refusal names the limit."""

import pytest

from tests.protocol.speaking import SPEAKERS, Refused, Speaker, serving

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(("version", "binding"), SPEAKERS)
async def test_a_task_too_many_is_refused_until_one_ends(version: str, binding: str) -> None:
    async with serving(limit_tasks_per_caller=1) as (stage, app):
        speaker = Speaker(version, binding, stage, app)
        asked = await speaker.send("ask")
        with pytest.raises(Refused) as caught:
            await speaker.send("echo hi")
        refused = caught.value
        assert "unfinished" in refused.message
        assert refused.response.status == 429
        assert int(refused.response.headers["retry-after"]) > 0
        if version == "1.0":
            reached = next(each for each in refused.details or () if each["@type"].endswith("QuotaFailure"))
            assert reached["violations"][0]["subject"] == "limits.tasks_per_caller"
        await speaker.cancel(asked.id)
        assert (await speaker.send("echo hi")).state == "COMPLETED"


@pytest.mark.parametrize(("version", "binding"), SPEAKERS)
async def test_more_than_a_caller_may_keep_is_refused(version: str, binding: str) -> None:
    async with serving(limit_bytes_per_caller="4KiB") as (stage, app):
        speaker = Speaker(version, binding, stage, app)
        with pytest.raises(Refused) as caught:
            await speaker.send("echo " + "x" * 5_000)
        assert caught.value.response.status == 429
        assert "4096 bytes" in caught.value.message
        assert (await speaker.send("echo hi")).state == "COMPLETED"
