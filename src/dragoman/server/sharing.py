"""CORS: off unless origins are configured. Says which pages may read our answers, never which may call."""

from collections.abc import Iterable, Mapping

from dragoman.gateway.door import Door
from dragoman.wire.exchange import Headers

REQUEST_HEADERS = (
    b"A2A-Version, A2A-Extensions, X-A2A-Extensions, Authorization, Content-Type, Idempotency-Key, Last-Event-ID"
)
REPLY_HEADERS = b"A2A-Version, A2A-Extensions, X-A2A-Extensions, ETag, Retry-After, WWW-Authenticate"
MAX_AGE = b"600"


class Sharing:
    def __init__(self, door: Door, credentials: Iterable[str] = ()) -> None:
        """`credentials` are headers of callers' own, beside Authorization."""
        self._door = door
        self._request_headers = b", ".join((REQUEST_HEADERS, *(each.encode("latin-1") for each in sorted(credentials))))

    def headers(self, origin: str) -> Headers:
        """What every answer to a page says; nothing to a page that may not read it."""
        if not self._door.shared(origin):
            return ()
        return (
            (b"access-control-allow-origin", origin.encode("latin-1")),
            (b"access-control-expose-headers", REPLY_HEADERS),
            (b"vary", b"Origin"),
        )

    def preflight(self, headers: Mapping[str, str], verbs: bytes) -> Headers:
        """What a browser asks before it lets a page call."""
        if "access-control-request-method" not in headers or not self._door.shared(headers.get("origin", "")):
            return ()
        allowed = (
            (b"access-control-allow-methods", verbs),
            (b"access-control-allow-headers", self._request_headers),
            (b"access-control-max-age", MAX_AGE),
        )
        if headers.get("access-control-request-private-network") == "true":
            return (*allowed, (b"access-control-allow-private-network", b"true"))
        return allowed
