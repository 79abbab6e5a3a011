"""Which addresses outsiders may make us call. Pure: it judges what a resolver answered, and resolves nothing itself.

The URL of a webhook or of a remote card is somebody else's text, and we stand where they cannot: inside the network,
next to databases and metadata services. Two rules keep that from being useful to them.

1. A URL has one reading. Whatever browsers, resolvers and libraries disagree about (addresses in decimal, octal or hex,
   percent signs, backslashes, user names, letters that normalise into others) is refused, not interpreted.
2. Every address a name leads to must be public, or allowed by whoever runs this server. The caller then connects to
   one of exactly these addresses and never resolves again, so that a name which changes its mind changes nothing.

`Guard.target` is the first rule, `Guard.admit` the second.
"""

import re
from collections.abc import Iterable
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from msgspec import Struct

from dragoman.model.errors import AddressRefused

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

PORTS = {"http": 80, "https": 443}
LONGEST = 2_048

# The characters of RFC 3986. Anything else has to come percent-encoded, as every library that makes URLs writes it.
_URL = re.compile(r"[A-Za-z0-9\-._~:/?#\[\]@!$&'()*+,;=%]+")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_PORT = re.compile(r"[1-9][0-9]{0,4}")
# Letters, digits, hyphens inside. Underscores are no host names by the letter, and common inside container networks.
_LABEL = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?")
# A last label like these makes resolvers read the whole as a number: 2130706433, 0x7f.1, 127.1, 0177.0.0.1.
_NUMERIC = re.compile(r"[0-9]+|0x[0-9a-f]*")

# Never public, and for what they are instead: the special-purpose registries of IANA for IPv4 and IPv6.
_SPECIAL_4: tuple[tuple[IPv4Network, str], ...] = tuple(
    (IPv4Network(network), what)
    for network, what in (
        ("0.0.0.0/8", "an unspecified address"),
        ("10.0.0.0/8", "a private address"),
        ("100.64.0.0/10", "a shared address of a provider's network"),
        ("127.0.0.0/8", "a loopback address"),
        ("168.63.129.16/32", "a metadata address"),  # Azure's, though it looks public
        ("169.254.0.0/16", "a link-local address"),  # 169.254.169.254 is most clouds' metadata service
        ("172.16.0.0/12", "a private address"),
        ("192.0.0.0/24", "a reserved address"),
        ("192.0.2.0/24", "a documentation address"),
        ("192.88.99.0/24", "a reserved address"),
        ("192.168.0.0/16", "a private address"),
        ("198.18.0.0/15", "a reserved address"),
        ("198.51.100.0/24", "a documentation address"),
        ("203.0.113.0/24", "a documentation address"),
        ("224.0.0.0/4", "a multicast address"),
        ("240.0.0.0/4", "a reserved address"),
    )
)
_MAPPED = IPv6Network("::ffff:0:0/96")
_NAT64 = IPv6Network("64:ff9b::/96")
_GLOBAL_6 = IPv6Network("2000::/3")  # all of IPv6 that is handed out to the public; the list names exceptions within
_SPECIAL_6: tuple[tuple[IPv6Network, str], ...] = tuple(
    (IPv6Network(network), what)
    for network, what in (
        ("::/128", "an unspecified address"),
        ("::1/128", "a loopback address"),
        ("::/96", "an address that hides another"),  # IPv4-compatible
        ("64:ff9b:1::/48", "an address that hides another"),  # a network's own NAT64
        ("2001::/32", "an address that hides another"),  # Teredo
        ("2001:db8::/32", "a documentation address"),
        ("2001::/23", "a reserved address"),
        ("2002::/16", "an address that hides another"),  # 6to4
        ("3fff::/20", "a documentation address"),
        ("fc00::/7", "a private address"),
        ("fe80::/10", "a link-local address"),
        ("fec0::/10", "a private address"),  # site-local
        ("ff00::/8", "a multicast address"),
    )
)

_NOT_PUBLIC = "its host may not be called from here; it has to lead to public addresses, and to nothing else"


