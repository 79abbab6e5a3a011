"""The public keys of an issuer: which there are now, and when to ask again.

Keys rotate: a token may name one we have not seen, so an unknown name leads to a fetch. Who sends made-up names leads
to as many fetches as they like, so those are few: some at once, then one every half minute. Keys also go away without
anybody saying so; they are fetched again every few minutes, in the background, while tokens keep being checked.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, NamedTuple, cast
from warnings import catch_warnings

import msgspec
from joserfc.errors import JoseError
from joserfc.jwk import ECKey, OKPKey, RSAKey, import_key

from dragoman.auth.fetching import Unfetchable
from dragoman.model.errors import Unavailable
from dragoman.ports import Clock

log = logging.getLogger("dragoman.auth")

MOST_KEYS = 100
SMALLEST_RSA, LARGEST_RSA = 2_048, 8_192
BURST = 4
PAUSE_MS = 30_000
RETRY_MS = 5_000
STALE_MS = 24 * 3_600_000
"""How long keys count after the issuer was last reached."""

CURVES = {
    "P-256": frozenset({"ES256"}),
    "P-384": frozenset({"ES384"}),
    "P-521": frozenset({"ES512"}),
    "Ed25519": frozenset({"EdDSA", "Ed25519"}),  # RFC 9864 names the curve where RFC 8037 named the family
}
RSA = frozenset({"RS256", "RS384", "RS512", "PS256", "PS384", "PS512"})
ALGORITHMS = RSA.union(*CURVES.values())
"""What can be allowed at all. No algorithm with a shared secret: a public key must never be taken for one."""

PublicKey = RSAKey | ECKey | OKPKey


class Trusted(NamedTuple):
    """A key, and what it may check."""

    kid: str
    algorithms: frozenset[str]
    key: PublicKey
    thumbprint: str


class TrustedKeys:
    """`fetch` answers the issuer's JWK Set, or raises Unfetchable."""

    def __init__(self, fetch: Callable[[], Awaitable[object]], clock: Clock, *, issuer: str, refresh_ms: int) -> None:
        self._fetch = fetch
        self._clock = clock
        self._issuer = issuer
        self._refresh_ms = refresh_ms
        self._keys: Sequence[Trusted] = ()
        self._fetching: asyncio.Task[None] | None = None
        self._fetched_at = 0
        self._tried_at = 0
        self._allowance = float(BURST)
        self._allowed_at = 0
        self.thumbprints: frozenset[str] = frozenset()

    async def find(self, kid: str, algorithm: str) -> Sequence[Trusted]:
        """The keys a token may be signed with; none for a name the issuer does not know. Raises Unavailable."""
        found = self._matching(kid, algorithm)
        if not found and self._may_ask():
            await self._renew()
            found = self._matching(kid, algorithm)
        if not self._keys or self._too_old():
            raise Unavailable("It cannot be checked right now who is calling; try again in a moment", retry_after=5)
        return found

    def keep_fresh(self) -> None:
        """Begin to fetch again when it is time. Cheap: called for every token."""
        now = self._clock.now()
        if now - self._fetched_at >= self._refresh_ms and now - self._tried_at >= RETRY_MS:
            self._begin()

    def reload(self) -> None:
        """Fetch again, now."""
        self._begin()

    async def close(self) -> None:
        if self._fetching is not None:
            self._fetching.cancel()
            await asyncio.gather(self._fetching, return_exceptions=True)

    def take(self, document: object) -> None:
        """Trust these keys from now on, and no others. Raises Unfetchable when none of them can be used."""
        keys = read(document)
        if not keys:
            raise Unfetchable("holds no key that signatures can be checked with")
        self._keys = keys
        self._fetched_at = self._clock.now()
        self.thumbprints = frozenset(each.thumbprint for each in keys)

    def _matching(self, kid: str, algorithm: str) -> Sequence[Trusted]:
        """By name; without a name, all that fit."""
        return [each for each in self._keys if algorithm in each.algorithms and (not kid or each.kid == kid)]

    def _too_old(self) -> bool:
        return self._clock.now() - self._fetched_at > STALE_MS + self._refresh_ms

    def _may_ask(self) -> bool:
        if self._fetching is not None and not self._fetching.done():
            return True
        now = self._clock.now()
        if not self._keys:
            return now - self._tried_at >= RETRY_MS or not self._tried_at
        self._allowance = min(BURST, self._allowance + (now - self._allowed_at) / PAUSE_MS)
        self._allowed_at = now
        if self._allowance < 1:
            return False
        self._allowance -= 1
        return True

    async def _renew(self) -> None:
        """Who waits may leave; the fetch goes on for the others."""
        await asyncio.shield(self._begin())

    def _begin(self) -> asyncio.Task[None]:
        if self._fetching is None or self._fetching.done():
            self._tried_at = self._clock.now()
            self._fetching = asyncio.get_running_loop().create_task(self._run())
        return self._fetching

    async def _run(self) -> None:
        try:
            self.take(await self._fetch())
        except Unfetchable as error:
            log.warning("The keys of %s could not be fetched: %s", self._issuer, error)


def read(document: object) -> list[Trusted]:
    """The keys of a JWK Set that signatures may be checked with. Others are passed over: issuers publish those too."""
    members: object = cast("Mapping[str, object]", document).get("keys") if isinstance(document, dict) else None
    if not isinstance(members, list):
        raise Unfetchable("holds no list of keys")
    found = [_trusted(each) for each in cast("list[object]", members)[:MOST_KEYS]]
    return [each for each in found if each is not None]


def _trusted(member: object) -> Trusted | None:
    if not isinstance(member, dict):
        return None
    jwk = cast("dict[str, Any]", member)
    operations = jwk.get("key_ops")
    verifies = operations is None or (isinstance(operations, list) and "verify" in operations)
    if jwk.get("kty") not in ("RSA", "EC", "OKP") or jwk.get("use", "sig") != "sig" or not verifies:
        return None
    # Only what makes the key: what else stands there is not needed, and a private half has no business here.
    parts = {name: jwk[name] for name in ("kty", "n", "e", "crv", "x", "y") if name in jwk}
    try:
        with catch_warnings(action="ignore"):  # about short keys, which are passed over below
            key = import_key(cast("Any", parts))
            fits = _fits(key)
            thumbprint = key.thumbprint()
    except (JoseError, ValueError, TypeError, KeyError):
        return None
    named = jwk.get("alg")
    algorithms = fits & {named} if isinstance(named, str) else fits
    kid = jwk.get("kid")
    if not algorithms or not isinstance(key, RSAKey | ECKey | OKPKey):
        return None
    return Trusted(kid if isinstance(kid, str) else "", algorithms, key, thumbprint)


def _fits(key: object) -> frozenset[str]:
    if isinstance(key, RSAKey):
        return RSA if SMALLEST_RSA <= key.public_key.key_size <= LARGEST_RSA else frozenset()
    if isinstance(key, ECKey | OKPKey) and key.curve_name in CURVES:
        return CURVES[key.curve_name]
    return frozenset()


def parse(content: bytes) -> object:
    """A JWK Set as it stands in a file. Raises Unfetchable."""
    try:
        return msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise Unfetchable("is not JSON") from None
