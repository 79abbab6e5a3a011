"""Which credentials open an agent: alternatives, several together, scopes, and what is said to whom it stays closed."""

from typing import Any

import pytest

from dragoman.auth.entrance import ANYBODY, Alternative, Entrance
from dragoman.auth.scheme import Refused
from dragoman.model.errors import MissingScope, Unauthenticated, Unavailable
from dragoman.model.operations import Principal
from dragoman.model.security import SecurityScheme
from dragoman.ports import Presented

pytestmark = pytest.mark.anyio


class Way:
    """A scheme that knows who writes what into the header of its name."""

    def __init__(self, name: str, *, slow: bool = False, challenge: str = "Bearer", explicit: bool = True) -> None:
        self.name = name
        self.shown = SecurityScheme(kind="key", place="header", parameter=name)
        self.challenge = challenge
        self.explicit = explicit
        self.slow = slow
        self.down = False
        self.gone: set[str] = set()
        self.asked = 0

    def recall(self, presented: Presented) -> Principal | None:
        value = presented.headers.get(self.name, "bad")
        return None if self.slow or value in self.gone or value.startswith("bad") else self._principal(value)

    async def identify(self, presented: Presented) -> Principal | None:
        self.asked += 1
        value = presented.headers.get(self.name)
        if value is None:
            return None
        if self.down:
            raise Unavailable("Nobody answers")
        if value == "bad-expired":
            raise Refused("expired", "The token has expired")
        if value.startswith("bad") or value in self.gone:
            raise Refused(f"{self.name} is bad")
        return self._principal(value)

    def holds(self, principal: Principal) -> bool:
        return principal.id not in self.gone

    def _principal(self, value: str) -> Principal:
        id, _, scopes = value.partition(" ")
        tenants = {"one": frozenset({"a", "b"}), "two": frozenset({"b", "c"}), "none": frozenset[str]()}.get(id)
        expires = {"one": 5, "two": 3}.get(id, 0)
        return Principal(
            id=id, scopes=frozenset(scopes.split()), schemes=frozenset({self.name}), tenants=tenants, expires=expires
        )


A, B = "a", "b"


def entrance(*alternatives: tuple[Way, ...] | Way, scopes: Any = (), **how: Any) -> Entrance:
    groups = [each if isinstance(each, tuple) else (each,) for each in alternatives]
    return Entrance([Alternative(each, frozenset(scopes)) for each in groups], **how)


async def who(door: Entrance, **headers: str) -> Principal:
    found = door.authenticate(Presented(headers))
    return found if isinstance(found, Principal) else await found


async def refused(door: Entrance, **headers: str) -> Unauthenticated:
    with pytest.raises(Unauthenticated) as caught:
        await who(door, **headers)
    return caught.value


async def test_who_is_known_is_let_in_at_once() -> None:
    found = entrance(Way(A)).authenticate(Presented({"a": "me"}))
    assert isinstance(found, Principal) and found.id == "me"


@pytest.mark.parametrize("slow", [False, True])
async def test_any_alternative_will_do(slow: bool) -> None:
    door = entrance(Way(A, slow=slow), Way(B, slow=slow))
    assert (await who(door, a="me")).id == "me"
    assert (await who(door, b="you")).id == "you"
    assert (await who(door, a="me", b="you")).id == "me", "the first that will do"
    assert (await who(door, a="bad", b="you")).id == "you"


@pytest.mark.parametrize("slow", [False, True])
async def test_what_is_needed_together_is_not_enough_alone(slow: bool) -> None:
    door = entrance((Way(A, slow=slow), Way(B, slow=slow)))
    found = await who(door, a="me read", b="you write")
    assert (found.id, found.scopes, found.schemes) == ("me", {"read", "write"}, {A, B})
    for given in ({"a": "me"}, {"b": "you"}, {}, {"a": "me", "b": "bad"}, {"a": "bad", "b": "you"}):
        await refused(door, **given)


async def test_several_together_may_do_what_all_of_them_may_and_no_longer_than_any() -> None:
    door = entrance((Way(A), Way(B)))
    found = await who(door, a="one", b="two")
    assert (found.tenants, found.expires) == ({"b"}, 3)
    assert (await who(door, a="me", b="two")).tenants == {"b", "c"}
    assert (await who(door, a="one", b="me")).tenants == {"a", "b"}
    assert (await who(door, a="none", b="two")).tenants == set(), "none at all is not any"
    found = await who(door, a="x", b="y")
    assert (found.tenants, found.expires) == (None, 0)


