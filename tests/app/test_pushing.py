"""From settings to who sends webhooks, and what the cards say about it."""

from pathlib import Path

import pytest

from dragoman import Agent
from dragoman.app import checks, pushing
from dragoman.app.profiles import PRESETS, dress
from dragoman.app.settings import Settings, SettingsError
from dragoman.app.sources import resolve
from dragoman.app.undelivered import socket_of
from dragoman.app.units import Seconds
from dragoman.auth.keys import SigningKeys, generate, parse_keys
from dragoman.client.dialler import Dialler
from dragoman.client.exchange import Reply
from dragoman.push.verdict import of_reply
from tests.push.deliveries import delivery

AGENT = Agent("Desk", description="Answers.")


def settings(**given: object) -> Settings:
    return resolve(given, environ={})


def test_waits_are_read_from_every_source(tmp_path: Path) -> None:
    (tmp_path / "dragoman.toml").write_text('[push]\nretries = ["250ms", 2]\n')
    assert resolve({}, file=tmp_path / "dragoman.toml", environ={}).push.retries == (Seconds(0.25), Seconds(2))
    assert resolve({}, environ={"DRAGOMAN_PUSH_RETRIES": "1s, 1m"}).push.retries == (Seconds(1), Seconds(60))
    assert settings(push_retries=("5s",)).push.retries == (Seconds(5),)
    assert resolve({}, environ={"DRAGOMAN_PUSH_RETRIES": ","}).push.retries == ()
    with pytest.raises(SettingsError, match=r"^push_retries: Expected a duration"):
        settings(push_retries="soon")


@pytest.mark.proves("S-12-19")
def test_what_holds_where_nobody_says_otherwise() -> None:
    assert Settings().push.enabled
    for status in range(400, 500):
        assert of_reply(Reply(status), 0, pushing.outgoing(Settings()), 0).dead
    for port in (80, 443, 1024, 8080, 65_535):
        checks.addresses(Settings()).target(f"https://desk.example:{port}/")


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_webhooks_are_on_but_in_the_profile_of_a_system_without_them(name: str) -> None:
    assert settings(profile=name).push.enabled == (name != "coding-agent")
    assert settings(profile=name, push="true").push.enabled


def test_every_agents_card_says_whether_there_are_webhooks() -> None:
    agents = {"": AGENT, "other": Agent("Other", description="Answers too.")}
    for profile in ("", "proto"):
        for push in (True, False):
            dressed = dress(agents, profile, push=push, demo=False)
            assert [each.profile.push for each in dressed.values()] == [push, push]
            assert [each.profile.name for each in dressed.values()] == ["Desk", "Other"]


def test_the_issuer_is_the_one_set_or_the_address_or_the_product() -> None:
    signer = SigningKeys(parse_keys(generate("ES256")))

    def issuer(**given: object) -> str:
        letters = pushing.letters(settings(**given), signer)
        return str(letters._claims(delivery(), b"", 1)["iss"])

    assert issuer(push_issuer="me", public_url="https://desk.example/") == "me"
    assert issuer(public_url="https://desk.example/") == "https://desk.example"
    assert issuer() == "dragoman"


def test_signing_can_be_left_out() -> None:
    signer = SigningKeys(parse_keys(generate("ES256")))
    for push_signed in (True, False):
        letters = pushing.letters(settings(push_signed=push_signed), signer)
        names = {name for name, _ in letters.headers(delivery(), b"", "application/json", 1)}
        assert ("X-A2A-Notification-Signature" in names) == push_signed


def test_the_dialler_knows_the_proxy_and_the_authorities(tmp_path: Path) -> None:
    ca_file = tmp_path / "ca.pem"
    made: Dialler = pushing.dialler(settings(push_proxy="http://proxy.internal:3128", push_ca_file=str(ca_file)))
    assert (made._proxy, made._ca_file) == (("proxy.internal", 3128), str(ca_file))
    assert pushing.dialler(Settings())._proxy is None


def test_the_local_socket_lies_beside_the_file(tmp_path: Path) -> None:
    assert socket_of(settings(store=f"{tmp_path}/a.db")) == tmp_path / "a.db-control"
    assert socket_of(settings(store="memory://")) is None
