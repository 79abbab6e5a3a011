"""Everything served beside the protocol: cards, public keys, probes and the description of our own HTTP interface."""

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from dragoman.gateway.desk import JWKS, Desk
from dragoman.gateway.gateway import Gateway
from dragoman.server.cards import Cards
from dragoman.server.kept import Kept
from dragoman.server.settings import ServerSettings
from dragoman.wire.cards import variant
from dragoman.wire.classify import version_of
from dragoman.wire.errors import WrongVerb
from dragoman.wire.exchange import Headers, Inbound, Reply

CARDS = ("/.well-known/agent-card.json", "/.well-known/agent.json", "/api/a2a/agent-card.json", "/agentCard")
ALIVE = ("/healthz", "/health", "/ping")
READY = "/readyz"
OPENAPI = "/openapi.json"

_JSON: Headers = ((b"content-type", b"application/json"), (b"cache-control", b"no-store"))
_VERBS = "GET, HEAD, OPTIONS"


class Readiness:
    """Whether work should be sent here. `stage` is "ready" or why not; whoever starts and stops us sets it."""

    __slots__ = ("stage",)

    def __init__(self) -> None:
        self.stage: Literal["starting", "ready", "stopping"] = "ready"


class Pages:
    def __init__(self, gateway: Gateway, readiness: Readiness, settings: ServerSettings) -> None:
        self._gateway = gateway
        self._readiness = readiness
        self._cards = Cards(gateway, max_age=settings.card_max_age, most=settings.card_cache)
        self._probes = frozenset((*ALIVE, READY))
        self._cards_at = frozenset(CARDS)
        self._keys = Kept(gateway.signer.jwks(), settings.card_max_age) if gateway.signer else None

    def open(self, path: str, method: str) -> Reply | None:
        """Probes: open to everybody, whatever Host they use; they tell nothing but whether we live."""
        if path not in self._probes:
            return None
        if method not in ("GET", "HEAD"):
            status = 204 if method == "OPTIONS" else 405
            return Reply(status, ((b"allow", _VERBS.encode()),), b"")
        if path != READY:
            return Reply(200, _JSON, _status("ok"))
        stage = self._readiness.stage
        if stage != "ready":
            return Reply(503, (*_JSON, (b"retry-after", b"1")), _status(stage))
        return Reply(200, _JSON, _status(stage))

    def find(self, desk: Desk, inbound: Inbound, scope: Mapping[str, Any]) -> Reply | None:
        """The page at this path, if one is there. Raises WrongVerb for writing to it."""
        path = inbound.path
        if not self._has(desk, path):
            return None
        if inbound.method != "GET":
            raise WrongVerb(_VERBS)
        if path == JWKS and self._keys is not None:
            return self._keys.reply(inbound.headers)
        base = self.base(inbound.headers, scope)
        if path == OPENAPI:
            from dragoman.server.openapi import describe  # large, and few ask for it

            body = msgspec.json.encode(describe(base + desk.path, desk.profile, keys=self._has(desk, JWKS)))
            return Reply(200, ((b"content-type", b"application/json"), (b"vary", b"Host")), body)
        return self._cards.reply(desk, base, variant(version_of(inbound)), inbound.headers)

    def base(self, headers: Mapping[str, str], scope: Mapping[str, Any]) -> str:
        root: str = scope.get("root_path", "").rstrip("/")
        return self._gateway.door.base(headers, scope.get("scheme", "http"), root)

    def verbs(self, desk: Desk, path: str) -> bytes:
        """What may be done with the page at this path; nothing if there is none."""
        return _VERBS.encode() if self._has(desk, path) else b""

    def _has(self, desk: Desk, path: str) -> bool:
        # The keys are the deployment's, not an agent's: they lie at our root alone.
        return path in self._cards_at or path == OPENAPI or (path == JWKS and not desk.path and self._keys is not None)


def _status(word: str) -> bytes:
    return b'{"status":"%b"}' % word.encode()
