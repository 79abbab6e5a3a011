"""How callers log in, as cards say it: 1.0 wraps each scheme in a member named for its kind, 0.3 names that."""

from collections.abc import Sequence
from typing import Any

from dragoman.model.security import Requirement, Security, SecurityScheme

_WRAPPERS = {
    "key": "apiKeySecurityScheme",
    "http": "httpAuthSecurityScheme",
    "oauth2": "oauth2SecurityScheme",
    "oidc": "openIdConnectSecurityScheme",
    "mtls": "mtlsSecurityScheme",
}
_TYPES = {"key": "apiKey", "http": "http", "oauth2": "oauth2", "oidc": "openIdConnect", "mtls": "mutualTLS"}


def members_10(security: Security) -> dict[str, Any]:
    if not security.schemes:
        return {}
    return {
        "securitySchemes": {name: _scheme_10(each) for name, each in security.schemes.items()},
        "securityRequirements": requirements_10(security.requirements),
    }


def members_03(security: Security) -> dict[str, Any]:
    if not security.schemes:
        return {}
    return {
        "securitySchemes": {name: _scheme_03(each) for name, each in security.schemes.items()},
        "security": requirements_03(security.requirements),
    }


def members_both(security: Security) -> dict[str, Any]:
    """Each scheme in both spellings, which have no member in common, and 0.1's list of HTTP schemes beside them."""
    if not security.schemes:
        return {}
    both = {name: {**_scheme_10(each), **_scheme_03(each)} for name, each in security.schemes.items()}
    oldest = {name: None for each in security.schemes.values() if (name := _oldest(each))}
    return {
        **members_10(security),
        **members_03(security),
        "securitySchemes": both,
        **({"authentication": {"schemes": list(oldest)}} if oldest else {}),
    }


def requirements_10(requirements: Sequence[Requirement]) -> list[dict[str, Any]]:
    return [
        {"schemes": {name: {"list": scopes} if scopes else {} for name, scopes in each.items()}}
        for each in requirements
    ]


def requirements_03(requirements: Sequence[Requirement]) -> list[dict[str, Any]]:
    return [dict(each) for each in requirements]


def _scheme_10(scheme: SecurityScheme) -> dict[str, Any]:
    return {_WRAPPERS[scheme.kind]: _facts(scheme, "location")}


def _scheme_03(scheme: SecurityScheme) -> dict[str, Any]:
    return {"type": _TYPES[scheme.kind], **_facts(scheme, "in")}


def _facts(scheme: SecurityScheme, place: str) -> dict[str, Any]:
    found: dict[str, Any]
    match scheme.kind:
        case "key":
            found = {place: scheme.place, "name": scheme.parameter}
        case "http":
            found = {"scheme": scheme.http} | ({"bearerFormat": scheme.format} if scheme.format else {})
        case "oidc":
            found = {"openIdConnectUrl": scheme.discovery_url}
        case "oauth2":
            found = {"flows": _flows(scheme)}
        case _:
            found = {}
    return found | ({"description": scheme.description} if scheme.description else {})


def _flows(scheme: SecurityScheme) -> dict[str, Any]:
    """Exactly one, as 1.0 demands."""
    flow: dict[str, Any] = {"tokenUrl": scheme.token_url, "scopes": scheme.scopes}
    if not scheme.authorization_url:
        return {"clientCredentials": flow}
    return {"authorizationCode": {"authorizationUrl": scheme.authorization_url, **flow}}


def _oldest(scheme: SecurityScheme) -> str:
    names = {"http": scheme.http, "oauth2": "Bearer", "oidc": "Bearer", "key": "apiKey"}
    return names.get(scheme.kind, "")
