"""A server that anybody could reach and use refuses to start, unless told that this is meant."""

import pytest

from dragoman.app.checks import addresses, certificates, loopback, reach, values
from dragoman.app.settings import SettingsError
from dragoman.app.sources import resolve
from dragoman.model.errors import AddressRefused


@pytest.mark.proves("D-2-11")
@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "::1", "[::1]", "localhost", "LOCALHOST."])
def test_loopback_needs_no_leave(host: str) -> None:
    assert loopback(host)
    reach(resolve({"host": host}, environ={}))


@pytest.mark.proves("D-2-11")
def test_nobody_listens_beyond_this_machine_unasked() -> None:
    assert loopback(resolve({}, environ={}).server.host)


@pytest.mark.proves("S-9-6")
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


@pytest.mark.parametrize(
    ("variable", "value", "hint"),
    [
        ("PUSH_NOTIFICATION_ALLOWED_HOSTS", "workstacean,http://desk.internal", "'http://desk.internal'"),
        ("PUSH_NOTIFICATION_ALLOWED_HOSTS", "desk.internal:0", "'desk.internal:0'"),
        ("PUSH_NOTIFICATION_ALLOWED_CIDRS", "10.0.0.0/8,172.16.0.0/33", "'172.16.0.0/33'"),
        ("PUSH_NOTIFICATION_ALLOWED_CIDRS", "10.1.2.3/8", "10.0.0.0/8"),
        ("PUSH_NOTIFICATION_ALLOWED_CIDRS", "nearby", "'nearby'"),
    ],
)
def test_an_allowed_webhook_address_that_is_none_is_refused_by_its_variable(
    variable: str, value: str, hint: str
) -> None:
    with pytest.raises(SettingsError, match=f"^{variable}: Expected a ") as refused:
        values(resolve({}, environ={variable: value}))
    assert hint in str(refused.value)


@pytest.mark.parametrize(
    ("setting", "value", "words"),
    [
        ("push_total", "0", "push_total: Expected more than 0; to send none, set push = false."),
        ("push_per_receiver", "0", "push_per_receiver: Expected more than 0"),
        ("push_timeout", "0s", "push_timeout: Expected more than 0"),
        ("push_proxy", "proxy.internal:3128", "push_proxy: Expected an address such as http://proxy.internal:3128"),
        ("push_proxy", "socks5://proxy.internal", "push_proxy: Expected an address"),
        ("push_proxy", "http://me:secret@proxy.internal", "without a password"),
        ("push_ca_file", "none.pem", "push_ca_file: There is no file none.pem."),
    ],
)
def test_what_would_send_nothing_is_refused_by_its_settings_name(setting: str, value: str, words: str) -> None:
    with pytest.raises(SettingsError) as refused:
        values(resolve({setting: value}, environ={}))
    assert words in str(refused.value) and "secret" not in str(refused.value)
    values(resolve({"push_proxy": "http://proxy.internal:3128"}, environ={}))


def test_loopback_receivers_are_a_setting_of_their_own() -> None:
    closed, local = addresses(resolve({}, environ={})), addresses(resolve({"push_allow_loopback": True}, environ={}))
    for url in ("http://127.0.0.1:9000/hook", "http://[::1]:9000/hook"):
        local.target(url)
        with pytest.raises(AddressRefused):
            closed.target(url)
    with pytest.raises(AddressRefused):
        local.target("http://10.0.0.1/hook")
    with pytest.raises(AddressRefused, match="https"):
        addresses(resolve({"push_https_only": True}, environ={})).target("http://desk.example/hook")


@pytest.mark.parametrize(
    ("scheme", "settings", "told"),
    [
        ({"header": "X-Cert"}, {}, "auth.schemes.c.header: Expected trusted_proxies"),
        ({}, {}, "auth.schemes.c: Expected tls_client_ca"),
        ({"header": "X-Cert"}, {"trusted_proxies": "10.0.0.1"}, ""),
        ({}, {"tls_client_ca": "ca.pem"}, ""),
    ],
)
def test_a_certificate_must_have_a_way_to_get_here(scheme: dict[str, str], settings: dict[str, str], told: str) -> None:
    given = resolve(
        {"auth_schemes": {"b": {"type": "bearer"}, "c": {"type": "mtls", **scheme}}, **settings}, environ={}
    )
    if not told:
        certificates(given)
        return
    with pytest.raises(SettingsError) as caught:
        certificates(given)
    assert str(caught.value).startswith(told)


def test_addresses_that_mean_something_pass() -> None:
    values(resolve({"public_url": "https://desk.example/a", "trusted_proxies": "10.0.0.0/8,::1"}, environ={}))
