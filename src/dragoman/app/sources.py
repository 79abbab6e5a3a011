"""Where settings come from: flags over environment over file over defaults. What is wrong is named with its source."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast, get_origin, get_type_hints

import msgspec

from dragoman.app import cortex, foreign, schemes
from dragoman.app.mistakes import plain, suggest
from dragoman.app.profiles import PRESETS
from dragoman.app.settings import NAMES, SECTIONS, AgentSettings, Scheme, Settings, SettingsError
from dragoman.app.units import read_unit

DEFAULT_FILE = "dragoman.toml"

ALIASES = {
    "HOST": "host",
    "PORT": "port",
    "A2A_PUBLIC_URL": "public_url",
    "A2A_ALLOWED_ORIGINS": "allowed_origins",
    "PUSH_NOTIFICATION_ALLOWED_HOSTS": "push_allowed_hosts",
    "PUSH_NOTIFICATION_ALLOWED_CIDRS": "push_allowed_cidrs",
}
"""Names other platforms set. The DRAGOMAN_ name wins where both are there."""

AUTH_TOKEN = "A2A_AUTH_TOKEN"
"""A bearer token for every agent, as protoAgent names it."""

KEY_SUFFIX = "_API_KEY"
"""Behind an agent's name, the key its callers send as X-API-Key, as protoAgent names it."""

NOT_SETTINGS = {"DRAGOMAN_CONFIG", "DRAGOMAN_AGENT", f"DRAGOMAN{KEY_SUFFIX}"}

SCHEMES = "auth_schemes"
"""Beside the settings, a keyword of `serve()` and `asgi()`: the tables of `[auth.schemes]` as a dictionary."""


def resolve(
    flags: Mapping[str, Any] | None = None,
    *,
    file: str | Path | None = None,
    environ: Mapping[str, str] | None = None,
) -> Settings:
    """All sources, folded into one frozen object. Raises SettingsError.

    Flags that are None were not given; `--public-url` and `public_url` are one.
    Without `file`, DRAGOMAN_CONFIG names it, else ./dragoman.toml is read if it exists. A file called *.json is
    CortexPrism's configuration.
    """
    environ = os.environ if environ is None else environ
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    agents: tuple[AgentSettings, ...] = ()
    ways = foreign.schemes(environ)
    theirs = cortex.Found("", (), {})

    path, required = _file(file, environ)
    if path.suffix.lower() == ".json":
        theirs = cortex.read(path)
        for name, value, origin in theirs.values:
            _take(name, value, origin, values, origins, text=False)
    elif required or path.is_file():
        agents = _read_file(path, values, origins, ways)
    _read_environment(environ, values, origins)
    for name, value in (flags or {}).items():
        if value is not None:
            key = name.lstrip("-").replace("-", "_")
            if key == SCHEMES:
                ways |= schemes.read(value, name)
                continue
            if key not in NAMES:
                raise SettingsError(f"Unknown setting {name}.{suggest(key, NAMES)}")
            _take(key, value, name, values, origins, text=isinstance(value, str))

    if origins.get("host", "").startswith(cortex.BIND) and "allow_public" not in values:
        values["allow_public"], origins["allow_public"] = True, origins["host"]
    if profile := values.get("profile"):
        for name, value in PRESETS[profile].defaults.items():
            if name not in values:
                values[name], origins[name] = value, f"profile {profile}"
    target = environ.get("DRAGOMAN_AGENT")
    if target:
        agents = (AgentSettings(target=target),)
    sections = {
        section: struct(**{key: values[name] for name, (at, key) in NAMES.items() if at == section and name in values})
        for section, struct in SECTIONS.items()
    }
    return Settings(
        agents=agents,
        schemes=ways,
        remotes=theirs.remotes,
        off=theirs.off,
        origins=origins,
        secrets=_secrets(environ),
        **sections,  # pyright: ignore[reportArgumentType]
    )


def strays(environ: Mapping[str, str] | None = None) -> list[str]:
    """DRAGOMAN_ variables that set nothing. Not an error: Kubernetes makes some up for a Service of our name."""
    environ = os.environ if environ is None else environ
    known = {f"DRAGOMAN_{name.upper()}" for name in NAMES} | NOT_SETTINGS
    return sorted(
        name
        for name, value in environ.items()
        if name.startswith("DRAGOMAN_") and name not in known and not _from_kubernetes(name, value)
    )


def _from_kubernetes(name: str, value: str) -> bool:
    return value.startswith("tcp://") or name.startswith(("DRAGOMAN_SERVICE_", "DRAGOMAN_PORT_"))


def _file(file: str | Path | None, environ: Mapping[str, str]) -> tuple[Path, bool]:
    named = file or environ.get("DRAGOMAN_CONFIG")
    return (Path(named), True) if named else (Path(DEFAULT_FILE), False)


