"""Requests per second, from wrk: sending, streaming, reading."""

import os
import time
from statistics import mean

from bench import requests
from bench.contenders import CONTENDERS, Contender
from bench.load import load
from bench.places import BenchError
from bench.requests import Ask, task_of
from bench.results import Results, Row, Sample, at_least, shown
from bench.scenarios.scenario import Run, Scenario
from bench.servers import Server, home, serving
from bench.sockets import follow

SEND_CALLERS = 16
STREAM_CALLERS = 8
CHUNKS = 100
HELD_TASKS = 64
PROBE_BYTES = 32 * 1024
FEW_ANSWERS = 400
LONGEST_SECONDS = 15.0
DIGITS = 8  # by how much an answer may be shorter than another: some say how long they took

DRAGOMAN, FULL_SYNC, CEILING, PROBE = "dragoman", "dragoman FULL", "ceiling", "fsync probe"
SDK, SDK_SQLITE = "a2a-sdk memory", "a2a-sdk SQLite"
SDK_QUIET, SDK_SQLITE_QUIET, SDK_WAL = (
    "a2a-sdk memory, no tracing",
    "a2a-sdk SQLite, no tracing",
    "a2a-sdk SQLite WAL, no tracing",
)


def _loaded(server: Server, asks: list[Ask], callers: int, run: Run, shortest: int) -> Sample:
    """A short load to warm up, then the one that counts: long enough for some hundred answers anywhere."""
    warm = load(server.port, asks, callers, run.pace.warm, shortest)
    enough = run.pace.size(FEW_ANSWERS, 0) / warm.per_second
    cpu = server.cpu
    seen = load(server.port, asks, callers, min(max(run.pace.seconds, enough), LONGEST_SECONDS), shortest)
    return {
        "per_second": seen.per_second,
        "p50_ms": seen.p50_ms,
        "p99_ms": seen.p99_ms,
        "requests": seen.requests,
        # Says what a busy machine hides: how much work an answer is, whoever else had the processor meanwhile.
        "cpu_us": (server.cpu - cpu) / seen.requests * 1e6,
    }


def _remember(run: Run, key: str, contender: Contender, answer: bytes) -> None:
    """The ceiling answers dragoman's bytes; a peer's until dragoman has answered."""
    if contender.name == DRAGOMAN or key not in run.answers:
        run.answers[key] = answer


def _answer(run: Run, key: str) -> bytes:
    if key not in run.answers:
        raise BenchError("the ceiling repeats another contender's answer, and nobody answered")
    return run.answers[key]


def _send(behaviour: str, contender: Contender, run: Run) -> Sample:
    ask = requests.send(contender.dialect)
    if contender.family == "ceiling":
        answer = _answer(run, behaviour)
        with serving(contender, behaviour, answer) as server:
            return _loaded(server, [ask], SEND_CALLERS, run, len(answer))
    with serving(contender, behaviour) as server:
        answer = server.ask(ask)
        state = str(task_of(answer)["status"]).lower()
        if "completed" not in state and contender.family != "fasta2a":
            raise BenchError(f"a blocking send of {contender.name} was answered before the task had completed: {state}")
        _remember(run, behaviour, contender, answer)
        return _loaded(server, [ask], SEND_CALLERS, run, len(answer))


def measure_send(contender: Contender, run: Run) -> Sample:
    return _send("echo", contender, run)


def measure_nap(contender: Contender, run: Run) -> Sample:
    return _send("nap", contender, run)


def measure_full(contender: Contender, run: Run) -> Sample:
    return _fsyncs(run) if contender.name == PROBE else _send("echo", contender, run)


def _fsyncs(run: Run) -> Sample:
    """How often this disk takes a commit-sized write and makes it durable, on the disk where the stores are."""
    block, written = os.urandom(PROBE_BYTES), 0
    with home() as place:
        descriptor = os.open(place / "probe", os.O_CREAT | os.O_WRONLY)
        try:
            started = time.perf_counter()
            while (elapsed := time.perf_counter() - started) < run.pace.seconds:
                os.pwrite(descriptor, block, (written % 128) * PROBE_BYTES)
                os.fdatasync(descriptor)
                written += 1
        finally:
            os.close(descriptor)
    # A blocking send needs two commits, its acceptance and its end; all callers can share each of them.
    return {"syncs": written / elapsed, "per_second": SEND_CALLERS * written / elapsed / 2}


