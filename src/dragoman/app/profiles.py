"""Profiles: what makes a server look like one of the systems it speaks for. A named bundle of defaults.

A profile sets what nobody set otherwise: the port, which mounts are on, which address the card names first. Its card
text is shown by the demo agent only: an author's agent says who it is itself.
"""

import os
from collections.abc import Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from dragoman.agents.tools import DEFAULTS
from dragoman.model.cards import Extension, Profile, Skill
from dragoman.ports import Agent

TEXT = ("text/plain",)
HITL = Extension(
    uri="https://proto-labs.ai/a2a/ext/hitl-mode-v1",
    description="May pause a task with a question (input-required) and go on with the answer.",
)


class Preset(Struct, frozen=True, kw_only=True):
    """`primary` is the path and the version the card names first; `text` replaces the demo agent's words, `extensions`
    are declared whoever is served. `push` says whether the system has webhooks."""

    port: int
    mounts: tuple[str, ...] = ()
    primary: tuple[str, str] = ("/", "1.0")
    text: Mapping[str, Any] = {}
    transitions: bool = False
    extensions: tuple[Extension, ...] = ()
    push: bool = True

    @property
    def defaults(self) -> dict[str, Any]:
        """Settings, for where nobody says otherwise."""
        return {"port": self.port, "mounts": self.mounts, **({} if self.push else {"push": False})}


def _coding() -> dict[str, Any]:
    adapter = os.environ.get("AGENT_ADAPTER") or "cursor"
    return {
        "name": f"coding-agent-a2a ({adapter})",
        "description": f"Delegates coding tasks to the {adapter} agent and streams results back via the A2A protocol.",
        "version": "0.1.0",
        "input_modes": TEXT,
        "output_modes": ("text/plain", "application/json"),
        "skills": (
            Skill(
                id="code-task",
                name="Execute coding task",
                description="Runs a coding task (edit, refactor, analyse, explain, test) via a coding agent CLI.",
                tags=("coding", "refactor", "edit", "test"),
                input_modes=TEXT,
                output_modes=("text/plain", "application/json"),
                examples=(
                    "Refactor the auth module to use JWT",
                    "Add unit tests for src/utils/date.ts",
                    "Explain how the rate limiter works",
                ),
            ),
        ),
    }


PRESETS: Mapping[str, Preset] = {
    "official": Preset(port=8000),
    "coding-agent": Preset(
        port=41242,
        mounts=("/a2a/jsonrpc",),
        primary=("/a2a/jsonrpc", "0.3"),
        text=_coding(),
        transitions=True,
        push=False,
    ),
    "cortex": Preset(port=4220, mounts=("/a2a",), primary=("/a2a", "1.0"), text={"skills": DEFAULTS}, transitions=True),
    "simple": Preset(port=9292),
    "a2x": Preset(
        port=3000,
        mounts=("/api/a2a",),
        primary=("/api/a2a", "0.3"),
        text={
            "name": "GitHub Repo Analyzer",
            "description": "Analyzes GitHub repositories for code complexity, dependencies, and security "
            "vulnerabilities.",
            "version": "1.0.0",
            "skills": (
                Skill(
                    id="analyze-repo",
                    name="Analyze Repository",
                    description="Analyzes a GitHub repository and returns a structured report.",
                    tags=("github", "analysis", "security", "dependencies"),
                    input_modes=TEXT,
                    output_modes=TEXT,
                ),
            ),
        },
    ),
    "proto": Preset(port=7870, mounts=("/a2a",), primary=("/a2a", "0.3"), extensions=(HITL,)),
}


class Dressed(Struct, frozen=True):
    """An agent as its card shows it. Whoever is served does what its system does."""

    profile: Profile


def dress(agents: Mapping[str, Agent], profile: str, *, push: bool, demo: bool) -> dict[str, Dressed]:
    """What the agents' cards say beside their own words: whether there are webhooks, and what the profile adds."""
    found: dict[str, Dressed] = {}
    for slug, agent in agents.items():
        shown = replace(agent.profile, push=push)
        found[slug] = Dressed(_shown(shown, PRESETS[profile], demo) if profile else shown)
    return found


def _shown(own: Profile, preset: Preset, demo: bool) -> Profile:
    return replace(
        own,
        transitions=preset.transitions or own.transitions,
        extensions=(*own.extensions, *(each for each in preset.extensions if each not in own.extensions)),
        **(preset.text if demo else {}),
    )
