"""Who may come in at all: the Host, Origin and proxy rules.

Without authentication the only thing between a web page and a coding agent on the same machine is what the browser
cannot forge: the page's Origin, and the Host name it looked up. So a Host must be loopback or configured (DNS
rebinding), a foreign Origin is refused (cross-site requests), and forwarding headers count only from trusted proxies.
"""

import re
from collections.abc import Mapping
from ipaddress import ip_address, ip_network
from urllib.parse import urlsplit

from dragoman.gateway.settings import GatewaySettings
from dragoman.model.errors import Forbidden, InvalidRequest

FORWARDING = frozenset(
    {
        "forwarded",
        "x-forwarded-for",
        "x-forwarded-host",
        "x-forwarded-port",
        "x-forwarded-prefix",
        "x-forwarded-proto",
        "x-real-ip",
    }
)
LONGEST = 64  # characters of an address
REMEMBERED = 1_024  # hosts and peers judged before; forgotten all at once when there are more
_HOST = re.compile(r"(\[[0-9a-f:.]{2,45}\]|[a-z0-9._-]{1,253})(?::([0-9]{1,5}))?")
_PREFIX = re.compile(r"(?:/[A-Za-z0-9._~%!$&'()*+,;=:@-]+)*/?")


class Door:
    """`guarded`: every caller shows something that browsers send on nobody's behalf but their own, so that neither
    names nor pages have to be known any more. Origins that are configured hold all the same."""

    def __init__(self, settings: GatewaySettings, *, guarded: bool = False) -> None:
        self._any_host = guarded
        self._any_origin = guarded and not settings.origins
        self._hosts = {_bare(host) for host in settings.hosts}
        self._by_address = settings.by_address
        self._origins = {origin.rstrip("/").lower() for origin in settings.origins}
        self._proxies = tuple(ip_network(each, strict=False) for each in settings.proxies)
        self._public = settings.public_url.rstrip("/")
        if self._public:
            public = urlsplit(self._public)
            self._hosts.add(public.netloc.lower())
            self._origins.add(f"{public.scheme}://{public.netloc}".lower())
        # Who has a name in the network is not to be called by loopback names: those are everybody's.
        self._local = not settings.by_address and all(
            _loopback(parsed[1] if (parsed := _HOST.fullmatch(each)) else each) for each in self._hosts
        )
        self._welcome: set[str] = set()
        self._trusted: dict[str, bool] = {}

    def check(self, headers: Mapping[str, str], peer: str) -> str:
        """The caller's address. Raises Forbidden for whom we do not serve. Quick for everybody met before."""
        host = headers.get("host", "")
        if host not in self._welcome:
            self._meet(host)
        if not FORWARDING.isdisjoint(headers):
            if not self.trusts(peer):
                raise Forbidden(
                    "Forwarding headers are accepted only from a trusted proxy; configure its address as trusted"
                )
            host = _forwarded(headers, "host") or host
            if host not in self._welcome:
                self._meet(host)
            peer = self._hop(headers, peer)
        origin = headers.get("origin")
        if origin is not None and not (self._any_origin or self.knows(origin, host)):
            raise Forbidden("Pages of this origin may not call this server; configure it as allowed if they should")
        return peer

    def knows(self, origin: str, host: str) -> bool:
        """Whether a page of that origin may call: it is our own, or configured."""
        own = origin.lower()
        return own in self._origins or "*" in self._origins or own.partition("://")[2] == host.lower()

    def shared(self, origin: str) -> bool:
        """Whether answers may be read by pages of that origin, which is more than being our own."""
        return origin.lower() in self._origins or "*" in self._origins

    def trusts(self, peer: str) -> bool:
        known = self._trusted.get(peer)
        if known is None:
            if len(self._trusted) >= REMEMBERED:
                self._trusted.clear()
            known = self._trusted[peer] = self._is_proxy(peer)
        return known

    def base(self, headers: Mapping[str, str], scheme: str, root: str) -> str:
        """The URL under which the caller reaches our root, without a slash at its end. Call `check` first."""
        if self._public:
            return self._public
        host = headers.get("host", "")
        if FORWARDING.isdisjoint(headers):
            return f"{scheme}://{host}{root}"
        scheme = (_forwarded(headers, "proto") or scheme).lower()
        if scheme not in ("http", "https"):
            raise InvalidRequest("The proxy forwards a protocol other than http and https")
        host = _forwarded(headers, "host") or host
        port = headers.get("x-forwarded-port", "").strip()
        if port.isdecimal() and not _port(host) and port != ("443" if scheme == "https" else "80"):
            host = f"{host}:{int(port)}"
        prefix = headers.get("x-forwarded-prefix", "").partition(",")[0].strip().rstrip("/")
        if not _PREFIX.fullmatch(prefix):
            raise InvalidRequest("The proxy forwards a prefix that is no path")
        return f"{scheme}://{host}{prefix}{root}"

    def vouches(self, base: str) -> bool:
        """Whether a base is an address of ours for certain. A name that is answered to only because any name is may be
        anybody's: a card that leads there is not to carry our signature."""
        if self._public:
            return True
        host = urlsplit(base).netloc.lower()
        parsed = _HOST.fullmatch(host)
        name = parsed[1].rstrip(".") if parsed else host
        return name in self._hosts or host in self._hosts or (self._local and _loopback(name))

    def address(self, headers: Mapping[str, str], peer: str) -> str:
        """Who is calling, by address, also of those whom `check` refused."""
        return peer if FORWARDING.isdisjoint(headers) or not self.trusts(peer) else self._hop(headers, peer)

    def _hop(self, headers: Mapping[str, str], peer: str) -> str:
        """The last hop that is not a trusted proxy."""
        named = [_bare_address(each) for each in _forwarded_for(headers)]
        # Whatever it is, no more of it is remembered than an address has.
        return next((each[:LONGEST] for each in reversed(named) if not self.trusts(each)), peer)

    def _meet(self, host: str) -> None:
        parsed = _HOST.fullmatch(host.lower())
        if parsed is None:
            raise Forbidden("The Host header is missing or is no host name")
        name = parsed[1].rstrip(".")
        if not (self._any_host or _loopback(name) or self._configured(name, host.lower())):
            raise Forbidden("This server does not answer to that Host; configure the name as allowed if it should")
        if len(self._welcome) >= REMEMBERED:
            self._welcome.clear()
        self._welcome.add(host)

    def _configured(self, name: str, host: str) -> bool:
        hosts = self._hosts
        if name in hosts or host in hosts or "*" in hosts or (self._by_address and _address(name)):
            return True
        parents = [name[at:] for at, char in enumerate(name) if char == "."]
        return any(f"*{parent}" in hosts for parent in parents)

    def _is_proxy(self, peer: str) -> bool:
        try:
            address = ip_address(peer)
        except ValueError:
            return False
        mapped = getattr(address, "ipv4_mapped", None)
        return any((mapped or address) in network for network in self._proxies)


