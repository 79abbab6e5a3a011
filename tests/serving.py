"""A real `dragoman serve` in a process of its own, started and stopped by the test that needs it."""

import http.client
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Generator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
START_SECONDS = 20.0
STOP_SECONDS = 10.0


@contextmanager
def serving(
    target: str, *options: str, logs: Path, env: Mapping[str, str] | None = None, port: int = 0
) -> Generator[str]:
    """Serve `target` (as `dragoman serve` takes it) on a free loopback port; gives the base URL, without a slash.

    Fails with the end of the server's output when it does not come up; what it said is in `logs`.
    """
    port = port or free_port()
    # What a developer has set for a server of their own must not reach ours.
    ours = ("DRAGOMAN_", "A2A_", "PUSH_NOTIFICATION_")
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    for name in ("HOST", "PORT"):
        inherited.pop(name, None)
    command = [sys.executable, "-m", "dragoman", "serve", target, "--port", str(port), *options]
    with logs.open("wb") as output:
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            env=inherited | {"PYTHONUNBUFFERED": "1"} | dict(env or {}),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        try:
            _wait_for_card(process, port, logs)
            yield f"http://127.0.0.1:{port}"
        finally:
            _stop(process)


def free_port() -> int:
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _wait_for_card(process: subprocess.Popen[bytes], port: int, logs: Path) -> None:
    end = time.monotonic() + START_SECONDS
    while process.poll() is None and time.monotonic() < end:
        try:
            with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=5)) as connection:
                connection.request("GET", "/.well-known/agent-card.json")
                if connection.getresponse().status == 200:
                    return
        except OSError:
            time.sleep(0.02)  # another process: there is nothing to wait on but its port
    raise RuntimeError(f"The server did not come up:\n{logs.read_text(errors='replace')[-4000:]}")


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
