"""What settings must mean together. Decided before anything is opened."""

from collections.abc import Iterable
from ipaddress import ip_address, ip_network
from pathlib import Path
from urllib.parse import urlsplit

from dragoman.app.access import guarded
from dragoman.app.settings import Mtls, Settings, SettingsError
from dragoman.app.stores import choose
from dragoman.core.addresses import Guard, guard
from dragoman.wire.mounts import SEEDS
from dragoman.wire.settings import Style

STYLES: dict[str, Style] = {"superset": "superset", "literal": "literal", "plain": "plain"}


def values(settings: Settings) -> None:
    """Values that have the right type and still mean nothing, or say to serve nothing. Raises SettingsError."""
    if settings.off:
        raise SettingsError(f'A2A is off: {settings.off}. To serve, write "a2a": {{"enabled": true}} there.')
    choose(settings.store.url)
    if url := settings.server.public_url:
        split = urlsplit(url)
        if split.scheme not in ("http", "https") or not split.hostname or split.query or split.fragment:
            raise SettingsError(
                f"{settings.origin('public_url')}: Expected an address such as https://desk.example, got {url!r}."
            )
    for version in settings.server.card_versions:
        if version not in ("1.0", "0.3"):
            raise SettingsError(f"{settings.origin('card_versions')}: Expected 1.0 or 0.3, got {version!r}.")
    for path in settings.server.mounts:
        if path not in SEEDS:
            raise SettingsError(f"{settings.origin('mounts')}: Expected any of {', '.join(SEEDS)}, got {path!r}.")
    frames(settings)
    addresses(settings)
    sending(settings)
    for proxy in settings.server.trusted_proxies:
        try:
            ip_network(proxy, strict=False)
        except ValueError:
            raise SettingsError(
                f"{settings.origin('trusted_proxies')}: Expected an address or a network such as 10.0.0.0/8, "
                f"got {proxy!r}."
            ) from None


def certificates(settings: Settings) -> None:
    """Refuse a scheme that no client could ever use. For our own listener: a host gets certificates in its own ways."""
    for name, scheme in settings.schemes.items():
        if not isinstance(scheme, Mtls):
            continue
        where = f"auth.schemes.{name}"
        if scheme.header and not settings.server.trusted_proxies:
            raise SettingsError(f"{where}.header: Expected trusted_proxies beside it; from others it does not count.")
        if not scheme.header and not settings.server.tls_client_ca:
            raise SettingsError(
                f"{where}: Expected tls_client_ca, whose certificates count, or the header of a trusted proxy."
            )


def frames(settings: Settings) -> dict[str, Style]:
    """How streams look, by mount. An entry without a path is for all of them."""
    found: dict[str, Style] = {}
    for entry in settings.server.frames:
        path, equals, style = entry.rpartition("=")
        paths = [path] if equals else ["/", *SEEDS]
        if style not in STYLES or not ({*paths} <= {"/", *SEEDS}):
            raise SettingsError(
                f"{settings.origin('frames')}: Expected {', '.join(STYLES)} or one of them for one mount, "
                f"such as /a2a=literal; got {entry!r}."
            )
        found |= dict.fromkeys(paths, STYLES[style])
    return found


LOOPBACK = ("127.0.0.0/8", "::1")


def addresses(settings: Settings) -> Guard:
    """Which addresses webhooks may call. Raises SettingsError for an entry that cannot be read."""
    push = settings.push
    given = {"push_allowed_hosts": (push.allowed_hosts, ()), "push_allowed_cidrs": ((), push.allowed_cidrs)}
    for name, (hosts, networks) in given.items():
        try:
            guard(hosts, networks)
        except ValueError as error:
            raise SettingsError(f"{settings.origin(name)}: {error}.") from None
    networks = push.allowed_cidrs + (LOOPBACK if push.allow_loopback else ())
    return guard(push.allowed_hosts, networks, secure=push.https_only)


def sending(settings: Settings) -> None:
    """How webhooks are sent. Raises SettingsError for what would send none."""
    push = settings.push
    for name in ("total", "per_receiver", "timeout"):
        if not getattr(push, name):
            raise SettingsError(
                f"{settings.origin(f'push_{name}')}: Expected more than 0; to send none, set push = false."
            )
    if push.proxy:
        split = urlsplit(push.proxy)
        if split.scheme != "http" or not split.hostname or split.path.strip("/") or split.query or "@" in split.netloc:
            raise SettingsError(
                f"{settings.origin('push_proxy')}: Expected an address such as http://proxy.internal:3128, "
                "without a password."
            )
    if push.ca_file and not Path(push.ca_file).expanduser().is_file():
        raise SettingsError(f"{settings.origin('push_ca_file')}: There is no file {push.ca_file}.")


def reach(settings: Settings, names: Iterable[str] | None = None) -> None:
    """Refuse to listen beyond this machine while an agent can be used without logging in, unless that is what was asked
    for. `names` are the agents', once they are known."""
    host = settings.server.host
    if loopback(host) or settings.server.allow_public or guarded(settings, names):
        return
    raise SettingsError(
        f"Not listening on {host or 'every address'} ({settings.origin('host')}): other machines can reach it, "
        "and not everybody has to log in to use these agents. Listen on 127.0.0.1, or have callers log in "
        "(A2A_AUTH_TOKEN or [auth], see docs/security.md), or, if something in front of this server checks who is "
        "calling, say so with --allow-public (DRAGOMAN_ALLOW_PUBLIC=true)."
    )


def loopback(host: str) -> bool:
    """Whether only this machine can reach it. A name other than localhost may mean anything, so it does not count."""
    if host.lower().rstrip(".") == "localhost":
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
