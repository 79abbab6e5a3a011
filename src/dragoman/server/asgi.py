"""The ASGI application: reads a request, has it understood, admitted and carried out, and writes the answer.

One coroutine per request and, on our own listener, nothing beside it: the connection cancels it when its client is
gone. Under a foreign host a second task waits for the disconnect instead.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from typing import Any, NamedTuple
from uuid import uuid4

from msgspec.structs import replace

from dragoman.gateway.desk import Desk
from dragoman.gateway.gateway import Gateway
from dragoman.gateway.quota import place_of
from dragoman.gateway.room import SMALL
from dragoman.model.errors import BodyTooLarge, DragomanError, Forbidden, InvalidRequest, StoreError, Unauthenticated
from dragoman.model.messages import Message
from dragoman.model.operations import GetExtendedCard, GetTask, ListTasks, Principal
from dragoman.server.pages import Pages, Readiness
from dragoman.server.record import Record
from dragoman.server.settings import ServerSettings
from dragoman.server.sharing import Sharing
from dragoman.server.target import below
from dragoman.wire.classify import receive as understand
from dragoman.wire.classify import refuse
from dragoman.wire.errors import NoRoute, WrongVerb
from dragoman.wire.exchange import Exchange, Headers, Inbound, Reply
from dragoman.wire.mounts import table
from dragoman.wire.settings import WireSettings

log = logging.getLogger("dragoman.server")
auth_log = logging.getLogger("dragoman.auth")

Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]

OWN = "dragoman.connection"
"""In `scope["extensions"]`: this server cancels the request's task when its client is gone."""

KEEPALIVE = {"type": "http.response.body", "body": b": keepalive\n\n", "more_body": True}


class Understood(NamedTuple):
    """What is asked for, of which agent, by whom and from where."""

    exchange: Exchange
    desk: Desk
    principal: Principal
    place: str


class Visit(NamedTuple):
    """How a request arrived and who sent it, for who must look closer than its exchange."""

    scope: Any
    headers: Mapping[str, str]
    principal: Principal
    place: str


class Gone(Exception):
    """The client left before its request was whole."""


