"""One agent as callers meet it: where it lives, what it can do, what it insists on."""

from collections.abc import Sequence
from functools import partial
from inspect import isawaitable

from dragoman.gateway.settings import GatewaySettings
from dragoman.model.cards import Interface, Profile
from dragoman.model.errors import (
    ExtendedCardNotConfigured,
    ExtensionRequired,
    PushNotSupported,
    StreamingNotSupported,
    Unauthenticated,
    UnsupportedOperation,
)
from dragoman.model.operations import (
    CreatePush,
    DeletePush,
    GetCard,
    GetExtendedCard,
    GetPush,
    ListPush,
    Principal,
    SendMessage,
)
from dragoman.model.security import Security, Terms
from dragoman.ports import Authenticator, Signer
from dragoman.wire.cards import CardSource
from dragoman.wire.exchange import Exchange

PUSH = (CreatePush, GetPush, ListPush, DeletePush)
JWKS = "/.well-known/jwks.json"
"""Where the deployment's public keys are, below our root."""

CHALLENGE = 'Bearer realm="dragoman"'


class Desk:
    """`slug` names the agent in scopes and under /agents/; `path` is where it lives below our root ("" or
    "/agents/<slug>"). Without an `entrance` nobody has to log in."""

    __slots__ = ("_extensions", "_required", "_settings", "entrance", "path", "profile", "slug", "terms")

    def __init__(
        self,
        slug: str,
        path: str,
        profile: Profile,
        settings: GatewaySettings,
        entrance: Authenticator | None = None,
    ) -> None:
        self.slug = slug
        self.entrance = entrance
        self.path = path
        self.profile = profile
        self._settings = settings
        self.terms = _closed(profile) if entrance is None else entrance.terms
        self._required = tuple(each.uri for each in profile.extensions if each.required)
        self._extensions = frozenset(each.uri for each in profile.extensions)

    def admit(self, exchange: Exchange, principal: Principal) -> None:
        """What the agent cannot do or insists on, in the order clients may rely on: ability, then extensions."""
        operation = exchange.operation
        profile = self.profile
        if exchange.streaming and not profile.streaming:
            raise StreamingNotSupported
        if isinstance(operation, SendMessage):
            if operation.configuration.task_push_notification_config is not None and not profile.push:
                raise PushNotSupported
            missing = [uri for uri in self._required if uri not in exchange.extensions]
            if missing:
                raise ExtensionRequired(*missing)
        elif isinstance(operation, PUSH) and not profile.push:
            raise PushNotSupported
        elif isinstance(operation, GetExtendedCard) and not isinstance(operation, GetCard):
            self._admit_to_card(principal)
        if exchange.extensions and self._extensions:
            exchange.activated = tuple(uri for uri in exchange.extensions if uri in self._extensions)

    def card(
        self, base: str, profile: Profile | None = None, *, extended: bool = False, signer: Signer | None = None
    ) -> CardSource:
        """What the card is made of; `profile` is what it says to one caller, where that differs."""
        settings, root = self._settings, base + self.path
        found = interfaces(root, settings.mounts, settings.primary)
        if settings.card_versions:
            found = tuple(each for each in found if each.version in settings.card_versions)
        return CardSource(
            profile=profile or self.profile,
            interfaces=found,
            extended=extended,
            root=root,
            mounts=settings.mounts,
            seal=partial(signer.seal, jku=base + JWKS) if signer else None,
            security=Security() if self.entrance is None else self.entrance.security,
        )

    def shows_all(self, principal: Principal) -> bool:
        """Whether this caller may see the extended card, of an agent that has one."""
        profile = self.profile
        known = bool(principal.id) or self._settings.open_extended_card
        return profile.extended and profile.extended_skills is not None and known

    async def seen_by(self, principal: Principal) -> Profile:
        """What the extended card says to this caller. Nobody in particular sees what all see."""
        profile = self.profile
        if profile.overlay is None or not principal.id:
            return profile
        found = profile.overlay(principal)
        overlay = await found if isawaitable(found) else found
        return profile if overlay is None else profile.with_overlay(overlay)

    def _admit_to_card(self, principal: Principal) -> None:
        if not self.profile.extended:
            raise UnsupportedOperation("This agent has no extended card")
        if self.profile.extended_skills is None:
            raise ExtendedCardNotConfigured
        if not self.shows_all(principal):
            challenge = CHALLENGE if self.entrance is None else self.entrance.challenge
            raise Unauthenticated(challenge, "The extended card is shown only to authenticated callers")


def _closed(profile: Profile) -> Terms | None:
    """Where nobody can log in nobody has a scope: what asks for one is closed, not open to all."""
    scoped = {
        each.id: ({"": each.scopes},) for each in (*profile.skills, *(profile.extended_skills or ())) if each.scopes
    }
    return Terms(skills=scoped) if scoped else None


def interfaces(root: str, mounts: Sequence[str] = (), primary: tuple[str, str] = ("/", "1.0")) -> tuple[Interface, ...]:
    """Where an agent can be reached: `primary`, a path and a version, before all others.

    Clients append paths to HTTP+JSON's address, so it has no slash at its end.
    """
    found = [
        Interface(url=f"{root}/", binding="JSONRPC", version="1.0"),
        Interface(url=root, binding="HTTP+JSON", version="1.0"),
        Interface(url=f"{root}/", binding="JSONRPC", version="0.3"),
        Interface(url=root, binding="HTTP+JSON", version="0.3"),
        *(Interface(url=f"{root}{path}", binding="JSONRPC", version="0.3") for path in mounts),
    ]
    path, version = primary
    first = Interface(url=f"{root}{path}", binding="JSONRPC", version=version)
    return (first, *(each for each in found if each != first))
