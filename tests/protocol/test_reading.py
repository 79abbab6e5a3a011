"""Reading: one task, and lists of them with filters, pages, order and totals. Reading changes nothing."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from dragoman.model.stamps import moment, stamp
from tests.protocol.speaking import SPEAKERS, Refused, Speaker, serving, violations

pytestmark = pytest.mark.anyio

# 0.3 has no method to list over JSON-RPC; its HTTP+JSON names one.
LISTERS = [pair for pair in SPEAKERS if pair != ("0.3", "JSONRPC")]


@pytest.fixture(params=LISTERS, ids="-".join)
async def lister(request: pytest.FixtureRequest) -> AsyncIterator[Speaker]:
    version, binding = request.param
    async with serving() as (stage, app):
        yield Speaker(version, binding, stage, app)


def ids(page: dict[str, Any]) -> list[str]:
    return [task["id"] for task in page["tasks"]]


async def pages(speaker: Speaker, size: int, **filters: Any) -> list[dict[str, Any]]:
    found = [await speaker.list(pageSize=size, **filters)]
    while token := found[-1].get("nextPageToken"):
        found.append(await speaker.list(pageSize=size, pageToken=token, **filters))
    return found


class TestGet:
    @pytest.mark.proves("W-010")
    async def test_a_task_is_told_as_it_is_now(self, speaker: Speaker) -> None:
        async with speaker.stream("steps") as stream:
            first = await stream.next()
            await speaker.stage.working.wait()
            assert first is not None
            half = await speaker.settled(first.id, "WORKING")
            assert (half.state, half.artifacts, half.words) == ("WORKING", ["before "], "Half way")
            speaker.stage.gate.set()
            await stream.rest()
        done = await speaker.get(first.id)
        assert (done.state, done.artifacts, done.context) == ("COMPLETED", ["before after"], first.context)

    @pytest.mark.proves("W-010", "W-053")
    async def test_an_unknown_task_is_not_found(self, speaker: Speaker) -> None:
        with pytest.raises(Refused) as caught:
            await speaker.get("nobody-made-this")
        assert caught.value.code == -32001

    @pytest.mark.proves("W-042")
    async def test_reading_changes_nothing(self, lister: Speaker) -> None:
        asked = await lister.send("ask")
        before = await lister.list()
        for _ in range(3):
            assert (await lister.get(asked.id)).raw == (await lister.get(asked.id)).raw
            with pytest.raises(Refused):
                await lister.get("nobody-made-this")
            with pytest.raises(Refused):
                await lister.call("card", {})
            assert await lister.list() == before
        assert (await lister.send("blue", taskId=asked.id)).state == "COMPLETED"


class TestMembers:
    @pytest.mark.proves("W-011")
    @pytest.mark.parametrize("filters", [{}, {"includeArtifacts": False}], ids=["absent", "false"])
    async def test_artifacts_are_left_out_unless_asked_for(self, lister: Speaker, filters: dict[str, Any]) -> None:
        await lister.send("echo hi")
        await lister.send("ask")
        for task in (await lister.list(**filters))["tasks"]:
            assert "artifacts" not in task
            assert task["status"]["state"]

    @pytest.mark.proves("W-012")
    async def test_artifacts_asked_for_are_a_member_even_where_there_are_none(self, modern: Speaker) -> None:
        full = await modern.send("count 2")
        bare = await modern.send("ask")
        listed = await modern.list(includeArtifacts=True)
        found = {task["id"]: task["artifacts"] for task in listed["tasks"]}
        assert found == {full.id: full.raw["artifacts"], bare.id: []}

    @pytest.mark.proves("W-013", "W-095")
    async def test_a_page_has_its_four_members_even_when_it_is_empty(self, modern: Speaker) -> None:
        assert await modern.list() == {"tasks": [], "nextPageToken": "", "pageSize": 50, "totalSize": 0}
        await modern.send("echo hi")
        page = await modern.list(pageSize=1)
        assert (page["nextPageToken"], page["pageSize"], page["totalSize"]) == ("", 1, 1)

    @pytest.mark.proves("W-038", "W-039")
    async def test_history_is_cut_in_lists_too(self, modern: Speaker) -> None:
        asked = await modern.send("ask")
        await modern.send("blue", taskId=asked.id)

        async def told(**filters: Any) -> list[str]:
            (task,) = (await modern.list(**filters))["tasks"]
            return [part["text"] for message in task.get("history", []) for part in message["parts"]]

        assert await told() == ["ask", "Which one?", "blue"]
        assert await told(historyLength=2) == ["Which one?", "blue"]
        assert "history" not in (await modern.list(historyLength=0))["tasks"][0]


class TestFilters:
    @pytest.mark.proves("W-069")
    async def test_a_context_keeps_to_its_tasks(self, lister: Speaker) -> None:
        first = await lister.send("echo one")
        second = await lister.send("echo two", contextId=first.context)
        await lister.send("echo three")
        assert ids(await lister.list(contextId=first.context)) == [second.id, first.id]
        assert ids(await lister.list(contextId="nobodys")) == []

    async def test_a_status_keeps_to_its_tasks_and_filters_combine(self, lister: Speaker) -> None:
        done = await lister.send("echo one")
        asked = await lister.send("ask", contextId=done.context)
        other = await lister.send("ask")
        waiting = "TASK_STATE_INPUT_REQUIRED"
        assert ids(await lister.list(status="TASK_STATE_COMPLETED")) == [done.id]
        assert ids(await lister.list(status=waiting)) == [other.id, asked.id]
        assert ids(await lister.list(status=waiting, contextId=done.context)) == [asked.id]
        assert ids(await lister.list(status="TASK_STATE_WORKING")) == []

    @pytest.mark.proves("W-018", "W-118")
    async def test_since_a_time_is_of_that_time_or_later(self, modern: Speaker) -> None:
        sent = [await modern.send(f"echo {n}") for n in range(4)]
        at = {seen.id: moment(seen.raw["status"]["timestamp"]) for seen in sent}
        for bound in {*at.values(), min(at.values()) - 1, max(at.values()) + 1}:
            found = ids(await modern.list(statusTimestampAfter=stamp(bound)))
            assert set(found) == {id for id, time in at.items() if time >= bound}
        assert ids(await modern.list(statusTimestampAfter="2000-01-01T02:00:00+02:00")) == ids(await modern.list())

    @pytest.mark.proves("W-050", "W-051", "W-052")
    @pytest.mark.parametrize(
        ("filters", "field", "hint"),
        [
            ({"status": "RUNNING"}, "status", "TASK_STATE_WORKING"),
            ({"statusTimestampAfter": "yesterday"}, "statusTimestampAfter", "2026-02-03T04:05:06Z"),
            ({"statusTimestampAfter": "2026-01-01T00:00:00"}, "statusTimestampAfter", "2026-02-03T04:05:06Z"),
            ({"pageToken": "made-up"}, "pageToken", ""),
            ({"historyLength": -1}, "historyLength", ""),
        ],
    )
    async def test_a_filter_without_sense_is_named_and_not_dropped(
        self, modern: Speaker, filters: dict[str, Any], field: str, hint: str
    ) -> None:
        await modern.send("echo hi")
        with pytest.raises(Refused) as caught:
            await modern.list(**filters)
        assert caught.value.code == -32602
        (violation,) = violations(caught.value)
        assert violation["field"] == field
        assert hint in violation["description"]


class TestPages:
    @pytest.mark.proves("W-017")
    async def test_fifty_tasks_are_a_page_and_a_hundred_the_most(self, modern: Speaker) -> None:
        for n in range(51):
            await modern.send(f"echo {n}", now=True)
        page = await modern.list()
        assert (len(page["tasks"]), page["pageSize"], page["totalSize"]) == (50, 50, 51)
        assert len((await modern.list(pageSize=100))["tasks"]) == 51
        assert len((await modern.list(pageSize=1))["tasks"]) == 1

    @pytest.mark.proves("W-017", "W-050", "W-051", "W-052")
    @pytest.mark.parametrize("size", [0, -1, 101, 2**40])
    async def test_another_page_size_is_refused(self, modern: Speaker, size: int) -> None:
        with pytest.raises(Refused) as caught:
            await modern.list(pageSize=size)
        assert caught.value.code == -32602
        (violation,) = violations(caught.value)
        assert violation["field"] == "pageSize"
        assert "100" in violation["description"]

    @pytest.mark.proves("W-013", "W-015")
    async def test_pages_have_every_task_once_and_the_last_says_so(self, lister: Speaker) -> None:
        sent = [(await lister.send(f"echo {n}")).id for n in range(7)]
        found = await pages(lister, 3)
        assert [len(page["tasks"]) for page in found] == [3, 3, 1]
        assert [id for page in found for id in ids(page)] == sent[::-1]
        assert {page.get("totalSize") for page in found} == {7}

    @pytest.mark.proves("W-015")
    async def test_tasks_that_appear_meanwhile_neither_repeat_nor_hide_any(self, lister: Speaker) -> None:
        sent = [(await lister.send(f"echo {n}")).id for n in range(5)]
        page = await lister.list(pageSize=2)
        found = ids(page)
        while token := page.get("nextPageToken"):
            await lister.send("echo meanwhile")
            page = await lister.list(pageSize=2, pageToken=token)
            found += ids(page)
        assert found == sent[::-1]

    async def test_totals_count_what_the_filters_leave(self, modern: Speaker) -> None:
        for n in range(3):
            await modern.send(f"echo {n}", contextId="c")
        await modern.send("ask", contextId="c")
        await modern.send("ask")
        for filters, total in (
            ({}, 5),
            ({"contextId": "c"}, 4),
            ({"status": "TASK_STATE_INPUT_REQUIRED"}, 2),
            ({"contextId": "c", "status": "TASK_STATE_INPUT_REQUIRED"}, 1),
            ({"statusTimestampAfter": "2999-01-01T00:00:00Z"}, 0),
        ):
            for page in await pages(modern, 1, **filters):
                assert page["totalSize"] == total


class TestOrder:
    @pytest.mark.proves("W-016")
    async def test_the_newest_status_comes_first(self, lister: Speaker) -> None:
        asked = await lister.send("ask")
        done = await lister.send("echo hi")
        assert ids(await lister.list()) == [done.id, asked.id]
        await lister.cancel(asked.id)
        listed = await lister.list()
        times = [task["status"]["timestamp"] for task in listed["tasks"]]
        assert times == sorted(times, reverse=True)
        if times[0] > times[1]:  # a cancel within the same millisecond is no newer
            assert ids(listed) == [asked.id, done.id]


@pytest.mark.proves("W-049", "W-053", "W-054", "D-2-12")
async def test_somebody_elses_task_answers_as_one_that_never_was(speaker: Speaker) -> None:
    """A tenant is the boundary there is without authentication; the answers are compared byte for byte."""
    seen = await speaker.send("ask", tenant="theirs")
    never = "00000000-0000-7000-8000-000000000000"
    for operation in ("get", "cancel", "subscribe"):
        answers = set[bytes]()
        for id in (seen.id, never):
            verb, path, body = speaker.spelled(operation, {"id": id})
            if not speaker.rest:
                body["id"] = 1
            response = await speaker.ask(verb, path, body)
            answers.add(response.body.replace(id.encode(), b"ID"))
        assert len(answers) == 1
    for id in (seen.id, never):
        with pytest.raises(Refused) as caught:
            await speaker.send("hello", taskId=id)
        assert (caught.value.code, caught.value.message) == (-32001, "Task not found")
    assert (await speaker.get(seen.id, tenant="theirs")).state == "INPUT_REQUIRED"


@pytest.mark.proves("W-014", "D-2-12")
async def test_a_list_shows_its_callers_tasks_and_counts_no_others(lister: Speaker) -> None:
    theirs = await lister.send("echo theirs", tenant="theirs")
    mine = await lister.send("echo mine")
    assert ids(await lister.list()) == [mine.id]
    assert ids(await lister.list(tenant="theirs")) == [theirs.id]
    assert ids(await lister.list(tenant="nobodys")) == []
    assert (await lister.list()).get("totalSize") == 1
    assert ids(await lister.list(contextId=theirs.context)) == []