class Target(Struct, frozen=True):
    """A URL that was read: whom to call, and for what. `trusted` hosts may lead anywhere."""

    scheme: str
    host: str  # in lower case, an IPv6 address without its brackets
    port: int
    path: str  # with the query
    trusted: bool = False

    @property
    def authority(self) -> str:
        """What a Host header says."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def address(self) -> str:
        """The address that stands in the URL itself; empty for a name."""
        return self.host if literal(self.host) is not None else ""


class Guard(Struct, frozen=True):
    """What may be called. The default: public addresses, by http and https, on port 80, 443 or one from 1024 up.

    `hosts` are called wherever they lead, at the usual ports (port 0) or at the one given. `networks` count as public.
    """

    hosts: frozenset[tuple[str, int]] = frozenset()
    networks: tuple[Network, ...] = ()
    secure: bool = False  # https only

    def target(self, url: str) -> Target:
        """Read a URL. Raises AddressRefused, with what is wrong about it in plain words."""
        if len(url) > LONGEST:
            raise AddressRefused(f"is longer than {LONGEST} characters")
        if not _URL.fullmatch(url):
            raise AddressRefused(
                "holds characters that a URL cannot have; percent-encode them, and write names in ASCII"
            )
        scheme = _SCHEME.match(url)
        if scheme is None or scheme[1].lower() not in PORTS:
            raise AddressRefused("must begin with https:// or http://")
        if self.secure and scheme[1].lower() != "https":
            raise AddressRefused("must begin with https://")
        rest = url[scheme.end() :]
        authority = re.split(r"[/?#]", rest, maxsplit=1)[0]
        path = rest[len(authority) :]
        if "#" in path:
            raise AddressRefused("must not have a fragment (#…): it would not be sent")
        if "@" in authority:
            raise AddressRefused("must not hold a user name or password; use authentication or a token instead")
        name, port = _split(authority)
        host = read_host(name)
        number = _port(port) if port is not None else PORTS[scheme[1].lower()]
        here = (host, number) in self.hosts
        if number < 1024 and number not in PORTS.values() and not here:
            raise AddressRefused("names a port that may not be called; use 80, 443 or one from 1024 up")
        target = Target(
            scheme=scheme[1].lower(),
            host=host,
            port=number,
            path=path if path.startswith("/") else f"/{path}",
            trusted=here or (host, 0) in self.hosts,
        )
        if (address := literal(host)) is not None and not target.trusted and (what := self.objection(address)):
            raise AddressRefused(f"names {what}; only public addresses may be called")
        return target

    def admit(self, target: Target, addresses: Iterable[str]) -> tuple[str, ...]:
        """Which addresses may be dialled for the target: all it leads to, or AddressRefused if any of them may not.

        The reason is one for all names, so that nobody can ask us what exists inside.
        """
        found = tuple(dict.fromkeys(addresses))
        if not found or not (target.trusted or all(self._admits(each) for each in found)):
            raise AddressRefused(_NOT_PUBLIC)
        return found

    def _admits(self, text: str) -> bool:
        address = literal(text)
        return address is not None and "%" not in text and not self.objection(address)

    def objection(self, address: Address) -> str:
        """What an address is that may not be called; empty for one that may."""
        if any(address.version == network.version and address in network for network in self.networks):
            return ""
        if isinstance(address, IPv4Address):
            return next((what for network, what in _SPECIAL_4 if address in network), "")
        if address in _MAPPED or address in _NAT64:
            # Where these lead is written in them: the last four bytes are dialled.
            return self.objection(IPv4Address(int(address) & 0xFFFF_FFFF))
        for network, what in _SPECIAL_6:
            if address in network:
                return what
        return "" if address in _GLOBAL_6 else "a reserved address"


def guard(hosts: Iterable[str] = (), networks: Iterable[str] = (), *, secure: bool = False) -> Guard:
    """Make a guard of what was configured. Raises ValueError with what is wrong about which entry."""
    return Guard(frozenset(map(_allowed_host, hosts)), tuple(map(_allowed_network, networks)), secure)


def lane(url: str) -> str:
    """Which receiver a URL belongs to: its scheme, host and port. What waits for one waits in one lane."""
    scheme, _, rest = url.partition("://")
    for end in "/?#":
        rest = rest.partition(end)[0]
    return f"{scheme}://{rest}".lower()


@lru_cache(maxsize=256)
def literal(text: str) -> Address | None:
    """The address a text spells out; None for a name. Python reads the plain spellings and no others."""
    try:
        return ip_address(text)
    except ValueError:
        return None


def read_host(name: str) -> str:
    """A host as we compare and dial it. Raises AddressRefused for whatever could be read in a second way."""
    if name.startswith("["):
        inner = name[1:-1].lower()
        if name.endswith("]") and "%" not in inner and isinstance(literal(inner), IPv6Address):
            return inner
        raise AddressRefused("holds an address in brackets that is none; a zone (%…) cannot be called")
    host = name.lower()
    if not host:
        raise AddressRefused("names no host")
    if host.endswith("."):
        raise AddressRefused("names a host with a dot at its end; leave it out")
    labels = host.split(".")
    if _NUMERIC.fullmatch(labels[-1]):
        if literal(host) is None:
            raise AddressRefused("spells its address in an unusual way; write four decimal numbers")
        return host
    if len(host) > 253 or not all(_LABEL.fullmatch(label) for label in labels):
        raise AddressRefused("names a host that cannot exist; write names in ASCII (xn--…)")
    return host


def _split(authority: str) -> tuple[str, str | None]:
    """Host and port, as written. A colon promises a port."""
    if authority.startswith("["):
        host, bracket, rest = authority.partition("]")
        if rest and not rest.startswith(":"):
            raise AddressRefused("holds an address in brackets that is none")
        return host + bracket, rest[1:] if rest else None
    host, colon, port = authority.partition(":")
    return host, port if colon else None


def _port(text: str) -> int:
    if not _PORT.fullmatch(text) or int(text) > 65_535:
        raise AddressRefused("names a port that does not exist; write a number from 1 to 65535")
    return int(text)


def _allowed_host(entry: str) -> tuple[str, int]:
    bare = isinstance(literal(entry), IPv6Address)
    try:
        name, port = _split(f"[{entry}]" if bare else entry)
        return read_host(name), 0 if port is None else _port(port)
    except AddressRefused:
        raise ValueError(f"Expected a host such as desk.internal or desk.internal:81, got {entry!r}") from None


def _allowed_network(entry: str) -> Network:
    try:
        return ip_network(entry)
    except ValueError:
        pass
    try:
        wider = ip_network(entry, strict=False)
    except ValueError:
        raise ValueError(f"Expected a network such as 10.0.0.0/8 or an address, got {entry!r}") from None
    raise ValueError(f"Expected a network such as {wider} or an address of it, got {entry!r}, which is both")
