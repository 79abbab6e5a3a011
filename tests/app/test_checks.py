"""A server that anybody could reach and use refuses to start, unless told that this is meant."""

import pytest

from dragoman.app.checks import loopback, reach, values
from dragoman.app.settings import SettingsError
from dragoman.app.sources import resolve


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "::1", "[::1]", "localhost", "LOCALHOST."])
def test_loopback_needs_no_leave(host: str) -> None:
    assert loopback(host)
    reach(resolve({"host": host}, environ={}))


@pytest.mark.parametrize(
    "host", ["0.0.0.0", "::", "192.168.1.5", "example.com", "localhost.example.com", "127.0.0.1.nip.io"]
)
def test_anything_else_is_refused_and_the_flag_that_allows_it_is_named(host: str) -> None:
    with pytest.raises(SettingsError, match="--allow-public"):
        reach(resolve({"host": host}, environ={}))
    reach(resolve({"host": host, "allow_public": True}, environ={}))


def test_the_refusal_says_where_the_address_came_from() -> None:
    with pytest.raises(SettingsError, match=r"0.0.0.0 \(HOST\)"):
        reach(resolve({}, environ={"HOST": "0.0.0.0"}))


def test_every_address_at_once_is_not_loopback() -> None:
    assert not loopback("")


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("public_url", "desk.example"),
        ("public_url", "ftp://desk.example"),
        ("public_url", "https://"),
        ("public_url", "https://desk.example/?a=1"),
        ("trusted_proxies", "10.0.0.0/8, nearby"),
    ],
)
def test_an_address_that_is_none_is_refused_by_its_settings_name(setting: str, value: str) -> None:
    with pytest.raises(SettingsError, match=f"^{setting}: Expected an address"):
        values(resolve({setting: value}, environ={}))


def test_a_card_can_only_name_versions_there_are() -> None:
    values(resolve({"card_versions": "1.0, 0.3"}, environ={}))
    with pytest.raises(SettingsError, match=r"^card_versions: Expected 1\.0 or 0\.3, got '2\.0'"):
        values(resolve({"card_versions": "1.0,2.0"}, environ={}))


def test_addresses_that_mean_something_pass() -> None:
    values(resolve({"public_url": "https://desk.example/a", "trusted_proxies": "10.0.0.0/8,::1"}, environ={}))
