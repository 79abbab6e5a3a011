"""Load from wrk: one thread, N callers, each sending its next request when the last is answered."""

import json
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.environments import load_generator
from bench.places import LOAD, BenchError
from bench.requests import Ask


@dataclass(frozen=True)
class Load:
    per_second: float
    requests: int
    octets_per_second: float
    p50_ms: float
    p99_ms: float


def load(port: int, asks: Sequence[Ask], callers: int, seconds: float, at_least: int) -> Load:
    """`at_least`: the bytes one good answer cannot be shorter than. An error that comes with status 200 is shorter.
    0: anything goes, also no finished answer."""
    with tempfile.TemporaryDirectory() as place:
        headers, lines = Path(place, "headers"), Path(place, "requests")
        headers.write_text("".join(f"{name}: {value}\n" for name, value in asks[0].headers))
        lines.write_text("".join(ask.line() + "\n" for ask in asks))
        # wrk counts whole seconds and more than one of them.
        command = [
            load_generator(), "-t1", f"-c{callers}", f"-d{max(1, round(seconds))}s", "--timeout", "30s",
            "-s", str(LOAD), f"http://127.0.0.1:{port}", "--", str(headers), str(lines),
        ]  # fmt: skip
        done = subprocess.run(command, check=False, capture_output=True, text=True)
    report = next((line for line in done.stdout.splitlines() if line.startswith("BENCH ")), None)
    if report is None:
        raise BenchError(f"wrk did not report: {(done.stderr or done.stdout).strip()[:300]}")
    seen = json.loads(report.removeprefix("BENCH "))
    if at_least and not seen["requests"]:
        raise BenchError("wrk got no answer at all")
    octets, seconds = seen["bytes"] / max(seen["requests"], 1), seen["microseconds"] / 1e6
    bad = {kind: seen[kind] for kind in ("connect", "read", "write", "status", "timeout") if seen[kind]}
    if bad or octets < at_least:
        expected = f"{octets:.0f} bytes each, expected {at_least} or more"
        raise BenchError(f"{seen['requests']} answers of {expected}; errors: {bad or 'none'}")
    return Load(
        per_second=seen["requests"] / seconds,
        requests=seen["requests"],
        octets_per_second=seen["bytes"] / seconds,
        p50_ms=seen["p50"] / 1000,
        p99_ms=seen["p99"] / 1000,
    )
