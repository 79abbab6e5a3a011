"""Certificates of clients, checked before they get here: by our own listener's handshake, or by a trusted proxy.

A certificate is known by its fingerprint, and one that our own callers' file lists by its caller. Names in it are what
its issuer was told; they are never anybody's identity.
"""

import re
from base64 import b64decode
from functools import lru_cache
from hashlib import sha256
from urllib.parse import unquote

from dragoman.auth.callers import Callers
from dragoman.auth.scheme import Refused
from dragoman.model.operations import Principal
from dragoman.model.security import SecurityScheme
from dragoman.ports import Presented

LONGEST = 24_576  # characters
_PEM = re.compile(r"-----BEGIN CERTIFICATE-----\s+([A-Za-z0-9+/=\s]+?)\s*-----END CERTIFICATE-----\s*", re.DOTALL)


class CertificateScheme:
    """With `header`, what a trusted proxy says there, and nothing else; without, the connection's own. `listed` lets in
    only those of the callers' file."""

    challenge = "Certificate"
    explicit = False

    def __init__(
        self,
        name: str,
        callers: Callers,
        *,
        header: str = "",
        listed: bool = False,
        scopes: frozenset[str] = frozenset(),
        tenants: frozenset[str] | None = None,
    ) -> None:
        self.name = name
        self.shown = SecurityScheme(kind="mtls", description="A client certificate")
        self._callers = callers
        self._header = header.lower()
        self._listed = listed
        self._scopes = scopes
        self._tenants = tenants

    def recall(self, presented: Presented) -> Principal | None:
        try:
            found = self._fingerprint(presented)
        except Refused:
            return None
        return None if found is None else self._principal(found)

    async def identify(self, presented: Presented) -> Principal | None:
        found = self._fingerprint(presented)
        if found is None:
            return None
        principal = self._principal(found)
        if principal is None:
            raise Refused(f"the certificate {found.hex()} is not listed, or its caller's time is over")
        return principal

    def holds(self, principal: Principal) -> bool:
        return self._principal(principal.proof) is not None

    def _principal(self, fingerprint: bytes) -> Principal | None:
        self._callers.refresh()
        caller = self._callers.certificates.get(fingerprint)
        if caller is not None:
            return caller.principal(self.name, fingerprint) if self._callers.counts(caller) else None
        if self._listed:
            return None
        return Principal(
            id=f"cert:{fingerprint.hex()}",
            scopes=self._scopes,
            schemes=frozenset((self.name,)),
            tenants=self._tenants,
            proof=fingerprint,
        )

    def _fingerprint(self, presented: Presented) -> bytes | None:
        header = self._header
        value = presented.headers.get(header) if header else presented.certificate
        if not value:
            return None
        if header and not presented.forwarded:
            raise Refused(f"{header} comes from an address that is no trusted proxy", error="invalid_request")
        try:
            return forwarded_thumbprint(value) if header else thumbprint_of(value)
        except ValueError as error:
            raise Refused(f"the certificate cannot be read: {error}", error="invalid_request") from None


@lru_cache(1_024)
def thumbprint_of(pem: str) -> bytes:
    """SHA-256 of the certificate itself, not of how it is written down."""
    return sha256(_der(pem)).digest()


@lru_cache(1_024)
def forwarded_thumbprint(value: str) -> bytes:
    """The same, of what proxies put in a header: percent-encoded PEM, `:base64:` (RFC 9440), or bare base64. Raises
    ValueError."""
    if len(value) > LONGEST:
        raise ValueError("it is too long")
    if value.startswith(":") and value.endswith(":"):
        return sha256(_base64(value[1:-1])).digest()
    text = unquote(value) if "%" in value else value
    return sha256(_der(text) if "-----" in text else _base64(text)).digest()


def _der(pem: str) -> bytes:
    match = _PEM.fullmatch(pem.replace("\t", "\n").strip())
    if match is None:
        raise ValueError("it is not one certificate in PEM")
    return _base64("".join(match[1].split()))


def _base64(text: str) -> bytes:
    der = b64decode(text, validate=True)
    # The outermost element of every certificate: a sequence that fills the whole.
    if len(der) < 64 or der[0] != 0x30 or der[1] != 0x82 or int.from_bytes(der[2:4]) != len(der) - 4:
        raise ValueError("it is not a certificate in DER")
    return der
