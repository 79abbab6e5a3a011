"""The watcher behind `--reload`."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from dragoman.cli.reload import end, stamps, watched


def seen(root: Path, *files: Path) -> set[str]:
    return {str(Path(name).relative_to(root)) for name in stamps([root], files)}


def test_python_files_are_watched_and_other_peoples_are_not(tmp_path: Path) -> None:
    for name in ("a.py", "deep/b.py", "notes.md", ".hidden/c.py", "node_modules/d.py", "venv/e.py", "__pycache__/f.py"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("")
    (tmp_path / "venv" / "pyvenv.cfg").write_text("")
    assert seen(tmp_path) == {"a.py", "deep/b.py"}


def test_a_changed_a_new_and_a_gone_file_are_noticed(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text("1")
    first = stamps([tmp_path], [])
    assert stamps([tmp_path], []) == first
    os.utime(path, ns=(1, 1))
    second = stamps([tmp_path], [])
    assert second != first
    (tmp_path / "b.py").write_text("")
    assert stamps([tmp_path], []) != second
    path.unlink()
    (tmp_path / "b.py").unlink()
    assert stamps([tmp_path], []) == {}


def test_the_settings_file_is_watched_also_before_it_exists(tmp_path: Path) -> None:
    settings = tmp_path / "dragoman.toml"
    assert seen(tmp_path, settings) == set()
    settings.write_text("")
    assert seen(tmp_path, settings) == {"dragoman.toml"}


def test_the_targets_folder_is_watched_when_it_lies_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    assert watched(None) == [tmp_path / "here"]
    assert watched("agent.py:desk") == [tmp_path / "here"]
    assert watched("package.module:desk") == [tmp_path / "here"]
    assert watched(str(tmp_path / "there" / "agent.py")) == [tmp_path / "here", tmp_path / "there"]


def test_a_child_that_ended_by_itself_is_no_trouble() -> None:
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    end(child)
    assert child.returncode == 0


CHILD = """
import signal, sys, time
from pathlib import Path
out = Path("lives.txt")
out.write_text(out.read_text() + "start\\n" if out.exists() else "start\\n")
def stop(*_):
    out.write_text(out.read_text() + "stop\\n")
    sys.exit(0)
signal.signal(signal.SIGTERM, stop)
Path("up").touch()
while True:
    time.sleep(0.05)
"""
PARENT = """
import sys
from dragoman.cli.reload import supervise
sys.exit(supervise([sys.executable, "child.py"], None, None))
"""


def test_a_change_starts_the_child_again_and_stopping_the_parent_stops_it(tmp_path: Path) -> None:
    (tmp_path / "child.py").write_text(CHILD)
    parent = subprocess.Popen([sys.executable, "-c", PARENT], cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    try:
        until(tmp_path / "up")
        (tmp_path / "up").unlink()
        (tmp_path / "new.py").write_text("")
        until(tmp_path / "up")
    finally:
        parent.terminate()
        _, said = parent.communicate(timeout=20)
    assert parent.returncode == 0
    assert (tmp_path / "lives.txt").read_text().split() == ["start", "stop", "start", "stop"]
    assert "new.py changed, starting again." in said


def until(path: Path) -> None:
    """Another process makes it: there is nothing to wait on but the file."""
    end = time.monotonic() + 20
    while not path.exists():
        assert time.monotonic() < end, f"{path.name} never came"
        time.sleep(0.02)