class Site:
    """Everything served at one address. Its engine must have started; `readiness` is what /readyz says meanwhile."""

    def __init__(
        self,
        *,
        gateway: Gateway,
        settings: ServerSettings | None = None,
        wire: WireSettings | None = None,
    ) -> None:
        settings = settings or ServerSettings()
        self.readiness = Readiness()
        self._gateway = gateway
        self._wire = wire or WireSettings()
        self._mounts = table(self._wire)
        self._greeting = frozenset(path for path, mount in self._mounts.items() if mount.greets)
        self._pages = Pages(gateway, self.readiness, settings)
        self._sharing = Sharing(gateway.door, gateway.credentials)
        self._body_limit = settings.body_limit
        self._keepalive = settings.keepalive_seconds
        self._records = settings.access_log

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await _decline(scope["type"], receive, send)
            return
        lines = scope["headers"]
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in lines}
        if len(headers) != len(lines):
            headers = _joined(lines)
        record = Record(scope) if self._records else None
        extra: Headers = ()
        if "origin" in headers:
            extra = self._sharing.headers(headers["origin"])
        try:
            understood = await self._understand(scope, headers, receive)
        except Gone:
            return
        if isinstance(understood, Reply):
            await _write(understood, extra, send, record)
            return
        exchange, desk, principal, place = understood
        watched = OWN not in scope.get("extensions", ())
        carry_out = self._follow if exchange.streaming else self._answer
        work = carry_out(exchange, desk, Visit(scope, headers, principal, place), extra, send, record)
        # A stream may stay for hours, and needs none of it here.
        del scope, lines, headers, carry_out, understood, exchange, desk, principal, place
        if watched:
            await _while_connected(work, receive)
        else:
            del receive
            await work

    def shared(self, host: str) -> bool:
        """Whether many callers come from that address."""
        return self._gateway.door.trusts(host)

    # --- understanding

    async def _understand(self, scope: Any, headers: Mapping[str, str], receive: Receive) -> Understood | Reply:
        """The exchange to carry out, or the reply that ends it here. No body is read of whom nobody knows."""
        method: str = scope["method"]
        path = below(scope)
        query: str = scope["query_string"].decode("latin-1")
        desk = self._gateway.root
        inbound = Inbound(method, path, query, headers, b"")
        try:
            if (page := self._pages.open(path, method)) is not None:
                return page
            client = scope.get("client")
            place = place_of(self._gateway.door.check(headers, client[0] if client else ""))
            if (turn := self._gateway.quota.arrive(place)) is not None:
                await turn
            found = self._gateway.find(path)
            if found is None:
                raise NoRoute
            desk, rest = found
            reading = "GET" if method == "HEAD" else method
            inbound = Inbound(reading, rest, query, headers, b"")
            if method == "OPTIONS":
                return self._options(desk, inbound)
            if (page := self._pages.find(desk, inbound, scope)) is not None:
                return page
            try:
                principal = self._gateway.principal(desk, headers, query, scope)
                if not isinstance(principal, Principal):
                    principal = await principal
            except Unauthenticated as error:
                if rest not in self._greeting:
                    raise
                self._gateway.note(error, headers, scope)
                return await self._turn_away(inbound, error, receive, place)
            if (turn := self._gateway.quota.knock(principal.id, place)) is not None:
                await turn
            body = await self._body(headers, receive, principal.id or place)
            if body:
                inbound = Inbound(reading, rest, query, headers, body)
                if len(body) > SMALL:
                    self._gateway.quota.weigh(principal.id, place, len(body))
            understood = understand(inbound, self._wire, self._mounts)
            if isinstance(understood, Reply):
                return _allowing(understood)
            if understood.streaming and method == "HEAD":
                raise WrongVerb("GET, POST")
            return Understood(understood, desk, principal, place)
        except DragomanError as error:
            self._gateway.note(error, headers, scope)
            return refuse(inbound, error, self._mounts)
        except Gone:
            raise
        except Exception as error:
            log.exception("A request could not be read", extra={"a2a.method": method})
            return refuse(inbound, error, self._mounts)

    async def _turn_away(self, inbound: Inbound, error: Unauthenticated, receive: Receive, place: str) -> Reply:
        """Who did not log in is answered in the words of what they asked, where a dialect has such words."""
        inbound = replace(inbound, body=await self._body(inbound.headers, receive, place))
        understood = understand(inbound, self._wire, self._mounts)
        if isinstance(understood, Reply):
            return refuse(inbound, error, self._mounts)
        return understood.turn_away(error, str(uuid4()))

    async def _body(self, headers: Mapping[str, str], receive: Receive, caller: str) -> bytes:
        """The whole body. What is too long is refused by its announced length, or as soon as it has come to be."""
        limit = self._body_limit
        length = headers.get("content-length")
        if length is not None:
            if not length.isdecimal():
                raise InvalidRequest("Content-Length is not a number")
            if len(length) > 15 or int(length) > limit:
                raise BodyTooLarge(limit)
            if int(length) > SMALL:
                return await self._large(receive, caller, int(length), [])
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Gone
        body: bytes = message.get("body", b"")
        if not message.get("more_body", False) and len(body) <= limit:
            return body
        pieces = [body]
        size = len(body)
        while message.get("more_body", False) and size <= SMALL:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise Gone
            pieces.append(message.get("body", b""))
            size += len(pieces[-1])
        if message.get("more_body", False):
            return await self._large(receive, caller, limit, pieces)
        if size > limit:
            raise BodyTooLarge(limit)
        return b"".join(pieces)

    async def _large(self, receive: Receive, caller: str, room: int, pieces: list[bytes]) -> bytes:
        """A body that needs room, of which some may have come already."""
        uploads = self._gateway.uploads
        await uploads.enter(caller, room)
        try:
            size = sum(map(len, pieces))
            more = True
            while more and size <= self._body_limit:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise Gone
                pieces.append(message.get("body", b""))
                size += len(pieces[-1])
                more = message.get("more_body", False)
            if size > self._body_limit:
                raise BodyTooLarge(self._body_limit)
            return b"".join(pieces)
        finally:
            uploads.leave(caller, room)

    def _options(self, desk: Desk, inbound: Inbound) -> Reply:
        """What may be done with this path; and, to a page of an allowed origin, that it may do so."""
        allowed = self._pages.verbs(desk, inbound.path)
        if not allowed:
            probe = understand(inbound, self._wire, self._mounts)
            if not isinstance(probe, Reply) or probe.status != 405:
                return probe if isinstance(probe, Reply) else refuse(inbound, NoRoute(), self._mounts)
            allowed = _verbs(probe)
        return Reply(204, ((b"allow", allowed), *self._sharing.preflight(inbound.headers, allowed)), b"")

    # --- carrying out

    async def _answer(
        self, exchange: Exchange, desk: Desk, visit: Visit, extra: Headers, send: Send, record: Record | None
    ) -> None:
        """One operation, one answer."""
        gateway = self._gateway
        result: Any = None
        caller = visit.principal.id or visit.place
        held = 0
        try:
            gateway.quota.enter(caller)
            try:
                reply, result, held = await self._produce(exchange, desk, visit, caller)
            finally:
                gateway.quota.leave(caller)
        except Exception as error:
            reply = _failed(exchange, error, visit.principal)
        except asyncio.CancelledError:
            if record is not None:
                record.about(exchange, None)
                record.left()
            raise
        if record is not None:
            record.about(exchange, result)
        try:
            await _write(reply, extra, send, record)
        except asyncio.CancelledError:
            if record is not None:
                record.left()
            raise
        finally:
            if held:
                gateway.answers.leave(caller, held)

    async def _produce(self, exchange: Exchange, desk: Desk, visit: Visit, caller: str) -> tuple[Reply, Any, int]:
        """The answer, what it says, and how much room it has taken. Whoever reads something large while there is no
        room for it waits, and what they wait for is read again then: nothing of it is kept meanwhile."""
        reply, result = await self._carry_out(exchange, desk, visit)
        size = len(reply.body)
        if size <= SMALL:
            return reply, result, 0
        answers = self._gateway.answers
        if not answers.enter_now(caller, size):
            if not isinstance(exchange.operation, GetTask | ListTasks):
                answers.take(caller, size)  # it was done, and its answer is due
                return reply, result, size
            del reply, result
            await answers.enter(caller, size)
            try:
                reply, result = await self._carry_out(exchange, desk, visit)
            except BaseException:
                answers.leave(caller, size)
                raise
        return reply, result, size

    async def _carry_out(self, exchange: Exchange, desk: Desk, visit: Visit) -> tuple[Reply, Any]:
        gateway = self._gateway
        if isinstance(exchange.operation, GetExtendedCard):
            base = self._pages.base(visit.headers, visit.scope)
            result = await gateway.extended_card(desk, exchange, visit.principal, base)
        else:
            result = await gateway.call(desk, exchange, visit.principal)
        return exchange.reply(result), result

    async def _follow(
        self, exchange: Exchange, desk: Desk, visit: Visit, extra: Headers, send: Send, record: Record | None
    ) -> None:
        """One operation, a stream of events. All frames that are ready leave in one write."""
        gateway = self._gateway
        follow: Any = None
        caller, place = visit.principal.id or visit.place, visit.place
        opened = begun = False
        principal = visit.principal
        try:
            gateway.quota.open(caller, place)
            opened = True
            result = await gateway.call(desk, exchange, principal)
            admission = gateway.admission(desk, principal)
            del visit  # a stream may stay for hours and needs nothing of its request
            if record is not None:
                record.about(exchange, result)
            if isinstance(result, Message):
                reply = Reply(200, exchange.stream_headers(), exchange.open(result))
                return await _write(reply, extra, send, record)
            follow = result
            first = b"" if follow.first is None else exchange.open(follow.first)
            begun = True
            await send(_start(200, exchange.stream_headers() + extra))
            await send({"type": "http.response.body", "body": first, "more_body": True})
            del first
            ref = follow.ref
            while True:
                batch = await follow.batch(self._keepalive)
                if admission is not None and admission.lapsed():
                    # It ends without a word, as a drained one does: who logs in again goes on after the last id.
                    await send({"type": "http.response.body", "body": b""})
                    break
                if batch is None:
                    await send(KEEPALIVE)
                    continue
                frames = exchange.frames(ref, batch.entries, batch.closing)
                if batch.ended:
                    # Drained streams end without a word: their clients resume after the last id.
                    frames += exchange.closing() if batch.closing else b""
                    await send({"type": "http.response.body", "body": frames})
                    break
                if frames:
                    await send({"type": "http.response.body", "body": frames, "more_body": True})
                del batch, frames
        except Exception as error:
            reply = _failed(exchange, error, principal)
            if begun:
                await send({"type": "http.response.body", "body": exchange.frame_error(error)})
            else:
                await _write(reply, extra, send, None)
            if record is not None:
                record.about(exchange, None)
                record.done(reply.status)
        except asyncio.CancelledError:
            if record is not None:
                record.left()
            raise
        else:
            if record is not None:
                record.done(200)
        finally:
            if follow is not None:
                follow.close()
            if opened:
                gateway.quota.close(caller, place)


