"""One agent's entrance: which credentials open it, and what is said to whom it stays closed."""

from collections.abc import Awaitable, Mapping, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from dragoman.auth.scheme import Refused, Scheme
from dragoman.model.errors import MissingScope, Unauthenticated, Unavailable
from dragoman.model.operations import Principal
from dragoman.model.security import Requirement, Security, Terms
from dragoman.ports import Presented

ANYBODY = Principal()
REALM = "dragoman"

Findings = dict[str, Principal | Refused | Unavailable | None]


class Alternative(NamedTuple):
    """Schemes that are needed together, and the scopes they must have given between them. The first says who it is."""

    schemes: tuple[Scheme, ...]
    scopes: frozenset[str] = frozenset()


class Entrance:
    """`ports.Authenticator` over alternatives, any of which suffices. `public` lets in who presents nothing.

    `further` are schemes that only single skills ask for: what of them was presented is noted beside the rest.
    """

    def __init__(
        self,
        alternatives: Sequence[Alternative],
        *,
        public: bool = False,
        further: Sequence[Scheme] = (),
        skills: Mapping[str, tuple[Requirement, ...]] | None = None,
        admin_scope: str = "",
    ) -> None:
        self._alternatives = tuple(alternatives)
        self._public = public
        self._further = tuple(further)
        self._admin_scope = admin_scope
        every = dict.fromkeys(each for alternative in alternatives for each in alternative.schemes)
        self._schemes: Sequence[Scheme] = tuple(dict.fromkeys((*every, *further)))
        self._by_name = {each.name: each for each in self._schemes}
        # A scheme that suffices alone is by far the usual case, and is asked for every request.
        self._alone = tuple((each.schemes[0], each.scopes) for each in alternatives if len(each.schemes) == 1)
        self.explicit = not public and all(each.explicit for each in self._schemes)
        self.challenge = self._challenge(None)
        self.terms = Terms(skills=skills, challenge=self.challenge) if skills else None
        self.security = Security(
            schemes={each.name: each.shown for each in self._schemes},
            requirements=(*(_requirement(each) for each in alternatives), *(({},) if public else ())),
            skills=skills or {},
        )

    def authenticate(self, presented: Presented) -> Principal | Awaitable[Principal]:
        if not self._further:
            for scheme, scopes in self._alone:
                found = scheme.recall(presented)
                if found is not None and scopes <= found.scopes:
                    return self._known(found)
        return self._examine(presented)

    def lapsed(self, principal: Principal) -> bool:
        """Of several proofs together only the first is asked about again; the others count until their time is over."""
        schemes = [scheme for name in principal.schemes if (scheme := self._by_name.get(name)) is not None]
        return bool(principal.id) and not any(scheme.holds(principal) for scheme in schemes)

    async def _examine(self, presented: Presented) -> Principal:
        """Everything, with reasons: for who is not known yet, or not let in."""
        found: Findings = {}
        missing: MissingScope | None = None
        for alternative in self._alternatives:
            principal = await self._together(alternative.schemes, presented, found)
            if principal is None:
                continue
            lacking = alternative.scopes - principal.scopes
            if not lacking:
                return self._known(await self._noted(principal, presented, found))
            missing = missing or MissingScope(sorted(alternative.scopes), sorted(lacking))
        if missing is not None:
            raise missing
        for each in found.values():
            if isinstance(each, Unavailable):
                raise each
        refused = [each for each in found.values() if isinstance(each, Refused)]
        if not refused and self._public and not any(found.values()):
            return ANYBODY
        raise self._unauthenticated(refused)

    async def _together(self, schemes: Sequence[Scheme], presented: Presented, found: Findings) -> Principal | None:
        """Who presented something good of each of them. Asks all of them, so that every reason is known."""
        proved = [await self._ask(scheme, presented, found) for scheme in schemes]
        first = proved[0]
        if first is None or None in proved:
            return None
        for other in proved[1:]:
            assert other is not None
            first = _joined(first, other)
        return first

    async def _noted(self, principal: Principal, presented: Presented, found: Findings) -> Principal:
        for scheme in self._further:
            if scheme.name not in principal.schemes:
                other = await self._ask(scheme, presented, found)
                principal = principal if other is None else _joined(principal, other)
        return principal

    async def _ask(self, scheme: Scheme, presented: Presented, found: Findings) -> Principal | None:
        if scheme.name not in found:
            try:
                found[scheme.name] = scheme.recall(presented) or await scheme.identify(presented)
            except (Refused, Unavailable) as why:
                found[scheme.name] = why
        finding = found[scheme.name]
        return finding if isinstance(finding, Principal) else None

    def _known(self, principal: Principal) -> Principal:
        if self._admin_scope and self._admin_scope in principal.scopes:
            return replace(principal, admin=True)
        return principal

    def _unauthenticated(self, refused: Sequence[Refused]) -> Unauthenticated:
        """What would open, and why what was presented does not. Who presented nothing is only told the former."""
        # What is known to have been meant for us tells more than what another scheme thinks of it.
        reason = next((each for each in refused if each.told != Refused.TOLD), refused[0] if refused else None)
        message = "Authentication is required" if reason is None else reason.told
        return Unauthenticated(self._challenge(reason), message, why="; ".join(each.why for each in refused))

    def _challenge(self, reason: Refused | None) -> str:
        challenges = dict.fromkeys(each.challenge for each in self._schemes)
        return ", ".join(_challenge(each, reason) for each in challenges)


def _challenge(scheme: str, reason: Refused | None) -> str:
    named, _, more = scheme.partition(" ")
    line = f'{named} realm="{REALM}"' + (f", {more}" if more else "")
    if reason is not None and named == "Bearer":
        line += f', error="{reason.error}", error_description="{reason.told}"'
    return line


def _joined(one: Principal, other: Principal) -> Principal:
    """The first, with what the other proved as well."""
    if one.tenants is None or other.tenants is None:
        tenants = other.tenants if one.tenants is None else one.tenants
    else:
        tenants = one.tenants & other.tenants
    return replace(
        one,
        scopes=one.scopes | other.scopes,
        schemes=one.schemes | other.schemes,
        tenants=tenants,
        expires=min(filter(None, (one.expires, other.expires)), default=0),
    )


def _requirement(alternative: Alternative) -> Requirement:
    """Scopes stand beside the scheme that says who it is."""
    first, *others = alternative.schemes
    return {first.name: tuple(sorted(alternative.scopes)), **{each.name: () for each in others}}
