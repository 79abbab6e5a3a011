"""Which keys sign: named in the settings, refused at start when they cannot, published when they do."""

import sys
from pathlib import Path

import msgspec
import pytest
from joserfc.jwk import ECKey
from joserfc.util import to_bytes

import dragoman
from dragoman.app.settings import Settings, SettingsError
from dragoman.app.signing import read_signer, signer
from dragoman.app.sources import resolve
from dragoman.auth.keys import generate


def key_file(folder: Path, name: str = "key.jwk", algorithm: str = "ES256") -> str:
    path = folder / name
    path.write_bytes(generate(algorithm))
    path.chmod(0o600)
    return str(path)


def test_without_keys_nobody_signs() -> None:
    assert signer(Settings()) is None


def test_the_keys_of_all_files_are_published_in_the_order_of_the_files(tmp_path: Path) -> None:
    files = [key_file(tmp_path, "new.jwk"), key_file(tmp_path, "old.jwk", "RS256")]
    found = signer(resolve({"signing_keys": ",".join(files)}, environ={}))
    assert found is not None
    assert [key["alg"] for key in msgspec.json.decode(found.jwks())["keys"]] == ["ES256", "RS256"]


def test_a_file_that_cannot_be_used_is_named_with_its_setting(tmp_path: Path) -> None:
    file = key_file(tmp_path)
    Path(file).chmod(0o644)
    with pytest.raises(SettingsError, match=f"DRAGOMAN_SIGNING_KEYS: Cannot sign with {file}: .* 0600"):
        signer(resolve(environ={"DRAGOMAN_SIGNING_KEYS": file}))


def test_a_public_key_cannot_come_first(tmp_path: Path) -> None:
    public = tmp_path / "public.pem"
    public.write_bytes(to_bytes(ECKey.generate_key("P-256").as_pem(private=False)))
    with pytest.raises(SettingsError, match="is public"):
        signer(resolve({"signing_keys": f"{public},{key_file(tmp_path)}"}, environ={}))
    assert signer(resolve({"signing_keys": f"{key_file(tmp_path)},{public}"}, environ={}))


def test_the_packages_that_signing_needs_are_named_where_they_are_missing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delitem(sys.modules, "dragoman.auth.keys", raising=False)
    monkeypatch.setitem(sys.modules, "joserfc", None)
    with pytest.raises(SettingsError, match=r"dragoman\[auth\]"):
        signer(resolve({"signing_keys": key_file(tmp_path)}, environ={}))


CARD = {"name": "Desk", "url": "https://t.example", "supportedInterfaces": [], "capabilities": {}}


def test_a_card_in_a_file_is_signed_by_a_key_in_a_file(tmp_path: Path) -> None:
    key = key_file(tmp_path)
    card = dragoman.sign_card(CARD, key, jku="https://t.example/keys")
    found = dragoman.verify_card(card, read_signer(key).jwks())
    assert found.card["name"] == "Desk"
    assert found.keys_at == "https://t.example/keys"
    assert dragoman.sign_card(msgspec.json.encode(CARD), key)["name"] == "Desk"


def test_signing_again_replaces_ones_own_signatures_and_leaves_those_of_others(tmp_path: Path) -> None:
    mine, other = key_file(tmp_path, "mine"), key_file(tmp_path, "other", "RS256")
    once = dragoman.sign_card(CARD, mine)
    odd = {**once, "signatures": [*once["signatures"], {"protected": "!"}, 3]}
    both = dragoman.sign_card(dragoman.sign_card(odd, other) | {"name": "Tisch"}, mine)
    assert len(both["signatures"]) == 2 * len(once["signatures"]) + 2
    assert dragoman.verify_card(both, read_signer(mine).jwks()).card["name"] == "Tisch"
    with pytest.raises(dragoman.errors.CardUntrusted):
        dragoman.verify_card(both, read_signer(other).jwks())


@pytest.mark.parametrize("card", ["[]", "{", b"\xff", '{"supportedInterfaces":3}'])
def test_what_is_no_card_is_not_signed(tmp_path: Path, card: str | bytes) -> None:
    with pytest.raises(dragoman.errors.DragomanError, match="it is not"):
        dragoman.sign_card(card, key_file(tmp_path))
