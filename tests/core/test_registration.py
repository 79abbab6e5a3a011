"""What may be registered as a webhook, but for where its URL leads."""

from typing import Any

import pytest

from dragoman.core.registration import LONGEST, MOST_TYPES, OURS, judge
from dragoman.model.errors import InvalidParams
from dragoman.model.operations import PushConfig


def wrong(**config: Any) -> list[str]:
    given: dict[str, Any] = {"url": "https://cb.example", **config}
    with pytest.raises(InvalidParams) as refused:
        judge(PushConfig(**given))
    return [each.field for each in refused.value.violations]


@pytest.mark.parametrize(
    "config",
    [
        {},
        {"token": "a token with blanks, and ~ signs"},
        {"token": "x" * LONGEST},
        {"authentication": {"scheme": "Bearer"}},
        {"authentication": {"scheme": "bearer", "credentials": "eyJhbGciOi.J9"}},
        {"authentication": {"scheme": "Basic", "credentials": "dXNlcjpwYXNz"}},
        {"authentication": {"scheme": "basic", "credentials": "jürgen:geheim"}},
        {"authentication": {"scheme": "X-Own.Scheme_1", "credentials": "k=v, w"}},
        {"header_name": "X-Hook-Key", "authentication": {"scheme": "apiKey", "credentials": "k"}},
        {"event_types": ("status",) * MOST_TYPES},
    ],
)
def test_what_a_request_can_carry_is_taken(config: dict[str, Any]) -> None:
    judge(PushConfig(url="https://cb.example", **config))


@pytest.mark.parametrize("bad", ["a\r\nX: y", "a\x00", "tab\there", "\x7f", "schlüssel", "x" * (LONGEST + 1)])
def test_secrets_are_printable_ascii_of_bounded_length(bad: str) -> None:
    assert wrong(token=bad) == ["token"]
    for scheme in ("Bearer", "Basic"):
        assert wrong(authentication={"scheme": scheme, "credentials": bad}) == ["authentication.credentials"]


def test_a_user_and_password_hold_no_control_characters_and_are_bounded_too() -> None:
    for bad in ("user:pass\n", "us\x00er:pass", "u:" + "x" * LONGEST):
        assert wrong(authentication={"scheme": "Basic", "credentials": bad}) == ["authentication.credentials"]


@pytest.mark.parametrize("bad", ["", "Bearer\n", "two words", "schëme", "x" * 101])
def test_a_scheme_is_one_word(bad: str) -> None:
    assert wrong(authentication={"scheme": bad}) == ["authentication.scheme"]


@pytest.mark.parametrize("bad", ["X:", "X Y", "X\r\nEvil: 1", "x" * 101, "Ümlaut"])
def test_a_header_has_a_headers_name(bad: str) -> None:
    assert wrong(header_name=bad) == ["headerName"]


@pytest.mark.parametrize("ours", sorted(OURS))
def test_a_header_that_says_how_a_request_is_read_is_not_theirs_to_name(ours: str) -> None:
    assert wrong(header_name=ours) == wrong(header_name=ours.title()) == ["headerName"]


def test_event_types_are_few_and_short() -> None:
    assert wrong(event_types=("x",) * (MOST_TYPES + 1)) == wrong(event_types=("x" * 101,)) == ["eventTypes"]


def test_all_that_is_wrong_is_named_at_once_and_no_secret_repeated() -> None:
    with pytest.raises(InvalidParams) as refused:
        judge(PushConfig(token="hush\n", authentication={"scheme": "a b", "credentials": "hush\n"}, header_name="Host"))
    fields = [each.field for each in refused.value.violations]
    assert fields == ["url", "token", "authentication.scheme", "authentication.credentials", "headerName"]
    assert "hush" not in "".join(each.description for each in refused.value.violations)
