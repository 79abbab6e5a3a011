"""Cursors and page tokens come back exactly, and nothing else is taken for one."""

import contextlib
from base64 import urlsafe_b64encode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.core.cursors import cursor, page_position, page_token, position
from dragoman.model.errors import InvalidParams

uids = st.text(min_size=1, max_size=40).filter(lambda text: text.isprintable())
times = st.integers(0, 2**53)


@pytest.mark.proves("S-2-3")
@given(uids, st.integers(0, 10**18 - 1))
def test_a_cursor_round_trips(uid: str, seq: int) -> None:
    assert position(cursor(uid, seq)) == (uid, seq)


@pytest.mark.parametrize(
    "text", ["", ".", "u", "u.", ".5", "u.-1", "u.1x", "u.٣", "u.²", "u." + "9" * 19, "u.1.", "u. 1"]
)
def test_what_is_no_cursor_is_refused(text: str) -> None:
    with pytest.raises(InvalidParams) as caught:
        position(text)
    assert caught.value.violations[0].field == "Last-Event-ID"


@given(times, uids)
def test_a_page_token_round_trips(at: int, uid: str) -> None:
    assert page_position(page_token(at, uid)) == (at, uid)


@given(st.one_of(st.text(max_size=30), st.binary(max_size=30).map(lambda raw: page_token(0, "u") + raw.hex())))
def test_any_text_is_a_page_token_of_ours_or_refused(text: str) -> None:
    with contextlib.suppress(InvalidParams):
        at, uid = page_position(text)
        assert page_token(at, uid) == text


@pytest.mark.parametrize("at", ["1" * 19, "-" + "1" * 19, "1" * 5000])
def test_a_made_up_time_no_store_could_hold_is_refused(at: str) -> None:
    with pytest.raises(InvalidParams) as caught:
        page_position(urlsafe_b64encode(f"{at}.u".encode()).decode().rstrip("="))
    assert caught.value.violations[0].field == "pageToken"


@pytest.mark.parametrize("text", ["", "!", "bm90IGEgdG9rZW4", "MS4", page_token(1, "u") + "=", "ü", "MS51x"])
def test_what_is_no_page_token_is_refused(text: str) -> None:
    with pytest.raises(InvalidParams):
        page_position(text)
