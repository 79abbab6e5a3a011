"""The command without a server: help, version, refusals, the settings it shows."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import dragoman


def run(*arguments: str, cwd: Path, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("DRAGOMAN_")}
    for name in ("HOST", "PORT", "A2A_PUBLIC_URL"):
        clean.pop(name, None)
    return subprocess.run(
        [sys.executable, "-m", "dragoman", *arguments],
        cwd=cwd,
        env=clean | (env or {}),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=30,
    )


def test_it_says_its_version(tmp_path: Path) -> None:
    assert run("--version", cwd=tmp_path).stdout == f"dragoman {dragoman.__version__}\n"


def test_help_lists_every_command_with_a_line(tmp_path: Path) -> None:
    shown = run("--help", cwd=tmp_path).stdout
    assert "serve " in shown
    assert "config " in shown


def test_help_of_serve_names_every_flag_the_documentation_promises(tmp_path: Path) -> None:
    shown = run("serve", "--help", cwd=tmp_path).stdout
    for flag in (
        "--host",
        "--port",
        "--store",
        "--public-url",
        "--config",
        "--reload",
        "--log-level",
        "--allow-public",
    ):
        assert flag in shown


@pytest.mark.parametrize(
    ("arguments", "env", "words"),
    [
        (["serve", "none.py"], {}, "There is no file none.py."),
        (["serve", "--host", "0.0.0.0"], {}, "--allow-public"),
        ([], {"HOST": "0.0.0.0"}, "Not listening on 0.0.0.0 (HOST)"),
        (["serve", "--store", "redis://x"], {}, "there is no store called redis"),
        (["serve", "--set", "prot=1"], {}, "Did you mean port?"),
        (["serve", "--set", "port"], {}, "--set takes name=value"),
        (["serve", "--config", "none.toml"], {}, "Cannot read none.toml"),
        (["serve"], {"PORT": "http"}, "PORT: Expected int, got 'http'."),
        (["config"], {"DRAGOMAN_RETENTION": "soon"}, "DRAGOMAN_RETENTION: Expected a duration"),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence_without_a_traceback(
    tmp_path: Path, arguments: list[str], env: dict[str, str], words: str
) -> None:
    ended = run(*arguments, cwd=tmp_path, env=env)
    assert ended.returncode == 2
    assert ended.stderr.startswith("Error: ")
    assert words in ended.stderr
    assert "Traceback" not in ended.stderr
    assert list(tmp_path.iterdir()) == []  # nothing was opened or made


def test_the_authors_own_mistake_is_shown_with_its_traceback_and_nothing_of_ours(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("def words():\n    return 1 / 0\nwords()\n")
    ended = run("serve", "broken.py", cwd=tmp_path)
    assert ended.returncode == 2
    assert "ZeroDivisionError" in ended.stderr and "return 1 / 0" in ended.stderr
    assert ended.stderr.endswith("Error: broken.py cannot be imported: its own code fails, as shown above.\n")
    assert "click" not in ended.stderr and "loading.py" not in ended.stderr


def test_an_agent_without_skills_is_not_served(tmp_path: Path) -> None:
    (tmp_path / "empty.py").write_text("from dragoman import Agent\nagent = Agent('Empty')\n")
    ended = run("serve", "empty.py", cwd=tmp_path, env={"DRAGOMAN_PORT": "0"})
    assert ended.returncode == 2
    assert "The agent 'Empty' has no skills" in ended.stderr and not (tmp_path / "dragoman.db").exists()


def test_config_prints_a_file_that_sets_what_is_in_effect(tmp_path: Path) -> None:
    (tmp_path / "dragoman.toml").write_text(
        "[server]\nport = 9000\nallowed_hosts = ['a.example']\n[[agents]]\ntarget = 'desk.py'\nslug = 'desk'\n"
    )
    env = {"DRAGOMAN_LIMIT_BODY": "2MiB", "DRAGOMAN_ALLOW_PUBLIC": "true"}
    first = run("config", cwd=tmp_path, env=env)
    assert "port = 9000  # server.port in dragoman.toml" in first.stdout
    assert 'body = "2MiB"  # DRAGOMAN_LIMIT_BODY' in first.stdout
    (tmp_path / "again.toml").write_text(first.stdout)
    second = run("config", "--config", "again.toml", cwd=tmp_path)
    assert _without_origins(second.stdout) == _without_origins(first.stdout)


def _without_origins(text: str) -> list[str]:
    return [line.partition("  #")[0] for line in text.splitlines()]


def test_start_up_is_quick(tmp_path: Path) -> None:
    """Not a benchmark (see bench/): it notices when somebody imports half the world at the top of a module."""
    code = (
        "import sys, dragoman, dragoman.cli.command\n"
        "heavy = {'asyncio', 'uvicorn', 'starlette', 'httpx2', 'sqlite3', 'msgspec', 'tomllib', 'pydantic'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert shown.stdout.strip() == "[]"
