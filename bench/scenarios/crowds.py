"""A thousand streams: idle (what each costs in memory), and with an event every 50 ms (what each event costs)."""

import time

from bench import requests
from bench.agents.workload import TICK_SECONDS
from bench.contenders import Contender
from bench.places import BenchError
from bench.results import Results, Row, Sample, at_most, shown
from bench.scenarios.scenario import Run, Scenario
from bench.servers import serving
from bench.sockets import Crowd

DRAGOMAN, SDK = "dragoman", "a2a-sdk memory"
STREAMS = 1000
WARM_STREAMS = 20
SETTLE_SECONDS = 1.0
PATIENCE = 120.0


def measure_idle(contender: Contender, run: Run) -> Sample:
    question = requests.stream(contender.dialect, "idle")
    with serving(contender, "idle") as server:
        with Crowd(server.port, WARM_STREAMS) as warm:
            warm.start(question)
            warm.until_first(PATIENCE)
            time.sleep(SETTLE_SECONDS)
            before = server.rss
            with Crowd(server.port, STREAMS) as crowd:
                crowd.start(question)
                crowd.until_first(PATIENCE)
                time.sleep(SETTLE_SECONDS)
                after = server.rss
        return {"kib_per_stream": (after - before) / 1024 / STREAMS, "rss_mib": after / 1024 / 1024}


def rows_of_idle(results: Results) -> list[Row]:
    rows: list[Row] = []
    for contender in IDLE.contenders:
        if results.has(contender):
            each, what = results.of(contender, "kib_per_stream"), f"{contender}: memory per open idle stream"
            ours = contender == DRAGOMAN
            rows.append(at_most(what, each, 22, "{:.1f} KiB") if ours else shown(what, each, "{:.1f} KiB"))
    return rows


def measure_tick(contender: Contender, run: Run) -> Sample:
    ticks = run.pace.size(60, 30)
    question = requests.stream(contender.dialect, f"tick {ticks}")
    with serving(contender, "tick") as server:
        with Crowd(server.port, WARM_STREAMS) as warm:
            warm.start(requests.stream(contender.dialect, "tick 2"))
            warm.until_done(PATIENCE)
        with Crowd(server.port, STREAMS) as crowd:
            cpu, started = server.cpu, time.perf_counter()
            crowd.start(question)
            crowd.until_done(PATIENCE)
            wall, cpu = time.perf_counter() - started, server.cpu - cpu
            if crowd.events < STREAMS * ticks:
                raise BenchError(f"{STREAMS} streams of {ticks} chunks had {crowd.events} events in all")
    return {
        "times_ideal": wall / (ticks * TICK_SECONDS),
        "cpu_us_per_event": cpu / (STREAMS * ticks) * 1e6,
        "wall_seconds": wall,
    }


def rows_of_tick(results: Results) -> list[Row]:
    rows: list[Row] = []
    for contender in TICK.contenders:
        if results.has(contender):
            wall, cpu = results.of(contender, "times_ideal"), results.of(contender, "cpu_us_per_event")
            named = (f"{contender}: wall ÷ ideal", f"{contender}: CPU per event")
            if contender == DRAGOMAN:
                rows += [at_most(named[0], wall, 1.25, "{:.2f}×"), at_most(named[1], cpu, 60, "{:.0f} µs")]
            else:
                rows += [shown(named[0], wall, "{:.2f}×"), shown(named[1], cpu, "{:.0f} µs")]
    return rows


# fasta2a runs one task at a time: a thousand at once would take their sum.
IDLE = Scenario(
    "idle",
    f"{STREAMS:,} open idle streams",
    (DRAGOMAN, SDK, "a2akit"),
    measure_idle,
    rows_of_idle,
    "kib_per_stream",
    "KiB per stream",
)
TICK = Scenario(
    "tick",
    f"{STREAMS:,} streams at once, each an event every {TICK_SECONDS * 1000:.0f} ms",
    (DRAGOMAN, SDK, "a2a-sdk memory, no tracing", "a2akit"),
    measure_tick,
    rows_of_tick,
    "cpu_us_per_event",
    "µs CPU per event",
)
