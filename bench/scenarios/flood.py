"""One caller sends as fast as it can, another now and then: how long does the other one wait?

Both log in. Quiet spells and floods take turns on one server, and each spell's waits go to its kind, so that whatever
else happens on the machine meanwhile happens to both.
"""

import contextlib
import hashlib
import subprocess
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from bench import requests
from bench.contenders import Contender
from bench.environments import load_generator
from bench.places import LOAD, BenchError
from bench.requests import Ask
from bench.results import Results, Row, Sample, at_most, shown
from bench.scenarios.scenario import Run, Scenario
from bench.servers import home, serving
from bench.sockets import Caller

DRAGOMAN = "dragoman"
FLOODING, OTHER = "flooding", "other"
CONNECTIONS = 256
EVERY_SECONDS = 0.02  # the other one sends
SPELL_SECONDS = 2.0
SETTLE_SECONDS = 0.5  # after a flood began or ended
HOUR = 3_600


def measure(contender: Contender, run: Run) -> Sample:
    spells = run.pace.size(8, 4)
    with home() as place:
        callers = place / "callers.toml"
        callers.write_text("".join(f'[{name}]\ntoken = "{_hash(name)}"\n' for name in (FLOODING, OTHER)))
        settings = {"DRAGOMAN_AUTH_CALLERS": str(callers), "DRAGOMAN_LIMIT_RATE_LOOPBACK": "true"}
        with serving(replace(contender, environment=contender.environment | settings), "echo") as server:
            quiet: list[float] = []
            flooded: list[float] = []
            with Caller(server.port) as other:
                _spell(other)
                for _ in range(spells):
                    quiet += _spell(other)
                    with _flood(server.port):
                        time.sleep(SETTLE_SECONDS)
                        flooded += _spell(other)
                    time.sleep(SETTLE_SECONDS)
    return {
        "quiet_p50_ms": _percentile(quiet, 50),
        "quiet_p99_ms": _percentile(quiet, 99),
        "p50_ms": _percentile(flooded, 50),
        "p99_ms": _percentile(flooded, 99),
        "times_quiet": _percentile(flooded, 99) / _percentile(quiet, 99),
    }


def _spell(other: Caller) -> list[float]:
    """What the other one waits for each answer, in milliseconds. It keeps its pace also when an answer was late."""
    ask = _as(OTHER)
    waits: list[float] = []
    due = time.perf_counter()
    end = due + SPELL_SECONDS
    while due < end:
        time.sleep(max(0.0, due - time.perf_counter()))
        began = time.perf_counter()
        other.ask(ask)
        waits.append((time.perf_counter() - began) * 1_000)
        due = max(due + EVERY_SECONDS, began)
    return waits


@contextmanager
def _flood(port: int) -> Generator[None]:
    """Sends from many connections, each its next request when the last is answered, until the block ends."""
    ask = _as(FLOODING)
    with tempfile.TemporaryDirectory() as place:
        headers, lines = Path(place, "headers"), Path(place, "requests")
        headers.write_text("".join(f"{name}: {value}\n" for name, value in ask.headers))
        lines.write_text(ask.line() + "\n")
        command = [
            load_generator(), "-t1", f"-c{CONNECTIONS}", f"-d{HOUR}s", "--timeout", "30s",
            "-s", str(LOAD), f"http://127.0.0.1:{port}", "--", str(headers), str(lines),
        ]  # fmt: skip
        flood = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            yield
            if flood.poll() is not None:
                raise BenchError("the flood ended by itself")
        finally:
            with contextlib.suppress(ProcessLookupError):
                flood.kill()
            flood.wait()


def _as(name: str) -> Ask:
    ask = requests.send("1.0")
    return replace(ask, headers=(*ask.headers, ("Authorization", f"Bearer {name}")))


def _hash(token: str) -> str:
    return f"sha256:{hashlib.sha256(token.encode()).hexdigest()}"


def _percentile(values: list[float], percent: int) -> float:
    ranked = sorted(values)
    return ranked[min(len(ranked) - 1, len(ranked) * percent // 100)]


def rows(results: Results) -> list[Row]:
    if not results.has(DRAGOMAN):
        return []
    times, quiet = results.of(DRAGOMAN, "times_quiet"), results.of(DRAGOMAN, "quiet_p99_ms")
    return [
        at_most("another caller's p99 ÷ its p99 without the flood", times, 2, "{:.2f}×"),
        shown("another caller's p99 without the flood", quiet, "{:.1f} ms"),
        shown("another caller's p99 during the flood", results.of(DRAGOMAN, "p99_ms"), "{:.1f} ms"),
    ]


FLOOD = Scenario(
    "flood",
    f"Two callers: one sends from {CONNECTIONS} connections as fast as it can, the other every "
    f"{EVERY_SECONDS * 1000:.0f} ms",
    (DRAGOMAN,),
    measure,
    rows,
    "p99_ms",
    "ms p99 of the other",
)
