"""Whether somebody we trust has signed an agent's card as it is.

Keys are given by the caller and looked up by their id. Where a signature says they could be fetched (`jku`) is shown
and never followed: whoever changes a card can also write another address into it.
"""

import re
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping, Sequence
from typing import Any, cast

import msgspec
from msgspec import Struct

from dragoman.model.errors import CardUntrusted
from dragoman.wire.nesting import strain

ALGORITHMS = ("ES256", "ES384", "ES512", "RS256", "PS256", "EdDSA", "Ed25519")
"""Accepted signatures. Each needs a key pair: a public key used as a shared secret (HS256) proves nothing."""

LARGEST_CARD = 1024 * 1024
MOST_SIGNATURES = 16
MOST_KEYS = 64
LONGEST = 8_192
DEPTH = 64
CONTAINERS = 50_000

SHORTEST_MODULUS = 342  # characters of 2,048 bits in base64url

_BASE64URL = re.compile(r"[A-Za-z0-9_-]+")


class VerifiedCard(Struct, frozen=True, kw_only=True):
    """`card` holds what the signature covers and nothing else: trust that, not the document it came in.

    `key` is the id of the key that signed, `keys_at` where the signer says its keys are published.
    """

    card: dict[str, Any]
    key: str
    algorithm: str
    keys_at: str = ""


class _Refused(Exception):
    """Why one signature proves nothing."""


def verify_card(card: bytes | str | Mapping[str, Any], keys: bytes | str | Mapping[str, Any]) -> VerifiedCard:
    """Check a card, as it was fetched, with a JWK Set of keys you trust. One good signature suffices.

    Use it before you believe a card that came over a way you do not trust, or that a registry handed you. Raises
    CardUntrusted, whose text says why; ImportError without the extra `auth`.
    """
    document = _document(card)
    found = document.get("signatures")
    if not isinstance(found, list) or not found:
        raise CardUntrusted("The card has no signature")
    if not isinstance(document.get("name"), str) or not {"supportedInterfaces", "url"} & set(document):
        raise CardUntrusted("What is signed is no card")  # a token of the same key, say
    given = cast("list[Any]", found)
    if len(given) > MOST_SIGNATURES:
        raise CardUntrusted(f"The card has more than {MOST_SIGNATURES} signatures")
    trusted = _keys(keys)
    payloads = _payloads(document)
    reasons: list[str] = []
    for each in given:
        try:
            return _check(each, payloads, trusted)
        except _Refused as refused:
            reasons.append(str(refused))
    why = "; ".join(dict.fromkeys(reasons))
    raise CardUntrusted(f"No signature of the card can be trusted: {why}")


def keys_named(card: bytes | str | Mapping[str, Any]) -> list[str]:
    """Where the card's signers say their keys are published. Nobody vouches for these addresses.

    Fetch one only if you would trust it without the card. Raises CardUntrusted for what is no card.
    """
    found: list[str] = []
    for each in cast("list[Any]", _document(card).get("signatures") or [])[:MOST_SIGNATURES]:
        try:
            found.append(_keys_at(_header(_entry(each)[0])))
        except _Refused:
            continue
    return list(dict.fromkeys(each for each in found if each))


def _document(card: bytes | str | Mapping[str, Any]) -> dict[str, Any]:
    if isinstance(card, Mapping):
        return dict(card)
    text = card.encode() if isinstance(card, str) else card
    if len(text) > LARGEST_CARD:
        raise CardUntrusted(f"The card is larger than {LARGEST_CARD} bytes")
    return _object(text, "The card")


def _object(text: bytes, what: str) -> dict[str, Any]:
    try:
        found = None if strain(text, DEPTH, CONTAINERS) else msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError):
        found = None
    if not isinstance(found, dict):
        raise CardUntrusted(f"{what} is not a JSON object that could be read")
    return cast("dict[str, Any]", found)


def _payloads(document: dict[str, Any]) -> list[bytes]:
    from dragoman.wire.canonical import Uncanonical, candidates

    try:
        return candidates(document)
    except Uncanonical as error:
        raise CardUntrusted(f"The card cannot be checked: {error}") from None


