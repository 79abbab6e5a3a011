"""From an understood request to the engine: which agent, on whose behalf, by which method."""

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol

from msgspec.structs import replace

from dragoman.gateway.admission import Admission
from dragoman.gateway.desk import Desk
from dragoman.gateway.door import Door
from dragoman.gateway.quota import Quota
from dragoman.gateway.room import ANSWERS, UPLOADS, Room
from dragoman.gateway.settings import GatewaySettings
from dragoman.model.cards import Profile
from dragoman.model.errors import DragomanError, Forbidden, Unauthenticated, UnsupportedOperation
from dragoman.model.messages import Message
from dragoman.model.operations import (
    Call,
    CancelTask,
    CreatePush,
    DeletePush,
    GetPush,
    GetTask,
    ListPush,
    ListTasks,
    Operation,
    Principal,
    PushConfig,
    PushPage,
    SendMessage,
    SendStreamingMessage,
    SubscribeToTask,
    TaskPage,
)
from dragoman.model.tasks import EVERYONE, Scope, View
from dragoman.ports import Authenticator, Presented, Signer
from dragoman.wire.cards import CardSource
from dragoman.wire.exchange import Exchange

log = logging.getLogger("dragoman.auth")

ANYBODY = Principal()
NOBODY = "(nobody)"
"""An owner that no caller ever is: what is looked for in their name is not there."""

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
    async def whose(self, scope: Scope, id: str) -> Scope | None: ...
    async def create_push(self, call: Call, op: CreatePush) -> PushConfig: ...
    async def get_push(self, call: Call, op: GetPush) -> PushConfig | None: ...
    async def list_push(self, call: Call, op: ListPush) -> PushPage: ...
    async def delete_push(self, call: Call, op: DeletePush) -> None: ...


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
        self.quota = Quota(settings)
        self.uploads = Room(settings.uploads, settings.uploads_per_caller, settings.rate_wait, UPLOADS)
        self.answers = Room(settings.answers, settings.answers_per_caller, settings.rate_wait, ANSWERS)
        self.signer = signer
        first = next(iter(agents))
        self.root = Desk(first, "", agents[first].profile, settings, entrances.get(first))
        self.desks = {
            slug: Desk(slug, f"{AGENTS}{slug}", agent.profile, settings, entrances.get(slug))
            for slug, agent in agents.items()
            if slug
        }
        desks = {self.root, *self.desks.values()}
        self.door = Door(settings, guarded=all(each.entrance is not None and each.entrance.explicit for each in desks))
        self._engine = engine
        self._methods: Mapping[type[Operation], Callable[[Call, Any], Awaitable[Any]]] = {
            SendMessage: engine.send,
            SendStreamingMessage: engine.stream,
            GetTask: engine.get,
            ListTasks: engine.list,
            CancelTask: engine.cancel,
            SubscribeToTask: engine.subscribe,
            CreatePush: engine.create_push,
            GetPush: engine.get_push,
            ListPush: engine.list_push,
            DeletePush: engine.delete_push,
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
        tls = scope.get("extensions", {}).get("tls")
        forwarded = bool(client) and self.door.trusts(client[0])
        return entrance.authenticate(Presented(headers, query, _certificate(tls) if tls else "", forwarded))

    @property
    def credentials(self) -> frozenset[str]:
        """The headers that callers log in with, beside Authorization."""
        entrances = [each.entrance for each in (self.root, *self.desks.values()) if each.entrance is not None]
        schemes = [scheme for each in entrances for scheme in each.security.schemes.values()]
        return frozenset(each.parameter for each in schemes if each.place == "header")

    def admission(self, desk: Desk, principal: Principal) -> Admission | None:
        """For whoever keeps a stream open; None for whom that needs no asking."""
        return None if desk.entrance is None or not principal.id else Admission(desk.entrance, principal)

    def note(self, error: DragomanError, headers: Mapping[str, str], scope: Mapping[str, Any]) -> None:
        """Write down who was not let in, and why. What clients are told says less."""
        if not isinstance(error, Unauthenticated | Forbidden):
            return
        client = scope.get("client")
        extra = {"client": self.door.address(headers, client[0] if client else "")}
        if isinstance(error, Unauthenticated) and not error.why:
            log.info("Refused: nothing was presented", extra=extra)  # how clients find out what would do
        else:
            log.warning("Refused: %s", error.why if isinstance(error, Unauthenticated) else error, extra=extra)

    def call(self, desk: Desk, exchange: Exchange, principal: Principal) -> Awaitable[Any]:
        """Check the request against the agent, and hand it to the engine. Raises before anything has begun."""
        desk.admit(exchange, principal)
        method = self._methods.get(type(exchange.operation))
        if method is None:
            raise UnsupportedOperation("This is not supported here")
        call = Call(
            scope=_scope(desk, exchange, principal),
            principal=principal,
            terms=desk.terms,
            policy=exchange.policy,
            origin=exchange.origin,
            extensions=exchange.activated,
            idempotency_key=exchange.idempotency_key,
            cursor=exchange.cursor,
        )
        sees = principal.admin and call.scope.owner == principal.id
        if sees and isinstance(exchange.operation, GetTask | ListTasks | SubscribeToTask):
            return self._oversee(method, call, exchange.operation)
        return method(call, exchange.operation)

    async def _oversee(
        self,
        method: Callable[[Call, Any], Awaitable[Any]],
        call: Call,
        operation: GetTask | ListTasks | SubscribeToTask,
    ) -> Any:
        """What somebody sees who may see everybody's tasks. They may touch their own only."""
        scope = call.scope._replace(owner=EVERYONE)
        if not isinstance(operation, ListTasks):
            scope = await self._engine.whose(scope, operation.id) or call.scope
        return await method(replace(call, scope=scope), operation)

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


def _certificate(tls: Mapping[str, Any]) -> str:
    """The client's, by ASGI's tls extension. Some hosts hand on what they could not verify, and say so beside it."""
    chain: Sequence[str] = tls.get("client_cert_chain", ())
    return chain[0] if chain and not tls.get("client_cert_error") else ""


def _scope(desk: Desk, exchange: Exchange, principal: Principal) -> Scope:
    """Whose tasks are meant. In a tenant that is not the caller's there are none of theirs, whatever they ask for; and
    what would begin there is refused."""
    tenant = exchange.tenant
    if principal.tenants is None or not tenant or tenant in principal.tenants:
        return Scope(desk.slug, tenant, principal.id)
    operation = exchange.operation
    begins = isinstance(operation, SendMessage) and not (
        exchange.cursor or (operation.message.task_id and exchange.policy.unknown == "refuse")
    )
    if begins or isinstance(operation, ListTasks):
        raise Forbidden("You may not use this tenant")
    return Scope(desk.slug, tenant, NOBODY)
