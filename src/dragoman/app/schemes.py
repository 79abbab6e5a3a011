"""Reads `[auth.schemes.<name>]`, and which of them an agent asks for."""

import re
from collections.abc import Mapping
from typing import Any, cast, get_type_hints

import msgspec

from dragoman.app.mistakes import plain, suggest
from dragoman.app.settings import ApiKey, Basic, Bearer, Jwt, Mtls, Scheme, SettingsError
from dragoman.app.units import read_unit

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")


KINDS: Mapping[str, type[Scheme]] = {
    "bearer": Bearer,
    "api-key": ApiKey,
    "basic": Basic,
    "jwt": Jwt,
    "mtls": Mtls,
}


def read(tables: object, where: str) -> dict[str, Scheme]:
    """Schemes by name. Raises SettingsError, which names the key."""
    if not isinstance(tables, dict):
        raise SettingsError(f"{where}: Expected a table for each scheme; write [auth.schemes.<name>].")
    return {name: _scheme(name, table, where) for name, table in cast("dict[str, Any]", tables).items()}


def _scheme(name: str, table: object, within: str) -> Scheme:
    where = f"{within}: auth.schemes.{name}"
    if not NAME.fullmatch(name):
        raise SettingsError(f"{where}: Expected a name of letters, digits and . _ -")
    if not isinstance(table, dict):
        raise SettingsError(f"{where}: Expected a table; write [auth.schemes.{name}] and its keys below it.")
    given = {key.replace("-", "_"): value for key, value in cast("dict[str, Any]", table).items()}
    kind = KINDS.get(str(given.pop("type", "")))
    if kind is None:
        raise SettingsError(f"{where}.type: Expected one of {', '.join(KINDS)}.")
    hints = get_type_hints(kind)
    values: dict[str, Any] = {}
    for key, value in given.items():
        if key not in kind.__struct_fields__:
            raise SettingsError(f"{where}: unknown key {key}.{suggest(key, kind.__struct_fields__)}")
        try:
            values[key] = msgspec.convert(value, hints[key], dec_hook=read_unit)
        except msgspec.ValidationError as error:
            raise SettingsError(f"{where}.{key}: {plain(error, hints[key])}, got {value!r}.") from None
    return kind(**values)


def together(entry: str, known: Mapping[str, object], where: str) -> tuple[str, ...]:
    """The schemes that one entry of a `require` names: "corp", or "key + certificate". Raises SettingsError."""
    names = tuple(each.strip() for each in entry.split("+"))
    for name in names:
        if name not in known:
            raise SettingsError(f"{where}: there is no scheme called {name!r}.{suggest(name, known)}")
    if len(set(names)) < len(names):
        raise SettingsError(f"{where}: {entry!r} names a scheme twice.")
    return names
