"""What a delivery says about itself: the headers of its request.

A receiver recognises us by what it gave us when it registered: a token, or credentials of a scheme. It recognises a
repeat by `Idempotency-Key`. And where this deployment signs, anybody can check who wrote the body.
"""

from base64 import b64encode
from hashlib import sha256

from dragoman.core.registration import OURS
from dragoman.model.operations import PushConfig
from dragoman.ports import Delivery, Signer

Headers = tuple[tuple[str, str], ...]

ID = "Idempotency-Key"
TOKEN = "X-A2A-Notification-Token"
SIGNATURE = "X-A2A-Notification-Signature"
AUTHORIZATION = "Authorization"
API_KEY = "X-API-Key"

SIGNED_SECONDS = 300
_KEYS = frozenset({"apikey", "api-key", "api_key"})
_KNOWN = {"bearer": "Bearer", "basic": "Basic", "token": "Token"}


class Letters:
    """`agent` is what User-Agent says; `issuer` who signatures are from."""

    def __init__(self, *, agent: str, issuer: str, signer: Signer | None = None) -> None:
        self._agent = agent
        self._issuer = issuer
        self._signer = signer

    def headers(self, delivery: Delivery, body: bytes, media_type: str, now: int) -> Headers:
        """All but Host and Content-Length. Raises ValueError for credentials that should travel in a header of ours."""
        config = delivery.hook.config
        found = [("Content-Type", media_type), ("User-Agent", self._agent), (ID, delivery.id), *credentials(config)]
        if self._signer is not None:
            token = self._signer.token(self._claims(delivery, body, now // 1000))
            found.append((SIGNATURE, token))
            if _expects_signature(config):
                found.append((_free(config.header_name), f"Bearer {token}"))
        return tuple(found)

    def _claims(self, delivery: Delivery, body: bytes, now: int) -> dict[str, str | int]:
        """`htu` says for whom it is, as RFC 9449 does: nobody can pass it on as if it were for somebody else. The hash
        has both names there are: simple_a2a's, and that of receivers written after the protocol's own samples."""
        digest = sha256(body).hexdigest()
        return {
            "iss": self._issuer,
            "iat": now,
            "exp": now + SIGNED_SECONDS,
            "jti": delivery.id,
            "htu": delivery.hook.config.url.partition("?")[0],  # a query may hold secrets
            "payload_hash": digest,
            "request_body_sha256": digest,
        }


def credentials(config: PushConfig) -> list[tuple[str, str]]:
    """The headers a receiver knows us by. A token and bearer credentials stand in for each other: receivers check the
    one header or the other. Where both are given, each has its own."""
    scheme, secret = _authentication(config)
    bearer = secret if scheme.lower() == "bearer" else ""
    found: list[tuple[str, str]] = []
    if token := config.token or bearer:
        found.append((TOKEN, token))
    if secret:
        found.append(_authorization(scheme, secret, config.header_name))
    elif config.token:
        found.append((AUTHORIZATION, f"Bearer {config.token}"))
    return found


def _authentication(config: PushConfig) -> tuple[str, str]:
    given = config.authentication or {}
    return given.get("scheme", ""), given.get("credentials", "")


def _expects_signature(config: PushConfig) -> bool:
    """A bearer scheme without a secret asks for a token that we make (simple_a2a)."""
    scheme, secret = _authentication(config)
    return scheme.lower() == "bearer" and not secret and not config.token


def _authorization(scheme: str, secret: str, header: str) -> tuple[str, str]:
    kind = scheme.lower()
    if kind in _KEYS:
        return _free(header or API_KEY), secret
    if kind == "basic":
        # With a colon it is still what a person would write: base64 has none.
        secret = b64encode(secret.encode()).decode() if ":" in secret else secret
    if kind in _KNOWN:
        return _free(header), f"{_KNOWN[kind]} {secret}"
    # Of a scheme we do not know: with a header of its own the secret alone, else both as they were given.
    return (_free(header), secret) if header else (AUTHORIZATION, f"{scheme} {secret}".strip())


def _free(header: str) -> str:
    """The header a hook asked for, or the usual one. Raises ValueError for one of ours."""
    if header.lower() in OURS:
        raise ValueError(f"The header {header[:40]!a} cannot carry credentials")
    return header or AUTHORIZATION
