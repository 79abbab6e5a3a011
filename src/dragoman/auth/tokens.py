"""JWTs of an issuer. A token is checked once, down to its signature, and then known by its digest until it expires.

What is refused before any key is looked at: what is too long, what is no compact JWS, an algorithm that is not on the
list (`none` and all with a shared secret never are), critical headers, other kinds of token. Keys come from the issuer
alone: whatever keys or addresses of keys a token brings along are not even read.
"""

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence
from math import isfinite
from typing import Any, Protocol, cast
from warnings import catch_warnings

import msgspec
from joserfc import jws
from joserfc.errors import JoseError
from msgspec import Struct
from msgspec.structs import replace

from dragoman.auth.certificates import thumbprint_of
from dragoman.auth.hashes import digest
from dragoman.auth.presented import bearer
from dragoman.auth.scheme import Refused
from dragoman.auth.trusted import Trusted
from dragoman.model.operations import Principal
from dragoman.model.security import SecurityScheme
from dragoman.ports import Clock, Presented

LONGEST = 16_384
LONGEST_SUBJECT = 255
REMEMBERED = 10_000  # tokens known by their digest; the oldest go first
KINDS = frozenset({"", "jwt", "at+jwt", "application/jwt", "application/at+jwt"})
EXPIRED = "The token has expired"

_COMPACT = re.compile(rb"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+")


class Keys(Protocol):
    """Where an issuer's keys come from (`trusted.TrustedKeys`)."""

    thumbprints: frozenset[str]

    async def find(self, kid: str, algorithm: str) -> Sequence[Trusted]: ...
    def keep_fresh(self) -> None: ...


class TokenSettings(Struct, frozen=True, kw_only=True):
    """What a token must be. `tenants_claim` names a claim with the tenants its caller may use."""

    issuer: str
    audience: frozenset[str]
    algorithms: frozenset[str]
    subject: str = "sub"
    tenants: frozenset[str] | None = None
    tenants_claim: str = ""
    leeway_ms: int = 60_000


class Known(Struct, frozen=True):
    """A token that was checked, and by which key."""

    principal: Principal
    thumbprint: str


class Tokens:
    """Checks tokens, and remembers those that were good."""

    def __init__(self, name: str, settings: TokenSettings, keys: Keys, clock: Clock) -> None:
        self._name = name
        self._settings = settings
        self._keys = keys
        self._clock = clock
        self._known: dict[bytes, Known] = {}

    def recall(self, token: bytes, certificate: str) -> Principal | None:
        self._keys.keep_fresh()
        known = self._known.get(digest(token))
        if known is None and certificate:
            known = self._known.get(_bound(token, certificate))
        return known.principal if known is not None and self._counts(known) else None

    def holds(self, principal: Principal) -> bool:
        """A token that is remembered no more counts until it expires: forgetting is our affair."""
        known = self._known.get(principal.proof)
        return self._clock.now() < principal.expires and (known is None or self._counts(known))

    async def check(self, token: bytes, certificate: str) -> Principal:
        """Everything. Raises Refused, or Unavailable when the issuer's keys cannot be had."""
        header, claims = _opened(token)
        algorithm = self._algorithm(header)
        # Whose it says it is comes before its key: somebody else's token is no reason to fetch our issuer's keys.
        if claims.get("iss") != self._settings.issuer:
            raise Refused("the token is from another issuer")
        kid = header.get("kid", "")
        if not isinstance(kid, str) or len(kid) > 1_000:
            raise Refused("the token's key id is none")
        key = self._verified(token, algorithm, await self._keys.find(kid, algorithm))
        principal = self._principal(claims)
        place = digest(token)
        if "cnf" in claims:
            place = _proved(token, claims["cnf"], certificate)
        principal = replace(principal, proof=place)
        self._remember(place, Known(principal, key.thumbprint))
        return principal

    def _counts(self, known: Known) -> bool:
        return self._clock.now() < known.principal.expires and known.thumbprint in self._keys.thumbprints

    def _remember(self, place: bytes, known: Known) -> None:
        self._known.pop(place, None)
        while len(self._known) >= REMEMBERED:
            del self._known[next(iter(self._known))]
        self._known[place] = known

    def _algorithm(self, header: dict[str, Any]) -> str:
        algorithm = header.get("alg")
        if not isinstance(algorithm, str) or algorithm not in self._settings.algorithms:
            raise Refused(f"the token's algorithm {str(algorithm)[:20]!a} is not allowed")
        if "crit" in header or "b64" in header:
            raise Refused("the token has headers that must be understood")
        kind = header.get("typ", "")
        if not isinstance(kind, str) or kind.lower() not in KINDS:
            raise Refused("the token is of another kind")
        return algorithm

    def _verified(self, token: bytes, algorithm: str, keys: Sequence[Trusted]) -> Trusted:
        if not keys:
            raise Refused("the token's key is none of the issuer's")
        registry = jws.JWSRegistry(algorithms=[algorithm], strict_check_header=False)
        registry.max_header_length = LONGEST
        for each in keys:
            try:
                with catch_warnings(action="ignore"):  # that an algorithm has a newer name
                    jws.deserialize_compact(token, each.key, registry=registry)
            except (JoseError, ValueError, TypeError):
                continue
            return each
        raise Refused("the token's signature is not the issuer's")

    def _principal(self, claims: dict[str, Any]) -> Principal:
        settings, now = self._settings, self._clock.now()
        audience = claims.get("aud")
        named: list[object] = cast("list[object]", audience) if isinstance(audience, list) else [audience]
        if not any(isinstance(each, str) and each in settings.audience for each in named):
            raise Refused("the token is for another audience")
        expires = _moment(claims, "exp")
        if expires is None:
            raise Refused("the token never expires")
        until = expires + settings.leeway_ms
        if now >= until:
            raise Refused("the token has expired", EXPIRED)
        for claim in ("nbf", "iat"):
            since = _moment(claims, claim)
            if since is not None and now < since - settings.leeway_ms:
                raise Refused(f"the token is not valid yet ({claim})", "The token is not valid yet")
        subject = claims.get(settings.subject)
        if not isinstance(subject, str) or not 0 < len(subject) <= LONGEST_SUBJECT or not subject.isprintable():
            raise Refused(f"the token's {settings.subject} names nobody")
        return Principal(
            id=f"jwt:{settings.issuer}|{subject}",
            scopes=_scopes(claims),
            claims=claims,
            schemes=frozenset((self._name,)),
            tenants=self._tenants(claims),
            expires=until,
        )

    def _tenants(self, claims: dict[str, Any]) -> frozenset[str] | None:
        settings = self._settings
        if not settings.tenants_claim:
            return settings.tenants
        found: object = claims.get(settings.tenants_claim)
        named = [found] if isinstance(found, str) else cast("list[object]", found) if isinstance(found, list) else []
        tenants = frozenset(each for each in named if isinstance(each, str))
        return tenants if settings.tenants is None else tenants & settings.tenants


