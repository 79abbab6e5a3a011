"""One agent as callers meet it: where it lives, what it can do, what it insists on."""

from dragoman.model.cards import Interface, Profile
from dragoman.model.errors import (
    ExtendedCardNotConfigured,
    ExtensionRequired,
    PushNotSupported,
    Unauthenticated,
    UnsupportedOperation,
)
from dragoman.model.operations import (
    CreatePush,
    DeletePush,
    GetExtendedCard,
    GetPush,
    ListPush,
    Operation,
    Principal,
    SendMessage,
)
from dragoman.wire.cards import CardSource
from dragoman.wire.classify import MOUNTS
from dragoman.wire.exchange import Exchange
from dragoman.wire.p03 import P03
from dragoman.wire.p10 import P10

PUSH = (CreatePush, GetPush, ListPush, DeletePush)
CHALLENGE = 'Bearer realm="dragoman"'


class Desk:
    """`slug` names the agent in scopes and under /agents/; `path` is where it lives below our root ("" or
    "/agents/<slug>")."""

    __slots__ = ("_extensions", "_open_card", "_required", "_versions", "path", "profile", "slug")

    def __init__(
        self, slug: str, path: str, profile: Profile, *, open_card: bool = False, versions: tuple[str, ...] = ()
    ) -> None:
        self.slug = slug
        self.path = path
        self.profile = profile
        self._open_card = open_card
        self._versions = versions
        self._required = tuple(each.uri for each in profile.extensions if each.required)
        self._extensions = frozenset(each.uri for each in profile.extensions)

    def admit(self, exchange: Exchange, principal: Principal) -> None:
        """What the agent cannot do or insists on, in the order clients may rely on: ability, then extensions."""
        operation = exchange.operation
        profile = self.profile
        if exchange.streaming and not profile.streaming:
            raise UnsupportedOperation("This agent does not stream; send without streaming, or get the task")
        if isinstance(operation, SendMessage):
            if operation.configuration.task_push_notification_config is not None and not profile.push:
                raise PushNotSupported
            for uri in self._required:
                if uri not in exchange.extensions:
                    raise ExtensionRequired(uri)
        elif isinstance(operation, PUSH) and not profile.push:
            raise PushNotSupported
        elif isinstance(operation, GetExtendedCard):
            self._admit_to_card(principal)
        if exchange.extensions and self._extensions:
            exchange.activated = tuple(uri for uri in exchange.extensions if uri in self._extensions)

    def card(self, base: str, *, extended: bool = False) -> CardSource:
        found = interfaces(base + self.path)
        if self._versions:
            found = tuple(each for each in found if each.version in self._versions)
        return CardSource(profile=self.profile, interfaces=found, extended=extended)

    def _admit_to_card(self, principal: Principal) -> None:
        if not self.profile.extended:
            raise UnsupportedOperation("This agent has no extended card")
        if self.profile.extended_skills is None:
            raise ExtendedCardNotConfigured
        if not principal.id and not self._open_card:
            raise Unauthenticated(CHALLENGE, "The extended card is shown only to authenticated callers")


def interfaces(root: str) -> tuple[Interface, ...]:
    """Where an agent can be reached. Clients append paths to HTTP+JSON's address, so it has no slash at its end."""
    mount = MOUNTS["/"]
    return (
        Interface(url=f"{root}/", binding="JSONRPC", version=mount.modern.version),
        Interface(url=root, binding="HTTP+JSON", version=P10.version),
        Interface(url=f"{root}/", binding="JSONRPC", version=mount.legacy.version),
        Interface(url=root, binding="HTTP+JSON", version=P03.version),
    )


def unserved(operation: Operation) -> Exception:
    """The error for an operation no engine method stands behind."""
    return PushNotSupported() if isinstance(operation, PUSH) else UnsupportedOperation("This is not supported here")
