"""Webhooks: what hundred that hang cost those who stream, and how fast a queue leaves."""

import json
import selectors
import socket
import time
from statistics import median

from bench import requests
from bench.contenders import Contender
from bench.load import load
from bench.places import BenchError
from bench.receivers import fast, hanging
from bench.results import Results, Row, Sample, at_least, at_most, shown
from bench.scenarios.scenario import Run, Scenario
from bench.servers import Server, serving
from bench.sockets import LAST_CHUNK, READ, Caller, connect

DRAGOMAN = "dragoman, webhooks"
STREAMS = 100
PATIENCE = 120.0
CALLERS = 16
WARM_SECONDS = 1.5  # of each crowd of streams: then all have begun, and their webhooks hang


def measure_hang(contender: Contender, run: Run) -> Sample:
    """The same streams without webhooks and with one each that hangs; in turn, so that they share the machine's
    mood."""
    events = 80
    pairs: list[tuple[float, float]] = []
    work: list[tuple[float, float]] = []
    with serving(contender, "clock") as server, hanging(STREAMS) as urls:
        plain = [requests.stream("1.0", f"clock {events}")] * STREAMS
        hooked = [requests.stream("1.0", f"clock {events}", webhook=url) for url in urls]
        _lags(server, plain, events)
        for _ in range(run.pace.size(5, 3)):
            cpu = [server.cpu]
            lags: list[list[float]] = []
            for asks in (plain, hooked):
                lags.append(_lags(server, asks, events))
                cpu.append(server.cpu)
            pairs.append((_p99(lags[0]), _p99(lags[1])))
            work.append(((cpu[1] - cpu[0]) / len(lags[0]) * 1e6, (cpu[2] - cpu[1]) / len(lags[1]) * 1e6))
    return {
        "without_ms": median(before for before, _ in pairs),
        "with_ms": median(after for _, after in pairs),
        "ratio": median(after / before for before, after in pairs),
        "without_cpu_us": median(before for before, _ in work),
        "with_cpu_us": median(after for _, after in work),
    }


def _p99(lags: list[float]) -> float:
    return sorted(lags)[int(len(lags) * 0.99)]


def _lags(server: Server, asks: list[requests.Ask], events: int) -> list[float]:
    """Milliseconds from each event's making, which it says itself, to the read that brought it."""
    lags: list[float] = []
    warm = time.monotonic_ns() + int(WARM_SECONDS * 1e9)
    with selectors.EpollSelector() as selector:
        open_: dict[socket.socket, bytes] = {}
        for ask in asks:
            connection = connect(server.port)
            connection.sendall(ask.wire(server.port))
            selector.register(connection, selectors.EVENT_READ)
            open_[connection] = b""
        deadline = time.perf_counter() + PATIENCE
        while open_:
            if time.perf_counter() > deadline:
                raise BenchError(f"{len(open_)} of {len(asks)} streams did not end within {PATIENCE:.0f} s")
            for key, _ in selector.select(1.0):
                connection: socket.socket = key.fileobj  # type: ignore[assignment]
                data = connection.recv(READ)
                now = time.monotonic_ns()
                whole, _, rest = (open_[connection] + data).rpartition(b"\n\n")
                lags += [(now - stamp) / 1e6 for stamp in map(int, _stamps(whole)) if stamp > warm]
                open_[connection] = rest
                if not data or rest.endswith(LAST_CHUNK) or whole.endswith(LAST_CHUNK):
                    selector.unregister(connection)
                    connection.close()
                    del open_[connection]
    if len(lags) < len(asks) * events / 2:
        raise BenchError(f"{len(asks)} streams had only {len(lags)} events")
    return lags


def _stamps(frames: bytes) -> list[bytes]:
    return [piece[: piece.index(b"@")] for piece in frames.split(b"@at:")[1:]]


def rows_of_hang(results: Results) -> list[Row]:
    if not results.has(DRAGOMAN):
        return []
    what = f"{STREAMS} streams, event to client, p99"
    return [
        shown(f"{what}: without webhooks", results.of(DRAGOMAN, "without_ms"), "{:.1f} ms"),
        at_most(f"{what}: with {STREAMS} that hang ÷ without", results.of(DRAGOMAN, "ratio"), 1.1, "{:.2f}×"),
        shown("  processor time per event: without", results.of(DRAGOMAN, "without_cpu_us"), "{:.0f} µs"),
        shown("  processor time per event: with", results.of(DRAGOMAN, "with_cpu_us"), "{:.0f} µs"),
    ]


def measure_drain(contender: Contender, run: Run) -> Sample:
    """Deliveries pile up behind a receiver that does not answer; then it does."""
    wanted = run.pace.size(50_000, 8_000)
    with serving(contender, "echo") as server, fast() as receiver:
        queued = _queue(server, receiver.url, wanted)
        cpu, took = server.cpu, receiver.cpu
        seconds = receiver.open(queued, PATIENCE)
        return {
            "per_second": queued / seconds,
            "cpu_us": (server.cpu - cpu) / queued * 1e6,
            "receiver_cpu_us": (receiver.cpu - took) / queued * 1e6,
            "deliveries": queued,
        }


def _queue(server: Server, url: str, wanted: int) -> int:
    """Have at least so many tasks done whose end is to be told there; how many."""
    ask, burst = requests.send("1.0", webhook=url), 1.0
    while (total := _tasks(server)) < wanted:
        rate = load(server.port, [ask], CALLERS, burst, 100).per_second
        burst = max(1.0, min((wanted - total) / rate - burst, 20.0))
    return total


def _tasks(server: Server) -> int:
    with Caller(server.port) as caller:
        return json.loads(caller.ask(requests.listing(pageSize=1)))["result"].get("totalSize", 0)


def rows_of_drain(results: Results) -> list[Row]:
    if not results.has(DRAGOMAN):
        return []
    what = f"{results.of(DRAGOMAN, 'deliveries'):,.0f} queued deliveries to one receiver"
    return [
        at_least(what, results.of(DRAGOMAN, "per_second"), 1_500, "{:,.0f}/s"),
        shown("  processor time each: the server's", results.of(DRAGOMAN, "cpu_us"), "{:.0f} µs"),
        shown("  processor time each: the receiver's", results.of(DRAGOMAN, "receiver_cpu_us"), "{:.0f} µs"),
    ]


HANG = Scenario(
    "hang",
    f"{STREAMS} streams, and a webhook each that hangs",
    (DRAGOMAN,),
    measure_hang,
    rows_of_hang,
)
DRAIN = Scenario(
    "drain",
    "a queue of webhooks leaves",
    (DRAGOMAN,),
    measure_drain,
    rows_of_drain,
    "per_second",
    "deliveries/s",
)
