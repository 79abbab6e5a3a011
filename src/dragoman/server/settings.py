"""What can be set about serving, with the defaults that hold when nobody says otherwise."""

from msgspec import Struct

MIB = 1024 * 1024


class ServerSettings(Struct, frozen=True, kw_only=True):
    """Plain values; `app` fills them from flags, environment and file."""

    body_limit: int = 8 * MIB
    """Largest request body in bytes; more is answered with 413."""

    keepalive_seconds: float = 15.0
    """An idle stream says so this often, so that proxies keep it open."""

    card_max_age: int = 300
    """Seconds a client may keep an agent card before asking again."""

    card_cache: int = 256
    """Rendered cards kept, one per agent, address and version."""

    access_log: bool = False
    """One structured line per request on the logger `dragoman.request`."""

    head_seconds: float = 10.0
    """A request's headers must have arrived after this long (own server only)."""

    head_limit: int = 32 * 1024
    """Largest request line and headers together in bytes; more is answered with 431 (own server only)."""

    body_seconds: float = 60.0
    """A request's body must have arrived after this long (own server only)."""

    idle_seconds: float = 75.0
    """A connection without a request is closed after this long (own server only)."""

    stall_seconds: float = 60.0
    """A connection whose client takes nothing of an answer for this long is cut off; streams may wait (own server
    only)."""

    drain_seconds: float = 20.0
    """How long running turns may take to end when the server stops."""

    close_seconds: float = 5.0
    """How long open connections may take to end after that."""

    connections_per_address: int = 0
    """Connections open at once from one address but trusted proxies (own server only). 0: half of the files the process
    may open, so that nobody takes them all, and any number from this machine."""

    backlog: int = 2048
    """Connections the kernel queues before they are accepted (own server only)."""