class JwtScheme:
    """Bearer tokens that an issuer signed, as one way to log in."""

    challenge = "Bearer"
    explicit = True

    def __init__(self, name: str, shown: SecurityScheme, settings: TokenSettings, keys: Keys, clock: Clock) -> None:
        self.name = name
        self.shown = shown
        self._tokens = Tokens(name, settings, keys, clock)

    def recall(self, presented: Presented) -> Principal | None:
        try:
            token = bearer(presented)
        except Refused:
            return None
        return None if token is None else self._tokens.recall(token, presented.certificate)

    async def identify(self, presented: Presented) -> Principal | None:
        token = bearer(presented)
        return None if token is None else await self._tokens.check(token, presented.certificate)

    def holds(self, principal: Principal) -> bool:
        return self._tokens.holds(principal)


def _opened(token: bytes) -> tuple[dict[str, Any], dict[str, Any]]:
    """Header and claims, not believed yet."""
    if len(token) > LONGEST:
        raise Refused("the token is too long", error="invalid_request")
    if not _COMPACT.fullmatch(token):
        raise Refused("what was presented is no JWT")
    header, claims, _ = token.split(b".")
    return _object(header), _object(claims)


def _object(encoded: bytes) -> dict[str, Any]:
    try:
        found: object = msgspec.json.decode(urlsafe_b64decode(encoded + b"=" * (-len(encoded) % 4)))
    except (ValueError, RecursionError, msgspec.DecodeError):
        raise Refused("the token holds no JSON") from None
    if not isinstance(found, dict):
        raise Refused("the token holds no JSON object")
    return cast("dict[str, Any]", found)


def _moment(claims: dict[str, Any], name: str) -> int | None:
    """A NumericDate in milliseconds; None when there is none."""
    value = claims.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value) or abs(value) > 1e12:
        raise Refused(f"the token's {name} is no time")
    return round(value * 1000)


def _scopes(claims: dict[str, Any]) -> frozenset[str]:
    """`scope` is a list in one string, by the standards; `scp` either, by habit."""
    found: set[str] = set()
    for name in ("scope", "scp"):
        value = claims.get(name)
        if isinstance(value, str):
            found.update(value.split())
        elif isinstance(value, list):
            found.update(each for each in cast("list[object]", value) if isinstance(each, str))
    return frozenset(found)


def _bound(token: bytes, certificate: str) -> bytes:
    return digest(token + b"\0" + thumbprint_of(certificate))


def _proved(token: bytes, confirmation: object, certificate: str) -> bytes:
    """Where a token is remembered that counts only in the hands it was issued to. A certificate is the one proof of
    that which is understood here; a token that asks for another must not pass as one that asks for none."""
    members = cast("dict[str, object]", confirmation) if isinstance(confirmation, dict) else {}
    if set(members) != {"x5t#S256"} or not isinstance(members["x5t#S256"], str):
        raise Refused("the token asks for a proof of possession that is not understood here")
    expected = members["x5t#S256"]
    if not certificate or expected.rstrip("=") != _base64url(thumbprint_of(certificate)):
        raise Refused("the token belongs to the holder of another certificate")
    return _bound(token, certificate)


def _base64url(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode()
