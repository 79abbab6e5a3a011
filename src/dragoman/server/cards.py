"""Agent cards over HTTP: rendered once per agent, address and version, then compared by ETag."""

import time
from collections.abc import Mapping
from email.utils import formatdate, parsedate_to_datetime
from hashlib import sha256
from typing import NamedTuple

from dragoman.gateway.desk import Desk
from dragoman.wire.cards import render
from dragoman.wire.exchange import Headers, Reply


class Rendered(NamedTuple):
    body: bytes
    etag: str
    headers: Headers


class Cards:
    def __init__(self, *, max_age: int, most: int) -> None:
        self._max_age = max_age
        self._most = most
        self._kept: dict[tuple[str, str, str], Rendered] = {}
        # Cards change only with the agents, and those only with the process.
        self._since = int(time.time())

    def reply(self, desk: Desk, base: str, variant: str, headers: Mapping[str, str]) -> Reply:
        key = (desk.path, base, variant)
        card = self._kept.get(key)
        if card is None:
            if len(self._kept) >= self._most:
                self._kept.clear()
            card = self._kept[key] = self._render(desk, base, variant)
        if self._unchanged(card, headers):
            return Reply(304, card.headers, b"")
        return Reply(200, ((b"content-type", b"application/json"), *card.headers), card.body)

    def _render(self, desk: Desk, base: str, variant: str) -> Rendered:
        body = render(desk.card(base), variant)
        etag = f'"{sha256(body).hexdigest()[:32]}"'
        headers = (
            (b"etag", etag.encode()),
            (b"last-modified", formatdate(self._since, usegmt=True).encode()),
            (b"cache-control", b"public, max-age=%d" % self._max_age),
            (b"vary", b"Host, A2A-Version"),
        )
        return Rendered(body, etag, headers)

    def _unchanged(self, card: Rendered, headers: Mapping[str, str]) -> bool:
        known = headers.get("if-none-match")
        if known is not None:
            tags = [tag.strip().removeprefix("W/") for tag in known.split(",")]
            return card.etag in tags or "*" in tags
        since = headers.get("if-modified-since")
        if since is None:
            return False
        try:
            return parsedate_to_datetime(since).timestamp() >= self._since
        except (ValueError, OverflowError):
            return False