def _versus(results: Results, one: str, others: tuple[str, ...], targets: dict[str, float]) -> list[Row]:
    rows: list[Row] = []
    for other in others:
        if other != one and results.has(one, other):
            ratio = results.ratio(one, other, "per_second")
            what = f"{one} ÷ {other}"
            rows.append(at_least(what, ratio, targets[other]) if other in targets else shown(what, ratio, "{:.1f}×"))
            if other in targets:
                work = results.ratio(other, one, "cpu_us")
                rows.append(shown(f"  processor time each: {other} ÷ {one}", work, "{:.1f}×"))
    return rows


def rows_of_send(results: Results) -> list[Row]:
    rows = _versus(results, DRAGOMAN, SEND.contenders[:-1], {SDK: 12, SDK_SQLITE: 70})
    if results.has(DRAGOMAN, CEILING):
        share = results.ratio(DRAGOMAN, CEILING, "per_second")
        rows.append(at_least(f"{DRAGOMAN} ÷ ceiling", share, 0.25, "{:.0%}"))
    return rows


def rows_of_full(results: Results) -> list[Row]:
    rows: list[Row] = []
    if not results.has(FULL_SYNC, SDK):
        return rows
    ratio = results.ratio(FULL_SYNC, SDK, "per_second")
    share = results.ratio(FULL_SYNC, PROBE, "per_second") if results.has(PROBE) else 0.0
    verdict = "pass" if ratio >= 9 or share >= 0.6 else "miss"
    rows.append(Row(f"{FULL_SYNC} ÷ {SDK}", f"{ratio:.1f}×", "≥ 9.0× (or the next)", verdict))
    rows.append(Row(f"{FULL_SYNC} ÷ what the fsync probe allows", f"{share:.0%}", "≥ 60% (or the last)", verdict))
    return rows


def rows_of_nap(results: Results) -> list[Row]:
    return _versus(results, DRAGOMAN, NAP.contenders, {})


def measure_stream(contender: Contender, run: Run) -> Sample:
    ask = requests.stream(contender.dialect, f"stream {CHUNKS}")
    with serving(contender, "stream") as server:
        follow(server.port, ask)
        started = time.perf_counter()
        one = follow(server.port, ask)
        alone = time.perf_counter() - started
        if one.events < CHUNKS:
            raise BenchError(f"a stream of {CHUNKS} chunks had {one.events} events")
        # Long enough for each caller to see several streams end, also where one takes a second.
        seconds = min(max(run.pace.seconds, run.pace.size(3, 1) * STREAM_CALLERS * alone), LONGEST_SECONDS)
        load(server.port, [ask], STREAM_CALLERS, run.pace.warm, 0)
        cpu = server.cpu
        seen = load(server.port, [ask], STREAM_CALLERS, seconds, 0)
        # Bytes, not finished streams: those under way at the end count for what they delivered.
        streams = seen.octets_per_second / one.octets
        if not 0.8 * streams - STREAM_CALLERS / seconds <= seen.per_second <= 1.2 * streams:
            raise BenchError(f"streams under load were not like the one alone: {streams:.1f}/s by bytes, {seen}")
        return {
            "per_second": streams * CHUNKS,
            "octets_per_event": one.octets / one.events,
            "cpu_us": (server.cpu - cpu) / (streams * CHUNKS * seconds) * 1e6,
            "alone_ms": alone * 1000,
            "events": one.events,
        }


def rows_of_stream(results: Results) -> list[Row]:
    return _versus(results, DRAGOMAN, STREAM.contenders, {SDK: 40, SDK_SQLITE: 250})


def measure_get(contender: Contender, run: Run) -> Sample:
    if contender.family == "ceiling":
        answer = _answer(run, "get")
        with serving(contender, "echo", answer) as server:
            return _loaded(server, [requests.get("1.0", "any")], SEND_CALLERS, run, len(answer))
    with serving(contender, "echo") as server:
        ids = [str(task_of(server.ask(requests.send(contender.dialect)))["id"]) for _ in range(HELD_TASKS)]
        asks = [requests.get(contender.dialect, task_id) for task_id in ids]
        answer = server.ask(asks[0])
        task_of(answer)
        _remember(run, "get", contender, answer)
        return _loaded(server, asks, SEND_CALLERS, run, len(answer))


def rows_of_get(results: Results) -> list[Row]:
    return _versus(results, DRAGOMAN, GET.contenders, {SDK: 3.5})


