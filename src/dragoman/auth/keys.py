"""Keys of our own: what webhooks and cards are signed with, and what others check the signatures with.

A private key lies in a file that only its owner reads: a JWK, a JWK Set, or PEM. The first key signs; all are
published, so that what was signed before a rotation can still be checked. A key that only has to be checked with may
be its public half.
"""

import os
import re
import stat
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, cast
from warnings import catch_warnings

import msgspec
from joserfc import jws
from joserfc.errors import JoseError
from joserfc.jwk import ECKey, OctKey, RSAKey, import_key
from joserfc.util import json_b64decode
from msgspec import Struct

from dragoman.model.errors import DragomanError
from dragoman.ports import Sealed

LARGEST_FILE = 64 * 1024
SMALLEST_RSA = 2_048
SEALS_KEPT = 256
CURVES = {"P-256": "ES256", "P-384": "ES384"}
_PEM = re.compile(rb"-----BEGIN [A-Z ]+-----.+?-----END [A-Z ]+-----", re.DOTALL)

AnyKey = ECKey | RSAKey


class KeyUnusable(DragomanError):
    """A key file cannot be used. The text goes on where the file was named: "it can be read by others"."""


class Key(Struct, frozen=True):
    """One key of ours. `id` is its thumbprint (RFC 7638): the same wherever the key lies, never two keys' own."""

    id: str
    algorithm: str
    inner: AnyKey

    @property
    def private(self) -> bool:
        return self.inner.is_private

    @property
    def public(self) -> dict[str, Any]:
        """The JWK to publish."""
        return {**self.inner.as_dict(private=False), "kid": self.id, "alg": self.algorithm, "use": "sig"}


class SigningKeys:
    """The keys in the order of their rotation. The first signs, so it must be a private one."""

    def __init__(self, keys: Sequence[Key]) -> None:
        assert keys[0].private
        self._signing = keys[0]
        # Cards are asked for again and again, and change with the process; a signature costs more than all the rest.
        self._sealed = lru_cache(SEALS_KEPT)(self._seal)
        self._published = jwk_set(keys)

    def token(self, claims: Mapping[str, Any]) -> str:
        """A JWT over the claims: compact, with the algorithm and the key's id in its head."""
        return self._sign({"typ": "JWT"}, msgspec.json.encode(claims))

    def seal(self, payload: bytes, jku: str = "") -> Sealed:
        """A signature over the payload that goes beside it; `jku` says where the public keys are."""
        return self._sealed(payload, jku)

    def made(self, signature: object) -> bool:
        """Whether a card's signature says that the key that signs now made it."""
        protected = cast("dict[str, Any]", signature).get("protected") if isinstance(signature, dict) else None
        try:
            header: Any = json_b64decode(protected.encode()) if isinstance(protected, str) else None
        except ValueError:
            return False
        return isinstance(header, dict) and cast("dict[str, Any]", header).get("kid") == self._signing.id

    def jwks(self) -> bytes:
        """The public keys as a JWK Set in JSON: the one that signs now, and those that signed before."""
        return self._published

    def _seal(self, payload: bytes, jku: str) -> Sealed:
        header = {"typ": "JOSE", "jku": jku} if jku else {"typ": "JOSE"}
        protected, _, signature = self._sign(header, payload).split(".")
        return Sealed(protected, signature)

    def _sign(self, header: dict[str, str], payload: bytes) -> str:
        key = self._signing
        header = {"alg": key.algorithm, "kid": key.id, **header}
        return jws.serialize_compact(header, payload, key.inner, algorithms=[key.algorithm])


def jwk_set(keys: Sequence[Key]) -> bytes:
    """The public halves, in JSON."""
    return msgspec.json.encode({"keys": list({key.id: key.public for key in keys}.values())})


