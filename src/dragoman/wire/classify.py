"""Which dialect and operation a request is: decided by its path, its method name and `A2A-Version`, in that order."""

import re
from collections.abc import Mapping
from contextlib import suppress
from typing import NamedTuple
from urllib.parse import parse_qsl

import msgspec

from dragoman.model.errors import (
    CallerError,
    ContentTypeNotSupported,
    InvalidParams,
    InvalidRequest,
    MethodNotFound,
    ParseFailure,
    VersionNotSupported,
)
from dragoman.model.operations import Operation, SendMessage
from dragoman.wire import jsonrpc, rest
from dragoman.wire.dialect import Dialect
from dragoman.wire.errors import NoRoute, WrongVerb
from dragoman.wire.exchange import Envoy, Exchange, Inbound, Reply, as_stream
from dragoman.wire.mounts import KNOWN_VERSIONS, Mount
from dragoman.wire.nesting import strain
from dragoman.wire.p03 import P03, for_peer
from dragoman.wire.p10 import P10
from dragoman.wire.reading import MAX_ID, plain
from dragoman.wire.settings import WireSettings

# First path segments that mean something: no tenant and no agent may be called so.
RESERVED = frozenset(
    {
        ".well-known",
        "a2a",
        "agent",
        "agentCard",
        "agents",
        "api",
        "card",
        "console",
        "extendedAgentCard",
        "health",
        "healthz",
        "message:send",
        "message:stream",
        "metrics",
        "openapi.json",
        "ping",
        "readyz",
        "tasks",
        "v1",
    }
)
_HOOKS = ("pushNotificationConfig", "pushNotificationConfigs")  # protoAgent's page, and its server
_VERSION = re.compile(r"(\d{1,4}\.\d{1,4})(?:\.\d{1,9})*")
_CARD_02 = "/agent/authenticatedExtendedCard"  # 0.2's extended card, before it was a method
_MEDIA = ("application/json", "application/a2a+json")


Mounts = Mapping[str, Mount]


class _Place(NamedTuple):
    """Where a request goes: a JSON-RPC mount, a route of HTTP+JSON, or (both None) nowhere."""

    tenant: str = ""
    mount: Mount | None = None
    dialect: Dialect = P10
    match: rest.Match | None = None


def receive(inbound: Inbound, wire: WireSettings, mounts: Mounts) -> Exchange | Reply:
    """The exchange that answers this request, or the reply that refuses it. `mounts` is `mounts.table(wire)`."""
    try:
        version = version_of(inbound)
        mount = mounts.get(inbound.path)
        if mount is not None:
            return _rpc(inbound, wire, version, "", mount)
        place = _place(inbound.path, version, mounts)
    except InvalidParams as error:
        return refuse(inbound, error, mounts)
    if place.mount is not None:
        if inbound.method != "POST":
            # Any word may be a tenant's, but /favicon.ico is hardly meant as one.
            return rest.refusal(P10, NoRoute())
        return _rpc(inbound, wire, version, place.tenant, place.mount)
    if place.match is not None:
        return _rest(inbound, wire, version, place, place.match)
    return refuse(inbound, NoRoute(), mounts)


def refuse(inbound: Inbound, error: BaseException, mounts: Mounts) -> Reply:
    """The reply to a request nobody read: too large, from a foreign page, without credentials, to no known path."""
    version, place = "", _Place()
    with suppress(InvalidParams):
        version = version_of(inbound)
    with suppress(InvalidParams):
        place = _place(inbound.path, version, mounts)
    if place.mount is not None:
        return jsonrpc.refusal(place.mount.unnamed(version), jsonrpc.NULL, error)
    return rest.refusal(place.dialect, error)


def version_of(inbound: Inbound) -> str:
    """`A2A-Version` as Major.Minor: the header's, else the query's, else "". What is no version stays as it is."""
    found = inbound.headers.get("a2a-version", "").strip()
    if found in ("1.0", "0.3"):
        return found
    if not found and inbound.query:
        found = next((value for name, value in parse_qsl(inbound.query) if name.lower() == "a2a-version"), "").strip()
    given = {each.strip() for each in found.split(",")} - {""}
    if len(given) > 1:
        raise InvalidParams("is given more than once, with different values", "A2A-Version")
    first = "".join(given)
    match = _VERSION.fullmatch(first)
    return match.group(1) if match else first


# --- where --------------------------------------------------------------------------------------------------


def _place(path: str, version: str, mounts: Mounts) -> _Place:
    mount = mounts.get(path or "/")
    if mount is not None:
        return _Place(mount=mount)
    if path == _CARD_02:
        return _Place(dialect=P03, match=rest.match(["card"], "card"))
    first, *others = path[1:].split("/")
    modern = version.startswith("1.")
    if first == "v1" and not modern:
        return _Place(dialect=P03, match=rest.match(others, "card"))
    below = mounts.get(f"/{first}")
    if below is not None and below.rest is not None:
        return _Place(dialect=below.rest, match=rest.match(others, "card", _HOOKS))
    here = rest.match([first, *others], "extendedAgentCard")
    if here is not None:
        return _Place(match=here)
    tenant = rest.segment(first)
    if not tenant or (tenant in RESERVED and not (tenant == "v1" and modern)):
        return _Place()
    if not plain(tenant):
        raise InvalidParams(f"must be at most {MAX_ID} characters, without control characters", "tenant")
    if others in ([], [""]):
        return _Place(tenant, mount=mounts["/"])
    if others[0] == "v1" and not modern:
        return _Place(tenant, dialect=P03, match=rest.match(others[1:], "card"))
    return _Place(tenant, match=rest.match(others, "extendedAgentCard"))


