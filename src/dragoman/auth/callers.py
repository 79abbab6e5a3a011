"""Callers we gave a secret ourselves: who has which token, key, password or certificate. Only hashes are kept.

The file is TOML, one table per caller::

    [ci]                                 # what its tasks belong to: keep it, whatever happens to its secrets
    token = "sha256:…"                   # or a list, while one follows the other
    scopes = ["refunds"]
    tenants = ["acme"]
    expires = 2027-01-31

It is read again when it changes. A file that cannot be used is reported and changes nothing, except at start.
"""

import logging
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime
from datetime import time as midnight
from pathlib import Path
from typing import Any, cast

import msgspec
from msgspec import Struct

from dragoman.auth.hashes import read_password_hash, read_token_hash
from dragoman.model.errors import DragomanError
from dragoman.model.operations import Principal
from dragoman.ports import Clock

log = logging.getLogger("dragoman.auth")

LOOK_MS = 1_000  # how often the file may be looked at
LARGEST = 8 * 1024 * 1024
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@+-]{0,127}")

Stamp = tuple[int, int, int]


class CallersError(DragomanError):
    """The callers' file cannot be used. The text says where and why, and repeats no secret."""


class Caller(Struct, frozen=True, kw_only=True):
    """`expires` is in milliseconds, 0 for never. Digests are those of `hashes`."""

    name: str
    tokens: tuple[bytes, ...] = ()
    keys: tuple[bytes, ...] = ()
    passwords: tuple[str, ...] = ()
    certificates: tuple[bytes, ...] = ()
    scopes: frozenset[str] = frozenset()
    tenants: frozenset[str] | None = None
    expires: int = 0

    @property
    def id(self) -> str:
        return f"caller:{self.name}"

    def principal(self, scheme: str, proof: bytes) -> Principal:
        return Principal(
            id=self.id,
            scopes=self.scopes,
            schemes=frozenset((scheme,)),
            tenants=self.tenants,
            expires=self.expires,
            proof=proof,
        )


class Written(Struct, frozen=True, forbid_unknown_fields=True):
    """A caller as the file says it."""

    token: str | tuple[str, ...] = ()
    key: str | tuple[str, ...] = ()
    password: str | tuple[str, ...] = ()
    certificate: str | tuple[str, ...] = ()
    scopes: tuple[str, ...] = ()
    tenants: tuple[str, ...] | None = None
    expires: Any = None  # a date or a time, which TOML has and no string passes for


class Callers:
    """Looked up by name, and by the digest of what they present."""

    def __init__(self, clock: Clock, fixed: Iterable[Caller] = (), file: Path | None = None) -> None:
        self._clock = clock
        self._fixed = tuple(fixed)
        self._file = file
        self._stamp: Stamp | None = None
        self._look_at = 0
        self.generation = 0
        self.names: Mapping[str, Caller] = {}
        self.tokens: Mapping[bytes, Caller] = {}
        self.keys: Mapping[bytes, Caller] = {}
        self.certificates: Mapping[bytes, Caller] = {}
        self._take(())

    def open(self) -> None:
        """Read the file. Raises CallersError."""
        if self._file is not None:
            self._stamp = _stamp(self._file)
            self._take(read(self._file))
            self._look_at = self._clock.now() + LOOK_MS

    def refresh(self) -> None:
        """Read the file again if it has changed. Cheap: asks the disk once a second at most."""
        if self._file is None or (now := self._clock.now()) < self._look_at:
            return
        self._look_at = now + LOOK_MS
        if _stamp(self._file) != self._stamp:
            self.reload()

    def reload(self) -> None:
        """Read the file again. What cannot be used is reported and changes nothing."""
        if self._file is None:
            return
        self._stamp = _stamp(self._file)
        try:
            self._take(read(self._file))
        except CallersError as error:
            log.error("Callers stay as they were: %s", error)
        else:
            log.info("Callers were read again: %d", len(self.names))

    def counts(self, caller: Caller) -> bool:
        """Whether that caller's time is not over."""
        return not caller.expires or self._clock.now() < caller.expires

    def _take(self, found: Sequence[Caller]) -> None:
        callers = (*self._fixed, *found)
        names = {each.name: each for each in callers}
        if len(names) < len(callers):
            raise CallersError("A caller of the file has the name of one that the environment sets")
        self.tokens = _table(callers, "tokens")
        self.keys = _table(callers, "keys")
        self.certificates = _table(callers, "certificates")
        self.names = names
        self.generation += 1


