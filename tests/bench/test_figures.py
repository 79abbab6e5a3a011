"""The bench's own arithmetic: a wrong ratio or a miscounted event would be believed."""

import json
import socket
from collections.abc import Iterator

import pytest

from bench import requests
from bench.contenders import CONTENDERS
from bench.receivers import hanging
from bench.results import Results, at_least, at_most
from bench.scenarios import ALL
from bench.scenarios.callers import rows_of_auth
from bench.scenarios.logs import _pace
from bench.scenarios.throughput import rows_of_full, rows_of_send
from bench.scenarios.webhooks import _stamps
from bench.sockets import Follower, _unchunk
from bench.table import render
from dragoman.model.operations import SendMessage
from dragoman.wire.classify import receive
from dragoman.wire.exchange import Exchange, Inbound
from dragoman.wire.mounts import table
from dragoman.wire.settings import WireSettings

ABOUT: dict[str, object] = {
    "started": "today",
    "seconds": 1,
    "commit": "none",
    "python": "3",
    "machine": "one",
    "quick": False,
    "rounds": 3,
}


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours, theirs


def test_an_event_marker_split_over_two_reads_counts_once(pair: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = pair
    follower = Follower(ours)
    whole = b'HTTP/1.1 200 OK\r\n\r\ndata: {"data":1}\n\ndata: 2\r\n\r\n: quiet\n\ndata: 3\n\n\r\n0\r\n\r\n'
    for octet in whole:
        theirs.sendall(bytes([octet]))
        follower.feed()
    assert (follower.events, follower.done) == (3, True)


def test_a_stream_that_is_refused_is_an_error_and_not_a_stream_without_events(
    pair: tuple[socket.socket, socket.socket],
) -> None:
    ours, theirs = pair
    theirs.sendall(b"HTTP/1.1 503 Service Unavailable\r\n\r\n")
    with pytest.raises(Exception, match="503"):
        Follower(ours).feed()


def test_chunked_bodies_are_put_together() -> None:
    assert _unchunk(b"3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n") == b"abcde"


def test_a_ratio_is_the_median_of_the_rounds_ratios_not_the_ratio_of_medians() -> None:
    results = Results()
    for fast, slow in ((100.0, 10.0), (50.0, 5.0), (90.0, 30.0)):
        results.add("one", {"per_second": fast})
        results.add("other", {"per_second": slow})
    assert results.ratio("one", "other", "per_second") == 10.0
    assert results.of("one", "per_second") == 90.0


def test_a_target_that_is_just_met_passes() -> None:
    assert (at_least("x", 12.0, 12).verdict, at_least("x", 11.99, 12).verdict) == ("pass", "miss")
    assert (at_most("x", 22.0, 22).verdict, at_most("x", 22.01, 22).verdict) == ("pass", "miss")


@pytest.mark.proves("S-11-2")
def test_full_sync_passes_by_either_of_its_two_bounds() -> None:
    results = Results()
    results.add("dragoman FULL", {"per_second": 700.0})
    results.add("a2a-sdk memory", {"per_second": 350.0})
    results.add("fsync probe", {"per_second": 1000.0})
    assert {row.verdict for row in rows_of_full(results)} == {"pass"}
    results.samples["fsync probe"] = [{"per_second": 10_000.0}]
    assert {row.verdict for row in rows_of_full(results)} == {"miss"}


def test_what_was_not_measured_has_no_verdict() -> None:
    for scenario in ALL:
        assert not any(row.verdict for row in scenario.rows(Results()))
    results = Results(failures={"dragoman": "it did not start"})
    results.add("a2a-sdk memory", {"per_second": 400.0})
    send = next(scenario for scenario in ALL if scenario.name == "send")
    assert rows_of_send(results) == []
    assert "dragoman was left out: it did not start" in render(ABOUT, [(send, results)])


def test_what_logging_in_costs_is_a_share_of_the_same_round() -> None:
    results = Results()
    for nobody, token, jwt in ((100.0, 99.0, 80.0), (50.0, 48.0, 45.0), (200.0, 150.0, 180.0)):
        work = {"nobody cpu_us": 10.0, "token cpu_us": 11.0, "jwt cpu_us": 12.0}
        results.add("dragoman with callers", {"nobody": nobody, "token": token, "jwt": jwt, **work})
    verdicts = [(row.value, row.verdict) for row in rows_of_auth(results)]
    assert verdicts == [("96%", "pass"), ("110%", ""), ("90%", "pass"), ("120%", "")]
    assert rows_of_auth(Results()) == []


def test_every_scenario_names_contenders_that_exist() -> None:
    assert {name for scenario in ALL for name in scenario.contenders} <= set(CONTENDERS)


def test_the_pace_of_a_stretch_is_measured_between_the_reads_that_reached_its_ends() -> None:
    marks = [(0.0, 1), (1.0, 11), (2.0, 31), (4.0, 51)]
    assert _pace(marks, 0, 11) == 10.0
    assert _pace(marks, 31, 51) == 10.0


@pytest.mark.parametrize("dialect", requests.DIALECTS)
def test_each_dialect_is_asked_in_its_own_words(dialect: str) -> None:
    ask = requests.send(dialect)
    body = json.loads(ask.body)
    message = body["params"]["message"] if "params" in body else body["message"]
    assert ("content" in message) == (dialect == "0.3-http")
    assert (message["role"] == "user") == (dialect == "0.3" or dialect in requests.SEEDS)
    assert f"Content-Length: {len(ask.body)}\r\n".encode() in ask.wire(80)


@pytest.mark.parametrize("dialect", requests.DIALECTS)
def test_each_dialect_is_understood_as_what_it_is_measured_for(dialect: str) -> None:
    wire, ask = WireSettings(), requests.send(dialect)
    headers = {name.lower(): value for name, value in ask.headers}
    exchange = receive(Inbound(ask.method, ask.path, "", headers, ask.body.encode()), wire, table(wire))
    assert isinstance(exchange, Exchange) and isinstance(exchange.operation, SendMessage)
    origins = {"Cortex": "cortex", "simple_a2a": "simple", "A2X": "a2x", "protoAgent": "proto"}
    assert exchange.origin == origins.get(dialect, dialect.removesuffix("-http"))
    assert not exchange.operation.configuration.return_immediately


def test_an_events_stamp_is_found_wherever_it_stands() -> None:
    frames = b'data: {"text":"@at:12@"}\n\ndata: {"other":1}\n\ndata: {"a":"@at:345@","b":"@at:6@"}'
    assert _stamps(frames) == [b"12", b"345", b"6"]
    assert _stamps(b"data: {}") == []


def test_hanging_receivers_are_connected_to_and_silent() -> None:
    with hanging(3) as urls:
        assert len(set(urls)) == 3
        for url in urls:
            host, port = url.removeprefix("http://").removesuffix("/hook").split(":")
            with socket.create_connection((host, int(port)), 5) as connection:
                connection.sendall(b"POST / HTTP/1.1\r\n\r\n")
                connection.settimeout(0.05)
                with pytest.raises(TimeoutError):
                    connection.recv(1)
