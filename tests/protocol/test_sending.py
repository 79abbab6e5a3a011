"""Sending: what comes back, when, and to whom, in every version over every binding."""

import asyncio
import json
import re
from typing import Any

import pytest

from tests.protocol.speaking import SPEAKERS, Refused, Speaker, serving, violations
from tests.protocol.stage import Stage

pytestmark = pytest.mark.anyio


@pytest.mark.proves("W-001", "W-010", "W-035", "W-065", "W-072", "W-092", "W-109")
async def test_a_send_answers_one_task_with_everything_in_it(speaker: Speaker) -> None:
    seen = await speaker.send("count 3")
    assert seen.kind == "task" and seen.state == "COMPLETED"
    assert seen.id and seen.context
    assert seen.artifacts == ["0 1 2 "]
    assert seen.history == ["count 3"]
    assert seen.words == ""
    assert (await speaker.get(seen.id)).raw == seen.raw


@pytest.mark.proves("W-001", "W-037", "W-065", "S-4-19")
async def test_a_direct_answer_is_one_message_and_no_task(speaker: Speaker) -> None:
    seen = await speaker.send("direct", now=True)
    assert seen.kind == "message" and seen.words == "At once"
    assert seen.context and seen.id == ""


@pytest.mark.proves("W-034", "S-4-17")
@pytest.mark.parametrize(
    ("text", "state"),
    [
        ("echo hi", "COMPLETED"),
        ("fail", "FAILED"),
        ("reject", "REJECTED"),
        ("ask", "INPUT_REQUIRED"),
        ("login", "AUTH_REQUIRED"),
    ],
)
async def test_a_waiting_send_returns_once_the_task_ended_or_waits_for_somebody(
    speaker: Speaker, text: str, state: str
) -> None:
    assert (await speaker.send(text)).state == state


@pytest.mark.proves("W-034", "S-4-17")
async def test_a_waiting_send_does_not_return_while_the_task_works(speaker: Speaker) -> None:
    sending = asyncio.ensure_future(speaker.send("wait"))
    await speaker.stage.working.wait()
    assert not sending.done()
    speaker.stage.gate.set()
    assert (await sending).state == "COMPLETED"


@pytest.mark.proves("W-036")
async def test_a_send_that_does_not_wait_returns_as_soon_as_there_is_a_task(speaker: Speaker) -> None:
    seen = await speaker.send("wait", now=True)
    assert seen.state in ("SUBMITTED", "WORKING")
    speaker.stage.gate.set()
    assert (await speaker.settled(seen.id)).artifacts == ["waited"]


@pytest.mark.proves("W-037")
async def test_not_waiting_changes_nothing_for_a_stream(speaker: Speaker) -> None:
    async with speaker.stream("count 2", now=True) as stream:
        events = await stream.rest()
    assert events[-1].state == "COMPLETED"


@pytest.mark.proves("W-071")
async def test_every_new_task_has_an_id_of_its_own(speaker: Speaker) -> None:
    message = speaker.sending("echo same")
    found = {speaker.read_result(await speaker.call("send", message)).id for _ in range(5)}
    assert len(found) == 5