def _keys(keys: bytes | str | Mapping[str, Any]) -> list[dict[str, Any]]:
    text = keys.encode() if isinstance(keys, str) else keys
    given = _object(text, "The key set") if isinstance(text, bytes) else text
    members = given.get("keys", [given])
    if not isinstance(members, list) or not all(isinstance(each, dict) for each in cast("list[Any]", members)):
        raise CardUntrusted("The key set is no JWK Set")
    return cast("list[dict[str, Any]]", members)[:MOST_KEYS]


def _check(entry: Any, payloads: Sequence[bytes], trusted: Sequence[dict[str, Any]]) -> VerifiedCard:
    protected, signature = _entry(entry)
    header = _header(protected)
    if set(header) & set(cast("dict[str, Any]", entry).get("header") or ()):
        raise _Refused("its unprotected header repeats what is protected")
    if "crit" in header or "b64" in header:
        raise _Refused("it demands what is not understood here")
    algorithm = header.get("alg")
    if algorithm not in ALGORITHMS:
        raise _Refused("its algorithm is not accepted")
    key = header.get("kid")
    if not isinstance(key, str) or not key:
        raise _Refused("it names no key")
    usable = [each for each in trusted if _is(each, key) and _may_check(each, algorithm)]
    if not usable:
        raise _Refused("it names a key that is not trusted")
    sealed = _bytes(signature)
    for payload in payloads:
        signed = protected.encode() + b"." + urlsafe_b64encode(payload).rstrip(b"=")
        if any(_good(signed, sealed, each, algorithm) for each in usable):
            covered = cast("dict[str, Any]", msgspec.json.decode(payload))
            return VerifiedCard(card=covered, key=key, algorithm=algorithm, keys_at=_keys_at(header))
    raise _Refused("the card is not what was signed")


def _entry(entry: Any) -> tuple[str, str]:
    if isinstance(entry, dict):
        parts = [cast("dict[str, Any]", entry).get(name) for name in ("protected", "signature")]
        if all(isinstance(each, str) and len(each) <= LONGEST and _BASE64URL.fullmatch(each) for each in parts):
            unprotected = cast("dict[str, Any]", entry).get("header")
            if unprotected is None or isinstance(unprotected, dict):
                return cast("tuple[str, str]", tuple(parts))
    raise _Refused("it is malformed")


def _header(protected: str) -> dict[str, Any]:
    text = _bytes(protected)
    try:
        found = None if strain(text, DEPTH, CONTAINERS) else msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError):
        found = None
    if not isinstance(found, dict):
        raise _Refused("it is malformed")
    return cast("dict[str, Any]", found)


def _keys_at(header: dict[str, Any]) -> str:
    jku = header.get("jku")
    return jku if isinstance(jku, str) else ""


def _is(key: dict[str, Any], id: str) -> bool:
    if "kid" in key:
        return key["kid"] == id
    from joserfc.errors import JoseError
    from joserfc.jwk import import_key

    try:
        return import_key(cast("Any", key)).thumbprint() == id
    except (JoseError, ValueError, TypeError, KeyError):
        return False


def _may_check(key: dict[str, Any], algorithm: str) -> bool:
    """Whether the key is for this, and its time has come and not passed."""
    operations = key.get("key_ops")
    if isinstance(operations, list) and "verify" not in operations:
        return False
    now = time.time()
    begins, ends = key.get("nbf"), key.get("exp")
    in_time = (not isinstance(begins, int | float) or begins <= now) and (
        not isinstance(ends, int | float) or now < ends
    )
    return (
        (key.get("kty") in ("EC", "OKP") or (key.get("kty") == "RSA" and len(str(key.get("n"))) >= SHORTEST_MODULUS))
        and key.get("alg") in (None, algorithm)
        and key.get("use") in (None, "sig")
        and "revoked" not in key
        and in_time
    )


def _good(signed: bytes, signature: bytes, key: dict[str, Any], algorithm: str) -> bool:
    from joserfc.errors import JoseError
    from joserfc.jwk import import_key
    from joserfc.jws import JWSRegistry

    model = JWSRegistry.algorithms[algorithm]
    try:
        read = import_key(cast("Any", key))
        model.check_key(read)
        return model.verify(signed, signature, read)
    except (JoseError, ValueError, TypeError, KeyError):
        return False


def _bytes(text: str) -> bytes:
    try:
        return urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except ValueError:
        raise _Refused("it is malformed") from None
