"""One environment per contender, made from its lock and kept under .envs/ until the lock or the interpreter changes."""

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

from bench.places import BENCH, ENVIRONMENTS, ROOT, BenchError

LOCKS = {
    "dragoman": ROOT / "requirements" / "runtime.txt",
    "dragoman auth": BENCH / "peers" / "dragoman-auth.txt",
    "a2a-sdk": BENCH / "peers" / "a2a-sdk.txt",
    "fasta2a": BENCH / "peers" / "fasta2a.txt",
    "a2akit": BENCH / "peers" / "a2akit.txt",
    "ceiling": BENCH / "peers" / "ceiling.txt",
}


def interpreter(name: str) -> Path:
    """The Python of that environment, which is made first if need be. dragoman's holds only what dragoman depends on:
    its code comes from this tree."""
    lock = LOCKS[name].read_text()
    digest = hashlib.sha256(f"{sys.version}\n{lock}".encode()).hexdigest()[:12]
    home = ENVIRONMENTS / f"bench-{name.replace(' ', '-')}-{digest}"
    python, ready = home / "bin" / "python", home / ".ready"
    if not ready.exists():
        print(f"making the environment of {name} (once)", file=sys.stderr, flush=True)
        shutil.rmtree(home, ignore_errors=True)
        _make(home, python, LOCKS[name])
        ready.touch()
    return python


def _make(home: Path, python: Path, lock: Path) -> None:
    uv = shutil.which("uv")
    if uv:
        steps = [
            [uv, "venv", "--quiet", "--python", sys.executable, str(home)],
            [uv, "pip", "install", "--quiet", "--python", str(python), "-r", str(lock)],
            [str(python), "-m", "compileall", "-q", str(home / "lib")],
        ]
    else:
        steps = [
            [sys.executable, "-m", "venv", str(home)],
            [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r", str(lock)],
        ]
    for step in steps:
        done = subprocess.run(step, check=False, capture_output=True, text=True)
        if done.returncode and "compileall" not in step:
            tail = "\n".join((done.stdout + done.stderr).strip().splitlines()[-5:])
            raise BenchError(f"the environment from {lock.relative_to(ROOT)} could not be made: {tail}")


def load_generator() -> str:
    """wrk, installed from Debian's packages when that is possible, else a sentence that says how."""
    found = shutil.which("wrk")
    if not found and os.geteuid() == 0 and shutil.which("apt-get"):
        print("installing wrk with apt-get", file=sys.stderr, flush=True)
        # The package lists of a fresh machine may be absent, so: try, renew them, try again.
        for step in (["install", "-y", "wrk"], ["update"], ["install", "-y", "wrk"]):
            if not shutil.which("wrk"):
                subprocess.run(["apt-get", *step], check=False, capture_output=True)
        found = shutil.which("wrk")
    if not found:
        raise BenchError("wrk is missing, and every load comes from it. Install it: apt-get install wrk")
    return found
