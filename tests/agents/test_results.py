"""What a handler returns or yields becomes artifacts, messages and ends."""

from collections.abc import AsyncIterator, Generator
from dataclasses import dataclass
from typing import Any

import msgspec
import pytest

from dragoman.agents import Agent, Reply, Turn
from dragoman.model.messages import Artifact, Message, Part
from dragoman.model.tasks import TaskState, Usage
from tests.agents.handle import run, said, words

pytestmark = pytest.mark.anyio


class Rate(msgspec.Struct):
    pair: str
    value: float


@dataclass
class Point:
    x: int


@pytest.mark.proves("D-6-1")
@pytest.mark.parametrize(
    ("result", "part"),
    [
        ("text", Part(text="text")),
        (b"bytes", Part(raw=b"bytes", media_type="application/octet-stream")),
        ({"a": 1}, Part(data={"a": 1})),
        (Part(url="https://x.test/a.png"), Part(url="https://x.test/a.png")),
        (Rate("EURUSD", 1.1), Part(data={"pair": "EURUSD", "value": 1.1})),
        (Point(3), Part(data={"x": 3})),
        ([1, 2], Part(data=[1, 2])),
        (False, Part(data=False)),
        (TaskState.WORKING, Part(text="TASK_STATE_WORKING")),
    ],
)
async def test_a_returned_value_is_one_whole_artifact(result: Any, part: Part) -> None:
    agent = Agent("a")

    @agent.skill
    async def give(turn: Turn) -> Any:
        return result

    turn = await run(agent)
    assert turn.log == [(Artifact(artifact_id="23456789-1", parts=(part,)), False, True)]
    assert turn.end[0] is TaskState.COMPLETED


async def test_returning_nothing_completes_without_an_artifact() -> None:
    agent = Agent("a")

    @agent.skill
    async def give(turn: Turn) -> None: ...

    turn = await run(agent)
    assert turn.log == []


@pytest.mark.proves("D-6-1")
async def test_a_list_of_parts_is_one_artifact_and_a_list_of_artifacts_several() -> None:
    agent = Agent("a")

    @agent.skill
    async def parts(turn: Turn) -> list[Part]:
        return [Part(text="a"), Part(data=1)]

    @agent.skill
    async def artifacts(turn: Turn) -> list[Artifact]:
        return [Artifact(name="one", parts=(Part(text="1"),)), Artifact(artifact_id="two", parts=(Part(text="2"),))]

    one = await run(agent, said("x", metadata={"skill": "parts"}))
    assert [len(each.parts) for each in one.artifacts] == [2]
    two = await run(agent, said("x", metadata={"skill": "artifacts"}))
    assert [each.artifact_id for each in two.artifacts] == ["23456789-1", "two"]


@pytest.mark.proves("S-4-21")
@pytest.mark.parametrize("answer", [Reply("done", {"n": 1}), Message(parts=(Part(text="done"), Part(data={"n": 1})))])
async def test_a_returned_reply_or_message_becomes_the_last_status_message(answer: Any) -> None:
    agent = Agent("a")

    @agent.skill
    async def give(turn: Turn) -> Any:
        return answer

    turn = await run(agent)
    assert turn.log == []
    assert turn.end == (TaskState.COMPLETED, (Part(text="done"), Part(data={"n": 1})), None)


async def test_what_cannot_be_sent_is_an_error_that_says_what_can() -> None:
    agent = Agent("a")

    @agent.skill
    async def give(turn: Turn) -> object:
        return object()

    with pytest.raises(TypeError, match="A object cannot be sent; use str"):
        await run(agent)


@pytest.mark.proves("S-12-7")
async def test_plain_yields_grow_one_artifact_and_an_empty_last_chunk_closes_it() -> None:
    agent = Agent("a")

    @agent.skill
    async def count(turn: Turn) -> AsyncIterator[Any]:
        yield "one "
        yield ""
        yield None
        yield "two"
        yield {"three": 3}

    turn = await run(agent)
    assert turn.chunks == [("one ", False, False), ("two", True, False), ("", True, False), ("", True, True)]
    assert {each.artifact_id for each in turn.artifacts} == {"23456789-1"}
    assert turn.artifacts[2].parts == (Part(data={"three": 3}),)


