"""What foreign clients are built in."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests import environments

pytestmark = pytest.mark.interop

PINS = Path(__file__).parent / "environments"


def test_an_environment_that_cannot_be_built_says_what_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environments, "HOME", tmp_path)
    lock = tmp_path / "lock.txt"
    lock.write_text("./nothing-is-here\n")
    with pytest.raises(environments.Unbuildable, match="nothing-is-here"):
        environments.python("broken", lock)
    assert not list(tmp_path.glob("broken-*/.ready"))


def test_an_environment_is_built_once_however_many_ask(tmp_path: Path) -> None:
    lock = tmp_path / "lock.txt"
    lock.write_text("")
    code = (
        "import sys, pathlib; from tests import environments as e; e.HOME = pathlib.Path(sys.argv[1]);"
        "print(e.python('empty', pathlib.Path(sys.argv[2])))"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "envs"), str(lock)]
    asking = [subprocess.Popen(command, cwd=environments.ROOT, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    answers = {each.communicate(timeout=120)[0].strip() for each in asking}
    [interpreter] = answers
    assert Path(interpreter).exists()
    assert len(list((tmp_path / "envs").glob("empty-*/.ready"))) == 1


@pytest.mark.parametrize("name", ["js10", "js03"])
def test_javascript_locks_pin_everything_and_name_no_host(name: str) -> None:
    packages = json.loads((PINS / name / "package-lock.json").read_text())["packages"]
    for path, package in packages.items():
        assert "resolved" not in package, path
        assert not path or (package["version"] and package["integrity"]), path