class TestFollowUps:
    @pytest.mark.proves("W-002")
    @pytest.mark.parametrize("text", ["echo hi", "fail", "reject"])
    async def test_a_finished_task_takes_no_message(self, speaker: Speaker, text: str) -> None:
        seen = await speaker.send(text)
        with pytest.raises(Refused) as caught:
            await speaker.send("more", taskId=seen.id)
        assert caught.value.code == -32004
        assert (await speaker.get(seen.id)).raw == seen.raw

    @pytest.mark.proves("W-002")
    async def test_a_canceled_task_takes_no_message(self, speaker: Speaker) -> None:
        seen = await speaker.send("ask")
        await speaker.cancel(seen.id)
        with pytest.raises(Refused) as caught:
            await speaker.send("more", taskId=seen.id)
        assert caught.value.code == -32004

    @pytest.mark.proves("W-003", "W-053", "W-074")
    async def test_an_unknown_task_takes_no_message_and_makes_none(self, speaker: Speaker) -> None:
        with pytest.raises(Refused) as caught:
            await speaker.send("hello", taskId="nobody-made-this")
        assert caught.value.code == -32001
        assert not speaker.stage.runs

    @pytest.mark.proves("W-075", "W-134")
    @pytest.mark.parametrize(
        ("text", "answer", "end"), [("ask", "blue", "You said blue"), ("login", "done", "logged in")]
    )
    async def test_a_question_is_answered_by_naming_only_the_task(
        self, speaker: Speaker, text: str, answer: str, end: str
    ) -> None:
        asked = await speaker.send(text)
        told = await speaker.send(answer, taskId=asked.id)
        assert (told.id, told.context, told.state) == (asked.id, asked.context, "COMPLETED")
        assert told.artifacts == [end]
        assert told.history == [text, asked.words, answer]

    @pytest.mark.proves("W-076")
    async def test_a_context_that_is_not_the_tasks_is_refused(self, speaker: Speaker) -> None:
        asked = await speaker.send("ask")
        with pytest.raises(Refused) as caught:
            await speaker.send("blue", taskId=asked.id, contextId="another")
        assert caught.value.code == -32602
        told = await speaker.send("blue", taskId=asked.id, contextId=asked.context)
        assert told.state == "COMPLETED"

    async def test_messages_to_a_working_task_wait_for_their_turn(self, speaker: Speaker) -> None:
        first = await speaker.send("wait", now=True)
        await speaker.send("echo second", taskId=first.id, now=True)
        speaker.stage.gate.set()
        assert (await speaker.settled(first.id)).artifacts == ["waited", "echo second"]


class TestContexts:
    @pytest.mark.proves("W-065")
    async def test_a_context_of_the_clients_is_kept(self, speaker: Speaker) -> None:
        assert (await speaker.send("echo hi", contextId="mine")).context == "mine"
        assert (await speaker.send("direct", contextId="mine")).context == "mine"

    @pytest.mark.proves("W-066")
    async def test_a_refused_context_is_an_error_and_nothing_else(self, speaker: Speaker) -> None:
        with pytest.raises(Refused) as caught:
            await speaker.send("echo hi", contextId="line\r\nbreak")
        assert caught.value.code == -32602
        assert not speaker.stage.runs

    @pytest.mark.proves("W-069", "W-079")
    async def test_a_new_task_in_a_context_knows_the_conversation(self, speaker: Speaker) -> None:
        first = await speaker.send("echo earlier")
        second = await speaker.send("context", contextId=first.context)
        assert second.context == first.context and second.id != first.id
        assert "echo earlier" in told(second)["earlier"]
        assert told(await speaker.send("context"))["earlier"] == []

    @pytest.mark.proves("W-078")
    async def test_references_reach_the_agent(self, modern: Speaker) -> None:
        first = await modern.send("echo earlier")
        second = await modern.send("context", referenceTaskIds=[first.id])
        assert told(second)["references"] == [first.id]


class TestHistory:
    @pytest.mark.proves("W-039")
    async def test_the_most_recent_messages_are_kept(self, speaker: Speaker) -> None:
        asked = await speaker.send("ask")
        whole = await speaker.send("blue", taskId=asked.id)
        assert whole.history == ["ask", "Which one?", "blue"]
        assert (await speaker.get(asked.id, history=2)).history == ["Which one?", "blue"]
        assert (await speaker.get(asked.id, history=99)).history == whole.history
        assert (await speaker.send("echo hi", history=1)).history == ["echo hi"]

    @pytest.mark.proves("W-038")
    async def test_none_is_no_member(self, modern: Speaker) -> None:
        seen = await modern.send("echo hi", history=0)
        assert "history" not in seen.raw
        assert "history" not in (await modern.get(seen.id, history=0)).raw

    @pytest.mark.proves("W-050", "W-051")
    async def test_less_than_none_is_refused(self, modern: Speaker) -> None:
        with pytest.raises(Refused) as caught:
            await modern.send("echo hi", history=-1)
        assert caught.value.code == -32602
        assert "historyLength" in violations(caught.value)[0]["field"]


