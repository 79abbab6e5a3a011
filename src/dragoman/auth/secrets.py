"""Schemes whose secrets we gave out ourselves: bearer tokens and API keys. Both are known at once or not at all."""

from collections.abc import Callable
from functools import partial
from typing import Literal

from dragoman.auth import presented as shown
from dragoman.auth.callers import Caller, Callers
from dragoman.auth.hashes import digest
from dragoman.auth.scheme import Refused
from dragoman.model.operations import Principal
from dragoman.model.security import SecurityScheme
from dragoman.ports import Presented


class SecretScheme:
    """`read` finds the secret in a request, `table` is where callers keep its digest."""

    def __init__(
        self,
        name: str,
        callers: Callers,
        *,
        read: Callable[[Presented], bytes | None],
        table: Literal["tokens", "keys"],
        shown: SecurityScheme,
        challenge: str,
        explicit: bool = True,
    ) -> None:
        self.name = name
        self.shown = shown
        self.challenge = challenge
        self.explicit = explicit
        self._callers = callers
        self._read = read
        self._table: Literal["tokens", "keys"] = table
        self._what = table.removesuffix("s")

    def recall(self, presented: Presented) -> Principal | None:
        try:
            secret = self._read(presented)
        except Refused:
            return None
        if secret is None:
            return None
        self._callers.refresh()
        proof = digest(secret)
        caller = self._of(proof)
        return caller.principal(self.name, proof) if caller is not None and self._callers.counts(caller) else None

    async def identify(self, presented: Presented) -> Principal | None:
        secret = self._read(presented)
        if secret is None:
            return None
        proof = digest(secret)
        caller = self._of(proof)
        if caller is None:
            raise Refused(f"nobody has that {self._what}")
        if not self._callers.counts(caller):
            raise Refused(f"{caller.name} was let in until a time that is over", f"The {self._what} has expired")
        return caller.principal(self.name, proof)

    def holds(self, principal: Principal) -> bool:
        self._callers.refresh()
        caller = self._of(principal.proof)
        return caller is not None and self._callers.counts(caller)

    def _of(self, proof: bytes) -> Caller | None:
        return (self._callers.tokens if self._table == "tokens" else self._callers.keys).get(proof)


def bearer_scheme(name: str, callers: Callers) -> SecretScheme:
    card = SecurityScheme(kind="http", http="Bearer", description="A token given to each caller")
    return SecretScheme(name, callers, read=shown.bearer, table="tokens", shown=card, challenge="Bearer")


def key_scheme(name: str, callers: Callers, place: Literal["header", "query", "cookie"], called: str) -> SecretScheme:
    """An API key in a header, a query parameter or a cookie of that name."""
    where = {"header": "the header", "query": "the query parameter", "cookie": "the cookie"}[place]
    card = SecurityScheme(kind="key", place=place, parameter=called, description=f"A key in {where} {called}")
    named = called.lower() if place == "header" else called
    return SecretScheme(
        name,
        callers,
        read=partial(shown.parameter, place=place, name=named),
        table="keys",
        shown=card,
        challenge=f'ApiKey in="{place}", name="{called}"',
        explicit=place != "cookie",
    )
