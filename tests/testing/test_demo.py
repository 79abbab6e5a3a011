"""The demo agent does what its card says, whichever way its skills are chosen."""

import pytest

from dragoman import Message, Part, Task, TaskState
from dragoman.app.profiles import PRESETS
from dragoman.demo import SKILLS, agent
from dragoman.testing import Client, text

pytestmark = pytest.mark.anyio


async def outcome(client: Client, *content: str | Part, skill: str = "") -> tuple[TaskState | None, Task]:
    task = await client.send(*content, skill=skill)
    assert isinstance(task, Task)
    return (task.status.state if task.status else None), task


@pytest.mark.parametrize(
    ("said", "state", "answer"),
    [
        ("hello there", TaskState.COMPLETED, "hello there"),
        ("echo hello", TaskState.COMPLETED, "hello"),
        ("stream 2", TaskState.COMPLETED, "chunk 1 of 2\nchunk 2 of 2\n"),
        ("stream many", TaskState.COMPLETED, "".join(f"chunk {n} of 5\n" for n in range(1, 6))),
        ("reject", TaskState.REJECTED, "This agent does not do that."),
        ("fail", TaskState.FAILED, "It did not work out."),
        ("Add", TaskState.REJECTED, "a: is required"),
        ("Add a health check endpoint", TaskState.COMPLETED, "Add a health check endpoint"),
        ("stream the log to a file", TaskState.COMPLETED, "stream the log to a file"),
    ],
)
async def test_the_first_word_chooses_what_happens(said: str, state: TaskState, answer: str) -> None:
    async with Client(agent) as client:
        found, task = await outcome(client, said)
        assert (found, text(task)) == (state, answer)


async def test_what_the_cards_of_every_profile_propose_is_done() -> None:
    proposed = [
        example for preset in PRESETS.values() for skill in preset.text.get("skills", ()) for example in skill.examples
    ]
    assert "Add unit tests for src/utils/date.ts" in proposed
    async with Client(agent) as client:
        for said in proposed:
            state, task = await outcome(client, said)
            assert (state, text(task)) == (TaskState.COMPLETED, said)


async def test_questions_and_sign_ins_wait_for_an_answer() -> None:
    async with Client(agent) as client:
        state, task = await outcome(client, "ask")
        assert state is TaskState.INPUT_REQUIRED
        assert text(await client.answer(task, "blue")) == "You like blue."
        state, task = await outcome(client, "auth")
        assert state is TaskState.AUTH_REQUIRED
        assert text(await client.answer(task, "done")) == "Thank you, you are signed in."


async def test_files_and_data_come_as_parts() -> None:
    async with Client(agent) as client:
        _, file = await outcome(client, "file")
        (part,) = file.artifacts[0].parts
        assert (part.filename, part.media_type) == ("cities.csv", "text/csv")
        assert isinstance(part.raw, bytes) and part.raw.startswith(b"city")
        _, data = await outcome(client, "data", Part(data=[1]))
        assert data.artifacts[0].parts == (Part(data={"words": ["data"], "files": 0, "received": [1]}),)
        _, echoed = await outcome(client, "echo hi", Part(data=1))
        assert echoed.artifacts[0].parts == (Part(text="hi"), Part(data=1))
        _, added = await outcome(client, Part(data={"a": 2, "b": 3}), skill="add")
        assert added.artifacts[0].parts == (Part(data={"sum": 5}),)


async def test_a_long_job_is_cancelled_at_once() -> None:
    async with Client(agent) as client:
        async for event in client.stream("long 60"):
            if event.text == "Second 1 of 60":
                break
        (task,) = (await client.list()).tasks
        cancelled = await client.cancel(task)
        assert cancelled.status is not None
        assert cancelled.status.state is TaskState.CANCELED


async def test_a_direct_skill_answers_without_a_task() -> None:
    async with Client(agent) as client:
        for said, heard in (("direct hi", "You said: hi"), ("direct", "Hello.")):
            answer = await client.send(said)
            assert isinstance(answer, Message)
            assert text(answer) == heard
        assert (await client.list()).tasks == ()


def test_every_skill_is_on_the_card_with_an_example() -> None:
    assert {"echo", "stream", "ask", "auth", "reject", "fail", "file", "data", "long", "direct", "add"} == SKILLS
    assert all(skill.examples and skill.description for skill in agent.profile.skills)
