"""Depth is judged without decoding, and exactly."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.wire.nesting import strain


def deeper_than(text: bytes, limit: int) -> bool:
    return "deeper" in strain(text, limit, 10**9)


values = st.recursive(
    st.none() | st.integers() | st.text(alphabet='[]{}"\\ab'),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(alphabet='[{"\\', max_size=3), inner, max_size=3)
    ),
    max_leaves=60,
)


def depth(value: object) -> int:
    if isinstance(value, dict):
        return 1 + max((depth(each) for each in value.values()), default=0)
    if isinstance(value, list):
        return 1 + max((depth(each) for each in value), default=0)
    return 0


@pytest.mark.proves("S-6-12")
@given(values, st.integers(0, 6))
def test_depth_is_what_a_recursive_count_says(value: object, limit: int) -> None:
    assert deeper_than(json.dumps(value).encode(), limit) is (depth(value) > limit)


@pytest.mark.proves("S-6-12")
@pytest.mark.parametrize("text", [b"[" * 100_000, b'{"a":' * 100_000, b"[{" * 50_000 + b"]" * 10])
def test_a_bomb_is_found_although_it_never_closes(text: bytes) -> None:
    assert deeper_than(text, 64)


def test_many_shallow_brackets_are_no_depth() -> None:
    assert not deeper_than(b"[" + b"[{}]," * 200_000 + b"[]]", 3)


def test_brackets_in_strings_are_no_depth() -> None:
    assert not deeper_than(json.dumps(["[" * 500, '"' + "{" * 500, "\\" * 7 + "[" * 99]).encode(), 1)


@pytest.mark.parametrize("text", [b"]" * 500 + b"[" * 3, b'"' + b"[" * 500, b"][" * 300])
def test_what_is_malformed_gets_an_answer_and_not_a_loop(text: bytes) -> None:
    assert deeper_than(text, 8) in (True, False)


def test_deep_and_wide_together_are_measured_exactly() -> None:
    text = b"[" + b"[" * 30 + b"]" * 30 + (b"," + b"[" * 20 + b"]" * 20) * 50 + b"]"
    assert not deeper_than(text, 31)
    assert deeper_than(text, 30)


def test_more_containers_than_a_decoder_should_make_are_refused() -> None:
    text = json.dumps([{}] * 99 + ["[" * 500]).encode()
    assert strain(text, 10, 100) == ""
    assert strain(text, 10, 99) == "The body holds more than 99 arrays and objects"
