"""One understood request, and everything needed to answer it in its own dialect and binding."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from msgspec import Struct

from dragoman.model.errors import CallerError, Unauthenticated
from dragoman.model.facts import Entry, StatusFact
from dragoman.model.messages import Message
from dragoman.model.operations import (
    Operation,
    PushConfig,
    SendMessage,
    SendStreamingMessage,
    SubscribeToTask,
    TaskRef,
)
from dragoman.model.tasks import View
from dragoman.wire.dialect import Dialect, Encode, Framing, Value
from dragoman.wire.errors import Fault

Headers = tuple[tuple[bytes, bytes], ...]
Around = tuple[bytes, bytes]
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


class Binding(Protocol):
    """What stands around the same payloads in JSON-RPC and in HTTP+JSON.

    `around` is for whole answers, `framed` for the frames of a stream. `nothing` is how an empty result reads.
    `streamed` says that the caller reads nothing but a stream, not even an error.
    """

    nothing: bytes
    streamed: bool
    around: Around
    headers: Headers
    error_headers: Headers

    def framed(self, framing: Framing) -> Around: ...
    def status(self, found: Fault) -> int: ...
    def error(self, dialect: Dialect, found: Fault) -> bytes: ...


class Exchange:
    """One request understood, and its answers.

    `activated` is set by whoever knows the agent's extensions; what it names is echoed.
    """

    __slots__ = (
        "_binding",
        "_dialect",
        "_encode",
        "_head",
        "_uid",
        "activated",
        "cursor",
        "dialect",
        "extensions",
        "idempotency_key",
        "method",
        "operation",
        "origin",
        "policy",
        "streaming",
        "tenant",
    )

    def __init__(self, dialect: Dialect, method: str, operation: Operation, envoy: Envoy, binding: Binding) -> None:
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
        self.activated: tuple[str, ...] = ()
        self._dialect = dialect
        self._binding = binding
        self._uid = ""
        self._head = b""
        self._encode: Encode | None = None

    # --- one answer ---------------------------------------------------------------------------------------

    def reply(self, value: Value) -> Reply:
        if isinstance(value, View | PushConfig):
            self._belongs(value.origin)
        binding = self._binding
        payload = self._dialect.encode(self.operation, value) or binding.nothing
        before, after = binding.around
        return Reply(200, binding.headers + self._marks(), b"%b%b%b" % (before, payload, after))

    def fail(self, error: BaseException) -> Reply:
        """The answer to a request that failed, before any stream began."""
        if isinstance(error, CallerError) and error.origin:
            self._belongs(error.origin)
        binding = self._binding
        found = self._dialect.fault(error)
        headers = binding.error_headers + self._marks() + found.headers
        reply = Reply(binding.status(found), headers, binding.error(self._dialect, found))
        return as_stream(reply) if binding.streamed else reply

    def turn_away(self, error: Unauthenticated, id: str) -> Reply:
        """The answer to who has to log in and did not, in the dialect's own way. `id` is for a task nobody keeps."""
        guest = self._dialect.guest
        if guest is None or not isinstance(self.operation, SendMessage):
            return self.fail(error)
        task = View(uid="", seq=0, task=guest(self.operation, str(error), id))
        if not self.streaming:
            return self.reply(task)
        return Reply(200, self.stream_headers(), self.open(task) + self.closing())

    # --- a stream -----------------------------------------------------------------------------------------

    def stream_headers(self) -> Headers:
        return EVENTS + self._marks()

    def open(self, first: View | Message) -> bytes:
        """The stream's first frame: a task as it stands, or the only message there will be."""
        if isinstance(first, View):
            self._belongs(first.origin)
            shown = self._dialect.seen(self.operation, first)
        else:
            shown = first
        dialect = self._dialect
        payload = _lines((dialect.opening or dialect.item)(shown))
        before, after = self._binding.framed(dialect.first_framing)
        ahead = b""
        if isinstance(payload, tuple):
            ahead = b"".join(b"data: %b%b%b\n\n" % (before, each, after) for each in payload[:-1])
            payload = payload[-1]
        if isinstance(first, Message):
            return b"%bdata: %b%b%b\n\n%b" % (ahead, before, payload, after, dialect.end)
        if not first.uid:  # a task that nobody keeps cannot be resumed
            return b"%bdata: %b%b%b\n\n" % (ahead, before, payload, after)
        # What a large snapshot left out comes behind it: who is cut off before that begins again with all of it.
        seq = 0 if first.partial else first.seq
        return b"%bid: %b.%d\ndata: %b%b%b\n\n" % (ahead, first.uid.encode(), seq, before, payload, after)

    def frames(self, follow_ref: TaskRef, entries: Sequence[Entry], closing: bool) -> bytes:
        """Frames of committed facts, joined. With `closing` the last status among them is the stream's last.

        Payloads are kept on the entries, so that each is made once per dialect however many streams read it.
        """
        if self._encode is None or self._uid != follow_ref.uid:
            self._uid = follow_ref.uid
            self._belongs(follow_ref.origin)
            self._head = b"id: %b." % follow_ref.uid.encode()
            self._encode = self._dialect.events(follow_ref)
        encode = self._encode
        key = self._dialect.name
        final = _last_status(entries) if closing and self._dialect.finals else -1
        head = self._head
        before, after = self._binding.framed(self._dialect.framing)
        before = b"\ndata: " + before
        after += b"\n\n"
        out: list[bytes] = []
        for entry in entries:
            seq = entry.seq
            cached = entry.frames
            if cached is None:
                cached = entry.frames = {}
            if seq == final:
                payload = cached.get((key, True))
                if payload is None:
                    payload = cached[(key, True)] = _lines(encode(entry.fact, True))
            else:
                payload = cached.get(key)
                if payload is None:
                    payload = cached[key] = _lines(encode(entry.fact, False))
            if not payload:
                continue
            if isinstance(payload, tuple):  # of several frames only the last says that the fact is through
                for part in payload[:-1]:
                    out += (before[1:], part, after)
                payload = payload[-1]
            out += (head, b"%d" % seq, before, payload, after)
        return b"".join(out)

    def closing(self) -> bytes:
        """What follows a stream's last frame."""
        return self._dialect.end

    def frame_error(self, error: BaseException) -> bytes:
        """An error inside a running stream; nothing follows it."""
        return error_frame(self._binding.error(self._dialect, self._dialect.fault(error)))

    # --- whose words --------------------------------------------------------------------------------------

    def _belongs(self, origin: str) -> None:
        """A task of that origin is answered: in the words of the dialect that made it, where names are shared."""
        heirs = self._dialect.heirs
        if heirs and origin in heirs:
            self._dialect = heirs[origin]

    def _marks(self) -> Headers:
        """The version that was spoken and the extensions that took effect."""
        version = ((b"a2a-version", self._dialect.version.encode()),)
        if not self.activated:
            return version
        return (*version, (self._dialect.extensions_header, ", ".join(self.activated).encode()))


def as_stream(reply: Reply) -> Reply:
    """The same error as a stream of one event; what was refused at the door stays as it is."""
    if reply.status != 200:
        return reply
    others = tuple(line for line in reply.headers if line[0] != b"content-type")
    return Reply(200, EVENTS + others, error_frame(reply.body))


def _last_status(entries: Sequence[Entry]) -> int:
    return next((entry.seq for entry in reversed(entries) if isinstance(entry.fact, StatusFact)), -1)


def one_line(payload: bytes) -> bytes:
    """The same JSON, on what every reader takes for one line."""
    if not payload.isascii():
        for char, escape in _BREAKS:
            payload = payload.replace(char, escape)
    return payload


def _lines(payload: bytes | tuple[bytes, ...]) -> bytes | tuple[bytes, ...]:
    return tuple(map(one_line, payload)) if isinstance(payload, tuple) else one_line(payload)


def error_frame(body: bytes) -> bytes:
    return b"event: error\ndata: %b\n\n" % one_line(body)
