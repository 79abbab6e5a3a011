"""HTTP Basic: names and passwords of the callers' file.

Checking a password is slow on purpose, so it happens on threads of its own, few at a time, and what was right is
remembered for a while by a digest that means nothing outside this process. A name nobody has takes as long as one
somebody has.
"""

import asyncio
import hmac
import os
from concurrent.futures import ThreadPoolExecutor

from dragoman.auth.callers import Caller, Callers
from dragoman.auth.hashes import password_fits, password_hash
from dragoman.auth.presented import basic
from dragoman.auth.scheme import Refused
from dragoman.model.errors import Busy
from dragoman.model.operations import Principal
from dragoman.model.security import SecurityScheme
from dragoman.ports import Clock, Presented

AT_ONCE = 2
WAITING = 32
REMEMBERED = 10_000
REMEMBERED_MS = 5 * 60_000


class PasswordScheme:
    challenge = "Basic"
    explicit = False

    def __init__(self, name: str, callers: Callers, clock: Clock) -> None:
        self.name = name
        self.shown = SecurityScheme(kind="http", http="Basic", description="A name and a password")
        self._callers = callers
        self._clock = clock
        self._secret = os.urandom(32)
        self._known: dict[bytes, tuple[str, int, int]] = {}
        self._threads = ThreadPoolExecutor(AT_ONCE, "password")
        self._waiting = 0
        self._nobody = ""

    def recall(self, presented: Presented) -> Principal | None:
        try:
            given = basic(presented)
        except Refused:
            return None
        if given is None:
            return None
        self._callers.refresh()
        proof = self._digest(*given)
        caller = self._remembered(proof)
        return None if caller is None else caller.principal(self.name, proof)

    async def identify(self, presented: Presented) -> Principal | None:
        given = basic(presented)
        if given is None:
            return None
        user, password = given
        caller = self._callers.names.get(user)
        if not await self._fits(password, caller):
            raise Refused("the name or the password is wrong")
        assert caller is not None, "nobody has no password"
        if not self._callers.counts(caller):
            raise Refused(f"{caller.name} was let in until a time that is over", "The password has expired")
        proof = self._digest(user, password)
        self._remember(proof, user)
        return caller.principal(self.name, proof)

    def holds(self, principal: Principal) -> bool:
        """A password that is remembered no more counts while its caller has one: forgetting is our affair."""
        self._callers.refresh()
        caller = self._callers.names.get(principal.id.removeprefix("caller:"))
        if caller is None or not caller.passwords or not self._callers.counts(caller):
            return False
        known = self._known.get(principal.proof)
        return known is None or known[1] == self._callers.generation

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _fits(self, password: str, caller: Caller | None) -> bool:
        if self._waiting >= WAITING:
            raise Busy("Too many passwords are being checked; try again in a moment")
        self._waiting += 1
        try:
            loop = asyncio.get_running_loop()
            written = caller.passwords if caller is not None else ()
            return await loop.run_in_executor(self._threads, self._any, password, written)
        finally:
            self._waiting -= 1

    def _any(self, password: str, written: tuple[str, ...]) -> bool:
        if not written:
            self._nobody = self._nobody or password_hash("")
            password_fits(password, self._nobody)
            return False
        return any(password_fits(password, each) for each in written)

    def _digest(self, user: str, password: str) -> bytes:
        return hmac.digest(self._secret, f"{user}:{password}".encode(), "sha256")

    def _remembered(self, proof: bytes) -> Caller | None:
        known = self._known.get(proof)
        if known is None:
            return None
        user, generation, until = known
        caller = self._callers.names.get(user)
        fresh = generation == self._callers.generation and self._clock.now() < until
        return caller if fresh and caller is not None and self._callers.counts(caller) else None

    def _remember(self, proof: bytes, user: str) -> None:
        self._known.pop(proof, None)
        while len(self._known) >= REMEMBERED:
            del self._known[next(iter(self._known))]
        self._known[proof] = (user, self._callers.generation, self._clock.now() + REMEMBERED_MS)
