"""Keys of our own: read only where they are secret, called by their thumbprint, and signatures others can check."""

import base64
import os
from pathlib import Path
from typing import Any

import msgspec
import pytest
from cryptography.hazmat.primitives import serialization
from joserfc import jws, jwt
from joserfc.jwk import ECKey, KeySet, OctKey, OKPKey, RSAKey
from joserfc.util import to_bytes

from dragoman.auth import keys
from dragoman.auth.keys import KeyUnusable, SigningKeys, generate, parse_keys, read_keys
from dragoman.ports import Signer

CLAIMS = {"iss": "https://desk.example", "task": "ä"}


def written(path: Path, content: bytes, mode: int = 0o600) -> Path:
    path.write_bytes(content)
    path.chmod(mode)
    return path


def pem(key: Any, private: bool = True) -> bytes:
    return to_bytes(key.as_pem(private=private))


def head(token: str) -> Any:
    first = token.partition(".")[0]
    return msgspec.json.decode(base64.urlsafe_b64decode(first + "=" * (-len(first) % 4)))


# --- signing


@pytest.mark.parametrize("algorithm", ["ES256", "ES384", "RS256"])
def test_what_is_signed_can_be_checked_with_what_is_published(algorithm: str) -> None:
    signer: Signer = SigningKeys(parse_keys(generate(algorithm)))
    published = KeySet.import_key_set(msgspec.json.decode(signer.jwks()))
    token = signer.token(CLAIMS)
    checked = jwt.decode(token, published, algorithms=[algorithm])
    assert checked.claims == CLAIMS
    assert checked.header == {"alg": algorithm, "kid": published.keys[0].thumbprint(), "typ": "JWT"}


def test_a_seal_goes_beside_what_it_seals() -> None:
    signer = SigningKeys(parse_keys(generate("ES256")))
    payload = b'{"name":"Desk"}'
    seal = signer.seal(payload)
    whole = f"{seal.protected}.{base64.urlsafe_b64encode(payload).rstrip(b'=').decode()}.{seal.signature}"
    published = KeySet.import_key_set(msgspec.json.decode(signer.jwks()))
    assert jws.deserialize_compact(whole, published, algorithms=["ES256"]).payload == payload
    assert head(seal.protected)["typ"] == "JOSE"


def test_the_first_key_signs_and_all_are_published_without_their_secrets() -> None:
    new, old, retired = generate("ES256"), generate("RS256"), pem(ECKey.generate_key("P-384"), private=False)
    found = [*parse_keys(new), *parse_keys(old), *parse_keys(retired)]
    signer = SigningKeys(found)
    published = msgspec.json.decode(signer.jwks())["keys"]
    assert [key["kid"] for key in published] == [key.id for key in found]
    assert head(signer.token({}))["kid"] == found[0].id
    for key in published:
        assert {"kty", "kid", "alg", "use"} <= key.keys()
        assert not {"d", "p", "q", "dp", "dq", "qi", "k"} & key.keys()


def test_a_key_named_twice_is_published_once() -> None:
    (key,) = parse_keys(generate("ES256"))
    assert len(msgspec.json.decode(SigningKeys([key, key]).jwks())["keys"]) == 1


# --- reading


@pytest.mark.parametrize("made", [ECKey.generate_key("P-256"), ECKey.generate_key("P-384"), RSAKey.generate_key(2048)])
def test_one_key_is_the_same_in_every_format_and_whatever_its_file_calls_it(made: Any) -> None:
    jwk = {**made.as_dict(private=True), "kid": "mine", "use": "sig"}
    forms = [
        msgspec.json.encode(jwk),
        msgspec.json.encode({"keys": [jwk]}),
        pem(made),
        b"a comment\n" + pem(made),
        made.private_key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
        ),
    ]
    for form in forms:
        (key,) = parse_keys(form)
        assert key.private
        assert key.id == made.thumbprint()


def test_a_file_can_hold_several_keys_in_their_order() -> None:
    first, second = ECKey.generate_key("P-256"), RSAKey.generate_key(2048)
    expected = [first.thumbprint(), second.thumbprint()]
    assert [key.id for key in parse_keys(pem(first) + b"\n" + pem(second, private=False))] == expected
    both = {"keys": [first.as_dict(private=True), second.as_dict(private=True)]}
    assert [key.id for key in parse_keys(msgspec.json.encode(both))] == expected


