"""Secrets are written down as hashes, and read back as nothing else."""

import hashlib

import pytest

from dragoman.auth.hashes import (
    digest,
    password_fits,
    password_hash,
    read_password_hash,
    read_token_hash,
    token_hash,
)


def test_a_token_is_kept_as_its_sha_256() -> None:
    assert token_hash(b"secret") == f"sha256:{hashlib.sha256(b'secret').hexdigest()}"
    assert read_token_hash(token_hash(b"secret")) == digest(b"secret")


@pytest.mark.parametrize("written", ["secret", "sha256:", "sha256:abc", "SHA256:" + "a" * 64, "sha256:" + "A" * 64, ""])
def test_what_is_no_hash_is_refused_and_not_repeated(written: str) -> None:
    with pytest.raises(ValueError) as caught:
        read_token_hash(written)
    assert "secret" not in str(caught.value)
    with pytest.raises(ValueError) as caught:
        read_password_hash(written or "secret")
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("password", ["hunter2", "пароль", "a:b", " "])
def test_a_password_fits_its_own_hash_only(password: str) -> None:
    written = read_password_hash(password_hash(password))
    assert password not in written or password == " "
    assert password_fits(password, written)
    assert not password_fits(password + "x", written)


def test_the_same_password_is_never_written_alike() -> None:
    assert password_hash("hunter2") != password_hash("hunter2")


def test_a_hash_made_elsewhere_is_understood() -> None:
    """RFC 7914, section 12, with numbers this machine can afford."""
    import base64

    salt, length = b"SodiumChloride!!", 64
    key = hashlib.scrypt(b"pleaseletmein", salt=salt, n=16_384, r=8, p=1, dklen=length)
    text = [base64.urlsafe_b64encode(each).rstrip(b"=").decode() for each in (salt, key)]
    assert password_fits("pleaseletmein", read_password_hash(f"scrypt:16384:8:1:{text[0]}:{text[1]}"))


@pytest.mark.parametrize(
    "numbers", ["1000:8:1", "1023:8:1", "512:8:1", "99999999:8:1", "16384:0:1", "16384:99:1", "16384:8:9"]
)
def test_a_hash_that_costs_nothing_or_everything_is_refused(numbers: str) -> None:
    _, _, _, _, salt, key = password_hash("x").split(":")
    with pytest.raises(ValueError):
        read_password_hash(f"scrypt:{numbers}:{salt}:{key}")
