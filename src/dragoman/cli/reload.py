"""`--reload`: a parent that watches files and a child that serves.

It polls modification times: no dependency, works on every file system, and a scan of a project takes a few
milliseconds. The child is stopped as an operator would stop it, so a reload drains like a restart does.
"""

import os
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import FrameType

import click

INTERVAL = 0.3
PATIENCE = 10.0
"""How long the child may take to stop before it is killed."""

ELSEWHERE = {"__pycache__", "node_modules", "build", "dist", "site-packages"}

Stamps = dict[str, tuple[int, int]]


def supervise(command: Sequence[str], target: str | None, config: str | None) -> int:
    """Run `command` and start it again on every change, until somebody stops us. Answers the exit status."""
    roots = watched(target)
    files = [Path(config or os.environ.get("DRAGOMAN_CONFIG") or "dragoman.toml")]
    stopping: list[int] = []

    def stop(signum: int, frame: FrameType | None) -> None:
        stopping.append(signum)

    for signum in (signal.SIGINT, signal.SIGTERM):
        signal.signal(signum, stop)

    seen = stamps(roots, files)
    # Reloading is for developing: nobody wants to wait for the running turns that a deployment would drain.
    environment = {"DRAGOMAN_DRAIN": "1s", **os.environ}
    child = subprocess.Popen(command, env=environment)
    while not stopping:
        time.sleep(INTERVAL)
        now = stamps(roots, files)
        if now == seen:
            continue
        changed = sorted(name for name in now.keys() | seen.keys() if now.get(name) != seen.get(name))
        seen = now
        click.echo(f"{changed[0]} changed, starting again.", err=True)
        end(child)
        child = subprocess.Popen(command, env=environment)
    end(child)
    return 0


def end(child: subprocess.Popen[bytes]) -> None:
    if child.poll() is not None:
        return
    child.terminate()
    try:
        child.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()


def watched(target: str | None) -> list[Path]:
    """The folders whose Python files matter: here, and where the target lies if that is elsewhere."""
    roots = [Path.cwd()]
    place = (target or "").rpartition(":")[0] or (target or "")
    if place.endswith(".py"):
        folder = Path(place).resolve().parent
        if not folder.is_relative_to(roots[0]):
            roots.append(folder)
    return roots


def stamps(roots: Sequence[Path], files: Sequence[Path]) -> Stamps:
    """Every watched file with its time and size."""
    found: Stamps = {}
    for path in (*files, *(path for root in roots for path in _python(root))):
        try:
            stat = os.stat(path)
        except OSError:  # not there (yet), or gone between listing and looking
            continue
        found[str(path)] = (stat.st_mtime_ns, stat.st_size)
    return found


def _python(root: Path) -> Iterator[str]:
    for folder, folders, names in os.walk(root):
        # Hidden folders and environments hold nobody's own code, and a lot of it.
        folders[:] = [
            name
            for name in folders
            if not name.startswith(".")
            and name not in ELSEWHERE
            and not os.path.exists(os.path.join(folder, name, "pyvenv.cfg"))
        ]
        yield from (os.path.join(folder, name) for name in names if name.endswith(".py"))
