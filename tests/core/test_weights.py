"""Weights are rough, but nothing big weighs little."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from dragoman.core.weights import measure, weigh, weigh_message
from dragoman.model.messages import Message, Part
from tests.core.facts import parts


def test_every_kind_of_content_counts() -> None:
    assert weigh(()) == 0
    bare = weigh((Part(url="https://example.com"),))
    assert weigh((Part(text="x" * 100),)) == bare + 100
    assert weigh((Part(raw=b"x" * 300),)) == bare + 400
    assert weigh((Part(data={"k": "v"}),)) == bare + 9
    assert weigh((Part(url="", metadata={"k": "v"}),)) == bare + 9


def test_a_messages_metadata_counts() -> None:
    assert weigh_message(Message(metadata={"k": 1})) == weigh_message(Message()) + measure({"k": 1})


@given(st.lists(parts, max_size=5).map(tuple))
def test_a_weight_is_near_the_encoded_size(made: tuple[Part, ...]) -> None:
    encoded = len(msgspec.json.encode(made))
    assert encoded / 4 - 64 <= weigh(made) <= encoded + 100 * len(made) + 64
