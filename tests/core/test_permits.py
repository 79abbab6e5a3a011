"""Who may use which skill."""

import pytest

from dragoman.core.permits import admit
from dragoman.model.errors import Forbidden, MissingScope, Unauthenticated
from dragoman.model.operations import Principal
from dragoman.model.security import Terms

TERMS = Terms(
    skills={"refund": ({"corp": ("refunds", "write")}, {"key": (), "cert": ()}), "sign": ({"cert": ()},)},
    challenge="Bearer",
)


def caller(*schemes: str, scopes: str = "", id: str = "me") -> Principal:
    return Principal(id=id, schemes=frozenset(schemes), scopes=frozenset(scopes.split()))


def test_a_skill_that_asks_for_nothing_is_open_to_all() -> None:
    admit(Principal(), TERMS, "convert")


@pytest.mark.parametrize(
    "principal",
    [caller("corp", scopes="refunds write"), caller("corp", scopes="refunds write x"), caller("key", "cert")],
)
def test_any_requirement_will_do(principal: Principal) -> None:
    admit(principal, TERMS, "refund")


def test_a_missing_scope_is_named_and_those_that_are_there_are_not() -> None:
    with pytest.raises(MissingScope) as caught:
        admit(caller("corp", scopes="write"), TERMS, "refund")
    assert caught.value.scopes == ("refunds", "write")
    assert "the scope refunds, which" in str(caught.value)


def test_the_scope_of_another_scheme_is_none_of_its_own() -> None:
    with pytest.raises(Forbidden):
        admit(caller("key", scopes="refunds write"), TERMS, "refund")


def test_another_way_to_log_in_is_named() -> None:
    with pytest.raises(Forbidden, match="for callers who log in with cert") as caught:
        admit(caller("corp", scopes="refunds write"), TERMS, "sign")
    assert not isinstance(caught.value, MissingScope)
    with pytest.raises(Forbidden, match="with corp, or key and cert"):
        admit(caller("key", scopes="refunds write"), TERMS, "refund")


def test_nobody_is_asked_to_log_in_where_that_is_possible() -> None:
    with pytest.raises(Unauthenticated) as caught:
        admit(Principal(), TERMS, "refund")
    assert caught.value.challenge == "Bearer"
    closed = Terms(skills={"refund": ({"": ("refunds",)},)})
    with pytest.raises(MissingScope):
        admit(Principal(), closed, "refund")
