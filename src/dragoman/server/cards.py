"""Agent cards over HTTP: rendered once per agent, address and version, then compared by ETag."""

from collections.abc import Mapping

from dragoman.gateway.desk import Desk
from dragoman.gateway.gateway import Gateway
from dragoman.server.kept import Kept
from dragoman.wire.cards import render, version
from dragoman.wire.exchange import Reply


class Cards:
    def __init__(self, gateway: Gateway, *, max_age: int, most: int) -> None:
        self._gateway = gateway
        self._max_age = max_age
        self._most = most
        self._kept: dict[tuple[str, str, str], Kept] = {}

    def reply(self, desk: Desk, base: str, variant: str, headers: Mapping[str, str]) -> Reply:
        key = (desk.path, base, variant)
        card = self._kept.get(key)
        if card is None:
            if len(self._kept) >= self._most:
                self._kept.clear()
            source = self._gateway.card(desk, base)
            marks = ((b"vary", b"Host, A2A-Version"), (b"a2a-version", version(source, variant).encode()))
            card = self._kept[key] = Kept(render(source, variant), self._max_age, marks)
        return card.reply(headers)
