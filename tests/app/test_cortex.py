"""Cortex's configuration is read as it stands; what is wrong in it is named."""

import json
from pathlib import Path
from typing import Any

import pytest

from dragoman.app import checks
from dragoman.app.settings import RemoteSettings, Settings, SettingsError
from dragoman.app.sources import resolve
from dragoman.app.units import Seconds, Secret
from dragoman.cli.config import as_toml

PAGE = """{
  "a2a": {
    "enabled": true,
    "server": {
      "port": 3000,
      "bindAddress": "0.0.0.0"
    },
    "remoteAgents": {
      "partner-bot": {
        "endpoint": "https://partner.example.com",
        "agentCardUrl": "https://partner.example.com/.well-known/agent-card.json",
        "authToken": "sk-...",
        "timeout": 60000
      }
    }
  }
}"""


def settings(a2a: object, tmp_path: Path, env: dict[str, str] | None = None, **flags: Any) -> Settings:
    """What comes of a file with this object `a2a`, or with this text."""
    path = tmp_path / "cortex.json"
    path.write_text(a2a if isinstance(a2a, str) else json.dumps({"a2a": a2a}), encoding="utf-8")
    return resolve(flags, file=path, environ=env or {})


def remote(entry: object, tmp_path: Path) -> Settings:
    return settings({"enabled": True, "remoteAgents": {"partner-bot": entry}}, tmp_path)


@pytest.mark.proves("001-48", "001-19", "001-20", "001-49", "001-d16")
def test_the_page_s_configuration_is_read(tmp_path: Path) -> None:
    found = settings(PAGE, tmp_path)
    assert (found.server.host, found.server.port, found.server.allow_public) == ("0.0.0.0", 3000, True)
    assert found.remotes == {
        "partner-bot": RemoteSettings(
            url="https://partner.example.com",
            card_url="https://partner.example.com/.well-known/agent-card.json",
            token=Secret("sk-..."),
            timeout=Seconds(60),
        )
    }
    assert found.origin("port") == f"a2a.server.port in {tmp_path / 'cortex.json'}"
    checks.values(found)
    checks.reach(found)


def test_the_environment_may_name_the_file_and_other_programs_parts_are_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "config.JSON"
    path.write_text('\ufeff{"defaultProvider": "x", "a2a": {"enabled": true, "server": {"port": 9}}, "memory": 3}')
    assert resolve({}, environ={"DRAGOMAN_CONFIG": str(path)}).server.port == 9


@pytest.mark.proves("001-18")
@pytest.mark.parametrize(
    ("a2a", "why"), [({}, "not set"), ({"enabled": None}, "not set"), ({"enabled": False}, "false")]
)
def test_nothing_is_served_unless_it_is_switched_on(a2a: object, why: str, tmp_path: Path) -> None:
    off = settings(a2a, tmp_path)
    with pytest.raises(SettingsError, match=rf'A2A is off: a2a.enabled is {why} in .*cortex.json.*"enabled": true'):
        checks.values(off)
    assert as_toml(off).startswith(f"# A2A is off: a2a.enabled is {why} in ")


@pytest.mark.proves("001-21", "001-d18")
def test_what_the_file_leaves_out_is_as_the_profile_says(tmp_path: Path) -> None:
    found = settings({"enabled": True, "server": {"allowedOrigins": ["https://desk.example"]}}, tmp_path)
    assert found.server.allowed_origins == ("https://desk.example",)
    assert (found.server.profile, found.server.port, found.server.mounts) == ("cortex", 4220, ("/a2a",))
    assert (found.server.host, found.server.allow_public) == ("127.0.0.1", False)
    other = settings({"enabled": True}, tmp_path, {"DRAGOMAN_PROFILE": "proto"}, port=5)
    assert (other.server.profile, other.server.port) == ("proto", 5)


@pytest.mark.proves("001-d16")
def test_an_address_from_elsewhere_is_no_wish_of_the_file_s(tmp_path: Path) -> None:
    local = {"enabled": True, "server": {"bindAddress": "127.0.0.1"}}
    for found in (settings(local, tmp_path, {"HOST": "0.0.0.0"}), settings(local, tmp_path, host="0.0.0.0")):
        with pytest.raises(SettingsError, match="--allow-public"):
            checks.reach(found)
    with pytest.raises(SettingsError, match="bindAddress"):
        checks.reach(settings(PAGE, tmp_path, {"DRAGOMAN_ALLOW_PUBLIC": "false"}))


