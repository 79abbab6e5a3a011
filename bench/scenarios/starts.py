"""Small times and small memory: the first event of a stream, a server's start, an import, an idle process."""

import os
import subprocess
import time
from statistics import median, quantiles

from bench import requests
from bench.contenders import Contender
from bench.environments import interpreter
from bench.places import BenchError
from bench.results import Results, Row, Sample, at_most, shown
from bench.scenarios.scenario import Run, Scenario
from bench.servers import serving
from bench.sockets import Follower, connect

DRAGOMAN, SDK = "dragoman", "a2a-sdk memory"
MIB = 1024 * 1024
SETTLE_SECONDS = 0.5


def measure_first(contender: Contender, run: Run) -> Sample:
    """One caller on one connection. From the request's last byte to the first event; each stream is read to its end."""
    question = requests.stream(contender.dialect, "stream 3")
    times: list[float] = []
    with serving(contender, "stream") as server, connect(server.port) as connection:
        request = question.wire(server.port)
        for number in range(run.pace.size(330, 130)):
            follower = Follower(connection)
            started = time.perf_counter()
            connection.sendall(request)
            while not follower.done:
                follower.feed()
            if not follower.events:
                raise BenchError("a stream ended without an event")
            if number >= 30:
                times.append((follower.first_event - started) * 1000)
    return {"p50_ms": median(times), "p99_ms": quantiles(times, n=100)[98]}


def rows_of_first(results: Results) -> list[Row]:
    rows: list[Row] = []
    for other in FIRST.contenders[1:]:
        if results.has(DRAGOMAN, other):
            ratio, what = results.ratio(DRAGOMAN, other, "p50_ms"), f"{DRAGOMAN} ÷ {other}, p50"
            rows.append(at_most(what, ratio, 0.3, "{:.2f}×") if other == SDK else shown(what, ratio, "{:.2f}×"))
    return rows


def measure_start(contender: Contender, run: Run) -> Sample:
    repeats = run.pace.size(3, 2)
    cards: list[float] = []
    resident: list[int] = []
    for _ in range(repeats):
        with serving(contender, "echo", b"{}" if contender.family == "ceiling" else None) as server:
            cards.append(server.seconds_to_card)
            time.sleep(SETTLE_SECONDS)
            resident.append(server.rss)
    return {
        "card_seconds": median(cards),
        "rss_mib": median(resident) / MIB,
        "import_seconds": median(_imported(contender) for _ in range(2 * repeats)),
    }


def _imported(contender: Contender) -> float:
    """Seconds an import takes in a fresh interpreter whose compiled files are there already."""
    code = f"import time; t = time.perf_counter(); import {contender.modules}; print(time.perf_counter() - t)"
    done = subprocess.run(
        [str(interpreter(contender.family)), "-c", code],
        env={**os.environ, **contender.variables()},
        check=False,
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise BenchError(f"`import {contender.modules}` failed: {done.stderr.strip().splitlines()[-1:]}")
    return float(done.stdout)


def rows_of_start(results: Results) -> list[Row]:
    rows: list[Row] = []
    for contender in START.contenders:
        if results.has(contender):
            rss, card, imported = (results.of(contender, m) for m in ("rss_mib", "card_seconds", "import_seconds"))
            named = [f"{contender}: {what}" for what in ("idle RSS", "start to card served", "import")]
            if contender == DRAGOMAN:
                rows += [
                    at_most(named[0], rss, 45, "{:.0f} MiB"),
                    at_most(named[1], card, 0.25, "{:.2f} s"),
                    at_most(named[2], imported, 0.12, "{:.3f} s"),
                ]
            else:
                rows += [
                    shown(named[0], rss, "{:.0f} MiB"),
                    shown(named[1], card, "{:.2f} s"),
                    shown(named[2], imported, "{:.3f} s"),
                ]
    return rows


FIRST = Scenario(
    "first",
    "time to the first event of a stream, one caller",
    (DRAGOMAN, SDK, "a2a-sdk memory, no tracing", "a2a-sdk SQLite", "fasta2a", "a2akit"),
    measure_first,
    rows_of_first,
    "p50_ms",
    "ms (p50)",
)
START = Scenario(
    "start",
    "idle memory, start to card served, import",
    (DRAGOMAN, SDK, "fasta2a", "a2akit", "ceiling"),
    measure_start,
    rows_of_start,
    "card_seconds",
    "s to the card",
)
