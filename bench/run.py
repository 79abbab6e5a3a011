"""The bench's command: which scenarios, at what pace, in interleaved rounds; then the table, the chart and the JSON."""

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import time
from pathlib import Path

from bench.chart import draw
from bench.contenders import CONTENDERS
from bench.environments import interpreter, load_generator
from bench.places import OUT, ROOT, BenchError
from bench.results import Results
from bench.scenarios import ALL, SCENARIOS
from bench.scenarios.scenario import Pace, Run, Scenario
from bench.table import render

OPEN_FILES = 8192


def main(arguments: list[str] | None = None) -> int:
    options = _options(arguments)
    scenarios = _chosen(options.only)
    rounds = options.rounds or (1 if options.quick else 3)
    pace = Pace(quick=options.quick, rounds=rounds, seconds=options.seconds or (2 if options.quick else 4), warm=1)
    try:
        load_generator()
        _raise_open_files()
        wanted = {name for scenario in scenarios for name in _taking_part(scenario, options.contenders)}
        for family in sorted({CONTENDERS[name].family for name in wanted} - {"probe"}):
            interpreter(family)
    except BenchError as error:
        print(f"bench: {error}", file=sys.stderr)
        return 2
    run, started = Run(pace), time.time()
    measured = [(scenario, _measure(scenario, run, options.contenders)) for scenario in scenarios]
    about = _about(pace, started)
    OUT.mkdir(exist_ok=True)
    text = render(about, measured)
    print(text)
    (OUT / "table.txt").write_text(text)
    (OUT / "chart.svg").write_text(draw(about, measured))
    (OUT / "result.json").write_text(json.dumps(_record(about, measured), indent=2))
    print(f"\nchart: {(OUT / 'chart.svg').relative_to(ROOT)}   figures: {(OUT / 'result.json').relative_to(ROOT)}")
    missed = any(row.verdict == "miss" for scenario, results in measured for row in scenario.rows(results))
    absent = any(not results.samples for _, results in measured)
    return 1 if options.strict and (missed or absent) else 0


def _options(arguments: list[str] | None) -> argparse.Namespace:
    names = ", ".join(SCENARIOS)
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__, epilog=f"scenarios: {names}")
    parser.add_argument("--only", default="", help="scenarios, separated by commas (default: all)")
    parser.add_argument("--contenders", default="", help="only those whose name begins so, separated by commas")
    parser.add_argument("--quick", action="store_true", help="one short round and smaller sizes: a look, not a result")
    parser.add_argument("--rounds", type=int, default=0, help="interleaved rounds (default 3)")
    parser.add_argument("--seconds", type=float, default=0, help="seconds of each load (default 4)")
    parser.add_argument("--strict", action="store_true", help="end with 1 when a target is missed")
    return parser.parse_args(arguments)


def _chosen(only: str) -> list[Scenario]:
    if not only:
        return list(ALL)
    names = only.split(",")
    unknown = [name for name in names if name not in SCENARIOS]
    if unknown:
        raise SystemExit(f"bench: no scenario {', '.join(unknown)}. There are: {', '.join(SCENARIOS)}")
    return [SCENARIOS[name] for name in names]


def _taking_part(scenario: Scenario, prefixes: str) -> list[str]:
    wanted = tuple(prefixes.split(",")) if prefixes else ("",)
    return [name for name in scenario.contenders if name.startswith(wanted)]


def _measure(scenario: Scenario, run: Run, prefixes: str) -> Results:
    """Round after round, every contender once in each, one server alive at a time. Who fails is left out, and said."""
    results = Results()
    rounds = 1 if scenario.once else run.pace.rounds
    for number in range(rounds):
        for name in _taking_part(scenario, prefixes):
            if name in results.failures:
                continue
            print(f"{scenario.name}: {name} ({number + 1}/{rounds})", file=sys.stderr, end=" ", flush=True)
            started = time.perf_counter()
            try:
                sample = scenario.measure(CONTENDERS[name], run)
                results.add(name, sample)
                said = "  ".join(f"{key} {value:,.4g}" for key, value in sample.items())
                print(f"{said}  [{time.perf_counter() - started:.0f} s]", file=sys.stderr, flush=True)
            except (BenchError, OSError, ValueError, KeyError, LookupError) as error:
                results.failures[name] = str(error) if isinstance(error, BenchError) else repr(error)
                print(f"FAILED: {results.failures[name]}", file=sys.stderr, flush=True)
    for name in results.failures:
        results.samples.pop(name, None)
    return results


def _raise_open_files() -> None:
    """A thousand streams need a thousand sockets here and as many in the server, which inherits the limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = OPEN_FILES if hard == resource.RLIM_INFINITY else min(OPEN_FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _about(pace: Pace, started: float) -> dict[str, object]:
    processor = next(
        (line.partition(":")[2].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")), "unknown"
    )
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, check=False, capture_output=True, text=True
    ).stdout.strip()
    return {
        "started": time.strftime("%Y-%m-%d %H:%M", time.gmtime(started)) + " UTC",
        "seconds": round(time.time() - started),
        "commit": commit or "none",
        "python": platform.python_version(),
        "machine": f"{os.cpu_count()} × {processor}, {platform.system()} {platform.release()}",
        "load_average": os.getloadavg()[0],
        "quick": pace.quick,
        "rounds": pace.rounds,
    }


def _lines(path: str) -> list[str]:
    return Path(path).read_text().splitlines() if Path(path).exists() else []


def _record(about: dict[str, object], measured: list[tuple[Scenario, Results]]) -> dict[str, object]:
    return {
        "about": about,
        "scenarios": [
            {
                "name": scenario.name,
                "title": scenario.title,
                "samples": results.samples,
                "failures": results.failures,
                "rows": [
                    {"what": row.what, "value": row.value, "target": row.target, "verdict": row.verdict}
                    for row in scenario.rows(results)
                ],
            }
            for scenario, results in measured
        ],
    }
