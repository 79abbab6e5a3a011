"""Who may use which skill."""

from collections.abc import Sequence

from dragoman.model.errors import Forbidden, MissingScope, Unauthenticated
from dragoman.model.operations import Principal
from dragoman.model.security import Requirement, Terms


def admit(principal: Principal, terms: Terms, skill: str) -> None:
    """Raises Unauthenticated for nobody, MissingScope or Forbidden for somebody, who may not use that skill."""
    needed = terms.skills.get(skill)
    if needed is None or any(_meets(principal, each) for each in needed):
        return
    if not principal.id and terms.challenge:
        raise Unauthenticated(terms.challenge, "This skill needs authentication")
    for each in needed:
        if missing := _scopes(each) - principal.scopes:
            raise MissingScope(sorted(_scopes(each)), sorted(missing))
    raise Forbidden(f"This skill is for callers who log in with {_named(needed)}")


def _meets(principal: Principal, requirement: Requirement) -> bool:
    return principal.schemes.issuperset(requirement) and principal.scopes.issuperset(_scopes(requirement))


def _scopes(requirement: Requirement) -> frozenset[str]:
    return frozenset(scope for scopes in requirement.values() for scope in scopes)


def _named(needed: Sequence[Requirement]) -> str:
    return ", or ".join(" and ".join(each) for each in needed)
