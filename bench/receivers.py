"""Webhook receivers: one process that is as fast as a receiver in Python can be, and addresses that hang."""

import socket
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from bench.environments import interpreter
from bench.places import AGENTS, BenchError

BACKLOG = 4_096


class Fast:
    """Takes connections, and answers nothing before `open`. Then every POST is answered 204, and counted."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process
        self.port = int(self._line())

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook"

    def open(self, expected: int, patience: float) -> float:
        """Begin to answer; the seconds until so many different deliveries were answered."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{expected} {patience}\n")
        self._process.stdin.flush()
        seconds, came = self._line().split()
        if int(came) < expected:
            raise BenchError(f"{came} of {expected} deliveries came within {patience:.0f} s")
        return float(seconds)

    @property
    def cpu(self) -> float:
        """Seconds of processor it has used."""
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(") ")[2].split()
        return (int(fields[11]) + int(fields[12])) / 100

    def _line(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise BenchError("the receiver died")
        return line


@contextmanager
def fast() -> Generator[Fast]:
    command = [str(interpreter("dragoman")), str(AGENTS / "fast_receiver.py")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield Fast(process)
        finally:
            process.kill()


@contextmanager
def hanging(count: int) -> Generator[list[str]]:
    """So many addresses where connecting succeeds and nothing else ever happens: nobody accepts."""
    with socket.socket() as listening:
        listening.bind(("0.0.0.0", 0))
        listening.listen(BACKLOG)
        port = listening.getsockname()[1]
        yield [f"http://127.0.2.{number + 1}:{port}/hook" for number in range(count)]
