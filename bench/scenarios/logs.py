"""Long logs and many tasks: replay, the first page of a list, and an artifact that grows."""

import json
import time
from pathlib import Path
from statistics import median

from bench import requests
from bench.contenders import Contender
from bench.load import load
from bench.places import BenchError
from bench.results import Results, Row, Sample, at_least, at_most, shown
from bench.scenarios.scenario import Run, Scenario
from bench.servers import Server, serving
from bench.sockets import Caller, begin, follow

DRAGOMAN, SDK = "dragoman", "a2a-sdk memory"
MIB = 1024 * 1024
FLAT_MIB = 8
FEW_TASKS = 100
BURST_SECONDS = 20.0
PATIENCE = 180.0


def measure_replay(contender: Contender, run: Run) -> Sample:
    events = run.pace.size(100_000, 20_000)
    with serving(contender, "stream") as server:
        cursor, first = begin(server.port, requests.stream("1.0", f"stream {events}"))
        task_id = str(json.loads(first)["result"]["task"]["id"])
        _await_end(server)
        ask, extra = requests.subscribe(task_id), (("Last-Event-ID", cursor),)
        rates: list[float] = []
        grown: list[float] = []
        for _ in range(4):
            before = server.rss
            _forget_peak(server)
            started = time.perf_counter()
            replay = follow(server.port, ask, extra)
            rates.append(replay.events / (time.perf_counter() - started))
            grown.append((server.peak - before) / MIB)
            if replay.events < events:
                raise BenchError(f"the replay of {events} events had {replay.events}")
    # The first replay fills caches of fixed size; flat means the later ones need no more than it did.
    return {"per_second": median(rates), "first_growth_mib": grown[0], "growth_mib": max(grown[1:]), "events": events}


def _forget_peak(server: Server) -> None:
    Path(f"/proc/{server.process.pid}/clear_refs").write_text("5")


def _await_end(server: Server) -> None:
    """Wait until the newest task has ended, without reading its artifact."""
    deadline = time.perf_counter() + PATIENCE
    while time.perf_counter() < deadline:
        task = json.loads(server.ask(requests.listing(pageSize=1)))["result"]["tasks"][0]
        if task["status"]["state"] == "TASK_STATE_COMPLETED":
            return
        time.sleep(0.2)
    raise BenchError(f"the task was not done within {PATIENCE:.0f} s")


def rows_of_replay(results: Results) -> list[Row]:
    if not results.has(DRAGOMAN):
        return []
    what = f"{DRAGOMAN}: replay of {results.of(DRAGOMAN, 'events'):,.0f} events"
    return [
        at_least(what, results.of(DRAGOMAN, "per_second"), 300_000, "{:,.0f}/s"),
        at_most(f"{DRAGOMAN}: memory another replay adds", results.of(DRAGOMAN, "growth_mib"), FLAT_MIB, "{:.1f} MiB"),
        shown(f"{DRAGOMAN}: memory the first replay adds", results.of(DRAGOMAN, "first_growth_mib"), "{:.1f} MiB"),
    ]


def measure_list(contender: Contender, run: Run) -> Sample:
    many = run.pace.size(100_000, 3_000)
    with serving(contender, "echo") as server:
        _fill(server, FEW_TASKS)
        few_ms = _first_page(server)
        total = _fill(server, many)
        return {"few_ms": few_ms, "many_ms": _first_page(server), "tasks": total}


def _fill(server: Server, wanted: int) -> int:
    """Make tasks by real requests until there are as many as wanted; answers how many there are."""
    ask, rate, burst = requests.send("1.0"), 100.0, 1.0  # the first burst tells how fast they come
    while (total := _total(server)) < wanted:
        missing = wanted - total
        if missing < rate:
            with Caller(server.port) as caller:
                for _ in range(missing):
                    caller.ask(ask)
        else:
            rate = load(server.port, [ask], 16, burst, 100).per_second
            burst = min((wanted - total) / rate - burst, BURST_SECONDS)
    return total


def _total(server: Server) -> int:
    return json.loads(server.ask(requests.listing(pageSize=1)))["result"].get("totalSize", 0)


