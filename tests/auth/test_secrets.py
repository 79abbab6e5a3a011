"""Bearer tokens and API keys: found where they belong, known at once or not at all."""

from base64 import b64encode
from typing import Any

import pytest

from dragoman.auth.callers import Caller, Callers
from dragoman.auth.hashes import digest
from dragoman.auth.presented import basic
from dragoman.auth.scheme import Refused
from dragoman.auth.secrets import SecretScheme, bearer_scheme, key_scheme
from dragoman.ports import Presented
from tests.auth.rig import START, Clock, presented

pytestmark = pytest.mark.anyio

TOKEN = "tößk~en/+=1"
RAW = TOKEN.encode()
WIRE = RAW.decode("latin-1")  # as a server hands over the bytes of a header


def callers(clock: Clock | None = None, **more: Any) -> Callers:
    caller = Caller(name="ci", tokens=(digest(RAW),), keys=(digest(RAW),), scopes=frozenset({"read"}), **more)
    return Callers(clock or Clock(), [caller])


async def who(scheme: SecretScheme, given: Presented) -> str:
    """The caller's id, "" when nothing was presented; both ways of asking must agree."""
    at_once = scheme.recall(given)
    try:
        found = await scheme.identify(given)
    except Refused:
        assert at_once is None
        raise
    assert at_once == found
    return found.id if found else ""


@pytest.mark.parametrize("value", [f"Bearer {WIRE}", f"bearer {WIRE}", f"BEARER   {WIRE} "])
async def test_a_bearer_token_names_its_caller(value: str) -> None:
    scheme = bearer_scheme("b", callers())
    assert await who(scheme, presented(authorization=value)) == "caller:ci"
    found = scheme.recall(presented(authorization=value))
    assert found is not None and (found.scopes, found.schemes) == ({"read"}, {"b"})


@pytest.mark.parametrize("value", ["", "Basic abc", "Bearerx y", "Digest Bearer"])
async def test_what_is_of_another_scheme_is_nothing(value: str) -> None:
    given = presented(authorization=value) if value else presented()
    assert await who(bearer_scheme("b", callers()), given) == ""


@pytest.mark.parametrize(
    "token",
    [
        "",
        " ",
        f"{WIRE}x",
        WIRE[:-1],
        f"{WIRE}, Bearer {WIRE}",
        f"{WIRE} {WIRE}",
        f"{WIRE}\x00",
        "x" * 20_000,
        WIRE.upper(),
    ],
)
async def test_what_is_almost_right_is_wrong(token: str) -> None:
    with pytest.raises(Refused):
        await who(bearer_scheme("b", callers()), presented(authorization=f"Bearer {token}"))


@pytest.mark.parametrize(
    ("place", "given"),
    [
        ("header", Presented({"x-api-key": WIRE})),
        ("query", Presented({}, "a=1&X-API-Key=t%C3%B6%C3%9Fk~en/%2B%3D1")),
        ("cookie", Presented({"cookie": f"a=b; X-API-Key={WIRE}; c=d"})),
    ],
)
async def test_an_api_key_is_read_in_its_place_and_nowhere_else(place: Any, given: Presented) -> None:
    for each in ("header", "query", "cookie"):
        scheme = key_scheme("k", callers(), each, "X-API-Key")
        assert await who(scheme, given) == ("caller:ci" if each == place else "")


@pytest.mark.parametrize(
    ("place", "given"),
    [
        ("header", Presented({"x-api-key": f"{WIRE}, {WIRE}"})),
        ("header", Presented({"x-api-key": ""})),
        ("query", Presented({}, "X-API-Key=a&X-API-Key=b")),
        ("query", Presented({}, "X-API-Key=")),
        ("cookie", Presented({"cookie": f"X-API-Key={WIRE}; X-API-Key={WIRE}"})),
        ("header", Presented({"x-api-key": "k" * 20_000})),
    ],
)
async def test_a_key_that_could_be_read_in_two_ways_is_none(place: Any, given: Presented) -> None:
    with pytest.raises(Refused):
        await who(key_scheme("k", callers(), place, "X-API-Key"), given)


def test_only_what_browsers_send_by_themselves_is_not_explicit() -> None:
    assert bearer_scheme("b", callers()).explicit
    assert key_scheme("k", callers(), "header", "K").explicit
    assert key_scheme("k", callers(), "query", "K").explicit
    assert not key_scheme("k", callers(), "cookie", "K").explicit


async def test_a_caller_whose_time_is_over_is_told_so() -> None:
    clock = Clock()
    scheme = bearer_scheme("b", callers(clock, expires=START + 1_000))
    given = presented(authorization=f"Bearer {WIRE}")
    found = scheme.recall(given)
    assert found is not None and scheme.holds(found)
    clock.advance(1)
    with pytest.raises(Refused) as caught:
        await who(scheme, given)
    assert caught.value.told == "The token has expired"
    assert not scheme.holds(found)


async def test_who_was_let_in_holds_as_long_as_the_very_token_does(tmp_path: Any) -> None:
    from dragoman.auth.hashes import token_hash

    file, clock = tmp_path / "callers.toml", Clock()
    file.write_text(f'[ci]\ntoken = "{token_hash(b"one")}"')
    known = Callers(clock, file=file)
    known.open()
    scheme = bearer_scheme("b", known)
    found = await scheme.identify(presented(authorization="Bearer one"))
    assert found is not None and scheme.holds(found)
    file.write_text(f'[ci]\ntoken = "{token_hash(b"twoo")}"')
    clock.advance(2)
    assert not scheme.holds(found), "the caller is still there, its token is not"


async def test_basic_credentials_have_one_reading() -> None:
    def given(text: bytes) -> Presented:
        return presented(authorization=f"Basic {b64encode(text).decode()}")

    assert basic(given("user:pass:word ü".encode())) == ("user", "pass:word ü")
    assert basic(presented(authorization="Bearer x")) is None
    for wrong in (given(b"no colon"), given(b"\xff:\xfe"), presented(authorization="Basic %%%"), given(b"")):
        with pytest.raises(Refused):
            basic(wrong)