def _spoken(mount: Mount) -> frozenset[str]:
    return mount.modern.versions | mount.legacy.versions if mount.official else KNOWN_VERSIONS


# --- JSON-RPC -----------------------------------------------------------------------------------------------


def _rpc(inbound: Inbound, wire: WireSettings, version: str, tenant: str, mount: Mount) -> Exchange | Reply:
    dialect = mount.unnamed(version)
    id = jsonrpc.NULL
    streamed = False
    try:
        if inbound.method != "POST":
            raise WrongVerb("POST")
        _json_body(inbound, wire)
        opened = jsonrpc.open_envelope(inbound.body)
        id = opened.id
        named = mount.find(opened.method, opened.params)
        if named is None:
            dialect = mount.unnamed(version, opened.method)
            if version and version not in _spoken(mount):
                raise VersionNotSupported(version, (mount.modern.version, mount.legacy.version))
            raise MethodNotFound(opened.method)
        dialect = named
        streamed = opened.method in dialect.sse_errors
        given = inbound.headers.get("a2a-version", "") if dialect.exact else version
        _agree(dialect, given, mount.versions(opened.method, dialect), wire)
        params = b"{}" if opened.params == jsonrpc.NULL else opened.params
        if params[:1] != b"{":
            raise InvalidParams("must be an object", "params")
        method = dialect.methods[opened.method]
        operation = _for_tenant(dialect.read(method, params, wire), tenant)
        envoy = _envoy(inbound, operation)
        return Exchange(dialect, method, operation, envoy, jsonrpc.Rpc(id, streamed))
    except jsonrpc.Unopened as unopened:
        return jsonrpc.refusal(dialect, unopened.id, unopened.error)
    except CallerError as error:
        refused = jsonrpc.refusal(dialect, id, error)
        return as_stream(refused) if streamed else refused


# --- HTTP+JSON ----------------------------------------------------------------------------------------------


def _rest(inbound: Inbound, wire: WireSettings, version: str, place: _Place, match: rest.Match) -> Exchange | Reply:
    dialect = for_peer(inbound.headers.get("user-agent", "")) if place.dialect is P03 else place.dialect
    try:
        name = match.verbs.get(inbound.method)
        if name is None:
            raise WrongVerb(match.allowed)
        _agree(dialect, version, dialect.versions, wire)
        if inbound.body and inbound.method == "POST":
            _json_body(inbound, wire)
        operation = _for_tenant(rest.read(dialect, name, inbound, match.bound, wire), place.tenant)
        return Exchange(dialect, name, operation, _envoy(inbound, operation), rest.Rest(dialect, inbound))
    except CallerError as error:
        return rest.refusal(dialect, error)


# --- what both check ----------------------------------------------------------------------------------------


def _agree(dialect: Dialect, version: str, versions: frozenset[str], wire: WireSettings) -> None:
    """The version asked for must go with the request. None asked for is an old client's, but names tell."""
    if version:
        if version not in versions:
            raise VersionNotSupported(version, sorted(versions, reverse=True))
    elif wire.require_version and "0.3" not in versions:
        raise VersionNotSupported("0.3", (dialect.version,))


def _json_body(inbound: Inbound, wire: WireSettings) -> None:
    """The body says it is JSON, is UTF-8, and nests no deeper than allowed. Decoding comes after this."""
    media = inbound.headers.get("content-type", "")
    if media != "application/json" and media.partition(";")[0].strip().lower() not in _MEDIA:
        raise ContentTypeNotSupported("Send the body as Content-Type: application/json", mediaType=media[:100])
    body = inbound.body
    if not body.isascii():
        try:
            str(body, "utf-8")
        except UnicodeDecodeError:
            raise ParseFailure("The body is not valid UTF-8.") from None
    why = strain(body, wire.max_depth, wire.max_containers)
    if why:
        raise InvalidRequest(why)


def _for_tenant(operation: Operation, tenant: str) -> Operation:
    """The path names the tenant; parameters may repeat it, but not contradict it. Where only they name one, it is one
    that a path could name."""
    named = operation.tenant
    if not tenant:
        if named in RESERVED and named != "v1":
            raise InvalidParams(f"{named} is a name of ours; choose another", "tenant")
        return operation
    if named == tenant:
        return operation
    if named:
        raise InvalidParams("does not agree with the tenant in the path", "tenant")
    return msgspec.structs.replace(operation, tenant=tenant)


def _envoy(inbound: Inbound, operation: Operation) -> Envoy:
    headers = inbound.headers
    extensions: tuple[str, ...] = ()
    if "a2a-extensions" in headers or "x-a2a-extensions" in headers:
        # Peers of either age use either spelling, some both.
        named = f"{headers.get('a2a-extensions', '')},{headers.get('x-a2a-extensions', '')}"
        extensions = tuple(dict.fromkeys(uri for each in named.split(",") if (uri := each.strip())))
    key = headers.get("idempotency-key", "").strip()
    inside = operation.configuration.idempotency_key if isinstance(operation, SendMessage) else ""
    if key and not plain(key):
        raise InvalidParams(f"must be at most {MAX_ID} printable characters", "Idempotency-Key")
    if key and inside and key != inside:
        raise InvalidParams("does not agree with configuration.idempotencyKey", "Idempotency-Key")
    return Envoy(extensions, headers.get("last-event-id", "").strip(), key or inside)