@pytest.mark.parametrize("slow", [False, True])
async def test_a_scope_that_is_missing_is_named(slow: bool) -> None:
    door = entrance(Way(A, slow=slow), scopes=("read", "write"))
    assert (await who(door, a="me read write more")).id == "me"
    with pytest.raises(MissingScope) as caught:
        await who(door, a="me read")
    assert caught.value.scopes == ("read", "write")
    assert "the scope write, which" in str(caught.value)
    assert isinstance(await refused(door, a="bad"), Unauthenticated), "who is nobody lacks more than a scope"


async def test_an_alternative_without_the_scope_is_passed_over() -> None:
    one, two = Way(A), Way(B)
    door = Entrance([Alternative((one,), frozenset({"x"})), Alternative((two,))])
    assert (await who(door, a="me", b="you")).id == "you"


async def test_nothing_presented_is_told_what_would_do_and_no_fault() -> None:
    error = await refused(entrance(Way(A), Way(B, challenge="Basic"), Way("c", challenge='ApiKey in="header"')))
    assert error.challenge == 'Bearer realm="dragoman", Basic realm="dragoman", ApiKey realm="dragoman", in="header"'
    assert (str(error), error.why) == ("Authentication is required", "")


async def test_what_is_bad_is_told_in_words_of_rfc_6750_and_logged_with_its_reason() -> None:
    error = await refused(entrance(Way(A), Way(B)), a="bad", b="bad")
    assert error.challenge == (
        'Bearer realm="dragoman", error="invalid_token", error_description="The credentials are not valid"'
    )
    assert error.why == "a is bad; b is bad"


async def test_the_reason_that_helps_most_is_told() -> None:
    for given in ({"a": "bad", "b": "bad-expired"}, {"a": "bad-expired", "b": "bad"}):
        assert str(await refused(entrance(Way(A), Way(B)), **given)) == "The token has expired"


async def test_a_public_agent_is_open_to_who_presents_nothing_and_to_nobody_with_bad_credentials() -> None:
    door = entrance(Way(A), Way(B), public=True)
    assert await who(door) == ANYBODY
    assert (await who(door, a="me")).id == "me"
    await refused(door, a="bad")
    half = entrance((Way(A), Way(B)), public=True)
    await refused(half, a="me")
    assert await who(Entrance([], public=True)) == ANYBODY


async def test_while_nobody_can_judge_nobody_is_judged() -> None:
    one, two = Way(A, slow=True), Way(B, slow=True)
    one.down = True
    door = entrance(one, two)
    with pytest.raises(Unavailable):
        await who(door, a="me")
    assert (await who(door, a="me", b="you")).id == "you", "another way will do"
    await refused(door)


async def test_a_scheme_in_several_alternatives_is_asked_once() -> None:
    one, two, three = (Way(name, slow=True) for name in "abc")
    await refused(entrance((one, two), (one, three), one), a="bad")
    assert one.asked == 1


async def test_what_only_skills_ask_for_is_noted_beside_the_rest() -> None:
    further = Way(B)
    door = entrance(Way(A), further=[further], skills={"pay": ({B: ("pay",)},)})
    assert (await who(door, a="me")).schemes == {A}
    found = await who(door, a="me", b="you pay")
    assert (found.id, found.schemes, found.scopes) == ("me", {A, B}, {"pay"})
    assert (await who(door, a="me", b="bad")).schemes == {A}
    await refused(door, b="you")
    assert door.terms is not None and door.terms.skills == {"pay": ({B: ("pay",)},)}
    assert entrance(Way(A)).terms is None


async def test_admins_are_those_with_the_scope() -> None:
    door = entrance(Way(A), admin_scope="admin")
    assert (await who(door, a="me admin")).admin
    assert not (await who(door, a="me")).admin
    assert not (await who(entrance(Way(A)), a="me admin")).admin, "nobody, unless it is said"


async def test_it_is_asked_again_whether_somebody_would_still_be_let_in() -> None:
    way = Way(A)
    door = entrance(way, Way(B))
    found = await who(door, a="me")
    assert not door.lapsed(found)
    way.gone.add("me")
    assert door.lapsed(found)
    assert not door.lapsed(ANYBODY)


def test_it_is_explicit_only_when_no_browser_sends_any_of_it_by_itself() -> None:
    assert entrance(Way(A), Way(B)).explicit
    assert not entrance(Way(A), Way(B, explicit=False)).explicit
    assert not entrance(Way(A), further=[Way(B, explicit=False)]).explicit
    assert not entrance(Way(A), public=True).explicit


def test_the_card_is_told_what_there_is_and_what_suffices() -> None:
    one, two = Way(A), Way(B)
    door = Entrance([Alternative((one, two), frozenset({"y", "x"})), Alternative((one,))], public=True)
    assert door.security.schemes == {A: one.shown, B: two.shown}
    assert door.security.requirements == ({A: ("x", "y"), B: ()}, {A: ()}, {})
