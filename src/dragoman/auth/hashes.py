"""Secrets as they may be written down: only their hashes are ever kept.

A token or an API key is random and long, so one round of SHA-256 is enough: nobody can try them all. A password is
neither, so it gets scrypt with a salt of its own. `dragoman auth hash` writes both.
"""

import hashlib
import hmac
import re
import secrets
from base64 import urlsafe_b64decode, urlsafe_b64encode

SHA256 = re.compile(r"sha256:([0-9a-f]{64})")
SCRYPT = re.compile(r"scrypt:(\d{1,8}):(\d{1,2}):(\d{1,2}):([A-Za-z0-9_-]{16,88}):([A-Za-z0-9_-]{32,128})")

N, R, P = 16_384, 8, 1  # 16 MiB and some 50 ms
MOST_N, MOST_R, MOST_P = 1 << 17, 16, 4
MEMORY = 512 * 1024 * 1024


def digest(secret: bytes) -> bytes:
    """What a token or key is looked up by. Who guesses learns nothing from how long a lookup takes: a guess that is
    almost right has another digest altogether."""
    return hashlib.sha256(secret).digest()


def token_hash(secret: bytes) -> str:
    return f"sha256:{digest(secret).hex()}"


def read_token_hash(written: str) -> bytes:
    """The digest. Raises ValueError for what is no hash; it may be the secret itself, so nobody may repeat it."""
    match = SHA256.fullmatch(written)
    if match is None:
        raise ValueError("Expected sha256: and 64 hexadecimal digits, as `dragoman auth hash` writes them")
    return bytes.fromhex(match[1])


def password_hash(password: str) -> str:
    salt = secrets.token_bytes(16)
    return f"scrypt:{N}:{R}:{P}:{_text(salt)}:{_text(_scrypt(password, salt, N, R, P, 32))}"


def read_password_hash(written: str) -> str:
    """The hash itself, once it is known to be one that can be computed here. Raises ValueError."""
    match = SCRYPT.fullmatch(written)
    if match is None:
        raise ValueError("Expected scrypt:…, as `dragoman auth hash --password` writes it")
    n, r, p = int(match[1]), int(match[2]), int(match[3])
    if n < 1_024 or n & (n - 1) or not (n <= MOST_N and 1 <= r <= MOST_R and 1 <= p <= MOST_P):
        raise ValueError("The numbers of the scrypt hash are out of range")
    return written


def password_fits(password: str, written: str) -> bool:
    """Takes long, on purpose: call it on a thread."""
    _, n, r, p, salt, key = written.split(":")
    wanted = _bytes(key)
    return hmac.compare_digest(_scrypt(password, _bytes(salt), int(n), int(r), int(p), len(wanted)), wanted)


def _scrypt(password: str, salt: bytes, n: int, r: int, p: int, length: int) -> bytes:
    return hashlib.scrypt(password.encode("utf-8"), salt=salt, n=n, r=r, p=p, dklen=length, maxmem=MEMORY)


def _text(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode()


def _bytes(text: str) -> bytes:
    return urlsafe_b64decode(text + "=" * (-len(text) % 4))
