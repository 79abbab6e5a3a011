"""A server process to be killed, and the look into its file that no server is asked for."""

import http.client
import json
import os
import re
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any

from tests.serving import ROOT

AGENT = "tests/chaos/agent.py:agent"
JSON = dict[str, Any]


class Victim:
    def __init__(self, folder: Path, *options: str, agent: str = AGENT) -> None:
        # Kept for us while the server is dead: otherwise somebody else's server could answer our clients meanwhile.
        self._place = socket.socket()
        self._place.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._place.bind(("127.0.0.1", 0))
        self.port: int = self._place.getsockname()[1]
        self.base = f"http://127.0.0.1:{self.port}"
        self.database = folder / "chaos.db"
        self._log = folder / "server.log"
        self._options = options
        self._agent = agent
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        command = [sys.executable, "-m", "dragoman", "serve", self._agent]
        command += ["--port", str(self.port), "--store", f"sqlite:///{self.database}", *self._options]
        with self._log.open("ab") as output:
            self._process = subprocess.Popen(
                command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT
            )
        end = time.monotonic() + 30
        while time.monotonic() < end and self._process.poll() is None:
            try:
                with closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)) as connection:
                    connection.request("GET", "/readyz")
                    if connection.getresponse().status == 200:
                        return
            except OSError:
                time.sleep(0.01)
        raise RuntimeError(f"The server did not come up:\n{self.log()[-4000:]}")

    def kill(self) -> None:
        """No goodbye: what is not on disk is gone."""
        assert self._process is not None
        os.kill(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def stop(self) -> None:
        self._place.close()
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(15)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()

    def log(self) -> str:
        return self._log.read_text(errors="replace") if self._log.exists() else ""

    def audit(self) -> None:
        """Read the logs as they lie on disk: numbered without gaps, ended once, no attempt past its fence."""
        logs: dict[str, list[JSON]] = {}
        with closing(sqlite3.connect(f"file:{self.database}?mode=ro", uri=True)) as db:
            rows = "SELECT uid, seq, body FROM facts JOIN tasks ON tasks.n = facts.task ORDER BY facts.task, seq"
            for uid, last, body in db.execute(rows):
                log = logs.setdefault(uid, [])
                log += json.loads(body)
                assert len(log) == last, f"{uid} has a gap or a double before {last}"
            counted = dict(db.execute("SELECT state, sum(tasks) FROM counts GROUP BY state HAVING sum(tasks) <> 0"))
            assert counted == dict(db.execute("SELECT state, count(*) FROM tasks GROUP BY state"))
        for uid, log in logs.items():
            _sound(uid, log)


def _sound(uid: str, log: list[JSON]) -> None:
    kinds = [fact["k"] for fact in log]
    assert kinds[0] == "created" and kinds.count("created") == 1, f"{uid} does not begin once"
    assert "settled" not in kinds[:-1], f"{uid} went on after its end"
    attempt = 0
    for fact in log:
        if fact["k"] == "started":
            attempt = fact.get("attempt", 1)
        elif fact["k"] == "chunk":
            for part in fact["artifact"].get("parts", []):
                for wrote in re.findall(r"(\d+):\d+;", part.get("text", "")):
                    assert int(wrote) == attempt, f"{uid}: attempt {wrote} wrote after attempt {attempt} had begun"
