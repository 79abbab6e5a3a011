"""Run the official test kit against Dragoman: starts the servers, runs every suite, one summary line per run.

    python conformance/run.py CHECKOUT... [--only full,min,ext|mandatory,capabilities,…] [-k EXPRESSION]

CHECKOUT is a checkout of a2aproject/a2a-tck: branch 1.0-dev (protocol 1.0) or 0.3.x (protocol 0.3); the flavour is
seen from its files. Ends with 0 when nothing failed but what `known_*.txt` lists; logs and reports stay in build/tck/.
"""

import argparse
import os
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
HERE = ROOT / "conformance"
sys.path.insert(0, str(ROOT))

from tests import environments, serving  # noqa: E402 (needs the path above)

PATIENCE = 900  # seconds one run of the kit may take
TARGET = "examples/conformance.py"
COMMON = ["-q", "--tb=short", "-rfE", "-p", "no:cacheprovider", "-o", "junit_family=xunit1"]
OUTCOMES = ("passed", "failed", "skipped", "xfailed", "known")


# Both kits take webhooks in on this machine, and register hosts whose names need not lead anywhere where they run.
WEBHOOKS = {"DRAGOMAN_PUSH_ALLOW_LOOPBACK": "true", "DRAGOMAN_PUSH_ALLOWED_HOSTS": "example.com"}

# What the kits need beside an agent made for them.
SETTINGS = {
    # The kit reads the card of a server for both versions against a schema that knows 1.0 only, and cannot log in.
    "1.0": {"DRAGOMAN_CARD_VERSIONS": "1.0", "DRAGOMAN_OPEN_EXTENDED_CARD": "true"} | WEBHOOKS,
    # A send that does not ask to wait is expected back while the task still works.
    "0.3": {"DRAGOMAN_LIMIT_HOLD": "0.5s"} | WEBHOOKS,
}


# A token nobody tells the kit, which has no way to be told one: it looks whether it is turned away.
LOCKED = ("A2A_AUTH_TOKEN", "nobody-tells-the-kit")


class Run(NamedTuple):
    """One run of the kit: which server it needs, and what to tell pytest."""

    name: str
    agent: str
    arguments: tuple[str, ...]
    expression: str = ""
    env: tuple[tuple[str, str], ...] = ()


class Flavour(NamedTuple):
    version: str
    runs: tuple[Run, ...]

    def command(self, run: Run, base: str) -> list[str]:
        if self.version == "1.0":
            return [f"--sut-host={base}", *run.arguments]
        # 0.3 wants the JSON-RPC endpoint itself, path included.
        return [f"--sut-url={base}/", "--test-scope=all", *run.arguments]


def v10() -> Flavour:
    arguments = ("tests/compatibility", "--transport=jsonrpc,http_json")
    return Flavour(
        "1.0",
        (
            Run("full", "full", arguments),
            Run("min", "minimal", arguments),
            # No other request of the kit names the extension, so everything else would fail by design.
            Run("ext", "extension", arguments, "extension"),
        ),
    )


def v03() -> Flavour:
    def runs(transport: str) -> Iterator[Run]:
        chosen = f"--transports={transport}"
        if transport == "jsonrpc":
            mandatory = ("tests/mandatory", "-m", "mandatory_jsonrpc or mandatory_protocol")
        else:
            mandatory = ("tests/mandatory/protocol", "-m", "mandatory_protocol")
        yield Run(f"mandatory {transport}", "full", (*mandatory, chosen))
        for category in ("capabilities", "quality", "features"):
            yield Run(f"{category} {transport}", "full", (f"tests/optional/{category}", chosen))

    both = ("tests/optional/multi_transport", "-m", "transport_equivalence", "--transports=jsonrpc,rest")
    optional = "tests/optional/capabilities"
    locked = (
        "tests/mandatory/authentication",
        f"{optional}/test_authentication.py",
        f"{optional}/test_a2a_v030_authentication.py",
        "--transports=jsonrpc",
    )
    return Flavour(
        "0.3",
        (
            *runs("jsonrpc"),
            *runs("rest"),
            Run("equivalence", "full", both),
            Run("authentication", "full", locked, env=(LOCKED,)),
        ),
    )


def flavour(checkout: Path) -> Flavour:
    if (checkout / "tests" / "compatibility").is_dir():
        return v10()
    if (checkout / "tests" / "mandatory").is_dir():
        return v03()
    raise SystemExit(f"{checkout} is no checkout of a2aproject/a2a-tck (branch 1.0-dev or 0.3.x)")


