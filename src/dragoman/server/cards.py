"""Agent cards over HTTP: rendered once per agent, address and version, then compared by ETag."""

from collections.abc import Mapping

from dragoman.gateway.desk import Desk
from dragoman.gateway.gateway import Gateway
from dragoman.server.kept import Kept
from dragoman.wire.cards import render
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
            body = render(self._gateway.card(desk, base), variant)
            card = self._kept[key] = Kept(body, self._max_age, b"Host, A2A-Version")
        return card.reply(headers)
