"""From `module:attribute` or `file.py[:attribute]` to an agent."""

import importlib
import importlib.util
import re
import sys
import traceback
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from msgspec.structs import replace

from dragoman.app.settings import AgentSettings, SettingsError
from dragoman.ports import Agent
from dragoman.wire.classify import RESERVED

SLUG = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
AGENT_METHODS = ("profile", "route", "run", "reply", "close")

importing: list[str] = []
"""What is being imported to be served, innermost last: `serve()` there would serve instead of us."""


class CannotImport(SettingsError):
    """The author's own code fails when it is imported. `trace` shows where, from its first line on."""

    def __init__(self, place: str, error: Exception) -> None:
        super().__init__(f"{place} cannot be imported: its own code fails, as shown above.")
        self.trace = _their_trace(error)


def load(target: str) -> Agent:
    """Import what the author wrote and find the agent in it.

    Without an attribute: the only agent in the module, else the one called `agent`. Raises SettingsError when the
    target cannot be found, CannotImport when the author's own code fails.
    """
    place, attribute = _split(target)
    importing.append(place)
    try:
        module = _import_file(place) if place.endswith(".py") else _import_module(place, target)
    except SettingsError:
        raise
    except SystemExit as ended:
        raise SettingsError(
            f"{place} called sys.exit({ended.code!r}) when it was imported: put what only a script should do under "
            '`if __name__ == "__main__":`.'
        ) from None
    except Exception as error:
        raise CannotImport(place, error) from error
    finally:
        importing.pop()
    if attribute:
        return _attribute(module, attribute, target)
    return _only(module, target)


def load_all(agents: Sequence[AgentSettings]) -> dict[str, Agent]:
    """Every configured agent by its slug. The first is the one at the root, and needs none."""
    found: dict[str, Agent] = {}
    for each in agents:
        agent = load(each.target)
        take(each.slug or (slug_of(agent.profile.name) if found else ""), agent, found)
    return found


def rules(agents: Sequence[AgentSettings], slugs: Iterable[str]) -> tuple[AgentSettings, ...]:
    """What was configured about agents, under the slugs they were given by `load_all`."""
    return tuple(replace(each, slug=slug) for each, slug in zip(agents, slugs, strict=True))


def take(slug: str, agent: Agent, found: dict[str, Agent]) -> None:
    """Note an agent under a slug that is free and can stand in a path."""
    if slug in found:
        raise SettingsError(f"Two agents are called {slug!r}: give one of them another slug.")
    if slug and (not SLUG.fullmatch(slug) or slug in RESERVED):
        raise SettingsError(f"No agent can be called {slug!r}: use letters, digits and dashes, and no name of ours.")
    found[slug] = agent


def slug_of(name: str) -> str:
    """A path segment made of a name: "Currency desk" → "currency-desk"."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "agent"


def is_agent(value: object) -> bool:
    """Whether it can be served: the methods of `ports.Agent`, on an instance."""
    if isinstance(value, type | ModuleType):
        return False
    # Looked up without running properties: a card that cannot be built is to fail by itself, later and loudly.
    kind: type[object] = value.__class__
    return {*dir(kind), *getattr(value, "__dict__", ())}.issuperset(AGENT_METHODS)


def _split(target: str) -> tuple[str, str]:
    place, colon, attribute = target.rpartition(":")
    if not colon or "/" in attribute or "\\" in attribute:
        return target, ""
    if not place or not attribute:
        raise SettingsError(f"Cannot read {target!r}: write module:attribute or file.py:attribute.")
    return place, attribute


def _import_file(place: str) -> ModuleType:
    path = Path(place).expanduser().resolve()
    if not path.is_file():
        raise SettingsError(f"There is no file {place}.")
    # As `python file.py` would: the file's neighbours can be imported.
    _search(path.parent)
    name = path.stem if path.stem.isidentifier() and path.stem not in sys.modules else f"agent_{abs(hash(path))}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise SettingsError(f"{place} is not Python.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses, pickling and type hints look the module up by name
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _import_module(place: str, target: str) -> ModuleType:
    _search(Path.cwd())
    try:
        return importlib.import_module(place)
    except ModuleNotFoundError as error:
        # Only when it is the module itself that is missing; a missing import inside it is the author's to see.
        if error.name and (place == error.name or place.startswith(error.name + ".")):
            raise SettingsError(f"Cannot serve {target!r}: there is no module {error.name}.") from None
        raise
    except (ValueError, TypeError):
        raise SettingsError(f"Cannot read {target!r}: write module:attribute or file.py:attribute.") from None


def _their_trace(error: Exception) -> str:
    """The traceback without our own frames and the import machinery's."""
    trace = traceback.TracebackException.from_exception(error)
    ours = (__file__, importlib.__file__)
    theirs = [
        frame
        for frame in trace.stack
        if frame.filename not in ours and not frame.filename.startswith("<frozen importlib")
    ]
    trace.stack = traceback.StackSummary.from_list(theirs)
    return "".join(trace.format())


def _search(directory: Path) -> None:
    if str(directory) not in sys.path:
        sys.path.insert(0, str(directory))


def _attribute(module: ModuleType, attribute: str, target: str) -> Agent:
    value: Any = module
    for name in attribute.split("."):
        value = getattr(value, name, None)
    if value is None:
        found = _agents(module)
        hint = f" It has: {', '.join(found)}." if found else " It has no agent at all."
        raise SettingsError(f"Cannot serve {target!r}: there is no {attribute} in it.{hint}")
    if not is_agent(value):
        raise SettingsError(f"Cannot serve {target!r}: {attribute} is a {type(value).__name__}, not an agent.")
    return value


def _only(module: ModuleType, target: str) -> Agent:
    found = _agents(module)
    if len(found) == 1:
        return next(iter(found.values()))
    if "agent" in found:
        return found["agent"]
    if found:
        raise SettingsError(
            f"{target} has several agents; name one: {', '.join(f'{target}:{name}' for name in found)}."
        )
    raise SettingsError(f"There is no agent in {target}. Make one with: agent = dragoman.Agent(...)")


def _agents(module: ModuleType) -> dict[str, Agent]:
    """The agents a module names, each once: the same object under two names is one agent."""
    found: dict[str, Agent] = {}
    for name, value in vars(module).items():
        if is_agent(value) and not any(value is other for other in found.values()):
            found[name] = value
    return found
