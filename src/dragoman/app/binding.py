"""May this server listen there? Decided before anything is opened."""

from ipaddress import ip_address

from dragoman.app.settings import Settings, SettingsError


def check(settings: Settings) -> None:
    """Refuse to listen beyond this machine while nobody has to log in, unless that is what was asked for."""
    host = settings.server.host
    if loopback(host) or settings.server.allow_public:
        return
    raise SettingsError(
        f"Not listening on {host or 'every address'} ({settings.origin('host')}): it can be reached from other machines, "
        "and nobody has to log in to use these agents. Listen on 127.0.0.1, or, if something in front of this server "
        "checks who is calling, say so with --allow-public (DRAGOMAN_ALLOW_PUBLIC=true)."
    )


def loopback(host: str) -> bool:
    """Whether only this machine can reach it. A name other than localhost may mean anything, so it does not count."""
    if host.lower().rstrip(".") == "localhost":
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
