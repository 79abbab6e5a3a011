"""The examples run, and the page about agents shows nothing else."""

import importlib.util
import re
from pathlib import Path
from typing import Any

import pytest

from dragoman import Message, Part, Task, TaskState
from dragoman.testing import Client, text

pytestmark = pytest.mark.anyio

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"


def example(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(f"examples.{name}", EXAMPLES / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


async def asked(client: Client, *content: Any, **how: Any) -> tuple[TaskState | None, str, Task]:
    task = await client.send(*content, **how)
    assert isinstance(task, Task)
    return (task.status.state if task.status else None), text(task), task


# The page about agents shows this test.
agent = example("hello").agent


async def test_the_greeter_greets() -> None:
    async with Client(agent) as client:
        assert text(await client.send("Anna")) == "Hello, Anna!"


async def test_the_currency_desk_asks_until_it_understands_and_survives_a_restart(tmp_path: Path) -> None:
    async with Client(example("currency").agent, store=tmp_path / "desk.db") as client:
        assert (await asked(client, "100 EUR in USD"))[:2] == (TaskState.COMPLETED, "100.00 EUR is 108.00 USD")
        state, question, task = await asked(client, "hello")
        assert (state, question[:8]) == (TaskState.INPUT_REQUIRED, "How much")
        state, _, task = await asked(client, "12 XYZ in EUR", task=task)
        assert state is TaskState.INPUT_REQUIRED
        await client.restart()
        assert (await asked(client, "2 GBP in GBP", task=task))[:2] == (TaskState.COMPLETED, "2.00 GBP is 2.00 GBP")


async def test_the_tea_shop_checks_its_orders() -> None:
    async with Client(example("orders").agent) as client:
        *_, task = await asked(client, Part(data={"lines": [{"item": "green", "count": 2}]}), skill="order")
        assert task.artifacts[0].parts[0].data == {"items": 2, "size": "small", "note": None}
        bad = await asked(client, Part(data={"lines": [{"item": "green", "count": 0}]}), skill="order")
        assert bad[:2] == (TaskState.REJECTED, "lines[0].count: Expected int >= 1")
        none = await asked(client, Part(data={"lines": []}), skill="order")
        assert none[:2] == (TaskState.REJECTED, "An order needs at least one line.")
        *_, found = await asked(client, "EE", skill="search")
        assert found.artifacts[0].parts[0].data == ["darjeeling", "green"]


async def test_the_counter_counts_in_a_thread() -> None:
    async with Client(example("blocking").agent) as client:
        assert (await asked(client, "4"))[:2] == (TaskState.COMPLETED, "1 2 3 4 ")
        assert (await asked(client, Part(data={})))[:2] == (TaskState.COMPLETED, "1 2 3 ")


async def test_the_help_desk_routes_what_it_gets() -> None:
    async with Client(example("helpdesk").agent) as client:
        answer = await client.send("When are you open?")
        assert isinstance(answer, Message)
        assert text(answer) == "We are open from 9 to 17."
        state, said, task = await asked(client, Part(raw=b"abc", filename="a.txt"))
        assert (state, said) == (TaskState.COMPLETED, "Kept 1 file(s).")
        assert task.artifacts[0].name == "inventory"
        assert task.artifacts[0].parts[0].raw == b"a.txt,3"
        state, _, task = await asked(client, "My tea is cold")
        assert state is TaskState.AUTH_REQUIRED
        assert (await asked(client, "signed in", task=task))[:2] == (TaskState.COMPLETED, "Ticket T-1 is open.")
        assert (await asked(client, Part(data=1)))[:2] == (TaskState.REJECTED, "Say what the trouble is.")


async def test_the_toolbox_shows_its_tools_and_remembers_the_conversation() -> None:
    made = example("toolbox").agent
    assert [skill.name for skill in made.profile.skills] == ["Db Query", "Word Count"]
    async with Client(made) as client:
        state, said, first = await asked(client, "Bob")
        assert (state, said) == (TaskState.COMPLETED, "tea, cups")
        assert (await asked(client, "and so on", context=first.context_id))[1] == "3 words, after 2 messages."


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.stem)
def test_every_example_says_what_it_shows(path: Path) -> None:
    assert path.read_text().startswith('"""')


def test_every_snippet_of_the_page_about_agents_is_part_of_a_file_that_runs() -> None:
    page = (ROOT / "docs" / "agents.md").read_text()
    snippets = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    files = [path.read_text() for path in (*EXAMPLES.glob("*.py"), Path(__file__))]
    assert snippets
    for snippet in snippets:
        assert any(snippet in file for file in files), snippet
