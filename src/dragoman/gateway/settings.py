"""What can be set about who gets in, with the defaults that hold when nobody says otherwise."""

from msgspec import Struct


class GatewaySettings(Struct, frozen=True, kw_only=True):
    """Plain values; `app` fills them from flags, environment and file."""

    hosts: tuple[str, ...] = ()
    """Names this server answers to beside loopback: `name`, `name:port`, `*.name`, or `*` for any."""

    by_address: bool = False
    """Answer to every address too. No page can make a browser believe that an address is another machine's."""

    origins: tuple[str, ...] = ()
    """Web origins whose pages may call (`https://app.example`), or `*`. Empty: no page from elsewhere, no CORS."""

    proxies: tuple[str, ...] = ()
    """Addresses or networks whose `Forwarded` and `X-Forwarded-*` headers are believed. Anybody else's are refused."""

    public_url: str = ""
    """Where clients reach the root of this server, when it cannot be told from requests. Its host is answered to."""

    streams: int = 10_000
    """Streams open at once."""

    streams_per_caller: int = 5_000
    """Streams open at once for one principal; without authentication everybody is the same one."""

    requests: int = 20_000
    """Requests in work at once, waiting sends and streams included."""

    card_versions: tuple[str, ...] = ()
    """Protocol versions the cards name (`1.0`, `0.3`). Empty: every version that is spoken."""

    mounts: tuple[str, ...] = ("/a2a/jsonrpc", "/a2a", "/api/a2a")
    """Paths beside `/` where JSON-RPC is spoken; the cards name them."""

    primary: tuple[str, str] = ("/", "1.0")
    """The address the cards name first, and the version spoken there."""

    open_extended_card: bool = False
    """Show the extended card to callers nobody has authenticated. For conformance kits, which cannot log in."""
