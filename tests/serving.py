"""A real `dragoman serve` in a process of its own, started and stopped by the test that needs it."""

import http.client
import os
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Generator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
START_SECONDS = 20.0
STOP_SECONDS = 10.0


class Base(str):
    """Where a server is reached, without a slash at the end; and which process it is."""

    pid: int = 0


@contextmanager
def serving(
    target: str,
    *options: str,
    logs: Path,
    env: Mapping[str, str] | None = None,
    port: int = 0,
    tls: ssl.SSLContext | None = None,
) -> Generator[Base]:
    """Serve `target` (as `dragoman serve` takes it) on a free loopback port; gives the base URL, without a slash.

    With `tls` the server is one that speaks it. Fails with the end of the server's output when it does not come up;
    what it said is in `logs`.
    """
    port = port or free_port()
    # What a developer has set for a server of their own must not reach ours.
    ours = ("DRAGOMAN_", "A2A_", "AUTH_", "PUSH_NOTIFICATION_")
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
            _wait_for_card(process, port, logs, tls)
            base = Base(f"{'https' if tls else 'http'}://127.0.0.1:{port}")
            base.pid = process.pid
            yield base
        finally:
            _stop(process)


def free_port() -> int:
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _wait_for_card(process: subprocess.Popen[bytes], port: int, logs: Path, tls: ssl.SSLContext | None) -> None:
    end = time.monotonic() + START_SECONDS
    while process.poll() is None and time.monotonic() < end:
        try:
            with closing(_connection(port, tls)) as connection:
                connection.request("GET", "/.well-known/agent-card.json")
                if connection.getresponse().status == 200:
                    return
        except OSError:
            time.sleep(0.02)  # another process: there is nothing to wait on but its port
    raise RuntimeError(f"The server did not come up:\n{logs.read_text(errors='replace')[-4000:]}")


def _connection(port: int, tls: ssl.SSLContext | None) -> http.client.HTTPConnection:
    if tls is None:
        return http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    return http.client.HTTPSConnection("127.0.0.1", port, timeout=5, context=tls)


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
