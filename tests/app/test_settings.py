"""Flag over environment over file over default, and every mistake named with its source."""

from pathlib import Path
from typing import Any

import pytest

from dragoman.app.settings import NAMES, SECTIONS, Settings, SettingsError, flat, value_of
from dragoman.app.sources import resolve, strays
from dragoman.app.units import Bytes, Seconds


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "dragoman.toml"
    path.write_text(text)
    return path


def settings(text: str = "", tmp_path: Path | None = None, env: dict[str, str] | None = None, **flags: Any) -> Settings:
    file = written(tmp_path, text) if tmp_path else None
    return resolve(flags, file=file, environ=env or {})


def test_flat_names_are_unique() -> None:
    assert len(NAMES) == sum(len(struct.__struct_fields__) for struct in SECTIONS.values())


def test_defaults_hold_when_nobody_says_otherwise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert resolve({}, environ={}) == Settings()


def test_a_file_in_the_working_directory_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path, "[server]\nport = 9000\n")
    monkeypatch.chdir(tmp_path)
    assert resolve({}, environ={}).server.port == 9000


def test_environment_names_the_file(tmp_path: Path) -> None:
    path = written(tmp_path, "[server]\nport = 9000\n")
    assert resolve({}, environ={"DRAGOMAN_CONFIG": str(path)}).server.port == 9000


def test_flag_beats_environment_beats_file(tmp_path: Path) -> None:
    file = "[server]\nport = 1\nhost = 'file.example'\npublic_url = 'https://file.example'\n"
    env = {"DRAGOMAN_PORT": "2", "DRAGOMAN_HOST": "env.example"}
    found = settings(file, tmp_path, env, port=3)
    assert (found.server.port, found.server.host, found.server.public_url) == (3, "env.example", "https://file.example")
    assert found.origins["port"] == "port"
    assert found.origins["host"] == "DRAGOMAN_HOST"
    assert found.origins["public_url"].startswith("server.public_url in ")


def test_a_flag_that_was_not_given_sets_nothing() -> None:
    assert settings(env={"PORT": "2"}, port=None).server.port == 2


@pytest.mark.parametrize(
    ("variable", "name", "text", "value"),
    [
        ("HOST", "host", "0.0.0.0", "0.0.0.0"),
        ("PORT", "port", "8123", 8123),
        ("A2A_PUBLIC_URL", "public_url", "https://a.example", "https://a.example"),
        ("DRAGOMAN_STORE", "store", "memory://", "memory://"),
        ("DRAGOMAN_LOG_LEVEL", "log_level", "debug", "debug"),
        ("DRAGOMAN_ALLOW_PUBLIC", "allow_public", "true", True),
        ("DRAGOMAN_ALLOW_PUBLIC", "allow_public", "1", True),
        ("DRAGOMAN_ALLOWED_HOSTS", "allowed_hosts", "a.example, b.example", ("a.example", "b.example")),
        ("DRAGOMAN_RETENTION", "retention", "12h", 43_200.0),
        ("DRAGOMAN_LIMIT_BODY", "limit_body", "2MiB", 2 * 1024 * 1024),
    ],
)
def test_environment_says_it_in_words(variable: str, name: str, text: str, value: object) -> None:
    assert value_of(settings(env={variable: text}), name) == value


@pytest.mark.parametrize(("alias", "name"), [("HOST", "host"), ("PORT", "port"), ("A2A_PUBLIC_URL", "public_url")])
def test_our_own_name_wins_over_a_platforms(alias: str, name: str) -> None:
    found = settings(env={alias: "1", f"DRAGOMAN_{name.upper()}": "2"})
    assert str(value_of(found, name)) == "2"


@pytest.mark.parametrize("name", sorted(NAMES))
def test_every_setting_is_read_from_the_file_under_its_section_and_from_its_variable(name: str, tmp_path: Path) -> None:
    section, key = NAMES[name]
    default = value_of(Settings(), name)
    toml, text, value = ('"a2x"', "a2x", "a2x") if name == "profile" else other_than(default)
    assert value_of(settings(f"[{section}]\n{key} = {toml}\n", tmp_path), name) == value
    assert value_of(settings(env={f"DRAGOMAN_{name.upper()}": text}), name) == value
    assert value_of(resolve({name: text}, environ={}), name) == value


