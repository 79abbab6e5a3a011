"""The callers' file: what it says, what is wrong with it, and that it is read again when it changes."""

import logging
import os
from pathlib import Path

import pytest

from dragoman.auth.callers import Caller, Callers, CallersError, read
from dragoman.auth.hashes import digest, password_hash, token_hash
from tests.auth.rig import START, Clock


def written(path: Path, text: str) -> Path:
    path.write_text(text, "utf-8")
    return path


def entry(name: str, secret: str, more: str = "") -> str:
    return f'[{name}]\ntoken = "{token_hash(secret.encode())}"\n{more}\n'


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return written(tmp_path / "callers.toml", entry("ci", "one"))


def test_a_caller_is_read_with_all_it_has(tmp_path: Path) -> None:
    text = f"""
[ci]
token = ["{token_hash(b"old")}", "{token_hash(b"new")}"]
key = "{token_hash(b"key")}"
password = "{password_hash("pw")}"
certificate = "sha256:{"ab" * 32}"
scopes = ["read", "write"]
tenants = ["acme"]
expires = 2027-01-16T08:00:00Z
["team.a@example"]
expires = 2027-01-15
"""
    ci, team = read(written(tmp_path / "c.toml", text))
    assert ci.tokens == (digest(b"old"), digest(b"new"))
    assert ci.keys == (digest(b"key"),)
    assert ci.certificates == (bytes.fromhex("ab" * 32),)
    assert len(ci.passwords) == 1
    assert (ci.id, ci.scopes, ci.tenants) == ("caller:ci", {"read", "write"}, {"acme"})
    assert ci.expires - team.expires == (24 + 8) * 3_600_000
    assert (team.id, team.tenants, team.tokens) == ("caller:team.a@example", None, ())


SECRET = "s3cret-token-in-the-wrong-place"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (f'[ci]\ntoken = "{SECRET}"', "[ci] token: Expected sha256:"),
        (f'[ci]\npassword = "{SECRET}"', "[ci] password: Expected scrypt:"),
        (f"[ci]\ntoken = {SECRET}", "is not valid TOML (at line 2, column"),
        ("[ci]\ntoken = 7", "[ci] token has the wrong type"),
        ('[ci]\nexpires = "2027-01-31"', "[ci] expires: Expected a date such as 2027-01-31, without quotes"),
        ('[ci]\nscopes = "read"', "[ci] scopes has the wrong type"),
        ('[ci]\ntokens = "x"', "[ci]: unknown key tokens. Known: token, key"),
        ("ci = 7", "[ci]: Expected a table"),
        ('["a b"]\n', "[a b]: Expected a name"),
        ('["caller\\n1"]\n', "Expected a name"),
        (entry("a", SECRET) + entry("b", SECRET), "a and b have one of their tokens in common"),
    ],
)
def test_what_is_wrong_is_told_by_its_place_and_without_a_secret(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(CallersError) as caught:
        Callers(Clock(), file=written(tmp_path / "c.toml", text)).open()
    assert told in str(caught.value)
    assert SECRET not in str(caught.value) and token_hash(SECRET.encode()) not in str(caught.value)


def test_a_file_that_is_not_there_is_told_so(tmp_path: Path) -> None:
    with pytest.raises(CallersError, match="No such file"):
        Callers(Clock(), file=tmp_path / "none").open()
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    with pytest.raises(CallersError, match="is not UTF-8"):
        read(tmp_path / "binary")


def test_a_file_too_large_to_be_one_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "large").open("wb") as large:
        large.truncate(9 * 1024 * 1024)
    with pytest.raises(CallersError, match="is larger than"):
        read(tmp_path / "large")


def test_nobody_in_the_file_takes_the_name_of_one_outside(tmp_path: Path) -> None:
    callers = Callers(Clock(), [Caller(name="ci")], written(tmp_path / "c.toml", entry("ci", "x")))
    with pytest.raises(CallersError, match="has the name of one that the environment sets"):
        callers.open()


def test_a_change_counts_within_a_second_and_the_disk_is_asked_no_oftener(file: Path) -> None:
    clock = Clock()
    callers = Callers(clock, file=file)
    callers.open()
    written(file, entry("ci", "two"))
    callers.refresh()
    assert digest(b"one") in callers.tokens, "looked before its time"
    clock.advance(1.1)
    callers.refresh()
    assert set(callers.tokens) == {digest(b"two")}


def test_a_file_put_in_the_place_of_another_counts(file: Path, tmp_path: Path) -> None:
    """Editors and deployments write a new file and rename it; size and time may be the same."""
    clock = Clock()
    callers = Callers(clock, file=file)
    callers.open()
    before = file.stat()
    other = written(tmp_path / "new", entry("ci", "two"))
    os.utime(other, ns=(before.st_atime_ns, before.st_mtime_ns))
    other.replace(file)
    clock.advance(2)
    callers.refresh()
    assert set(callers.tokens) == {digest(b"two")}


@pytest.mark.parametrize("broken", ['[ci]\ntoken = "plain"', "[", None])
def test_a_file_that_broke_changes_nothing_and_is_reported(
    file: Path, broken: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    clock = Clock()
    callers = Callers(clock, file=file)
    callers.open()
    file.unlink() if broken is None else written(file, broken)
    clock.advance(2)
    with caplog.at_level(logging.ERROR, "dragoman.auth"):
        callers.refresh()
    assert digest(b"one") in callers.tokens
    assert "Callers stay as they were" in caplog.text
    written(file, entry("ci", "three"))
    clock.advance(2)
    callers.refresh()
    assert set(callers.tokens) == {digest(b"three")}


def test_reload_reads_at_once(file: Path) -> None:
    callers = Callers(Clock(), file=file)
    callers.open()
    written(file, entry("ci", "two"))
    callers.reload()
    assert set(callers.tokens) == {digest(b"two")}
    Callers(Clock()).reload()  # without a file there is nothing to read


def test_a_caller_counts_until_its_time_is_over() -> None:
    clock = Clock()
    callers = Callers(clock)
    assert callers.counts(Caller(name="a"))
    assert callers.counts(Caller(name="a", expires=START + 1))
    assert not callers.counts(Caller(name="a", expires=START))
