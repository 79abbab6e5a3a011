"""What callers have to show: the ways to log in, what an agent asks for, and what single skills do."""

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct


class SecurityScheme(Struct, frozen=True, kw_only=True):
    """One way to log in, as cards tell it. Which members count depends on `kind`.

    `place` and `parameter` say where an API key goes ("header", "query" or "cookie") and what it is called there;
    `http` is the name of an HTTP authentication scheme; an OAuth 2 flow is the one its addresses allow for.
    """

    kind: Literal["key", "http", "oauth2", "oidc", "mtls"]
    description: str = ""
    place: str = ""
    parameter: str = ""
    http: str = ""
    format: str = ""
    discovery_url: str = ""
    authorization_url: str = ""
    token_url: str = ""
    scopes: Mapping[str, str] = {}


Requirement = Mapping[str, tuple[str, ...]]
"""Schemes that are needed together, each with the scopes it must have given."""


class Security(Struct, frozen=True, kw_only=True):
    """How callers log in: every scheme by name, and what suffices. Any one of the requirements does; none: nobody has
    to. `skills` are what single skills ask for beyond that."""

    schemes: Mapping[str, SecurityScheme] = {}
    requirements: tuple[Requirement, ...] = ()
    skills: Mapping[str, tuple[Requirement, ...]] = {}


class Terms(Struct, frozen=True, kw_only=True):
    """What single skills ask of their callers: any one of the requirements does. `challenge` says how to log in."""

    skills: Mapping[str, tuple[Requirement, ...]] = {}
    challenge: str = ""
