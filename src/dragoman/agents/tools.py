"""A card made of a registry of tools: each tool is a skill, in the words its registry has for it."""

from collections.abc import Callable, Sequence
from inspect import getdoc
from typing import Any

from msgspec import Struct

from dragoman.model.cards import Skill


class Tool(Struct, frozen=True, kw_only=True):
    """An entry of a registry. `run` may stay out where the agent has a function of its own for all of them."""

    name: str
    description: str
    capabilities: tuple[str, ...] = ()
    run: Callable[..., Any] | None = None


EXAMPLES: dict[str, tuple[str, ...]] = {
    "file_read": ("Show me what is in pyproject.toml", "Read src/app.py from line 40 on"),
    "file_write": ("Save these notes as notes.md", "Create an empty test module for the parser"),
    "file_edit": ("Replace the hard-coded port in server.py", "Rename the class User to Account in this file"),
    "shell": ("Run the tests", "List the ten largest files below this folder"),
    "code_exec": ("Compute the first 20 prime numbers", "Run this snippet and tell me what it prints"),
    "web_search": ("Find the release notes of the newest PostgreSQL", "Look for comparisons of message queues"),
    "web_fetch": ("Fetch https://example.com and summarise it", "Get the table of contents of this page"),
    "sub_agent": ("Let another agent review this change", "Research these three questions at the same time"),
    "github_pr_create": ("Open a pull request for this branch", "Propose this fix upstream"),
    "db_query": ("How many orders came in yesterday?", "List the customers without an address"),
}
"""What to ask of tools that many registries have under these names."""

DEFAULTS = (
    Skill(
        id="code-generation",
        name="Code Generation",
        description="Writes and changes code.",
        tags=("code",),
        examples=("Write a function that parses ISO 8601 durations", "Add paging to this endpoint"),
    ),
    Skill(
        id="debugging",
        name="Debugging",
        description="Finds out why something does not work, and mends it.",
        tags=("code", "debugging"),
        examples=("Why does this test fail on Windows only?", "Find what keeps this process from ending"),
    ),
    Skill(
        id="code-review",
        name="Code Review",
        description="Reads changes and says what is wrong or could be better.",
        tags=("code", "review"),
        examples=("Review this diff", "Is this query safe with what users type?"),
    ),
    Skill(
        id="architecture",
        name="Architecture",
        description="Plans how parts of a system fit together.",
        tags=("design",),
        examples=("How would you split this service?", "Draft a schema for bookings"),
    ),
    Skill(
        id="search",
        name="Search",
        description="Finds places and patterns in a code base.",
        tags=("code", "search"),
        examples=("Where are webhooks sent?", "Which modules still use the old client?"),
    ),
)
"""What an agent without tools is taken to be good at."""


def registered(tool: Tool | Callable[..., Any]) -> Tool:
    """A function as the entry it would be: its name, its docstring, its attribute `capabilities`."""
    if isinstance(tool, Tool):
        return tool
    name: str = getattr(tool, "__name__", type(tool).__name__)
    capabilities: tuple[str, ...] = tuple(getattr(tool, "capabilities", ()))
    return Tool(name=name, description=getdoc(tool) or titled(name), capabilities=capabilities, run=tool)


def skills(tools: Sequence[Tool]) -> tuple[Skill, ...]:
    """The card's skills."""
    return tuple(map(_skill, tools)) or DEFAULTS


def _skill(tool: Tool) -> Skill:
    return Skill(
        id=tool.name,
        name=titled(tool.name),
        description=tool.description,
        tags=tool.capabilities,
        examples=EXAMPLES.get(tool.name) or (f"Do something with {tool.name}",),
    )


def titled(name: str) -> str:
    """`web_search` → `Web Search`."""
    return " ".join(word[:1].upper() + word[1:] for word in name.split("_") if word)
