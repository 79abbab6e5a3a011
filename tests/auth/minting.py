"""JWTs made by hand, of nothing but cryptography's primitives: what signs here shares no code with what checks."""

import json
import time
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from typing import Any, NamedTuple

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

ISSUER = "https://id.example"
AUDIENCE = "https://desk.example"
CURVES: Mapping[str, tuple[str, ec.EllipticCurve]] = {
    "ES256": ("P-256", ec.SECP256R1()),
    "ES384": ("P-384", ec.SECP384R1()),
    "ES512": ("P-521", ec.SECP521R1()),
}
HASHES: Mapping[str, hashes.HashAlgorithm] = {"256": hashes.SHA256(), "384": hashes.SHA384(), "512": hashes.SHA512()}


def b64(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode()


def number(value: int, size: int = 0) -> str:
    return b64(value.to_bytes(size or (value.bit_length() + 7) // 8))


class Pair(NamedTuple):
    """A private key and the algorithm it signs with."""

    kid: str
    alg: str
    private: Any

    def jwk(self, **members: Any) -> dict[str, Any]:
        """The public half, as an issuer publishes it."""
        public = self.private.public_key()
        found: dict[str, Any] = {"kid": self.kid, "use": "sig", "alg": self.alg}
        if isinstance(public, rsa.RSAPublicKey):
            numbers = public.public_numbers()
            found |= {"kty": "RSA", "n": number(numbers.n), "e": number(numbers.e)}
        elif isinstance(public, ec.EllipticCurvePublicKey):
            point, size = public.public_numbers(), (public.key_size + 7) // 8
            found |= {"kty": "EC", "crv": CURVES[self.alg][0], "x": number(point.x, size), "y": number(point.y, size)}
        else:
            found |= {"kty": "OKP", "crv": "Ed25519", "x": b64(public.public_bytes_raw())}
        return found | members

    @property
    def pem(self) -> bytes:
        return self.private.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )

    def sign(self, data: bytes, alg: str = "") -> bytes:
        alg = alg or self.alg
        digest = HASHES.get(alg[2:], hashes.SHA256())
        if isinstance(self.private, rsa.RSAPrivateKey):
            how = padding.PSS(padding.MGF1(digest), digest.digest_size) if alg[0] == "P" else padding.PKCS1v15()
            return self.private.sign(data, how, digest)
        if isinstance(self.private, ec.EllipticCurvePrivateKey):
            r, s = decode_dss_signature(self.private.sign(data, ec.ECDSA(digest)))
            size = (self.private.key_size + 7) // 8
            return r.to_bytes(size) + s.to_bytes(size)
        return self.private.sign(data)


def pair(kid: str = "k1", alg: str = "ES256", bits: int = 2_048) -> Pair:
    if alg in CURVES:
        return Pair(kid, alg, ec.generate_private_key(CURVES[alg][1]))
    if alg == "EdDSA":
        return Pair(kid, alg, ed25519.Ed25519PrivateKey.generate())
    return Pair(kid, alg, rsa.generate_private_key(65_537, bits))


def claims(now: float | None = None, /, **changed: Any) -> dict[str, Any]:
    """Claims of a good token; what is None is left out."""
    now = time.time() if now is None else now
    found = {"iss": ISSUER, "aud": AUDIENCE, "sub": "alice", "iat": int(now), "exp": int(now) + 300, **changed}
    return {name: value for name, value in found.items() if value is not None}


def compact(header: bytes, payload: bytes, signature: bytes) -> str:
    return f"{b64(header)}.{b64(payload)}.{b64(signature)}"


def mint(key: Pair, given: Mapping[str, Any] | bytes | None = None, **header: Any) -> str:
    """A token signed by that key. Members of the header that are None are left out."""
    head = {"typ": "at+jwt", "alg": key.alg, "kid": key.kid, **header}
    written = json.dumps({name: value for name, value in head.items() if value is not None}).encode()
    body = given if isinstance(given, bytes) else json.dumps(claims() if given is None else given).encode()
    return compact(written, body, key.sign(f"{b64(written)}.{b64(body)}".encode(), str(head["alg"])))
