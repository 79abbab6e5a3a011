"""What every way to log in offers, and how one says that what was presented does not count."""

from typing import Literal, Protocol

from dragoman.model.operations import Principal
from dragoman.model.security import SecurityScheme
from dragoman.ports import Presented

Fault = Literal["invalid_token", "invalid_request"]


class Refused(Exception):
    """A credential does not count. `why` is for our log; `told`, for the client, says no more than helps its owner."""

    TOLD = "The credentials are not valid"

    def __init__(self, why: str, told: str = TOLD, error: Fault = "invalid_token") -> None:
        super().__init__(why)
        self.why = why
        self.told = told
        self.error: Fault = error


class Scheme(Protocol):
    """One way to log in.

    `recall` answers at once and asks nobody: None means that `identify` must be asked. That answers None when nothing
    of this kind was presented and raises Refused when it was and does not count. `holds` says whether somebody let in
    before still would be. `challenge` is the HTTP scheme a 401 names; `explicit` is false for what browsers send by
    themselves.
    """

    name: str
    shown: SecurityScheme
    challenge: str
    explicit: bool

    def recall(self, presented: Presented) -> Principal | None: ...
    async def identify(self, presented: Presented) -> Principal | None: ...
    def holds(self, principal: Principal) -> bool: ...