class Known:
    """The tests that cannot pass, each with its reason; and which of them failed or passed meanwhile."""

    def __init__(self, path: Path) -> None:
        lines = (line.split("  #")[0].strip() for line in path.read_text().splitlines())
        self._ids = {line for line in lines if line and not line.startswith("#")}
        self._failed: set[str] = set()
        self._passed: set[str] = set()

    def excuses(self, names: set[str]) -> bool:
        found = names & self._ids
        self._failed |= found
        return bool(found)

    def saw_pass(self, names: set[str]) -> None:
        self._passed |= names & self._ids

    @property
    def needless(self) -> list[str]:
        """Entries whose test passed wherever it ran: take them off the list."""
        return sorted(self._passed - self._failed)


def perform(
    checkout: Path, version: str, run: Run, command: list[str], expression: str, python: Path
) -> tuple[Path, float]:
    out = ROOT / "build" / "tck" / version / run.name.replace(" ", "-")
    out.mkdir(parents=True, exist_ok=True)
    report = out / "junit.xml"
    report.unlink(missing_ok=True)
    chosen = " and ".join(f"({each})" for each in (run.expression, expression) if each)
    arguments = [
        str(python),
        "-m",
        "pytest",
        *command,
        *COMMON,
        f"--junitxml={report}",
        *(("-k", chosen) if chosen else ()),
    ]
    if version == "1.0":
        arguments.append(f"--compatibility-report={out / 'compatibility'}")
    started = time.monotonic()
    with (out / "log.txt").open("wb") as log:
        done = subprocess.run(
            arguments,
            cwd=checkout,
            env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1"},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            timeout=PATIENCE,
            check=False,
        )
    if done.returncode not in (0, 1) or not report.exists():
        raise SystemExit(
            f"{version} {run.name}: the kit itself broke (pytest ended with {done.returncode}), see {log.name}"
        )
    return report, time.monotonic() - started


def judge(report: Path, known: Known) -> tuple[Counter[str], list[str]]:
    """How the tests ended, and the ones that failed and may not."""
    count: Counter[str] = Counter()
    failures: list[str] = []
    for case in ET.parse(report).getroot().iter("testcase"):
        names, skipped = node_ids(case), case.find("skipped")
        if case.find("failure") is not None or case.find("error") is not None:
            if known.excuses(names):
                count["known"] += 1
            else:
                count["failed"] += 1
                failures.append(max(names, key=len))
        elif skipped is not None:
            count["xfailed" if skipped.get("type") == "pytest.xfail" else "skipped"] += 1
        else:
            count["passed"] += 1
            known.saw_pass(names)
    return count, failures


def node_ids(case: ET.Element) -> set[str]:
    """A test's name as pytest takes it, with its parameters and without."""
    place = (case.get("classname") or "").replace(".", "/")
    path = case.get("file") or f"{place}.py"
    inside = place[len(path) - 3 :].strip("/").replace("/", "::")
    whole = "::".join(each for each in (path, inside, case.get("name")) if each)
    return {whole, whole.split("[")[0]}


def test(checkout: Path, only: set[str], expression: str) -> bool:
    kind = flavour(checkout)
    version = kind.version
    python = environments.python(f"tck{version}", HERE / f"requirements_{version}.txt")
    known = Known(HERE / f"known_{version}.txt")
    good = True
    runs = [run for run in kind.runs if not only or only & {run.name, *run.name.split()}]
    for agent, env in dict.fromkeys((run.agent, run.env) for run in runs):
        logs = ROOT / "build" / "tck" / version / f"{'locked-' if env else ''}{agent}.server.log"
        logs.parent.mkdir(parents=True, exist_ok=True)
        # Webhooks are the server's to declare, not the agent's.
        options = ("--store", "memory://", *(("--set", "push=false") if agent == "minimal" else ()))
        with serving.serving(f"{TARGET}:{agent}", *options, logs=logs, env=SETTINGS[version] | dict(env)) as base:
            for run in (each for each in runs if (each.agent, each.env) == (agent, env)):
                command = kind.command(run, base)
                report, seconds = perform(checkout, version, run, command, expression, python)
                count, failures = judge(report, known)
                for failure in failures:
                    print(f"FAIL {failure}")
                summary = " ".join(f"{outcome} {count[outcome]}" for outcome in OUTCOMES)
                print(f"{version} {run.name:<22} {summary}   {seconds:.0f} s", flush=True)
                good = good and not failures and count["passed"] > 0
    if not only and not expression:
        for entry in known.needless:
            print(f"NOTE {entry} passes now: take it off {HERE.name}/known_{version}.txt")
    return good


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("checkout", type=Path, nargs="+")
    parser.add_argument("--only", default="", help="runs to make, comma-separated: a name or a word of it")
    parser.add_argument("-k", dest="expression", default="", help="passed on to pytest")
    given = parser.parse_args()
    only = {each.strip() for each in given.only.split(",") if each.strip()}
    results = [test(checkout.resolve(), only, given.expression) for checkout in given.checkout]
    raise SystemExit(0 if all(results) else 1)


if __name__ == "__main__":
    main()
