"""One server process at a time: started, watched from outside, stopped. Only what we started is ever signalled."""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from bench import requests
from bench.contenders import Contender
from bench.places import OUT, ROOT, BenchError
from bench.sockets import ask

START_SECONDS = 30.0
STOP_SECONDS = 3.0
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


class Server:
    def __init__(self, contender: Contender, port: int, process: "subprocess.Popen[bytes]", started: float) -> None:
        self.contender, self.port, self.process = contender, port, process
        self.seconds_to_card = time.perf_counter() - started

    def ask(self, question: requests.Ask) -> bytes:
        return ask(self.port, question)

    @property
    def rss(self) -> int:
        """Resident bytes now."""
        return self._status("VmRSS")

    @property
    def peak(self) -> int:
        """The most that was ever resident, or since `clear_refs` was written."""
        return self._status("VmHWM")

    @property
    def cpu(self) -> float:
        """Seconds of processor used so far, in user and kernel, by all its threads."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(") ")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS_PER_SECOND

    def _status(self, key: str) -> int:
        for line in Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith(key + ":"):
                return int(line.split()[1]) * 1024
        raise BenchError(f"the server of {self.contender.name} is gone")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextmanager
def home() -> Generator[Path]:
    """An empty directory on the tree's own disk: a temporary file system would make every fsync free."""
    OUT.mkdir(exist_ok=True)
    path = Path(tempfile.mkdtemp(prefix="work-", dir=OUT))
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


@contextmanager
def serving(contender: Contender, behaviour: str, answer: bytes | None = None) -> Generator[Server]:
    """The contender's server with that behaviour and an empty store, from its first served card to the block's end."""
    with home() as place:
        given = None
        if answer is not None:
            given = place / "answer"
            given.write_bytes(answer)
        port = free_port()
        command = contender.command(behaviour, port, place, given)
        log = place / "log"
        with log.open("wb") as output:
            started = time.perf_counter()
            process = subprocess.Popen(
                command,
                cwd=ROOT,
                env={**os.environ, **contender.variables()},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )
            try:
                _await_card(contender, process, port, log)
                yield Server(contender, port, process, started)
                if process.poll() is not None:
                    raise BenchError(f"the server of {contender.name} died: {_tail(log)}")
            finally:
                _stop(process)


def _await_card(contender: Contender, process: "subprocess.Popen[bytes]", port: int, log: Path) -> None:
    deadline = time.perf_counter() + START_SECONDS
    while time.perf_counter() < deadline:
        if process.poll() is not None:
            raise BenchError(f"the server of {contender.name} did not start: {_tail(log)}")
        with contextlib.suppress(OSError, BenchError):
            ask(port, requests.card())
            return
        time.sleep(0.002)
    raise BenchError(f"the server of {contender.name} served no card within {START_SECONDS:.0f} s: {_tail(log)}")


def _tail(log: Path) -> str:
    return " | ".join(log.read_text(errors="replace").strip().splitlines()[-3:]) or "it printed nothing"


def _stop(process: "subprocess.Popen[bytes]") -> None:
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
    process.wait()
