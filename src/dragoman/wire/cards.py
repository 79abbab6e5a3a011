"""Agent cards: one union document that 1.0 and 0.3 clients both read, and the pure form of each.

The two versions share no member with conflicting meaning, so the union is the 1.0 card with the 0.3 members beside it;
they are added only when an interface speaks 0.3. Interfaces of 1.0 come first, whatever order they were given in:
clients take the first they understand.
"""

from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from dragoman.model.cards import Interface, Profile, Skill
from dragoman.model.security import Security
from dragoman.ports import Sealed
from dragoman.wire import security

_CORTEX = "/a2a"
LEGACY_VERSION = "0.3.0"  # older clients read anything below 0.3 as «no transport in common»


class CardSource(Struct, frozen=True, kw_only=True):
    """What a card is made of: the agent's own words, and where it can be reached, first is preferred."""

    profile: Profile
    interfaces: tuple[Interface, ...]
    extended: bool = False  # the extended card: shows the extended skills
    root: str = ""  # where the agent lives
    mounts: tuple[str, ...] = ()  # where JSON-RPC is spoken there beside `/`
    seal: Callable[[bytes], Sealed] | None = None  # signs the card, if it is to be signed
    security: Security = Security()


def variant(version: str) -> str:
    """Which card somebody asking in this `A2A-Version` wants: "1.0", "0.3", or "" for the union."""
    major = version.partition(".")[0]
    return {"1": "1.0", "0": "0.3"}.get(major, "")


def render(source: CardSource, version: str) -> bytes:
    """The card for `version` ("1.0", "0.3", or "" for the union)."""
    return {"1.0": pure_10, "0.3": pure_03}.get(version, union)(source)


def version(source: CardSource, asked: str) -> str:
    """The version a card is in that was asked for so. The union is 1.0's with more beside it."""
    if asked == "0.3" and _members_03(source):
        return asked
    return "1.0" if asked or not all(map(_legacy, source.interfaces)) else "0.3"


def pure_10(source: CardSource) -> bytes:
    """The 1.0 card; where Cortex is served, with what its clients look for: they ask in this version."""
    card = _common(source, "1.0") | _members_10(source) | security.members_10(source.security)
    return _written(_with_older(card, source) if _CORTEX in source.mounts and _members_03(source) else card, source)


def pure_03(source: CardSource) -> bytes:
    """The 0.3 card; an agent that speaks no 0.3 can only show its 1.0 card."""
    legacy = _members_03(source)
    if not legacy:
        return pure_10(source)
    capabilities = _capabilities(source)
    if source.profile.transitions:
        capabilities["stateTransitionHistory"] = True
    card = _common(source, "0.3") | {"capabilities": capabilities} | legacy
    return _written(card | security.members_03(source.security), source)


def union(source: CardSource) -> bytes:
    legacy = _members_03(source)
    if not legacy:
        return pure_10(source)
    card = _common(source, "") | _members_10(source) | legacy | security.members_both(source.security)
    return _written(_with_older(card, source), source)


def _written(card: dict[str, Any], source: CardSource) -> bytes:
    if source.seal is None:
        return msgspec.json.encode(card)
    from dragoman.wire.canonical import plain, signatures  # only who signs needs what it imports

    return msgspec.json.encode(card | {"signatures": signatures(plain(card), source.seal)})


def _with_older(card: dict[str, Any], source: CardSource) -> dict[str, Any]:
    capabilities = card["capabilities"]
    if source.profile.transitions:
        capabilities = capabilities | {"stateTransitionHistory": True}
    return card | {"interfaces": _older(source), "capabilities": capabilities}


def _older(source: CardSource) -> list[dict[str, str]]:
    """Two systems had cards of their own before there was a common one: Cortex looks for `protocol`, simple_a2a for
    `type`. Cortex takes the first with the protocol it knows."""
    simple = {"type": "json-rpc", "url": f"{source.root}/", "version": "1.0"}
    if _CORTEX not in source.mounts:
        return [simple]
    return [{"type": "json-rpc", "protocol": "json-rpc", "url": f"{source.root}{_CORTEX}", "version": "1.0"}, simple]


def _common(source: CardSource, version: str) -> dict[str, Any]:
    profile = source.profile
    skills = profile.skills
    if source.extended:
        skills += profile.extended_skills or ()
    card: dict[str, Any] = {
        "name": profile.name,
        "description": profile.description,
        "version": profile.version,
        "defaultInputModes": profile.input_modes,
        "defaultOutputModes": profile.output_modes,
        "skills": [_skill(each, source.security, version) for each in skills],
    }
    if profile.provider:
        card["provider"] = profile.provider
    if profile.documentation_url:
        card["documentationUrl"] = profile.documentation_url
    if profile.icon_url:
        card["iconUrl"] = profile.icon_url
    return card


def _skill(skill: Skill, terms: Security, version: str) -> Skill | dict[str, Any]:
    """The skill with what it asks of its callers, in the words of each version."""
    needed = terms.skills.get(skill.id, ())
    if not needed and not skill.scopes:
        return skill
    found: dict[str, Any] = msgspec.to_builtins(replace(skill, scopes=()))
    if needed and version != "0.3":
        found["securityRequirements"] = security.requirements_10(needed)
    if needed and version != "1.0":
        found["security"] = security.requirements_03(needed)
    return found


def _capabilities(source: CardSource) -> dict[str, Any]:
    profile = source.profile
    found: dict[str, Any] = {"streaming": profile.streaming, "pushNotifications": profile.push}
    if profile.extensions:
        found["extensions"] = profile.extensions
    return found


def _legacy(interface: Interface) -> bool:
    return interface.version.startswith("0.")


def _members_10(source: CardSource) -> dict[str, Any]:
    interfaces = [
        {"url": each.url, "protocolBinding": each.binding, "protocolVersion": each.version}
        | ({"tenant": each.tenant} if each.tenant else {})
        for each in sorted(source.interfaces, key=_legacy)
    ]
    return {
        "supportedInterfaces": interfaces,
        "capabilities": _capabilities(source) | {"extendedAgentCard": source.profile.extended},
    }


def _members_03(source: CardSource) -> dict[str, Any]:
    interfaces = [{"url": _legacy_url(each), "transport": each.binding} for each in source.interfaces if _legacy(each)]
    if not interfaces:
        return {}
    first = interfaces[0]
    members: dict[str, Any] = {
        "protocolVersion": LEGACY_VERSION,
        "url": first["url"],
        "preferredTransport": first["transport"],
    }
    if len(interfaces) > 1:
        # Some clients take the first address of a transport, some (both official SDKs of 0.3) the last.
        again = [first] if any(each["transport"] == first["transport"] for each in interfaces[1:]) else []
        members["additionalInterfaces"] = interfaces + again
    if source.profile.extended:
        members["supportsAuthenticatedExtendedCard"] = True
    return members


def _legacy_url(interface: Interface) -> str:
    """0.3 spells every address as a URL; 1.0 writes gRPC addresses as host:port."""
    return interface.url if "://" in interface.url else f"http://{interface.url}"
