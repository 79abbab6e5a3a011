"""What can be set about who gets in, with the defaults that hold when nobody says otherwise."""

from msgspec import Struct

from dragoman.wire.settings import SEED_MOUNTS

MIB = 1024 * 1024


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
    """Streams open at once for one caller: who logged in, or where nobody has to, one address."""

    streams_per_address: int = 5_000
    """Streams open at once from one address, whoever they are for."""

    requests: int = 20_000
    """Requests in work at once, waiting sends included; streams have a limit of their own."""

    requests_per_caller: int = 10_000
    """Requests of one caller in work at once."""

    rate_per_caller: float = 300.0
    """Requests per second of one who logged in. 0: any number."""

    rate_per_address: float = 300.0
    """Requests per second from one address, whoever they are for. 0: any number."""

    rate_burst: int = 50
    """Requests that may come at once before their rate counts."""

    rate_wait: float = 2.0
    """Seconds a request that comes too early is held back for its turn; one that would wait longer is refused."""

    uploads: int = 256 * MIB
    """Bytes of request bodies above 64 KiB that are being read at once."""

    uploads_per_caller: int = 64 * MIB
    """The same of one caller."""

    answers: int = 256 * MIB
    """Bytes of answers above 64 KiB whose clients have not read them yet."""

    answers_per_caller: int = 64 * MIB
    """The same of one caller."""

    rate_loopback: bool = False
    """Whether rates hold for callers on this machine too."""

    card_versions: tuple[str, ...] = ()
    """Protocol versions the cards name (`1.0`, `0.3`). Empty: every version that is spoken."""

    mounts: tuple[str, ...] = SEED_MOUNTS
    """Paths beside `/` where JSON-RPC is spoken; the cards name them."""

    primary: tuple[str, str] = ("/", "1.0")
    """The address the cards name first, and the version spoken there."""

    open_extended_card: bool = False
    """Show the extended card to callers nobody has authenticated. For conformance kits, which cannot log in."""
