"""What it costs that callers log in."""

import hashlib
import json
import subprocess
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from statistics import mean

from bench import requests
from bench.contenders import Contender
from bench.environments import interpreter
from bench.load import load
from bench.places import AGENTS, BenchError
from bench.requests import Ask
from bench.results import Results, Row, Sample, at_least, shown
from bench.scenarios.scenario import Run, Scenario
from bench.servers import Server, home, serving

CALLERS = 16
ISSUER, AUDIENCE = "https://id.example", "https://desk.example"
TOKEN = "a-token-as-long-as-those-that-dragoman-auth-makes"
NAMES = {"token": "a bearer token", "jwt": "a JWT that is known already"}
TARGETS = {"token": 0.95, "jwt": 0.85}


def measure_auth(contender: Contender, run: Run) -> Sample:
    """Three servers, one of them loaded at a time: nobody logs in, by a token, by a JWT. In turn and back again, so
    that all meet the machine in the same mood; who is not asked takes no time."""
    sample: Sample = {}
    with ExitStack() as open_, home() as place:
        jwt = _write(place, contender)
        bearers = {"nobody": "", "token": TOKEN, "jwt": jwt}
        servers = {
            name: open_.enter_context(serving(replace(contender, options=("--config", str(place / name))), "echo"))
            for name in bearers
        }
        asks = {name: _asked(bearer) for name, bearer in bearers.items()}
        shortest = {name: _checked(servers[name], asks[name]) for name in bearers}
        seen: dict[str, list[tuple[float, float]]] = {name: [] for name in bearers}
        for name in bearers:
            load(servers[name].port, [asks[name]], CALLERS, run.pace.warm, shortest[name])
        order = [*bearers, *reversed(bearers)]
        for name in order * run.pace.size(2, 1):
            server = servers[name]
            cpu = server.cpu
            one = load(server.port, [asks[name]], CALLERS, run.pace.seconds / 2, shortest[name])
            seen[name].append((one.per_second, (server.cpu - cpu) / one.requests * 1e6))
    for name, found in seen.items():
        sample[name] = mean(rate for rate, _ in found)
        sample[f"{name} cpu_us"] = mean(work for _, work in found)
    return sample


def _write(place: Path, contender: Contender) -> str:
    """The settings of each server, and a JWT for the one that takes those."""
    command = [str(interpreter(contender.family)), str(AGENTS / "minting.py"), ISSUER, AUDIENCE]
    made = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    callers, keys = place / "callers.toml", place / "keys.json"
    callers.write_text(f'[bench]\ntoken = "sha256:{hashlib.sha256(TOKEN.encode()).hexdigest()}"\n')
    keys.write_text(json.dumps(made["jwks"]))
    corp = f'type = "jwt"\nissuer = "{ISSUER}"\naudience = ["{AUDIENCE}"]\njwks = "{keys}"\n'
    (place / "nobody").write_text("")
    (place / "token").write_text(f'[auth]\ncallers = "{callers}"\n')
    (place / "jwt").write_text(f"[auth.schemes.corp]\n{corp}")
    return made["token"]


def _asked(bearer: str) -> Ask:
    ask = requests.send("1.0")
    return replace(ask, headers=(*ask.headers, ("Authorization", f"Bearer {bearer}"))) if bearer else ask


def _checked(server: Server, ask: Ask) -> int:
    """How long a good answer is. A server that lets in who does not log in measures nothing."""
    answer = server.ask(ask)
    if b"completed" not in answer.lower():
        raise BenchError(f"a send was not answered as it should be: {answer[:200]!r}")
    if any(name == "Authorization" for name, _ in ask.headers):
        try:
            server.ask(requests.send("1.0"))
        except BenchError as error:
            if "401" not in str(error):
                raise
        else:
            raise BenchError("who did not log in was let in")
    return len(answer)


def rows_of_auth(results: Results) -> list[Row]:
    rows: list[Row] = []
    if results.has(CONTENDER):
        for name, target in TARGETS.items():
            samples = results.samples[CONTENDER]
            shares = sorted(sample[name] / sample["nobody"] for sample in samples)
            works = sorted(sample[f"{name} cpu_us"] / sample["nobody cpu_us"] for sample in samples)
            rows.append(at_least(f"with {NAMES[name]} ÷ without", shares[len(shares) // 2], target, "{:.0%}"))
            rows.append(shown("  processor time each, of that without", works[len(works) // 2], "{:.0%}"))
    return rows


CONTENDER = "dragoman with callers"
AUTH = Scenario(
    "auth",
    f"blocking send by callers who log in, {CALLERS} callers",
    (CONTENDER,),
    measure_auth,
    rows_of_auth,
)