def other_than(default: object) -> tuple[str, str, object]:
    if isinstance(default, bool):
        return str(not default).lower(), str(not default).lower(), not default
    if isinstance(default, Seconds):
        return '"7m"', "7m", 420.0
    if isinstance(default, Bytes):
        return '"3KiB"', "3KiB", 3072
    if isinstance(default, int):
        return "7", "7", 7
    if isinstance(default, tuple) and default and isinstance(default[0], Seconds):
        return '["7m", 2]', "7m,2", (420.0, 2.0)
    if isinstance(default, tuple):
        return '["one", "two"]', "one,two", ("one", "two")
    if default in ("info", "auto"):
        other = {"info": "error", "auto": "json"}[str(default)]
        return f'"{other}"', other, other
    return '"other"', "other", "other"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[server]\nprot = 1", ["unknown key server.prot", "server.port"]),
        ("[srever]\nport = 1", ["unknown section [srever]", "server"]),
        ("[server]\nport = '1'", ["server.port", "int", "'1'"]),
        ("[server]\nport = 70000", ["server.port", "65535"]),
        ("[server]\nport = -1", ["server.port", "negative"]),
        ("[server]\nallow_public = 'yes'", ["server.allow_public", "bool"]),
        ("[server]\nallowed_hosts = 'a'", ["server.allowed_hosts", "array"]),
        ("[store]\nretention = 'soon'", ["store.retention", "duration", "'soon'"]),
        ("[limits]\nbody = '8 elephants'", ["limits.body", "size"]),
        ("[limits]\nparts = true", ["limits.parts", "int"]),
        ("[log]\nlevel = 'loud'", ["log.level", "one of debug, info, warning, error", "'loud'"]),
        ("[server]\nprofile = 'nope'", ["server.profile", "one of official, coding-agent, cortex, simple, a2x, proto"]),
        ("server = 3", ["[server]"]),
        ("[agents]\ntarget = 'a'", ["[[agents]]"]),
        ("[[agents]]\nslug = 'a'", ["agents[0]", "target"]),
        ("[[agents]]\ntarget = 'a'\nslog = 'a'", ["agents[0]", "slog", "slug"]),
        ("agents = [1]", ["agents[0]", "object"]),
        ("[server\n", ["not valid TOML"]),
    ],
)
def test_a_mistake_in_the_file_names_the_file_and_the_key(tmp_path: Path, text: str, words: list[str]) -> None:
    with pytest.raises(SettingsError) as caught:
        settings(text, tmp_path)
    for word in ["dragoman.toml", *words]:
        assert word in str(caught.value)
    assert "$" not in str(caught.value)


def test_dashes_are_read_as_underscores(tmp_path: Path) -> None:
    assert settings("[server]\npublic-url = 'https://a.example'", tmp_path).server.public_url == "https://a.example"


def test_a_mistake_in_the_environment_names_the_variable() -> None:
    with pytest.raises(SettingsError, match=r"^PORT: Expected int, got 'http'"):
        settings(env={"PORT": "http"})


def test_an_unknown_flag_is_an_error_with_a_suggestion() -> None:
    with pytest.raises(SettingsError, match=r"Unknown setting publik_url. Did you mean public_url\?"):
        settings(publik_url="x")


def test_a_named_file_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="Cannot read"):
        resolve({}, file=tmp_path / "none.toml", environ={})


def test_variables_that_set_nothing_are_told_apart_from_those_kubernetes_makes_up() -> None:
    env = {
        "DRAGOMAN_PORT": "tcp://10.0.0.1:80",
        "DRAGOMAN_SERVICE_HOST": "10.0.0.1",
        "DRAGOMAN_PORT_80_TCP_ADDR": "10.0.0.1",
        "DRAGOMAN_PROT": "1",
        "DRAGOMAN_CONFIG": "x",
        "OTHER": "1",
    }
    assert strays(env) == ["DRAGOMAN_PROT"]
    assert resolve({}, file=None, environ={k: v for k, v in env.items() if k != "DRAGOMAN_CONFIG"}).server.port == 8000


def test_agents_come_from_the_file_and_a_variable_replaces_them(tmp_path: Path) -> None:
    text = "[[agents]]\ntarget = 'a.py'\n[[agents]]\ntarget = 'b:agent'\nslug = 'b'\n"
    assert [(a.target, a.slug) for a in settings(text, tmp_path).agents] == [("a.py", ""), ("b:agent", "b")]
    assert [a.target for a in settings(text, tmp_path, {"DRAGOMAN_AGENT": "c.py"}).agents] == ["c.py"]


def test_the_flat_name_of_a_setting_is_its_key_but_for_three_sections() -> None:
    assert flat("server", "port") == "port"
    assert flat("store", "url") == "store"
    assert flat("store", "retention") == "retention"
    assert flat("limits", "body") == "limit_body"
    assert flat("log", "level") == "log_level"
