"""The public keys of a sender: given, or fetched from its JWKS address and kept for a while."""

import asyncio
import logging
import time
from collections.abc import Mapping
from typing import Any, cast
from warnings import catch_warnings

import httpx2
import msgspec
from joserfc.errors import JoseError
from joserfc.jwk import ECKey, KeySet, RSAKey
from joserfc.jws import extract_compact

from dragoman.model.errors import DragomanError

log = logging.getLogger("dragoman.webhooks")

KEPT_SECONDS = 300.0
AGAIN_SECONDS = 30.0  # before an unknown key makes us ask again
FETCH_SECONDS = 10.0
LARGEST = 256 * 1024
SMALLEST_RSA = 2_048


class KeysUnavailable(DragomanError):
    """The sender's keys cannot be fetched now: nothing can be said about its signatures."""


class Keyring:
    """`source` is a JWKS address, or a JWK Set."""

    def __init__(self, source: str | Mapping[str, Any]) -> None:
        self._url = source if isinstance(source, str) else ""
        self._keys: dict[str, ECKey | RSAKey] = {} if isinstance(source, str) else _keys(source)
        self._fetched = 0.0
        self._asking = asyncio.Lock()

    def kid(self, token: str) -> str | None:
        """The name of the key a token says it was signed with; None for what is no token or names none."""
        try:
            kid = extract_compact(token.encode()).headers().get("kid")
        except (JoseError, ValueError, TypeError, KeyError):
            return None
        return kid if isinstance(kid, str) else None

    async def of(self, kid: str) -> KeySet | None:
        """The key of that name; None when the sender has none. Raises KeysUnavailable."""
        if self._url:
            await self._refresh(kid)
        key = self._keys.get(kid)
        return None if key is None else KeySet([key])

    async def _refresh(self, kid: str) -> None:
        async with self._asking:
            age = time.monotonic() - self._fetched
            if self._fetched and age < (KEPT_SECONDS if kid in self._keys else AGAIN_SECONDS):
                return
            try:
                self._keys = _keys(await _fetched(self._url))
            except (httpx2.HTTPError, httpx2.InvalidURL, ValueError, msgspec.DecodeError) as error:
                if not self._keys:
                    raise KeysUnavailable("The sender's keys cannot be fetched now") from error
                log.warning("The keys of webhooks' sender could not be fetched again: %s", type(error).__name__)
            self._fetched = time.monotonic()


async def _fetched(url: str) -> Mapping[str, Any]:
    async with httpx2.AsyncClient(timeout=FETCH_SECONDS) as client, client.stream("GET", url) as answer:
        answer.raise_for_status()
        body = b""
        async for piece in answer.aiter_bytes():
            body += piece
            if len(body) > LARGEST:
                raise ValueError("The key set is too large")
    return msgspec.json.decode(body, type=dict[str, Any])


def _keys(found: Mapping[str, Any]) -> dict[str, ECKey | RSAKey]:
    """By name. What is no key we check with is passed over: a set may hold others. Raises ValueError for no set."""
    listed = found.get("keys")
    if not isinstance(listed, list):
        raise ValueError("The key set has no keys")
    keys: dict[str, ECKey | RSAKey] = {}
    for each in cast("list[Any]", listed):
        members = cast("dict[str, Any]", each) if isinstance(each, dict) else {}
        if (key := _key(members)) is not None:
            keys[members["kid"]] = key
    return keys


def _key(members: dict[str, Any]) -> ECKey | RSAKey | None:
    kind = {"EC": ECKey, "RSA": RSAKey}.get(str(members.get("kty")))
    if kind is None or not isinstance(members.get("kid"), str):
        return None
    try:
        with catch_warnings(action="ignore"):  # about short keys, which are refused here
            key = kind.import_key(members)
    except (JoseError, ValueError, TypeError, KeyError):
        return None
    return None if isinstance(key, RSAKey) and key.public_key.key_size < SMALLEST_RSA else key