def _read_file(
    path: Path, values: dict[str, Any], origins: dict[str, str], ways: dict[str, Scheme]
) -> tuple[AgentSettings, ...]:
    import tomllib  # only who has a file pays for its parser

    try:
        content = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise SettingsError(f"Cannot read {path}: {error.strerror or 'it is not a file'}.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path} is not valid TOML: {error}.") from error

    agents: tuple[AgentSettings, ...] = ()
    for section, table in content.items():
        if section == "agents":
            agents = tuple(_agent(entry, index, path) for index, entry in enumerate(_list(table, path)))
        elif section not in SECTIONS:
            raise SettingsError(f"{path}: unknown section [{section}].{suggest(section, [*SECTIONS, 'agents'])}")
        elif not isinstance(table, dict):
            raise SettingsError(f"{path}: {section} is a section; write [{section}] and its keys below it.")
        else:
            if section == "auth" and "schemes" in table:
                found = cast("dict[str, Any]", table)
                ways |= schemes.read(found["schemes"], str(path))
                table = {key: value for key, value in found.items() if key != "schemes"}
            _read_section(section, cast("dict[str, Any]", table), path, values, origins)
    return agents


def _read_section(
    section: str, table: dict[str, Any], path: Path, values: dict[str, Any], origins: dict[str, str]
) -> None:
    keys = {key: name for name, (at, key) in NAMES.items() if at == section}
    for written, value in table.items():
        key = written.replace("-", "_")
        if key not in keys:
            raise SettingsError(f"{path}: unknown key {section}.{written}.{suggest(key, keys, section + '.')}")
        _take(keys[key], value, f"{section}.{written} in {path}", values, origins, text=False)


def _list(table: Any, path: Path) -> list[Any]:
    if isinstance(table, list):
        return cast("list[Any]", table)
    raise SettingsError(f"{path}: agents is a list; write [[agents]] above each agent.")


def _agent(entry: Any, index: int, path: Path) -> AgentSettings:
    where = f"{path}: agents[{index}]"
    known = AgentSettings.__struct_fields__
    for key in cast("dict[str, Any]", entry) if isinstance(entry, dict) else ():
        if key not in known:
            raise SettingsError(f"{where}: unknown key {key}.{suggest(key, known)}")
    try:
        return msgspec.convert(entry, AgentSettings)
    except msgspec.ValidationError as error:
        raise SettingsError(f"{where}: {plain(error)}.") from error


def _read_environment(environ: Mapping[str, str], values: dict[str, Any], origins: dict[str, str]) -> None:
    for variable, name in ALIASES.items():
        if environ.get(variable):
            _take(name, environ[variable], variable, values, origins, text=True)
    for name in NAMES:
        variable = f"DRAGOMAN_{name.upper()}"
        value = environ.get(variable)
        if value and not _from_kubernetes(variable, value):
            _take(name, value, variable, values, origins, text=True)


def _secrets(environ: Mapping[str, str]) -> dict[str, bytes]:
    """Digests of the credentials callers may present, as other systems name the variables. Nothing keeps the values."""
    given = {name: value for name, value in environ.items() if value and (name == AUTH_TOKEN or _is_key(name))}
    token = given.get(AUTH_TOKEN, "")
    if " " in token or "," in token or not token.isprintable():
        raise SettingsError(f"{AUTH_TOKEN}: Expected a token without spaces, commas and control characters.")
    if not given:
        return {}
    from dragoman.auth.hashes import digest  # only who has secrets pays for hashing

    return {name: digest(value.encode("utf-8")) for name, value in given.items()}


def _is_key(name: str) -> bool:
    return name.endswith(KEY_SUFFIX) and name != KEY_SUFFIX


def _take(name: str, value: Any, origin: str, values: dict[str, Any], origins: dict[str, str], *, text: bool) -> None:
    """One value from one source, checked. Text from outside a file says numbers, booleans and lists in words."""
    section, key = NAMES[name]
    kind = _kinds(section)[key]
    if text and get_origin(kind) is tuple:
        value = tuple(item.strip() for item in value.split(",") if item.strip())
    try:
        values[name] = msgspec.convert(value, kind, strict=not text, dec_hook=read_unit)
    except msgspec.ValidationError as error:
        raise SettingsError(f"{origin}: {plain(error, kind)}, got {value!r}.") from error
    if isinstance(values[name], int) and not isinstance(values[name], bool) and values[name] < 0:
        raise SettingsError(f"{origin}: Expected a number that is not negative, got {value!r}.")
    if name == "port" and values[name] > 65_535:
        raise SettingsError(f"{origin}: Expected a port up to 65535, got {value!r}.")
    origins[name] = origin


_hints: dict[str, dict[str, Any]] = {}


def _kinds(section: str) -> dict[str, Any]:
    if section not in _hints:
        _hints[section] = get_type_hints(SECTIONS[section])
    return _hints[section]