def _bare(host: str) -> str:
    return host.strip().lower().rstrip(".")


def _port(host: str) -> str:
    parsed = _HOST.fullmatch(host.lower())
    return parsed[2] or "" if parsed else ""


def _loopback(name: str) -> bool:
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ip_address(name.strip("[]")).is_loopback
    except ValueError:
        return False


def _address(name: str) -> bool:
    """Whether this is an address as such, which no foreign DNS server can point elsewhere."""
    try:
        return not ip_address(name.strip("[]")).is_unspecified
    except ValueError:
        return False


def _forwarded(headers: Mapping[str, str], what: str) -> str:
    """`host` or `proto` as the client used it: the first of the list, from either kind of header."""
    value = headers.get(f"x-forwarded-{what}", "").partition(",")[0].strip()
    if value:
        return value
    for pair in headers.get("forwarded", "").partition(",")[0].split(";"):
        name, _, value = pair.partition("=")
        if name.strip().lower() == what:
            return value.strip().strip('"')
    return ""


def _forwarded_for(headers: Mapping[str, str]) -> list[str]:
    if named := headers.get("x-forwarded-for", ""):
        return named.split(",")
    pairs = headers.get("forwarded", "").replace(";", ",").split(",")
    return [value for name, _, value in (pair.partition("=") for pair in pairs) if name.strip().lower() == "for"]


def _bare_address(named: str) -> str:
    """An address without quotes, brackets and port."""
    text = named.strip().strip('"')
    if text.startswith("["):
        return text[1:].partition("]")[0]
    return text.partition(":")[0] if text.count(":") == 1 else text
