"""The JSON-RPC envelope. The request's id goes back as the very bytes it came in, so its type cannot change."""

import re
from typing import Any, cast

import msgspec
from msgspec import Raw, Struct

from dragoman.model.errors import InvalidRequest
from dragoman.wire.dialect import Dialect, Framing
from dragoman.wire.errors import Fault, fault
from dragoman.wire.exchange import Around, Headers, Reply
from dragoman.wire.reading import parse

_MAX_ID = 1_000  # bytes; the id comes back in every event of a stream
_NUMBER = re.compile(rb"-?(?:0|[1-9][0-9]{0,63})")
NULL = b"null"


class Envelope(Struct, gc=False):
    """A request as it came; members nobody needs are skipped. Absent and null params are one."""

    jsonrpc: str = ""
    id: Raw = Raw(NULL)
    method: str = ""
    params: Raw = Raw(NULL)


class Opened(Struct, frozen=True):
    """An envelope found good: the id as it is echoed, the method, the parameters still as text."""

    id: bytes
    method: str
    params: bytes


class Unopened(Exception):
    """The envelope is no good. `id` is what can still be echoed."""

    def __init__(self, id: bytes, why: str) -> None:
        super().__init__(why)
        self.id = id
        self.error = InvalidRequest(why)


_envelopes = msgspec.json.Decoder(Envelope)


def open_envelope(body: bytes) -> Opened:
    """Read the envelope. Raises ParseFailure (not JSON) or Unopened (JSON, but no request)."""
    try:
        envelope = _envelopes.decode(body)
    except msgspec.DecodeError:
        raise _why(body) from None
    id = echo(bytes(envelope.id))
    if id is None:
        raise Unopened(NULL, "id must be a string, an integer or null, and short")
    if envelope.jsonrpc != "2.0":
        raise Unopened(id, 'jsonrpc must be "2.0"')
    if not envelope.method:
        raise Unopened(id, "method is required")
    return Opened(id, envelope.method, bytes(envelope.params))


def _why(body: bytes) -> Unopened:
    """What is wrong with a body that holds no envelope."""
    whole = parse(body)
    if isinstance(whole, list):
        return Unopened(NULL, "Batches are not supported; send one request at a time")
    if not isinstance(whole, dict):
        return Unopened(NULL, "The body must be a JSON object")
    members = cast("dict[str, Any]", whole)
    id = echo(msgspec.json.encode(members.get("id"))) or NULL
    wrong = "jsonrpc" if not isinstance(members.get("jsonrpc", ""), str) else "method"
    return Unopened(id, f"{wrong} must be a string")


def echo(id: bytes) -> bytes | None:
    """The id as it may be sent back, or None if it is not one."""
    if len(id) > _MAX_ID:
        return None
    if id[:1] == b'"':
        # Escapes are rewritten, because a reader may know fewer of them than JSON has.
        return id if b"\\" not in id else msgspec.json.encode(msgspec.json.decode(id))
    return id if id == NULL or _NUMBER.fullmatch(id) else None


def error_body(dialect: Dialect, id: bytes, found: Fault) -> bytes:
    error: dict[str, Any] = {"code": found.code, "message": found.message}
    if dialect.details and found.details:
        error["data"] = found.details
    return b'{"jsonrpc":"2.0","id":%b,"error":%b}' % (id, msgspec.json.encode(error))


_JSON: Headers = ((b"content-type", b"application/json"),)
_NAMELESS = (b'{"jsonrpc":"2.0","result":', b"}")
_BARE = (b"", b"")


class Rpc:
    """`exchange.Binding` for one request: whatever answers it is a response with its id."""

    __slots__ = ("_id", "around", "streamed")

    nothing = NULL
    headers: Headers = _JSON
    error_headers: Headers = _JSON

    def __init__(self, id: bytes, streamed: bool) -> None:
        self._id = id
        self.streamed = streamed
        self.around: Around = (b'{"jsonrpc":"2.0","id":%b,"result":' % id, b"}")

    def framed(self, framing: Framing) -> Around:
        return self.around if framing == "wrapped" else _NAMELESS if framing == "nameless" else _BARE

    def status(self, found: Fault) -> int:
        return found.rpc

    def error(self, dialect: Dialect, found: Fault) -> bytes:
        return error_body(dialect, self._id, found)


def refusal(dialect: Dialect, id: bytes, error: BaseException) -> Reply:
    """An error for which no exchange exists."""
    found = fault(error, dialect.words)
    headers: Headers = (*_JSON, (b"a2a-version", dialect.version.encode()), *found.headers)
    return Reply(found.rpc, headers, error_body(dialect, id, found))
