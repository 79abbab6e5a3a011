"""Streams: one line per event, cursors, and payloads made once however many read them."""

import json
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from dragoman.model.facts import AnyFact, Chunk, Entry, Said
from dragoman.model.messages import Part
from dragoman.model.operations import TaskRef
from dragoman.model.tasks import TaskState, TaskStatus
from dragoman.wire.classify import RESERVED
from dragoman.wire.exchange import Exchange, one_line
from dragoman.wire.mounts import spoken
from dragoman.wire.rest import match
from dragoman.wire.settings import WireSettings
from tests.core import facts
from tests.wire.wording import (
    MOUNTS,
    REF,
    USER_03,
    USER_10,
    USER_P03,
    agent_says,
    artifact,
    call,
    frames_of,
    understood,
    view,
    visit,
)


def exchanges() -> list[Exchange]:
    return [
        understood(call("SendStreamingMessage", {"message": USER_10}, id="one")),
        understood(call("SendStreamingMessage", {"message": USER_10}, id="two")),
        understood(call("message/stream", {"message": USER_03}, id=3)),
        understood(visit("POST", "/message:stream", {"message": USER_10})),
        understood(visit("POST", "/v1/message:stream", {"message": USER_P03})),
    ]


def chunk(seq: int, text: str) -> Entry:
    return Entry(seq, Chunk(artifact=artifact(Part(text=text)), append=True))


@pytest.mark.parametrize(
    "text", ["\n", "\r\n", "\x85", "\u2028", "a\u2029b", "\x0b\x0c\x1c\x1d\x1e", "é", "\u0000", "data: x\n\n"]
)
def test_no_text_breaks_a_line_for_any_reader(text: str) -> None:
    for exchange in exchanges():
        frames = [
            exchange.open(agent_says(Part(text=text))),
            exchange.frames(REF, [chunk(1, text)], False),
            exchange.frame_error(ValueError(text)),
        ]
        for frame in frames:
            # str.splitlines knows more line ends than the format does, and some clients use it.
            assert len([line for line in frame.decode().splitlines() if line]) == 2 - (
                b"id: " not in frame and b"event" not in frame
            )
        ((_, told),) = frames_of(frames[1])
        assert text in _texts(told)


def _texts(value: object) -> list[str]:
    if isinstance(value, dict):
        return [text for each in value.values() for text in _texts(each)]
    if isinstance(value, list):
        return [text for each in value for text in _texts(each)]
    return [value] if isinstance(value, str) else []


@given(st.text())
def test_one_line_changes_nothing_but_the_spelling(text: str) -> None:
    payload = json.dumps({"text": text}, ensure_ascii=False).encode("utf-8", "surrogatepass")
    assert json.loads(one_line(payload).decode("utf-8", "surrogatepass")) == {"text": text}
    assert len(one_line(payload).decode("utf-8", "surrogatepass").splitlines()) == 1


@pytest.mark.proves("S-2-23")
def test_each_reader_gets_its_own_request_id_around_the_same_payload() -> None:
    one, two, old, rest, _ = exchanges()
    entries = [chunk(4, "a"), chunk(6, "b")]
    shown = [frames_of(exchange.frames(REF, entries, False)) for exchange in (one, two, old)]
    assert [[data["id"] for _, data in frames] for frames in shown] == [["one"] * 2, ["two"] * 2, [3] * 2]
    assert [data["result"] for _, data in shown[0]] == [data["result"] for _, data in shown[1]]
    assert [data for _, data in frames_of(rest.frames(REF, entries, False))] == [data["result"] for _, data in shown[0]]
    assert [[id for id, _ in frames] for frames in shown] == [["0199-uid.4", "0199-uid.6"]] * 3


@pytest.mark.proves("S-2-23")
def test_a_payload_is_made_once_per_dialect() -> None:
    entry = chunk(4, "a")
    for exchange in exchanges():
        exchange.frames(REF, [entry], False)
    assert entry.frames is not None
    assert set(entry.frames) == {"1.0", "0.3", "0.3-rest"}
    entry.frames["1.0"] = b'{"from":"the cache"}'
    assert b"the cache" in exchanges()[3].frames(REF, [entry], False)


def test_an_exchange_may_move_to_another_task() -> None:
    exchange = exchanges()[0]
    first = exchange.frames(REF, [chunk(1, "a")], False)
    other = exchange.frames(TaskRef("0200-uid", "t-78", "c-6"), [chunk(1, "a")], False)
    assert b"t-77" in first and b"0199-uid.1" in first
    assert b"t-78" in other and b"0200-uid.1" in other


def test_nothing_to_show_is_nothing_to_write() -> None:
    assert exchanges()[0].frames(REF, [], True) == b""


def test_ids_are_escaped_wherever_they_appear() -> None:
    ref = TaskRef("u", 't"7', "c\\5")
    working = Entry(2, Said(status=TaskStatus(state=TaskState.WORKING)))
    for exchange in exchanges():
        for _, told in frames_of(exchange.frames(ref, [chunk(1, "a"), working], True)):
            assert {'t"7', "c\\5"} <= set(_texts(told))


@pytest.mark.proves("S-2-5")
def test_a_snapshot_names_its_cursor_in_every_dialect() -> None:
    for exchange in exchanges():
        ((id, _),) = frames_of(exchange.open(view()))
        assert id == "0199-uid.9"


@pytest.mark.proves("S-1-7")
def test_first_segments_with_a_meaning_are_reserved() -> None:
    for mount in MOUNTS:
        assert mount == "/" or mount.split("/")[1] in RESERVED
    for word in ("message:send", "message:stream", "tasks", "extendedAgentCard"):
        assert match([word], "extendedAgentCard") is not None
        assert word in RESERVED


@pytest.mark.proves("S-2-1")
def test_a_fact_is_public_exactly_where_some_dialect_shows_it() -> None:
    shows = (facts.started(), facts.said(), facts.asked(), facts.resumed(), facts.settled(), facts.chunk("x"))
    hides = (facts.created(), facts.received(), facts.stepped(), facts.used(), facts.cancel())
    everything = (*shows, *hides)
    assert {type(fact) for fact in everything} == set(get_args(AnyFact))
    for fact in everything:
        shown = [name for name, dialect in spoken(WireSettings()).items() if dialect.events(REF)(fact, False)]
        assert bool(shown) is fact.public is (fact in shows), (type(fact), shown)


@pytest.mark.proves("S-2-4", "S-2-5")
@pytest.mark.parametrize(("partial", "number"), [(False, 7), (True, 0)])
def test_who_goes_on_after_a_snapshot_misses_nothing_that_it_left_out(partial: bool, number: int) -> None:
    for exchange in exchanges():
        frame = exchange.open(replace(view(), seq=7, partial=partial))
        assert frame.startswith(b"id: %b.%d\n" % (view().uid.encode(), number))
