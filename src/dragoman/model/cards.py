"""What an agent says about itself, before any dialect spells it."""

from collections.abc import Awaitable, Callable
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from dragoman.model.operations import Principal


class Provider(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    organization: str
    url: str


class Extension(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    uri: str
    description: str = ""
    required: bool = False
    params: dict[str, Any] | None = None


class Skill(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """`scopes` are what its callers must have; cards say it in their own way."""

    id: str
    name: str
    description: str
    tags: tuple[str, ...]
    examples: tuple[str, ...] = ()
    input_modes: tuple[str, ...] = ()
    output_modes: tuple[str, ...] = ()
    scopes: tuple[str, ...] = ()


class Overlay(Struct, frozen=True, kw_only=True):
    """What one caller's extended card says differently from everybody's.

    `skills` are shown too, each in place of the one that has its id; those named in `without` are not shown.
    """

    description: str = ""
    documentation_url: str = ""
    skills: tuple[Skill, ...] = ()
    without: tuple[str, ...] = ()
    extensions: tuple[Extension, ...] = ()


Overlays = Callable[[Principal], Overlay | Awaitable[Overlay | None] | None]


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
    overlay: Overlays | None = None  # asked for each authenticated caller of the extended card

    def with_overlay(self, overlay: Overlay) -> "Profile":
        """What the extended card says to the caller whose overlay this is."""
        hidden = {*overlay.without, *(skill.id for skill in overlay.skills)}
        shown = tuple(skill for skill in self.extended_skills or () if skill.id not in hidden)
        return replace(
            self,
            description=overlay.description or self.description,
            documentation_url=overlay.documentation_url or self.documentation_url,
            skills=tuple(skill for skill in self.skills if skill.id not in hidden),
            extended_skills=shown + overlay.skills,
            extensions=self.extensions + overlay.extensions,
        )


class Interface(Struct, frozen=True, kw_only=True):
    """One address: where, by which binding, in which version. First is preferred."""

    url: str
    binding: str
    version: str
    tenant: str = ""
