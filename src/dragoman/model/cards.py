"""What an agent says about itself, before any dialect spells it."""

from typing import Any

from msgspec import Struct


class Provider(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    organization: str
    url: str


class Extension(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    uri: str
    description: str = ""
    required: bool = False
    params: dict[str, Any] | None = None


class Skill(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    id: str
    name: str
    description: str
    tags: tuple[str, ...]
    examples: tuple[str, ...] = ()
    input_modes: tuple[str, ...] = ()
    output_modes: tuple[str, ...] = ()


class Profile(Struct, frozen=True, kw_only=True):
    """The agent's own words and abilities. `extended` skills show only on the extended card."""

    name: str
    description: str
    version: str
    skills: tuple[Skill, ...] = ()
    input_modes: tuple[str, ...] = ("text/plain", "application/json")
    output_modes: tuple[str, ...] = ("text/plain", "application/json")
    accepts: tuple[str, ...] = ()  # enforced media types; empty accepts everything
    provider: Provider | None = None
    documentation_url: str = ""
    icon_url: str = ""
    extensions: tuple[Extension, ...] = ()
    streaming: bool = True
    push: bool = False
    transitions: bool = False  # the history of states is shown, says the 0.3 card
    extended: bool = False  # the card declares an extended card
    extended_skills: tuple[Skill, ...] | None = None  # None: declared but not configured


class Interface(Struct, frozen=True, kw_only=True):
    """One address: where, by which binding, in which version. First is preferred."""

    url: str
    binding: str
    version: str
    tenant: str = ""