def read_keys(path: Path) -> list[Key]:
    """Every key of one file, at least one. Raises KeyUnusable."""
    try:
        with path.open("rb") as file:
            status = os.fstat(file.fileno())
            content = file.read(LARGEST_FILE + 1)
    except OSError as error:
        raise KeyUnusable(f"it cannot be read: {error.strerror or 'it is no file'}") from None
    if len(content) > LARGEST_FILE:
        raise KeyUnusable(f"it is larger than {LARGEST_FILE} bytes, which no key is")
    keys = parse_keys(content)
    if any(key.private for key in keys) and (why := _exposed(status)):
        raise KeyUnusable(why)
    return keys


def parse_keys(content: bytes) -> list[Key]:
    """The keys of a JWK, a JWK Set or PEM, in their order, at least one. Raises KeyUnusable."""
    found = [_key(each) for each in (_PEM.findall(content) if b"-----BEGIN" in content else _members(content))]
    if not found:
        raise KeyUnusable("there is no key in it")
    return found


def generate(algorithm: str) -> bytes:
    """A new private key as a JWK in JSON, for ES256, ES384 or RS256."""
    curves = {name: curve for curve, name in CURVES.items()}
    made = ECKey.generate_key(curves[algorithm]) if algorithm in curves else RSAKey.generate_key(3_072)
    key = _checked(made)
    return msgspec.json.encode({**key.public, **key.inner.as_dict(private=True)})


def _members(content: bytes) -> list[dict[str, Any]]:
    try:
        document: Any = msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise KeyUnusable("it is neither a JWK, a JWK Set nor PEM") from None
    members: Any = cast("dict[str, Any]", document).get("keys", [document]) if isinstance(document, dict) else None
    if not isinstance(members, list) or not all(isinstance(each, dict) for each in cast("list[Any]", members)):
        raise KeyUnusable("it is neither a JWK, a JWK Set nor PEM")
    return cast("list[dict[str, Any]]", members)


def _key(material: bytes | dict[str, Any]) -> Key:
    if isinstance(material, bytes) and b"ENCRYPTED" in material:
        raise KeyUnusable("its private key is protected by a password; store it without one")
    if isinstance(material, dict) and material.get("kty") == "oct":
        raise KeyUnusable("it holds a shared secret; signatures that others check need a key pair")
    try:
        with catch_warnings(action="ignore"):  # about short keys, which are refused below
            key = import_key(cast("Any", material))
    except (JoseError, ValueError, TypeError, KeyError):
        key = None
    if key is None or isinstance(key, OctKey):  # what PEM that cannot be read is taken for
        raise KeyUnusable("it holds no valid key")  # the library's words may quote the key
    return _checked(key)


def _checked(key: object) -> Key:
    if isinstance(key, RSAKey):
        if key.public_key.key_size < SMALLEST_RSA:
            raise KeyUnusable(f"its RSA key has less than {SMALLEST_RSA} bits")
        algorithm = "RS256"
    elif isinstance(key, ECKey) and key.curve_name in CURVES:
        algorithm = CURVES[key.curve_name]
    else:
        raise KeyUnusable("its key is neither RSA nor on the curves P-256 and P-384")
    named = key.get("alg")
    if named not in (None, algorithm):
        raise KeyUnusable(f"its key is said to be for {named}; such a key signs with {algorithm} here")
    if key.get("use") not in (None, "sig"):
        raise KeyUnusable("its key is said to be for encryption")
    return Key(key.thumbprint(), algorithm, key)


def _exposed(status: os.stat_result) -> str:
    """Why a private key in such a file is no secret, if it is none. Files that root hands to a group are how container
    platforms deliver secrets; nobody else shares one."""
    if os.name != "posix":
        return ""
    shared = stat.S_IMODE(status.st_mode) & (stat.S_IRWXG | stat.S_IRWXO)
    if status.st_uid == 0 and shared == stat.S_IRGRP:
        return ""
    if shared:
        return "it holds a private key and others than its owner can reach it; set its mode to 0600"
    return ""
