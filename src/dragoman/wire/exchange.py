"""One understood request, and everything needed to answer it in its own dialect and binding."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

from msgspec import Struct

from dragoman.model.facts import Entry, StatusFact
from dragoman.model.messages import Message
from dragoman.model.operations import Operation, SendStreamingMessage, SubscribeToTask, TaskRef
from dragoman.model.tasks import View
from dragoman.wire.dialect import Dialect, Encode, Value
from dragoman.wire.errors import Fault, fault

Headers = tuple[tuple[bytes, bytes], ...]
EVENTS: Headers = (
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache"),
    (b"x-accel-buffering", b"no"),
)

# Valid in JSON, but some readers of event streams split lines at them as if they were line ends.
_BREAKS = tuple((char.encode(), f"\\u{ord(char):04x}".encode()) for char in "\u0085\u2028\u2029")


class Inbound(Struct, frozen=True):
    """An HTTP request, whole. The path is below the agent's root and still percent-encoded; header names are lower case
    and repeated lines joined with ", "."""

    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    body: bytes


class Reply(Struct, frozen=True):
    """An HTTP response. The headers say everything but the length, which the server knows."""

    status: int
    headers: Headers
    body: bytes


class Envoy(Struct, frozen=True):
    """What travelled around the operation, whatever the binding: which extensions, from where on, under which key."""

    extensions: tuple[str, ...] = ()
    cursor: str = ""
    idempotency_key: str = ""


class Exchange(ABC):
    """One request understood. Bindings subclass it; nothing else looks at its private parts.

    `activated` is set by whoever knows the agent's extensions; what it names is echoed.
    """

    __slots__ = (
        "_after",
        "_before",
        "_dialect",
        "_encode",
        "_head",
        "_uid",
        "activated",
        "cursor",
        "dialect",
        "end",
        "extensions",
        "idempotency_key",
        "method",
        "operation",
        "origin",
        "policy",
        "streaming",
        "tenant",
    )

    def __init__(self, dialect: Dialect, method: str, operation: Operation, envoy: Envoy) -> None:
        self.operation = operation
        self.method = method
        self.tenant = operation.tenant
        self.streaming = isinstance(operation, SendStreamingMessage | SubscribeToTask)
        self.dialect = dialect.name
        self.origin = dialect.origin
        self.policy = dialect.policy
        self.extensions = envoy.extensions
        self.cursor = envoy.cursor
        self.idempotency_key = envoy.idempotency_key
        self.end = dialect.end
        self.activated: tuple[str, ...] = ()
        self._dialect = dialect
        self._before = b""
        self._after = b""
        self._uid = ""
        self._head = b""
        self._encode: Encode | None = None

    # --- one answer ---------------------------------------------------------------------------------------

    def reply(self, value: Value) -> Reply:
        payload = self._dialect.encode(self.operation, value) or self._nothing
        return Reply(200, self._headers(), b"%b%b%b" % (self._before, payload, self._after))

    def fail(self, error: BaseException) -> Reply:
        """The answer to a request that failed, before any stream began."""
        found = fault(error, self._dialect.codes)
        return Reply(self._status(found), self._error_headers() + found.headers, self._error(found))

    # --- a stream -----------------------------------------------------------------------------------------

    def stream_headers(self) -> Headers:
        return EVENTS + self._marks()

    def open(self, first: View | Message) -> bytes:
        """The stream's first frame: a task as it stands, or the only message there will be."""
        payload = one_line(self._dialect.item(first))
        if isinstance(first, Message):
            return b"data: %b%b%b\n\n" % (self._before, payload, self._after)
        return b"id: %b.%d\ndata: %b%b%b\n\n" % (first.uid.encode(), first.seq, self._before, payload, self._after)

    def frames(self, follow_ref: TaskRef, entries: Sequence[Entry], closing: bool) -> bytes:
        """Frames of committed facts, joined. With `closing` the last status among them is the stream's last.

        Payloads are kept on the entries, so that each is made once per dialect however many streams read it.
        """
        if self._encode is None or self._uid != follow_ref.uid:
            self._uid = follow_ref.uid
            self._head = b"id: %b." % follow_ref.uid.encode()
            self._encode = self._dialect.events(follow_ref)
        encode = self._encode
        key = self._dialect.name
        final = _last_status(entries) if closing and self._dialect.finals else -1
        head = self._head
        before = b"\ndata: " + self._before
        after = self._after + b"\n\n"
        out: list[bytes] = []
        for entry in entries:
            seq = entry.seq
            cached = entry.frames
            if cached is None:
                cached = entry.frames = {}
            if seq == final:
                payload = cached.get((key, True))
                if payload is None:
                    payload = cached[(key, True)] = one_line(encode(entry.fact, True))
            else:
                payload = cached.get(key)
                if payload is None:
                    payload = cached[key] = one_line(encode(entry.fact, False))
            if payload:
                out += (head, b"%d" % seq, before, payload, after)
        return b"".join(out)

    def frame_error(self, error: BaseException) -> bytes:
        """An error inside a running stream; nothing follows it."""
        return error_frame(self._error(fault(error, self._dialect.codes)))

    # --- what a binding says ------------------------------------------------------------------------------

    _nothing: bytes = b"{}"

    @abstractmethod
    def _headers(self) -> Headers: ...

    @abstractmethod
    def _error_headers(self) -> Headers: ...

    @abstractmethod
    def _status(self, found: Fault) -> int: ...

    @abstractmethod
    def _error(self, found: Fault) -> bytes: ...

    def _marks(self) -> Headers:
        """The version that was spoken and the extensions that took effect."""
        version = ((b"a2a-version", self._dialect.version.encode()),)
        if not self.activated:
            return version
        return (*version, (self._dialect.extensions_header, ", ".join(self.activated).encode()))


def _last_status(entries: Sequence[Entry]) -> int:
    return next((entry.seq for entry in reversed(entries) if isinstance(entry.fact, StatusFact)), -1)


def one_line(payload: bytes) -> bytes:
    """The same JSON, on what every reader takes for one line."""
    if not payload.isascii():
        for char, escape in _BREAKS:
            payload = payload.replace(char, escape)
    return payload


def error_frame(body: bytes) -> bytes:
    return b"event: error\ndata: %b\n\n" % one_line(body)
