"""Whether somebody who was let in still would be. A stream may stay open longer than what opened it counts."""

from time import monotonic

from dragoman.model.operations import Principal
from dragoman.ports import Authenticator

SECONDS = 5.0
"""How often that is asked, at most."""


class Admission:
    __slots__ = ("_ask_at", "_entrance", "_principal")

    def __init__(self, entrance: Authenticator, principal: Principal) -> None:
        self._entrance = entrance
        self._principal = principal
        self._ask_at = monotonic() + SECONDS

    def lapsed(self) -> bool:
        """Cheap: call it for every event."""
        now = monotonic()
        if now < self._ask_at:
            return False
        self._ask_at = now + SECONDS
        return self._entrance.lapsed(self._principal)
