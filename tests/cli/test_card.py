"""`dragoman card`: keys, signatures, and a status that scripts can act on."""

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from tests.cli.test_command import run
from tests.serving import serving

CARD = {"name": "Übersetzer", "description": "Turns", "url": "https://t.example", "supportedInterfaces": []}


@pytest.fixture
def key(tmp_path: Path) -> str:
    assert run("card", "keygen", "key.jwk", cwd=tmp_path).returncode == 0
    return "key.jwk"


@pytest.fixture
def signed(tmp_path: Path, key: str) -> Any:
    (tmp_path / "card.json").write_text(json.dumps(CARD), "utf-8")
    shown = run("card", "sign", "card.json", "--key", key, "--jku", "https://t.example/keys.json", cwd=tmp_path)
    assert shown.returncode == 0, shown.stderr
    (tmp_path / "signed.json").write_text(shown.stdout, "utf-8")
    return json.loads(shown.stdout)


@pytest.mark.parametrize("alg", ["ES256", "ES384", "RS256"])
def test_a_key_is_made_for_its_owner_alone_and_never_overwritten(tmp_path: Path, alg: str) -> None:
    made = run("card", "keygen", "key.jwk", "--alg", alg, cwd=tmp_path)
    assert f"({alg})" in made.stdout
    assert stat.S_IMODE(os.stat(tmp_path / "key.jwk").st_mode) == 0o600
    before = (tmp_path / "key.jwk").read_bytes()
    assert json.loads(before)["kid"] in made.stdout
    assert json.loads(before)["d"] not in made.stdout
    again = run("card", "keygen", "key.jwk", cwd=tmp_path)
    assert (again.returncode, (tmp_path / "key.jwk").read_bytes()) == (2, before)
    assert "never overwritten" in again.stderr


def test_the_public_halves_are_printed_as_a_key_set(tmp_path: Path, key: str) -> None:
    run("card", "keygen", "other.jwk", "--alg", "RS256", cwd=tmp_path)
    shown = run("card", "jwks", key, "other.jwk", cwd=tmp_path)
    keys = json.loads(shown.stdout)["keys"]
    assert [each["alg"] for each in keys] == ["ES256", "RS256"]
    assert not any("d" in each for each in keys)


def test_a_signed_card_is_believed_with_its_key_only(tmp_path: Path, signed: Any, key: str) -> None:
    assert signed["name"] == CARD["name"]
    good = run("card", "verify", "signed.json", "--keys", key, cwd=tmp_path)
    assert good.returncode == 0
    assert good.stdout.startswith("Signed by ")
    assert json.loads(good.stdout.partition("\n")[2])["name"] == CARD["name"]
    run("card", "keygen", "other.jwk", cwd=tmp_path)
    stranger = run("card", "verify", "signed.json", "--keys", "other.jwk", cwd=tmp_path)
    assert (stranger.returncode, stranger.stdout) == (1, "")
    assert "not trusted" in stranger.stderr


def test_a_changed_card_is_not_believed(tmp_path: Path, signed: Any, key: str) -> None:
    (tmp_path / "signed.json").write_text(json.dumps(signed | {"name": "Evil"}), "utf-8")
    shown = run("card", "verify", "signed.json", "--keys", key, cwd=tmp_path)
    assert (shown.returncode, shown.stdout) == (1, "")
    assert "not what was signed" in shown.stderr
    (tmp_path / "signed.json").write_text(json.dumps(CARD), "utf-8")
    assert run("card", "verify", "signed.json", "--keys", key, cwd=tmp_path).returncode == 1


def test_where_a_card_says_its_keys_are_is_followed_only_when_told(tmp_path: Path, signed: Any) -> None:
    shown = run("card", "verify", "signed.json", cwd=tmp_path)
    assert shown.returncode == 2
    assert "https://t.example/keys.json" in shown.stderr
    other = run("card", "verify", "signed.json", "--jku", "https://t.example:444", cwd=tmp_path)
    assert (other.returncode, "--keys" in other.stderr) == (2, True)


def test_a_served_card_is_believed_by_the_keys_beside_it_or_elsewhere(tmp_path: Path, key: str) -> None:
    options = ("--store", "memory://", "--set", f"signing_keys={tmp_path / key}")
    with serving("examples/hello.py", *options, logs=tmp_path / "log") as base:
        card = f"{base}/.well-known/agent-card.json"
        keys = f"{base}/.well-known/jwks.json"
        for trusting in (("--jku", base), ("--keys", keys), ("--keys", key)):
            shown = run("card", "verify", card, *trusting, cwd=tmp_path)
            assert shown.returncode == 0, shown.stderr
        lost = run("card", "verify", f"{base}/nothing", "--keys", key, cwd=tmp_path)
        assert (lost.returncode, "answered 404" in lost.stderr) == (2, True)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("sign", "card.json", "--key", "none.jwk"), "none.jwk: it cannot be read"),
        (("sign", "key.jwk", "--key", "card.json"), "card.json: it holds no valid key"),
        (("sign", "odd.json", "--key", "key.jwk"), "odd.json: it is not a JSON object"),
        (("verify", "none.json", "--keys", "key.jwk"), "Cannot read none.json"),
        (("verify", "card.json", "--keys", "none.jwk"), "Cannot read none.jwk"),
        (("verify", "http://127.0.0.1:1/", "--keys", "key.jwk"), "could not be reached"),
        (("jwks", "card.json"), "card.json: it holds no valid key"),
        (("keygen", "no/where"), "Cannot write no/where"),
    ],
)
def test_what_is_in_the_way_is_named(tmp_path: Path, key: str, arguments: tuple[str, ...], words: str) -> None:
    (tmp_path / "card.json").write_text(json.dumps(CARD), "utf-8")
    (tmp_path / "odd.json").write_text("[]")
    shown = run("card", *arguments, cwd=tmp_path)
    assert shown.returncode == 2
    assert words in shown.stderr
    assert "Traceback" not in shown.stderr