def _joined(lines: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    """Headers some of which came on several lines."""
    headers: dict[str, str] = {}
    for name, value in lines:
        key, text = name.decode("latin-1"), value.decode("latin-1")
        headers[key] = f"{headers[key]}, {text}" if key in headers else text
    return headers


def _failed(exchange: Exchange, error: Exception, principal: Principal) -> Reply:
    """The answer to what went wrong. What nobody foresaw is logged whole and told in one neutral sentence."""
    if isinstance(error, Forbidden | Unauthenticated):
        auth_log.warning("Denied: %s", error, extra={"a2a.method": exchange.method, "dragoman.caller": principal.id})
    elif isinstance(error, StoreError):
        log.error("The store failed: %s", error, extra={"a2a.method": exchange.method})
    elif not isinstance(error, DragomanError):
        log.exception("An operation failed", extra={"a2a.method": exchange.method, "a2a.dialect": exchange.dialect})
    return exchange.fail(error)


def _start(status: int, headers: Headers) -> dict[str, Any]:
    return {"type": "http.response.start", "status": status, "headers": headers}


async def _write(reply: Reply, extra: Headers, send: Send, record: Record | None) -> None:
    body = reply.body
    headers = reply.headers + extra
    if reply.status not in (204, 304):
        headers += ((b"content-length", b"%d" % len(body)),)
    await send({"type": "http.response.start", "status": reply.status, "headers": headers})
    if len(body) > SMALL:
        await send({"type": "http.response.body", "body": body, "more_body": True})
        body = b""  # whose turn comes when nearly all of the rest was read
    await send({"type": "http.response.body", "body": body})
    if record is not None:
        record.done(reply.status)


def _verbs(reply: Reply) -> bytes:
    """The verbs a refusal allows, and those that come with them."""
    allowed = next((value for name, value in reply.headers if name == b"allow"), b"")
    return allowed + (b", HEAD" if b"GET" in allowed else b"") + b", OPTIONS"


def _allowing(reply: Reply) -> Reply:
    if reply.status != 405:
        return reply
    headers = tuple((name, _verbs(reply) if name == b"allow" else value) for name, value in reply.headers)
    return Reply(405, headers, reply.body)


async def _decline(kind: str, receive: Receive, send: Send) -> None:
    """We speak HTTP. Starting and stopping is `app`'s business; WebSockets are nobody's."""
    if kind != "websocket":
        raise NotImplementedError(kind)
    await receive()
    await send({"type": "websocket.close", "code": 1003})


async def _while_connected(work: Coroutine[Any, Any, None], receive: Receive) -> None:
    """Work until it is done or the client is gone, whichever comes first."""
    working = asyncio.create_task(work)
    leaving = asyncio.create_task(_disconnected(receive))
    try:
        await asyncio.wait((working, leaving), return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            working.result()
    finally:
        pending = [task for task in (working, leaving) if not task.done()]
        for task in pending:
            task.cancel()
        if pending:
            await asyncio.wait(pending)


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