class TestContent:
    @pytest.mark.proves("W-004")
    @pytest.mark.parametrize("pair", SPEAKERS, ids="-".join)
    async def test_a_media_type_the_agent_does_not_take_is_refused(self, pair: tuple[str, str]) -> None:
        async with serving(Stage(input_modes=["text/plain"])) as (stage, app):
            speaker = Speaker(*pair, stage, app)
            with pytest.raises(Refused) as caught:
                await speaker.send("look", pdf(speaker))
            assert caught.value.code == -32005
            assert "text/plain" in caught.value.message
            assert not stage.runs
            assert (await speaker.send("echo text")).state == "COMPLETED"

    @pytest.mark.proves("W-040")
    async def test_wanted_output_modes_reach_the_agent(self, speaker: Speaker) -> None:
        assert told(await speaker.send("context", modes=["text/html", "text/plain"]))["modes"] == [
            "text/html",
            "text/plain",
        ]

    @pytest.mark.proves("W-095", "W-097")
    async def test_every_kind_of_part_comes_back_as_it_went(self, modern: Speaker) -> None:
        parts: list[dict[str, Any]] = [
            {"text": "", "metadata": {"k": [1, None]}},
            {"raw": "AP8=", "mediaType": "application/octet-stream", "filename": "bytes"},
            {"url": "https://example.com/a%20file", "mediaType": "text/html"},
            {"data": {"n": 12345678901234567, "f": 0.1, "deep": [{"x": None}]}},
            {"data": None},
            {"data": [1, 2]},
        ]
        seen = await modern.send(*parts)
        (artifact,) = seen.raw["artifacts"]
        assert artifact["parts"] == parts
        assert b"12345678901234567" in modern.last.body

    @pytest.mark.proves("W-097", "W-050", "W-051", "W-052", "W-058", "W-120", "W-121", "W-168", "W-180")
    @pytest.mark.parametrize(
        ("part", "field"),
        [
            ({"text": "a", "url": "https://example.com"}, "message.parts[0]"),
            ({}, "message.parts[0]"),
            ({"text": 5}, "message.parts[0].text"),
        ],
    )
    async def test_a_part_has_exactly_one_content(self, modern: Speaker, part: dict[str, Any], field: str) -> None:
        with pytest.raises(Refused) as caught:
            await modern.send(part)
        assert caught.value.code == -32602
        (violation,) = violations(caught.value)
        assert violation["field"] == field
        assert violation["description"]
        assert not modern.stage.runs

    @pytest.mark.proves("W-096", "W-120", "W-121")
    @pytest.mark.parametrize("missing", ["messageId", "role", "parts"])
    async def test_required_members_must_be_there(self, modern: Speaker, missing: str) -> None:
        params = modern.sending("echo hi")
        del params["message"][missing]
        with pytest.raises(Refused) as caught:
            await modern.call("send", params)
        assert caught.value.code == -32602
        assert violations(caught.value)[0]["field"] == f"message.{missing}"
        assert not modern.stage.runs

    @pytest.mark.proves("W-096", "W-121")
    async def test_a_message_has_at_least_one_part(self, speaker: Speaker) -> None:
        with pytest.raises(Refused) as caught:
            await speaker.send()
        assert caught.value.code == -32602
        assert not speaker.stage.runs

    @pytest.mark.proves("W-122")
    async def test_unknown_members_are_ignored(self, speaker: Speaker) -> None:
        params = speaker.sending("echo hi")
        params |= {"surprise": {"deep": [1]}}
        params["message"] |= {"surprise": 1}
        assert speaker.read_result(await speaker.call("send", params)).state == "COMPLETED"

    @pytest.mark.proves("W-114", "W-115", "W-116", "W-117", "W-118", "W-119")
    async def test_names_enums_and_times_are_spelled_as_1_0_says(self, modern: Speaker) -> None:
        seen = await modern.send("ask", contextId="c")
        assert seen.raw["status"]["state"] == "TASK_STATE_INPUT_REQUIRED"
        assert seen.raw["status"]["message"]["role"] == "ROLE_AGENT"
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", seen.raw["status"]["timestamp"])
        for name in members(seen.raw):
            assert re.fullmatch(r"[a-z][a-zA-Z0-9]*", name)

    @pytest.mark.proves("W-096")
    async def test_artifact_ids_are_unique_in_a_task_and_nothing_is_without_parts(self, speaker: Speaker) -> None:
        first = await speaker.send("wait", now=True)
        await speaker.send("count 2", taskId=first.id, now=True)
        speaker.stage.gate.set()
        seen = await speaker.settled(first.id)
        ids = [artifact["artifactId"] for artifact in seen.raw["artifacts"]]
        assert len(set(ids)) == len(ids) == 2
        for holder in (*seen.raw["artifacts"], *seen.raw["history"]):
            assert holder.get("parts") or holder.get("content")