@pytest.mark.proves("001-d17", "001-49")
@pytest.mark.parametrize(
    ("a2a", "words"),
    [
        ("{", ["not valid JSON"]),
        ("[]", ["no object a2a", "TOML"]),
        ('{"server": {"port": 1}}', ["no object a2a"]),
        ('{"a2a": true}', ["a2a", "object"]),
        ({"enable": True}, ["unknown key a2a.enable.", "Did you mean a2a.enabled?"]),
        ({"enabled": "yes"}, ["a2a.enabled", "bool", "'yes'"]),
        ({"server": []}, ["a2a.server", "object"]),
        ({"server": {"host": "::"}}, ["unknown key a2a.server.host.", "bindAddress"]),
        ({"server": {"port": "3000"}}, ["a2a.server.port", "int", "'3000'"]),
        ({"server": {"port": 70_000}}, ["a2a.server.port", "65535"]),
        ({"server": {"allowedOrigins": "*"}}, ["a2a.server.allowedOrigins", "array"]),
        ({"server": {"bindAddress": 4}}, ["a2a.server.bindAddress", "str"]),
        ({"remoteAgents": []}, ["a2a.remoteAgents", "object"]),
        ({"remoteAgents": {"": {}}}, ["a2a.remoteAgents", "no name"]),
        ({"remoteAgents": {"a\nb": {}}}, ["a2a.remoteAgents", "no name"]),
    ],
)
def test_a_mistake_names_the_file_and_the_key(a2a: object, words: list[str], tmp_path: Path) -> None:
    with pytest.raises(SettingsError) as caught:
        settings(a2a, tmp_path)
    for word in ["cortex.json", *words]:
        assert word in str(caught.value)


@pytest.mark.proves("001-d17", "001-49")
@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ("https://a.example", ["partner-bot", "object"]),
        ({}, ["partner-bot", "endpoint is missing"]),
        ({"endpont": "https://a.example"}, ["unknown key", "partner-bot.endpont.", "partner-bot.endpoint?"]),
        ({"endpoint": 3}, ["partner-bot.endpoint", "str"]),
        ({"endpoint": "partner.example.com"}, ["partner-bot.endpoint", "https://"]),
        ({"endpoint": "file:///etc/passwd"}, ["partner-bot.endpoint"]),
        ({"endpoint": "https://"}, ["partner-bot.endpoint"]),
        ({"endpoint": "https://a.example:x"}, ["partner-bot.endpoint"]),
        ({"endpoint": "https://me:hunter2@a.example"}, ["partner-bot.endpoint"]),
        ({"endpoint": "https://a.example", "agentCardUrl": "/card"}, ["partner-bot.agentCardUrl"]),
        ({"endpoint": "https://a.example", "timeout": "60s"}, ["partner-bot.timeout", "'60s'"]),
        ({"endpoint": "https://a.example", "timeout": 0}, ["partner-bot.timeout", "milliseconds"]),
        ({"endpoint": "https://a.example", "authToken": "hunter2\r\nX-Evil: 1"}, ["partner-bot.authToken"]),
        ({"endpoint": "https://a.example", "authToken": ["hunter2"]}, ["partner-bot.authToken", "str"]),
        ({"endpoint": "https://a.example", "capabilities": "x"}, ["partner-bot.capabilities", "array"]),
    ],
)
def test_a_mistake_in_a_remote_agent_names_it_and_shows_no_secret(
    entry: object, words: list[str], tmp_path: Path
) -> None:
    with pytest.raises(SettingsError) as caught:
        remote(entry, tmp_path)
    for word in ["cortex.json", *words]:
        assert word in str(caught.value)
    assert "hunter2" not in str(caught.value)


@pytest.mark.proves("001-49")
def test_a_remote_agent_needs_nothing_but_its_address(tmp_path: Path) -> None:
    entry = {"endpoint": "http://127.0.0.1:3000/", "agentCardUrl": None, "capabilities": ["network:fetch"]}
    assert remote(entry, tmp_path).remotes == {
        "partner-bot": RemoteSettings(
            url="http://127.0.0.1:3000/", timeout=Seconds(120), capabilities=("network:fetch",)
        )
    }


def test_the_settings_in_effect_are_shown_without_the_token(tmp_path: Path) -> None:
    found = settings(PAGE, tmp_path)
    shown = as_toml(found)
    assert "# remote agent partner-bot: https://partner.example.com, with a token" in shown
    assert f"port = 3000  # a2a.server.port in {tmp_path / 'cortex.json'}" in shown
    for text in (shown, repr(found)):
        assert "sk-..." not in text
    assert (
        repr(RemoteSettings(url="")) == "RemoteSettings(url='', card_url='', token='', timeout=120.0, capabilities=())"
    )


def test_a_file_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"Cannot read .*none.json"):
        resolve({}, file=tmp_path / "none.json", environ={})