def measure_dialects(contender: Contender, run: Run) -> Sample:
    """One server asked in each dialect and binding. Before or behind each comes the same load in 1.0, so that both meet
    the machine in the same mood."""
    asked = requests.DIALECTS if contender.family == "dragoman" else requests.OFFICIAL
    sample: Sample = {}
    seconds = run.pace.seconds / 4
    with serving(contender, "echo") as server:
        shortest: dict[str, int] = {}
        for dialect in asked:
            answer = server.ask(requests.send(dialect))
            if b"completed" not in answer.lower():
                raise BenchError(f"a blocking send in {dialect} was answered before the task had completed: {answer!r}")
            shortest[dialect] = len(answer) - DIGITS

        def loaded(dialect: str) -> tuple[float, float]:
            cpu = server.cpu
            one = load(server.port, [requests.send(dialect)], SEND_CALLERS, seconds, shortest[dialect])
            return one.per_second, (server.cpu - cpu) / one.requests * 1e6

        load(server.port, [requests.send("1.0")], SEND_CALLERS, run.pace.warm, shortest["1.0"])
        for dialect in asked[1:]:
            one, other = loaded("1.0"), loaded(dialect)
            other_again, one_again = loaded(dialect), loaded("1.0")
            sample[dialect] = mean((other[0], other_again[0]))
            sample[f"{dialect} share"] = sample[dialect] / mean((one[0], one_again[0]))
            sample[f"{dialect} work"] = mean((other[1], other_again[1])) / mean((one[1], one_again[1]))
    return sample


def rows_of_dialects(results: Results) -> list[Row]:
    rows: list[Row] = []
    names = {"0.3": "0.3 JSON-RPC", "1.0-http": "1.0 HTTP+JSON", "0.3-http": "0.3 HTTP+JSON"}
    for contender in DIALECTS.contenders:
        if results.has(contender):
            ours = contender == DRAGOMAN
            for dialect in requests.DIALECTS[1:] if ours else requests.OFFICIAL[1:]:
                share = results.of(contender, f"{dialect} share")
                what = f"{contender}: {names.get(dialect, dialect)} ÷ 1.0 JSON-RPC"
                rows.append(at_least(what, share, 0.85, "{:.0%}") if ours else shown(what, share, "{:.0%}"))
                if ours:
                    work = results.of(contender, f"{dialect} work")
                    rows.append(shown("  processor time each, of 1.0 JSON-RPC's", work, "{:.0%}"))
    return rows


_PEERS = (SDK, SDK_QUIET, SDK_SQLITE, SDK_SQLITE_QUIET, SDK_WAL, "fasta2a", "a2akit")
SEND = Scenario(
    "send",
    f"blocking send, {SEND_CALLERS} callers, JSON-RPC 1.0",
    (DRAGOMAN, "dragoman memory", *_PEERS, CEILING),
    measure_send,
    rows_of_send,
    "per_second",
    "sends/s",
)
FULL = Scenario(
    "full",
    f"blocking send with synchronous=FULL, {SEND_CALLERS} callers",
    (FULL_SYNC, SDK, PROBE),
    measure_full,
    rows_of_full,
    "per_second",
    "sends/s",
)
NAP = Scenario(
    "nap",
    f"blocking send to an agent that awaits 1 ms, {SEND_CALLERS} callers",
    (DRAGOMAN, SDK, SDK_SQLITE, "a2akit"),
    measure_nap,
    rows_of_nap,
    "per_second",
    "sends/s",
)
STREAM = Scenario(
    "stream",
    f"stream of {CHUNKS} chunks, {STREAM_CALLERS} callers",
    (DRAGOMAN, "dragoman memory", *_PEERS),
    measure_stream,
    rows_of_stream,
    "per_second",
    "chunks/s",
)
GET = Scenario(
    "get",
    f"GetTask, {SEND_CALLERS} callers, {HELD_TASKS} tasks",
    (DRAGOMAN, SDK, SDK_QUIET, SDK_SQLITE, "fasta2a", "a2akit", CEILING),
    measure_get,
    rows_of_get,
    "per_second",
    "gets/s",
)
DIALECTS = Scenario(
    "dialects",
    f"blocking send in each dialect and binding, {SEND_CALLERS} callers",
    (DRAGOMAN, SDK),
    measure_dialects,
    rows_of_dialects,
)
assert all(name in CONTENDERS for scenario in (SEND, FULL, NAP, STREAM, GET) for name in scenario.contenders)