class TestIdempotency:
    @pytest.mark.proves("D-5-9")
    async def test_a_key_gets_the_same_task_and_another_body_an_error(self, speaker: Speaker) -> None:
        params = speaker.sending("echo hi")
        key = {"idempotency-key": "once"}
        first = speaker.read_result(await speaker.call("send", params, key))
        assert speaker.read_result(await speaker.call("send", params, key)).id == first.id
        with pytest.raises(Refused) as caught:
            await speaker.call("send", speaker.sending("echo other"), key)
        assert caught.value.code == -32602
        assert speaker.stage.runs == ["echo hi"]


@pytest.mark.proves("W-216", "S-9-8")
async def test_an_address_in_a_message_is_carried_and_not_fetched(speaker: Speaker) -> None:
    """Whoever could make us fetch could make us knock at doors only we can reach."""
    knocks: list[object] = []

    async def knocked(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        knocks.append(writer)
        writer.close()

    async with await asyncio.start_server(knocked, "127.0.0.1", 0) as door:
        url = f"http://127.0.0.1:{door.sockets[0].getsockname()[1]}/file.txt"
        seen = await speaker.send(link(speaker, url))
        assert seen.state == "COMPLETED"
        assert url in json.dumps(seen.raw["artifacts"])
    assert not knocks


def link(speaker: Speaker, url: str) -> dict[str, Any]:
    if speaker.modern:
        return {"url": url, "mediaType": "text/plain"}
    if speaker.rest:
        return {"file": {"fileWithUri": url, "mimeType": "text/plain"}}
    return {"kind": "file", "file": {"uri": url, "mimeType": "text/plain"}}


def pdf(speaker: Speaker) -> dict[str, Any]:
    if speaker.modern:
        return {"raw": "AP8=", "mediaType": "application/pdf"}
    if speaker.rest:
        return {"file": {"fileWithBytes": "AP8=", "mimeType": "application/pdf"}}
    return {"kind": "file", "file": {"bytes": "AP8=", "mimeType": "application/pdf"}}


def told(seen: Any) -> dict[str, Any]:
    """What the context skill said."""
    (part,) = seen.raw["artifacts"][0].get("parts") or seen.raw["artifacts"][0]["content"]
    data = part["data"]
    return data["data"] if isinstance(data, dict) and set(data) == {"data"} else data


def members(value: Any) -> set[str]:
    if isinstance(value, dict):
        return {*value} | {name for each in value.values() for name in members(each)}
    return {name for each in value for name in members(each)} if isinstance(value, list) else set()


async def test_the_readers_agree_that_json_is_json(speaker: Speaker) -> None:
    """The harness reads what a client would: the answer is JSON in the media type it claims."""
    await speaker.send("echo hi")
    assert speaker.last.headers["content-type"] == "application/json"
    json.loads(speaker.last.body)
