"""A `dragoman` process under test: started in a folder of its own on a free port, always stopped."""

import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

PATIENCE = 30.0


class Running:
    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.said: list[str] = []
        self._lines: queue.Queue[str | None] = queue.Queue()
        assert process.stdout is not None
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self.base = ""

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(line.rstrip("\n"))
        self._lines.put(None)

    def until(self, words: str) -> str:
        """The first line on standard output, from here on, that holds these words."""
        end = time.monotonic() + PATIENCE
        while True:
            line = self._lines.get(timeout=max(0.01, end - time.monotonic()))
            assert line is not None, f"it ended ({self.process.wait()}) after saying: {self.said}"
            self.said.append(line)
            if words in line:
                return line

    def up(self) -> str:
        """Wait for the card's address; answers the base URL."""
        card = self.until("Card ").split()[1]
        self.base = card.removesuffix("/.well-known/agent-card.json")
        return self.base

    def end(self, how: signal.Signals = signal.SIGTERM) -> int:
        if self.process.poll() is None:
            self.process.send_signal(how)
        status = self.process.wait(PATIENCE)
        self._reader.join(PATIENCE)
        while (line := self._lines.get(timeout=PATIENCE)) is not None:
            self.said.append(line)
        return status


@contextmanager
def dragoman(
    *arguments: str, cwd: Path, env: Mapping[str, str] | None = None, port: int | None = 0
) -> Generator[Running]:
    """Run the command. Its standard error is in `cwd`/stderr.txt."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("DRAGOMAN_")}
    for name in ("HOST", "PORT", "A2A_PUBLIC_URL"):
        clean.pop(name, None)
    if port is not None:
        clean["DRAGOMAN_PORT"] = str(port)
    with (cwd / "stderr.txt").open("w") as errors:
        process = subprocess.Popen(
            [sys.executable, "-m", "dragoman", *arguments],
            cwd=cwd,
            env=clean | dict(env or {}),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
        running = Running(process)
        try:
            yield running
        finally:
            if process.poll() is None:
                process.terminate()
                try:
                    process.wait(10)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()
            running._reader.join(10)
            assert process.stdout is not None
            process.stdout.close()
