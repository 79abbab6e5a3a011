"""From `type = "jwt"` to a scheme that trusts an issuer. What is missing is said before anything is opened."""

from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from dragoman.app.settings import Jwt, SettingsError
from dragoman.model.security import SecurityScheme
from dragoman.ports import Clock

if TYPE_CHECKING:
    from dragoman.auth.tokens import JwtScheme
    from dragoman.auth.trusted import TrustedKeys

WELL_KNOWN = "/.well-known/openid-configuration"


def jwt_scheme(name: str, settings: Jwt, clock: Clock) -> "tuple[JwtScheme, TrustedKeys]":
    """The scheme, and the keys that stand behind it. Raises SettingsError."""
    where = f"auth.schemes.{name}"
    try:
        from dragoman.auth.tokens import JwtScheme, TokenSettings
        from dragoman.auth.trusted import ALGORITHMS, TrustedKeys
    except ImportError:
        raise SettingsError(f"{where}: JWTs need more packages; run: pip install 'dragoman[auth]'.") from None
    from dragoman.auth.fetching import Fetcher, Unfetchable
    from dragoman.auth.issuers import Discovered, Fetched, Kept

    issuer, discovery = _issuer(settings, where)
    if not settings.audience:
        raise SettingsError(f"{where}.audience: Expected what tokens for this server are for; others are refused.")
    if not settings.algorithms or not ALGORITHMS.issuperset(settings.algorithms):
        raise SettingsError(f"{where}.algorithms: Expected any of {', '.join(sorted(ALGORITHMS))}.")
    fetcher = Fetcher(ca_file=settings.ca_file, proxy=settings.proxy)
    if not settings.jwks:
        fetch, refresh = Discovered(fetcher, discovery, issuer), settings.refresh.ms
    elif "://" in settings.jwks:
        _address(settings.jwks, f"{where}.jwks")
        fetch, refresh = Fetched(fetcher, settings.jwks), settings.refresh.ms
    else:
        fetch, refresh = Kept(Path(settings.jwks).expanduser()), 1_000
    keys = TrustedKeys(fetch, clock, issuer=issuer, refresh_ms=refresh)
    if isinstance(fetch, Kept):
        try:
            keys.take(fetch.read())
        except Unfetchable as error:
            raise SettingsError(f"{where}.jwks: {settings.jwks} {error}.") from error
    tokens = TokenSettings(
        issuer=issuer,
        audience=frozenset(settings.audience),
        algorithms=frozenset(settings.algorithms),
        subject=settings.subject,
        tenants=None if settings.tenants is None else frozenset(settings.tenants),
        tenants_claim=settings.tenants_claim,
        leeway_ms=settings.leeway.ms,
    )
    return JwtScheme(name, _shown(settings, discovery, where), tokens, keys, clock), keys


def _issuer(settings: Jwt, where: str) -> tuple[str, str]:
    """The issuer and its discovery document. Each is known from the other."""
    issuer, discovery = settings.issuer, settings.discovery
    if not issuer and discovery.endswith(WELL_KNOWN):
        issuer = discovery.removesuffix(WELL_KNOWN)
    if not issuer or "|" in issuer or not issuer.isprintable():
        raise SettingsError(f"{where}.issuer: Expected who issues the tokens, as they say it in `iss`.")
    if not settings.jwks:
        discovery = discovery or issuer.rstrip("/") + WELL_KNOWN
        _address(discovery, f"{where}.{'discovery' if settings.discovery else 'issuer'}")
    return issuer, discovery


def _address(url: str, where: str) -> None:
    from dragoman.auth.fetching import secure

    if not secure(url):
        raise SettingsError(f"{where}: Expected an https address (or http on this machine), got {url!r}.")


def _shown(settings: Jwt, discovery: str, where: str) -> SecurityScheme:
    """As the card tells it: the flow whose addresses are known, else where to discover it, else just a bearer JWT."""
    for name, url in (("authorization_url", settings.authorization_url), ("token_url", settings.token_url)):
        if url and (urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).hostname):
            raise SettingsError(f"{where}.{name}: Expected an address, got {url!r}.")
    if settings.authorization_url and not settings.token_url:
        raise SettingsError(f"{where}.token_url: Expected beside authorization_url.")
    if settings.token_url:
        return SecurityScheme(
            kind="oauth2",
            description="A token of this authorization server",
            authorization_url=settings.authorization_url,
            token_url=settings.token_url,
            scopes={scope: scope for scope in settings.scopes},
        )
    if discovery:
        return SecurityScheme(kind="oidc", discovery_url=discovery, description="A token of this OpenID provider")
    return SecurityScheme(kind="http", http="Bearer", format="JWT", description=f"A token of {settings.issuer}")
