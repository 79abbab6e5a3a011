"""Authentication as coding-agent-a2a sets it up: the AUTH_ variables of its environment."""

import re
from collections.abc import Mapping

from dragoman.app.settings import Jwt, Scheme, SettingsError

ENABLED = "AUTH_ENABLED"
NAME = "oauth2"
"""What its card calls the scheme."""


def schemes(environ: Mapping[str, str]) -> dict[str, Scheme]:
    """The scheme those variables ask for, if they do. Raises SettingsError, which names the variable."""
    if environ.get(ENABLED, "").strip().lower() not in ("true", "1", "yes", "on"):
        return {}
    discovery, jwks = environ.get("AUTH_OIDC_DISCOVERY_URL", ""), environ.get("AUTH_JWKS_URI", "")
    issuer = environ.get("AUTH_ISSUER", "")
    if not issuer and not discovery:
        raise SettingsError(f"{ENABLED}: Expected AUTH_ISSUER or AUTH_OIDC_DISCOVERY_URL beside it.")
    if not environ.get("AUTH_AUDIENCE"):
        raise SettingsError(f"{ENABLED}: Expected AUTH_AUDIENCE beside it: what tokens for this server are for.")
    return {
        NAME: Jwt(
            issuer=issuer,
            audience=_several(environ["AUTH_AUDIENCE"]),
            discovery="" if jwks else discovery,
            jwks=jwks,
            scopes=_several(environ.get("AUTH_REQUIRED_SCOPES", "")),
            authorization_url=environ.get("AUTH_AUTHORIZATION_URL", ""),
            token_url=environ.get("AUTH_TOKEN_URL", ""),
        )
    }


def _several(value: str) -> tuple[str, ...]:
    return tuple(each for each in re.split(r"[,\s]+", value) if each)
