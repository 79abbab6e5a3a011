"""HTTP Basic: right is remembered for a while, wrong costs as much as right, and few are checked at a time."""

import asyncio
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from threading import Event

import pytest

from dragoman.auth.callers import Caller, Callers
from dragoman.auth.hashes import password_fits, password_hash, token_hash
from dragoman.auth.passwords import WAITING, PasswordScheme
from dragoman.auth.scheme import Refused
from dragoman.model.errors import Busy
from dragoman.ports import Presented
from tests.auth.rig import START, Clock, presented

pytestmark = pytest.mark.anyio

HASH = password_hash("hunter2")


def given(user: str, password: str) -> Presented:
    return presented(authorization="Basic " + b64encode(f"{user}:{password}".encode()).decode())


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def scheme(clock: Clock) -> Iterator[PasswordScheme]:
    callers = [
        Caller(name="ada", passwords=(HASH,)),
        Caller(name="bob"),
        Caller(name="eve", passwords=(HASH,), expires=START),
    ]
    made = PasswordScheme("p", Callers(clock, callers), clock)
    yield made
    made.close()


async def test_the_right_password_names_its_caller_and_is_known_from_then_on(
    scheme: PasswordScheme, clock: Clock
) -> None:
    assert scheme.recall(given("ada", "hunter2")) is None
    found = await scheme.identify(given("ada", "hunter2"))
    assert found is not None and (found.id, found.schemes) == ("caller:ada", {"p"})
    assert scheme.recall(given("ada", "hunter2")) == found
    assert scheme.holds(found)
    clock.advance(301)
    assert scheme.recall(given("ada", "hunter2")) is None, "remembered for too long"
    assert scheme.holds(found), "forgetting is our affair, not the caller's"


@pytest.mark.parametrize(
    ("user", "password"), [("ada", "hunter3"), ("ada", ""), ("bob", ""), ("bob", "x"), ("", ""), ("zoe", "hunter2")]
)
async def test_a_wrong_one_does_not_and_is_told_no_more(scheme: PasswordScheme, user: str, password: str) -> None:
    with pytest.raises(Refused) as caught:
        await scheme.identify(given(user, password))
    assert caught.value.told == Refused.TOLD
    assert scheme.recall(given(user, password)) is None


async def test_the_right_password_of_another_is_wrong(scheme: PasswordScheme) -> None:
    await scheme.identify(given("ada", "hunter2"))
    for other in ("bob", "ada:", "Ada"):
        assert scheme.recall(given(other, "hunter2")) is None
        with pytest.raises(Refused):
            await scheme.identify(given(other, "hunter2"))


async def test_whose_time_is_over_is_told_so_only_with_the_right_password(scheme: PasswordScheme) -> None:
    with pytest.raises(Refused, match="until a time that is over"):
        await scheme.identify(given("eve", "hunter2"))
    with pytest.raises(Refused, match="the name or the password is wrong"):
        await scheme.identify(given("eve", "wrong"))


async def test_a_name_nobody_has_is_checked_as_dearly(scheme: PasswordScheme, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it costs is the numbers of scrypt; how long that takes is for the machine to say."""
    costs: list[list[str]] = []

    def counted(password: str, written: str) -> bool:
        costs.append(written.split(":")[:4])
        return password_fits(password, written)

    monkeypatch.setattr("dragoman.auth.passwords.password_fits", counted)
    for user in ("ada", "nobody", "bob"):
        with pytest.raises(Refused):
            await scheme.identify(given(user, "wrong"))
    assert costs == [HASH.split(":")[:4]] * 3


async def test_nothing_and_nonsense_are_told_apart(scheme: PasswordScheme) -> None:
    assert await scheme.identify(presented()) is None
    assert scheme.recall(presented()) is None
    with pytest.raises(Refused):
        await scheme.identify(presented(authorization="Basic %%%"))
    assert scheme.recall(presented(authorization="Basic %%%")) is None


async def test_so_many_at_once_and_no_more(scheme: PasswordScheme, monkeypatch: pytest.MonkeyPatch) -> None:
    gate = Event()
    monkeypatch.setattr(scheme, "_any", lambda password, written: gate.wait(10))
    waiting = [asyncio.create_task(scheme.identify(given("ada", f"{n}"))) for n in range(WAITING)]
    await asyncio.sleep(0)
    try:
        with pytest.raises(Busy):
            await scheme.identify(given("ada", "one too many"))
    finally:
        gate.set()
        await asyncio.gather(*waiting)


async def test_what_was_remembered_is_forgotten_when_the_file_changes(tmp_path: Path, clock: Clock) -> None:
    file = tmp_path / "callers.toml"
    file.write_text(f'[ada]\npassword = "{HASH}"')
    callers = Callers(clock, file=file)
    callers.open()
    scheme = PasswordScheme("p", callers, clock)
    found = await scheme.identify(given("ada", "hunter2"))
    assert found is not None
    file.write_text(f'[ada]\ntoken = "{token_hash(b"x")}"')
    clock.advance(2)
    assert scheme.recall(given("ada", "hunter2")) is None
    assert not scheme.holds(found)
    scheme.close()


async def test_no_more_is_remembered_than_fits(scheme: PasswordScheme, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman.auth.passwords.REMEMBERED", 2)
    monkeypatch.setattr(scheme, "_any", lambda password, written: True)
    for n in range(3):
        await scheme.identify(given("ada", f"{n}"))
    assert [scheme.recall(given("ada", f"{n}")) is not None for n in range(3)] == [False, True, True]
