"""Whether a notification is signed by whom it should be signed by, over what we got, for us, and just now."""

import time
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from joserfc import jwt
from joserfc.errors import JoseError

from dragoman.webhooks.keyring import Keyring

ALGORITHMS = ("RS256", "ES256", "ES384")
LEEWAY_SECONDS = 60
OLDEST_SECONDS = 600  # a signature that says it is good for longer than this is not believed
BODY_HASHES = ("payload_hash", "request_body_sha256")


class Signatures:
    """Signatures by the keys of one sender."""

    def __init__(self, keyring: Keyring, *, issuer: str = "", url: str = "") -> None:
        self._keyring = keyring
        self._issuer = issuer
        self._url = url.partition("?")[0]

    async def hold(self, headers: Mapping[str, str], body: bytes) -> bool:
        """Whether the request is signed, for us, over this body, just now. Raises KeysUnavailable."""
        token = headers.get("x-a2a-notification-signature", "")
        if not token:
            scheme, _, token = headers.get("authorization", "").partition(" ")
            if scheme.lower() != "bearer":
                return False
        claims = await self._claims(token.strip())
        return claims is not None and self._hold(claims, headers, body, time.time())

    async def _claims(self, token: str) -> dict[str, Any] | None:
        kid = self._keyring.kid(token)
        if kid is None:
            return None
        keys = await self._keyring.of(kid)
        if keys is None:
            return None
        try:
            return jwt.decode(token, keys, algorithms=list(ALGORITHMS)).claims
        except (JoseError, ValueError, TypeError, KeyError):
            return None

    def _hold(self, claims: dict[str, Any], headers: Mapping[str, str], body: bytes, now: float) -> bool:
        issued, expires = claims.get("iat"), claims.get("exp")
        if not isinstance(issued, int | float) or issued > now + LEEWAY_SECONDS or issued < now - OLDEST_SECONDS:
            return False
        if expires is not None and (not isinstance(expires, int | float) or expires < now - LEEWAY_SECONDS):
            return False
        if self._issuer and claims.get("iss") != self._issuer:
            return False
        if self._url and claims.get("htu", self._url) != self._url:
            return False
        delivery = headers.get("idempotency-key", "")
        if claims.get("jti", delivery) != delivery:
            return False
        said = [claims[name] for name in BODY_HASHES if name in claims]
        return bool(said) and all(each == sha256(body).hexdigest() for each in said)