def _first_page(server: Server) -> float:
    """Median milliseconds of a first page as it comes (50 tasks), one caller."""
    times: list[float] = []
    ask = requests.listing()
    with Caller(server.port) as caller:
        if len(json.loads(caller.ask(ask))["result"]["tasks"]) != 50:
            raise BenchError("a first page did not have 50 tasks")
        deadline = time.perf_counter() + 3.0
        while len(times) < 300 and (len(times) < 10 or time.perf_counter() < deadline):
            started = time.perf_counter()
            caller.ask(ask)
            times.append((time.perf_counter() - started) * 1000)
    return median(times)


def rows_of_list(results: Results) -> list[Row]:
    rows: list[Row] = []
    for contender in LIST.contenders:
        if results.has(contender):
            few, many = results.of(contender, "few_ms"), results.of(contender, "many_ms")
            tasks = f"{results.of(contender, 'tasks'):,.0f}"
            rows.append(shown(f"{contender}: first page with {tasks} tasks", many, "{:.2f} ms"))
            what = f"{contender}: {tasks} ÷ {FEW_TASKS} tasks"
            rows.append(at_most(what, many / few, 2) if contender == DRAGOMAN else shown(what, many / few, "{:.1f}×"))
    if results.has(DRAGOMAN, SDK):
        ratio = results.of(DRAGOMAN, "many_ms") / results.of(SDK, "many_ms")
        rows.append(at_most(f"{DRAGOMAN} ÷ {SDK}", ratio, 1 / 40, "{:.4f}×"))
    return rows


def measure_blob(contender: Contender, run: Run) -> Sample:
    """Chunks of 1 KiB into one artifact: how fast the last fifth of the events came beside the first fifth."""
    chunks = run.pace.size(10_240, 4_096) if contender.family == "dragoman" else run.pace.size(1_024, 512)
    shares: list[float] = []
    rates: list[float] = []
    with serving(contender, "blob") as server:
        follow(server.port, requests.stream(contender.dialect, "blob 64"))
        for _ in range(3):
            followed = follow(server.port, requests.stream(contender.dialect, f"blob {chunks}"), marks=True)
            if followed.events < chunks:
                raise BenchError(f"an artifact of {chunks} chunks had {followed.events} events")
            marks = followed.marks or []
            start, end = _pace(marks, 0, chunks // 5), _pace(marks, chunks - chunks // 5, chunks)
            shares.append(end / start)
            rates.append(_pace(marks, 0, chunks))
    return {"end_share": median(shares), "per_second": median(rates), "chunks": chunks}


def _pace(marks: list[tuple[float, int]], low: int, high: int) -> float:
    """Events per second between the read that first reached `low` events and the one that first reached `high`."""
    one = next(mark for mark in marks if mark[1] >= max(low, 1))
    other = next(mark for mark in marks if mark[1] >= high)
    return (other[1] - one[1]) / max(other[0] - one[0], 1e-9)


def rows_of_blob(results: Results) -> list[Row]:
    rows: list[Row] = []
    for contender in BLOB.contenders:
        if results.has(contender):
            share, chunks = results.of(contender, "end_share"), results.of(contender, "chunks")
            what = f"{contender}: pace at the end of {chunks / 1024:.1f} MiB ÷ at the start"
            rows.append(at_least(what, share, 0.9, "{:.0%}") if contender == DRAGOMAN else shown(what, share, "{:.0%}"))
    return rows


REPLAY = Scenario(
    "replay",
    "replay of a long log to one subscriber",
    (DRAGOMAN,),
    measure_replay,
    rows_of_replay,
    "per_second",
    "events/s",
)
LIST = Scenario(
    "list",
    "first page of ListTasks, few tasks and many",
    (DRAGOMAN, SDK),
    measure_list,
    rows_of_list,
    "many_ms",
    "ms with many tasks",
    once=True,
)
BLOB = Scenario(
    "blob",
    "an artifact in chunks of 1 KiB (10 MiB; a2a-sdk 1 MiB)",
    (DRAGOMAN, SDK, "a2akit"),
    measure_blob,
    rows_of_blob,
    "per_second",
    "chunks/s",
)