def read(file: Path) -> list[Caller]:
    """The callers in the file. Raises CallersError."""
    import tomllib  # only who has a file pays for its parser

    try:
        if file.stat().st_size > LARGEST:
            raise CallersError(f"{file} is larger than {LARGEST} bytes")
        content = tomllib.loads(file.read_text("utf-8"))
    except OSError as error:
        raise CallersError(f"Cannot read {file}: {error.strerror or 'it is not a file'}") from error
    except UnicodeDecodeError as error:
        raise CallersError(f"{file} is not UTF-8") from error
    except tomllib.TOMLDecodeError as error:
        # The parser's own words may quote a line, and a line may be a secret.
        raise CallersError(f"{file} is not valid TOML{_place(str(error))}") from None
    return [_caller(name, table, f"{file}: [{name[:128]}]") for name, table in content.items()]


def _caller(name: str, table: object, where: str) -> Caller:
    if not NAME.fullmatch(name):
        raise CallersError(f"{where}: Expected a name of letters, digits and . _ @ + -")
    if not isinstance(table, dict):
        raise CallersError(f"{where}: Expected a table for each caller")
    written = _written(cast("dict[str, Any]", table), where)
    return Caller(
        name=name,
        tokens=_digests(written.token, f"{where} token"),
        keys=_digests(written.key, f"{where} key"),
        passwords=_passwords(written.password, f"{where} password"),
        certificates=_digests(written.certificate, f"{where} certificate"),
        scopes=frozenset(written.scopes),
        tenants=None if written.tenants is None else frozenset(written.tenants),
        expires=_moment(written.expires),
    )


def _written(table: dict[str, Any], where: str) -> Written:
    for key in table:
        if key not in Written.__struct_fields__:
            raise CallersError(f"{where}: unknown key {key[:40]}. Known: {', '.join(Written.__struct_fields__)}")
    for key, value in table.items():
        try:
            msgspec.convert({key: value}, Written)
        except msgspec.ValidationError:
            raise CallersError(f"{where} {key} has the wrong type") from None
    if not isinstance(table.get("expires", date.min), date):
        raise CallersError(f"{where} expires: Expected a date such as 2027-01-31, without quotes")
    return msgspec.convert(table, Written)


def _digests(written: str | tuple[str, ...], where: str) -> tuple[bytes, ...]:
    try:
        return tuple(read_token_hash(each) for each in _several(written))
    except ValueError as error:
        raise CallersError(f"{where}: {error}") from None


def _passwords(written: str | tuple[str, ...], where: str) -> tuple[str, ...]:
    try:
        return tuple(read_password_hash(each) for each in _several(written))
    except ValueError as error:
        raise CallersError(f"{where}: {error}") from None


def _several(written: str | tuple[str, ...]) -> tuple[str, ...]:
    return (written,) if isinstance(written, str) else written


def _moment(when: datetime | date | None) -> int:
    """Milliseconds. A day without a time counts until it begins, in UTC."""
    if when is None:
        return 0
    if not isinstance(when, datetime):
        when = datetime.combine(when, midnight.min, UTC)
    return round(when.replace(tzinfo=when.tzinfo or UTC).timestamp() * 1000)


def _table(callers: Sequence[Caller], kind: str) -> dict[bytes, Caller]:
    found: dict[bytes, Caller] = {}
    for caller in callers:
        for secret in cast("tuple[bytes, ...]", getattr(caller, kind)):
            if found.setdefault(secret, caller) is not caller:
                raise CallersError(f"{found[secret].name} and {caller.name} have one of their {kind} in common")
    return found


def _stamp(file: Path) -> Stamp | None:
    try:
        found = os.stat(file)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def _place(words: str) -> str:
    match = re.search(r"\(at line \d+, column \d+\)", words)
    return f" {match[0]}" if match else ""
