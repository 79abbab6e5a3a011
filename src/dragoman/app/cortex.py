"""CortexPrism's configuration, read as it stands: the object `a2a` of its JSON file. The other objects are Cortex's.

Its page says `enabled` defaults to false, and `bindAddress` is where its server listens. So a file that does not switch
A2A on serves nothing, and an address in it is an explicit wish to be reached there.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, cast
from urllib.parse import urlsplit

import msgspec

from dragoman.app.mistakes import plain, suggest
from dragoman.app.settings import RemoteSettings, SettingsError
from dragoman.app.units import Seconds, Secret

BIND = "a2a.server.bindAddress"
WHOLE: Mapping[str, Any] = {"enabled": bool, "server": dict[str, Any], "remoteAgents": dict[str, Any]}
SERVER = {"port": "port", "bindAddress": "host", "allowedOrigins": "allowed_origins"}
REMOTE: Mapping[str, Any] = {
    "endpoint": str,
    "agentCardUrl": str,
    "authToken": str,
    "timeout": float,
    "capabilities": tuple[str, ...],
}
SECRETS = {"authToken"}


class Found(NamedTuple):
    """What the file says. `off` says why nothing is served, `values` are settings under our names, each with the key it
    came from; they are not checked yet."""

    off: str
    values: tuple[tuple[str, Any, str], ...]
    remotes: dict[str, RemoteSettings]


def read(path: Path) -> Found:
    """Raises SettingsError, which names the file and the key."""
    whole = _members(_file(path), WHOLE, "a2a", path)
    server = _members(whole.get("server", {}), dict.fromkeys(SERVER, Any), "a2a.server", path)
    off = ""
    if not whole.get("enabled", False):
        off = f"a2a.enabled is {'false' if 'enabled' in whole else 'not set'} in {path}"
    return Found(
        off,
        (
            ("profile", "cortex", str(path)),
            *((SERVER[key], value, f"a2a.server.{key} in {path}") for key, value in server.items()),
        ),
        {name: _remote(name, entry, path) for name, entry in whole.get("remoteAgents", {}).items()},
    )


def _file(path: Path) -> Any:
    try:
        whole = msgspec.json.decode(path.read_text("utf-8-sig"))
    except OSError as error:
        raise SettingsError(f"Cannot read {path}: {error.strerror or 'it is not a file'}.") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path} is not valid JSON: {error}.") from error
    if not isinstance(whole, dict) or "a2a" not in whole:
        raise SettingsError(
            f"{path} has no object a2a: a JSON file is read as CortexPrism's configuration. "
            "Dragoman's own settings are written in TOML, see docs/configuration.md."
        )
    return cast("dict[str, Any]", whole)["a2a"]


def _members(value: Any, known: Mapping[str, Any], where: str, path: Path) -> dict[str, Any]:
    """The members that are there, each of its type. Null is as good as absent."""
    if not isinstance(value, dict):
        raise SettingsError(f"{where} in {path}: Expected an object in braces, got {value!r}.")
    found: dict[str, Any] = {}
    for key, member in cast("dict[str, Any]", value).items():
        if key not in known:
            raise SettingsError(f"{path}: unknown key {where}.{key}.{suggest(key, known, where + '.')}")
        if member is None:
            continue
        try:
            found[key] = msgspec.convert(member, known[key])
        except msgspec.ValidationError as error:
            got = "" if key in SECRETS else f", got {member!r}"
            raise SettingsError(f"{where}.{key} in {path}: {plain(error)}{got}.") from error
    return found


def _remote(name: str, entry: Any, path: Path) -> RemoteSettings:
    where = f"a2a.remoteAgents.{name}"
    if not name or not name.isprintable():
        raise SettingsError(f"a2a.remoteAgents in {path}: {name!r} is no name for an agent.")
    members = _members(entry, REMOTE, where, path)
    if "endpoint" not in members:
        raise SettingsError(f"{where} in {path}: endpoint is missing; it is the agent's address.")
    for key in ("endpoint", "agentCardUrl"):
        if key in members and not _address(members[key]):
            raise SettingsError(f"{where}.{key} in {path}: Expected an address such as https://partner.example.com.")
    token: str = members.get("authToken", "")
    if not token.isascii() or not token.isprintable() or " " in token:
        raise SettingsError(f"{where}.authToken in {path}: Expected letters, digits and signs without spaces.")
    milliseconds: float = members.get("timeout", 120_000)
    if not 0 < milliseconds < float("inf"):
        raise SettingsError(f"{where}.timeout in {path}: Expected milliseconds above 0, got {milliseconds:g}.")
    return RemoteSettings(
        url=members["endpoint"],
        card_url=members.get("agentCardUrl", ""),
        token=Secret(token),
        timeout=Seconds(milliseconds / 1000),
        capabilities=members.get("capabilities", ()),
    )


def _address(url: str) -> bool:
    """Whether a client can call it. Credentials belong in authToken: an address is shown and logged."""
    try:
        split = urlsplit(url)
        named = split.hostname and (split.port is None or split.port > 0)
    except ValueError:
        return False
    return bool(named) and split.scheme in ("http", "https") and "@" not in split.netloc and not split.fragment