LOCKED = ECKey.generate_key("P-256").private_key.private_bytes(  # pyright: ignore[reportOptionalMemberAccess]
    serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.BestAvailableEncryption(b"hush")
)

USELESS = {
    "nothing": (b"", "neither a JWK"),
    "text": (b"hello", "neither a JWK"),
    "a list": (b"[]", "neither a JWK"),
    "keys that are none": (b'{"keys":3}', "neither a JWK"),
    "keys that are text": (b'{"keys":["a"]}', "neither a JWK"),
    "an empty set": (b'{"keys":[]}', "no key in it"),
    "no kind": (b'{"d":"SECRET"}', "no valid key"),
    "half a key": (b'{"kty":"EC","crv":"P-256","x":"SECRET"}', "no valid key"),
    "broken PEM": (b"-----BEGIN PRIVATE KEY-----\nSECRET\n-----END PRIVATE KEY-----", "no valid key"),
    "PEM cut short": (b"-----BEGIN PRIVATE KEY-----\nSECRET", "no key in it"),
    "a password": (LOCKED, "password"),
    "a shared secret": (msgspec.json.encode(OctKey.generate_key(256).as_dict(private=True)), "shared secret"),
    "Edwards": (pem(OKPKey.generate_key("Ed25519")), "neither RSA nor"),
    "Bitcoin's curve": (pem(ECKey.generate_key("secp256k1")), "neither RSA nor"),
    "another algorithm": (
        msgspec.json.encode({**RSAKey.generate_key(2048).as_dict(private=True), "alg": "PS512"}),
        "signs with RS256",
    ),
    "for encryption": (
        msgspec.json.encode({**ECKey.generate_key("P-256").as_dict(private=True), "use": "enc"}),
        "for encryption",
    ),
}


@pytest.mark.parametrize("name", USELESS)
def test_a_file_that_is_no_key_is_refused_in_words_that_keep_it_secret(name: str) -> None:
    content, why = USELESS[name]
    with pytest.raises(KeyUnusable, match=why) as refused:
        parse_keys(content)
    assert "SECRET" not in str(refused.value)


def test_a_short_rsa_key_is_refused() -> None:
    from cryptography.hazmat.primitives.asymmetric import rsa

    short = rsa.generate_private_key(65537, 1024).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    with pytest.raises(KeyUnusable, match="less than 2048"):
        parse_keys(short)


@pytest.mark.skipif(os.name != "posix", reason="file modes are POSIX's")
@pytest.mark.parametrize("mode", [0o644, 0o660, 0o606, 0o610, 0o602])
def test_a_private_key_that_others_can_reach_is_refused(tmp_path: Path, mode: int) -> None:
    path = written(tmp_path / "key.jwk", generate("ES256"), mode)
    with pytest.raises(KeyUnusable, match="0600"):
        read_keys(path)
    path.chmod(0o600)
    assert read_keys(path)
    path.chmod(0o400)
    assert read_keys(path)


@pytest.mark.skipif(os.name != "posix", reason="file modes are POSIX's")
@pytest.mark.parametrize(
    ("owner", "mode", "well"),
    [(0, 0o640, True), (0, 0o440, True), (0, 0o660, False), (0, 0o644, False), (9, 0o640, False)],
)
def test_a_file_that_root_hands_to_a_group_may_be_read_by_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, owner: int, mode: int, well: bool
) -> None:
    path = written(tmp_path / "key.jwk", generate("ES256"), mode)
    real = os.fstat

    def owned(descriptor: int) -> os.stat_result:
        # A test cannot count on being root, who alone may give files away.
        return os.stat_result([*real(descriptor)[:4], owner, *real(descriptor)[5:]])

    monkeypatch.setattr(keys.os, "fstat", owned)
    if well:
        assert read_keys(path)
    else:
        with pytest.raises(KeyUnusable, match="0600"):
            read_keys(path)


def test_a_public_key_is_no_secret(tmp_path: Path) -> None:
    (key,) = read_keys(written(tmp_path / "old.pem", pem(ECKey.generate_key("P-256"), private=False), 0o644))
    assert not key.private


def test_files_that_cannot_be_read_or_are_no_key_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(KeyUnusable, match="No such file"):
        read_keys(tmp_path / "none")
    with pytest.raises(KeyUnusable, match="cannot be read"):
        read_keys(tmp_path)
    with pytest.raises(KeyUnusable, match="larger"):
        read_keys(written(tmp_path / "large", b" " * 70_000))
