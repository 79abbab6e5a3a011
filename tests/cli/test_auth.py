"""`dragoman auth`: what it prints belongs into the callers' file, and the secret is shown once and apart."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from dragoman.auth.callers import read
from dragoman.auth.hashes import digest, password_fits, read_token_hash
from tests.auth.authority import Authority
from tests.cli.test_command import run


def hashed(*arguments: str, given: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "dragoman", "auth", "hash", *arguments]
    return subprocess.run(command, cwd=cwd, input=given, capture_output=True, text=True, timeout=30)


def test_a_token_is_made_and_only_its_hash_goes_into_the_file(tmp_path: Path) -> None:
    made = run("auth", "token", "ci.runner", "--scope", "read", "--scope", "write", "--tenant", "acme", cwd=tmp_path)
    assert made.returncode == 0
    token = made.stderr.split()[-1]
    assert token.startswith("dgm_") and len(token) > 40 and token not in made.stdout
    (tmp_path / "callers.toml").write_text(made.stdout)
    (caller,) = read(tmp_path / "callers.toml")
    assert (caller.id, caller.tokens) == ("caller:ci.runner", (digest(token.encode()),))
    assert (caller.scopes, caller.tenants) == ({"read", "write"}, {"acme"})
    again = run("auth", "token", "ci.runner", cwd=tmp_path)
    assert again.stderr.split()[-1] != token


def test_a_key_is_made_alike(tmp_path: Path) -> None:
    made = run("auth", "token", "ci", "--key", cwd=tmp_path)
    (tmp_path / "callers.toml").write_text(made.stdout)
    (caller,) = read(tmp_path / "callers.toml")
    assert caller.keys == (digest(made.stderr.split()[-1].encode()),) and not caller.tokens


def test_several_make_one_file(tmp_path: Path) -> None:
    lines = "\n".join(run("auth", "token", name, cwd=tmp_path).stdout for name in ("a", "b"))
    assert set(tomllib.loads(lines)) == {"a", "b"}


def test_a_secret_of_ones_own_is_hashed_as_it_stands(tmp_path: Path) -> None:
    shown = hashed(given="my own sécret\n", cwd=tmp_path)
    assert read_token_hash(shown.stdout.strip()) == digest("my own sécret".encode())
    assert shown.stderr == ""


def test_a_password_is_hashed_slowly_and_never_alike(tmp_path: Path) -> None:
    one, two = (hashed("--password", given="hunter2\n", cwd=tmp_path).stdout.strip() for _ in range(2))
    assert one != two
    assert password_fits("hunter2", one) and password_fits("hunter2", two)


def test_a_certificate_is_known_by_its_fingerprint(tmp_path: Path) -> None:
    client = Authority(tmp_path).issue("client")
    (tmp_path / "client.crt").write_text(client.pem)
    shown = run("auth", "hash", "--certificate", "client.crt", cwd=tmp_path)
    assert shown.stdout.strip() == f"sha256:{client.fingerprint}"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["token", "a b"], "Expected a name of letters"),
        (["hash"], "There is no secret: standard input is empty"),
        (["hash", "--certificate", "none.crt"], "Cannot read none.crt"),
        (["hash", "--certificate", "nonsense"], "it is not one certificate in PEM"),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence(tmp_path: Path, arguments: list[str], words: str) -> None:
    (tmp_path / "nonsense").write_text("nonsense")
    ended = run("auth", *arguments, cwd=tmp_path)
    assert ended.returncode != 0
    assert words in ended.stderr and "Traceback" not in ended.stderr
