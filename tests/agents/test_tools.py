"""A tool registry becomes an agent and its card."""

from typing import Any

import pytest

from dragoman import Agent, Part, Task, TaskState, Turn
from dragoman.agents import Tool
from dragoman.agents.tools import DEFAULTS, EXAMPLES
from dragoman.testing import Client, text

pytestmark = pytest.mark.anyio


def web_search(query: str, limit: int = 1) -> list[str]:
    """Finds pages."""
    return [f"{query} {n}" for n in range(limit)]


web_search.capabilities = ["network:fetch"]  # pyright: ignore[reportFunctionMemberAccess]  # how a registry marks functions


async def loop(turn: Turn) -> str:
    return f"{turn.metadata.get('skill', 'any')}: {turn.text}"


def skills(*tools: Any, **words: Any) -> dict[str, Any]:
    return {skill.id: skill for skill in Agent.from_tools(tools, run=loop, **words).profile.skills}


@pytest.mark.proves("D-6-9")
def test_each_tool_is_a_skill_in_its_own_words() -> None:
    found = skills(
        web_search, Tool(name="read_iCal_feed", description="Reads a calendar.", capabilities=("files", "net"))
    )
    search = found["web_search"]
    assert (search.name, search.description, search.tags) == ("Web Search", "Finds pages.", ("network:fetch",))
    assert search.examples == EXAMPLES["web_search"]
    feed = found["read_iCal_feed"]
    assert (feed.name, feed.description, feed.tags) == ("Read ICal Feed", "Reads a calendar.", ("files", "net"))
    assert feed.examples == ("Do something with read_iCal_feed",)


def test_common_tools_have_examples_ready() -> None:
    names = "file_read file_write file_edit shell code_exec web_search web_fetch sub_agent github_pr_create db_query"
    assert list(EXAMPLES) == names.split()
    for name, examples in EXAMPLES.items():
        assert skills(Tool(name=name, description="x"))[name].examples == examples


def test_without_tools_it_is_taken_for_a_coding_agent() -> None:
    assert list(skills()) == ["code-generation", "debugging", "code-review", "architecture", "search"]
    assert tuple(skills().values()) == DEFAULTS


def test_the_card_says_streaming_and_the_history_of_states() -> None:
    profile = Agent.from_tools([web_search], "Searcher", description="Finds things.").profile
    assert (profile.name, profile.description, profile.streaming, profile.transitions) == (
        "Searcher",
        "Finds things.",
        True,
        True,
    )


@pytest.mark.parametrize("tools", [(), (Tool(name="odd_one", description="x"),)])
def test_somebody_must_do_the_work(tools: tuple[Tool, ...]) -> None:
    with pytest.raises(ValueError, match=r"Nothing does the work of '(code-generation|odd_one)'.*run="):
        Agent.from_tools(tools)


async def test_a_tools_function_is_a_skill_with_typed_arguments() -> None:
    async with Client(Agent.from_tools([web_search, Tool(name="again", description="x", run=web_search)])) as client:
        task = await client.send(Part(data={"query": "tea", "limit": 2}), skill="web_search")
        assert isinstance(task, Task) and task.artifacts[0].parts[0].data == ["tea 0", "tea 1"]


async def test_one_function_takes_every_message_and_sees_the_skill_it_names() -> None:
    async with Client(Agent.from_tools([web_search, Tool(name="odd", description="x")], run=loop)) as client:
        for skill, said in (("", "any: hi"), ("odd", "odd: hi"), ("nothing", "nothing: hi")):
            task = await client.send("hi", skill=skill)
            assert isinstance(task, Task) and task.status and task.status.state is TaskState.COMPLETED
            assert text(task) == said
