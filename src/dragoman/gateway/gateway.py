"""From an understood request to the engine: which agent, on whose behalf, by which method."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol

from dragoman.gateway.desk import Desk, unserved
from dragoman.gateway.door import Door
from dragoman.gateway.quota import Quota
from dragoman.gateway.settings import GatewaySettings
from dragoman.model.cards import Profile
from dragoman.model.messages import Message
from dragoman.model.operations import (
    Call,
    CancelTask,
    GetTask,
    ListTasks,
    Operation,
    Principal,
    SendMessage,
    SendStreamingMessage,
    SubscribeToTask,
    TaskPage,
)
from dragoman.model.tasks import Scope, View
from dragoman.ports import Authenticator, Presented, Signer
from dragoman.wire.cards import CardSource
from dragoman.wire.exchange import Exchange

ANYBODY = Principal()
AGENTS = "/agents/"


class Profiled(Protocol):
    @property
    def profile(self) -> Profile: ...


class Operations(Protocol):
    """What the engine does."""

    async def send(self, call: Call, op: SendMessage) -> View | Message: ...
    async def stream(self, call: Call, op: SendMessage) -> Any: ...
    async def get(self, call: Call, op: GetTask) -> View: ...
    async def list(self, call: Call, op: ListTasks) -> TaskPage: ...
    async def cancel(self, call: Call, op: CancelTask) -> View: ...
    async def subscribe(self, call: Call, op: SubscribeToTask) -> Any: ...


class Gateway:
    """The first agent lives at the root; with several, each also lives at /agents/<slug>."""

    def __init__(
        self,
        *,
        engine: Operations,
        agents: Mapping[str, Profiled],
        settings: GatewaySettings | None = None,
        entrances: Mapping[str, Authenticator] | None = None,
        signer: Signer | None = None,
    ) -> None:
        settings, entrances = settings or GatewaySettings(), entrances or {}
        self.door = Door(settings)
        self.quota = Quota(settings)
        self.signer = signer
        first = next(iter(agents))
        self.root = Desk(first, "", agents[first].profile, settings, entrances.get(first))
        self.desks = {
            slug: Desk(slug, f"{AGENTS}{slug}", agent.profile, settings, entrances.get(slug))
            for slug, agent in agents.items()
            if slug
        }
        self._methods: Mapping[type[Operation], Callable[[Call, Any], Awaitable[Any]]] = {
            SendMessage: engine.send,
            SendStreamingMessage: engine.stream,
            GetTask: engine.get,
            ListTasks: engine.list,
            CancelTask: engine.cancel,
            SubscribeToTask: engine.subscribe,
        }

    def find(self, path: str) -> tuple[Desk, str] | None:
        """The agent a path belongs to, and the path below that agent."""
        if not path.startswith(AGENTS):
            return self.root, path
        slug, slash, rest = path[len(AGENTS) :].partition("/")
        desk = self.desks.get(slug)
        return None if desk is None else (desk, slash + rest or "/")

    def principal(
        self, desk: Desk, headers: Mapping[str, str], query: str, scope: Mapping[str, Any]
    ) -> Principal | Awaitable[Principal]:
        """Who is calling. The one place that says so; everything behind it works for any principal.

        At once for everybody known already. Raises (or its awaitable does) Unauthenticated or MissingScope.
        """
        entrance = desk.entrance
        if entrance is None:
            return ANYBODY
        client = scope.get("client")
        chain: Sequence[str] = scope.get("extensions", {}).get("tls", {}).get("client_cert_chain", ())
        forwarded = bool(client) and self.door.trusts(client[0])
        return entrance.authenticate(Presented(headers, query, chain[0] if chain else "", forwarded))

    def call(self, desk: Desk, exchange: Exchange, principal: Principal) -> Awaitable[Any]:
        """Check the request against the agent, and hand it to the engine. Raises before anything has begun."""
        desk.admit(exchange, principal)
        method = self._methods.get(type(exchange.operation))
        if method is None:
            raise unserved(exchange.operation)
        return method(
            Call(
                scope=Scope(desk.slug, exchange.tenant, principal.id),
                principal=principal,
                policy=exchange.policy,
                origin=exchange.origin,
                extensions=exchange.activated,
                idempotency_key=exchange.idempotency_key,
                cursor=exchange.cursor,
            ),
            exchange.operation,
        )

    async def extended_card(self, desk: Desk, exchange: Exchange, principal: Principal, base: str) -> CardSource:
        """The card with everything on it, for whom it may be shown. Who asked for whatever there is gets that."""
        desk.admit(exchange, principal)
        if not desk.shows_all(principal):
            return self.card(desk, base)
        return self.card(desk, base, await desk.seen_by(principal), extended=True)

    def card(self, desk: Desk, base: str, profile: Profile | None = None, *, extended: bool = False) -> CardSource:
        """The agent's card, signed where we have keys and the base is ours for certain."""
        signer = self.signer if self.signer and self.door.vouches(base) else None
        return desk.card(base, profile, extended=extended, signer=signer)