@pytest.mark.proves("D-6-1")
async def test_a_yielded_artifact_stands_alone_and_a_yielded_message_is_said() -> None:
    agent = Agent("a")

    @agent.skill
    async def mix(turn: Turn) -> AsyncIterator[Any]:
        yield "a"
        yield Artifact(name="table", parts=(Part(text="t"),))
        yield Reply("half way")
        yield Message(parts=(Part(text="nearly"),))
        yield "b"

    turn = await run(agent)
    ids = [each.artifact_id for each in turn.artifacts]
    assert ids == ["23456789-1", "23456789-2", "23456789-1", "23456789-1"]
    assert turn.chunks[1] == ("t", False, True)
    assert [each for each in turn.log if each[0] == "say"] == [("say", "half way"), ("say", "nearly")]


async def test_a_generator_that_yields_nothing_plain_closes_nothing() -> None:
    agent = Agent("a")

    @agent.skill
    async def quiet(turn: Turn) -> AsyncIterator[Artifact]:
        yield Artifact(artifact_id="own", parts=(Part(text="t"),))

    assert (await run(agent)).chunks == [("t", False, True)]


async def test_a_rerun_gives_its_artifacts_the_same_ids() -> None:
    agent = Agent("a")

    @agent.skill
    async def work(turn: Turn) -> AsyncIterator[Any]:
        yield "before"
        await turn.artifact("table", "t")
        yield " and after"

    first, second = await run(agent), await run(agent)
    assert [each.artifact_id for each in first.artifacts] == [each.artifact_id for each in second.artifacts]


async def test_named_artifacts_grow_by_name_or_id() -> None:
    agent = Agent("a")
    ids: list[str] = []

    @agent.skill
    async def work(turn: Turn) -> None:
        ids.append(await turn.artifact("log", "1", last_chunk=False, description="d", metadata={"m": 1}))
        ids.append(await turn.artifact("log", "2", append=True, last_chunk=False))
        ids.append(await turn.artifact("", "3", append=True, id=ids[0]))
        ids.append(await turn.artifact(Artifact(name="other", parts=(Part(text="o"),))))

    turn = await run(agent)
    assert turn.chunks == [("1", False, False), ("2", True, False), ("3", True, True), ("o", False, True)]
    assert ids[0] == ids[1] == ids[2] != ids[3]
    assert turn.artifacts[0].description == "d"
    assert turn.artifacts[0].metadata == {"m": 1}


async def test_appending_to_an_unknown_name_is_an_error() -> None:
    agent = Agent("a")

    @agent.skill
    async def work(turn: Turn) -> None:
        await turn.artifact("log", "2", append=True)

    with pytest.raises(ValueError, match="no artifact named 'log'"):
        await run(agent)


async def test_usage_is_reported_with_the_authors_own_counters() -> None:
    agent = Agent("a")

    @agent.skill
    async def work(turn: Turn) -> None:
        turn.usage(input_tokens=1, output_tokens=2, images=3)

    assert (await run(agent)).log == [Usage(input_tokens=1, output_tokens=2, extra={"images": 3})]


@pytest.mark.parametrize(("word", "state"), [("reject", TaskState.REJECTED), ("fail", TaskState.FAILED)])
async def test_reject_and_fail_end_the_handler_with_their_reason(word: str, state: TaskState) -> None:
    agent = Agent("a")
    went_on: list[bool] = []

    @agent.skill
    async def work(turn: Turn) -> AsyncIterator[str]:
        yield "a"
        try:
            await (turn.reject("no", metadata={"m": 1}) if word == "reject" else turn.fail("no", metadata={"m": 1}))
        except Exception:
            went_on.append(True)
        went_on.append(True)

    turn = await run(agent)
    assert turn.end == (state, (Part(text="no"),), {"m": 1})
    assert turn.chunks == [("a", False, False)]
    assert not went_on


async def test_sync_generators_stream_alike_and_may_return_a_reply() -> None:
    agent = Agent("a")

    @agent.skill
    def plain() -> Generator[str, None, str]:
        yield "a"
        yield "b"
        return "c"

    @agent.skill
    def spoken() -> Generator[str, None, Reply]:
        yield "a"
        return Reply("done")

    one = await run(agent, said("x", metadata={"skill": "plain"}))
    assert one.chunks == [("a", False, False), ("b", True, False), ("c", True, False), ("", True, True)]
    two = await run(agent, said("x", metadata={"skill": "spoken"}))
    assert two.chunks == [("a", False, False), ("", True, True)]
    assert words(two.end[1]) == "done"
