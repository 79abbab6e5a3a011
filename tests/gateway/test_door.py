"""Who may come in: hosts, origins and proxies."""

from contextlib import nullcontext
from typing import Any

import pytest

from dragoman.gateway.door import REMEMBERED, Door
from dragoman.gateway.settings import GatewaySettings
from dragoman.model.errors import Forbidden, InvalidRequest

OPEN = GatewaySettings(
    hosts=("Desk.example", "*.team.example", "odd.example:8443", "2001:db8::1", "[2001:db8::2]"),
    origins=("https://app.example/",),
    proxies=("10.0.0.0/8", "2001:db8::/32"),
)


def comes_in(ok: bool) -> Any:
    return nullcontext() if ok else pytest.raises(Forbidden)


@pytest.mark.proves("S-9-1")
@pytest.mark.parametrize(
    ("host", "ok"),
    [
        ("localhost", True),
        ("LOCALHOST:8000", True),
        ("localhost.", True),
        ("app.localhost:1", True),
        ("127.0.0.1", True),
        ("127.8.9.1:8000", True),
        ("[::1]:8000", True),
        ("desk.example", True),
        ("desk.example:444", True),
        ("a.team.example", True),
        ("a.b.team.example:1", True),
        ("odd.example:8443", True),
        ("[2001:db8::2]", True),
        ("odd.example", False),
        ("team.example", False),
        ("evilteam.example", False),
        ("desk.example.evil.example", False),
        ("127.0.0.1.evil.example", False),
        ("localhost.evil.example", False),
        ("notlocalhost", False),
        ("10.0.0.1", False),
        ("0.0.0.0", False),
        ("127.1", False),
        ("0x7f000001", False),
        ("[::]", False),
        ("", False),
        ("a b", False),
        ("user@localhost", False),
        ("localhost/", False),
        ("localhost, localhost", False),
        ("localhost:80:80", False),
        ("localhost\x00", False),
        ("x" * 300, False),
    ],
)
def test_a_host_is_loopback_or_configured(host: str, ok: bool) -> None:
    door = Door(OPEN)
    for _ in range(2):  # the second time from memory
        with comes_in(ok):
            door.check({"host": host}, "127.0.0.1")


def test_any_host_may_be_allowed_but_it_must_still_be_one() -> None:
    door = Door(GatewaySettings(hosts=("*",)))
    door.check({"host": "whatever.example:1"}, "")
    with pytest.raises(Forbidden):
        door.check({"host": 'a"><script>'}, "")


@pytest.mark.parametrize(
    ("host", "ok"),
    [
        ("192.168.1.5:3000", True),
        ("[2001:db8::9]:3000", True),
        ("0.0.0.0:3000", False),
        ("[::]:3000", False),
        ("192.168.1.5.evil.example", False),
        ("192.168.257", False),
        ("desk.example", False),
    ],
)
def test_who_listens_everywhere_answers_to_every_address_and_to_no_name(host: str, ok: bool) -> None:
    with comes_in(ok):
        Door(GatewaySettings(by_address=True)).check({"host": host}, "192.168.1.9")


def test_remembering_hosts_and_peers_is_bounded() -> None:
    door = Door(GatewaySettings(hosts=("*",)))
    for number in range(REMEMBERED * 3):
        door.check({"host": f"h{number}.example"}, "")
        door.trusts(f"10.0.{number // 256}.{number % 256}")
    assert len(door._welcome) <= REMEMBERED
    assert len(door._trusted) <= REMEMBERED


@pytest.mark.proves("S-9-2")
@pytest.mark.parametrize(
    ("origin", "ok"),
    [
        ("http://localhost:8000", True),
        ("https://app.example", True),
        ("HTTPS://APP.EXAMPLE", True),
        ("http://app.example", False),
        ("https://app.example:8443", False),
        ("http://localhost:3000", False),
        ("http://localhost:8000.evil.example", False),
        ("null", False),
        ("", False),
        ("https://evil.example", False),
        ("file://", False),
    ],
)
def test_a_page_is_ours_or_configured(origin: str, ok: bool) -> None:
    with comes_in(ok):
        Door(OPEN).check({"host": "localhost:8000", "origin": origin}, "127.0.0.1")


@pytest.mark.proves("S-9-4")
def test_our_own_pages_may_call_but_are_given_no_cors() -> None:
    door = Door(OPEN)
    assert not door.shared("http://localhost:8000")
    assert door.shared("https://app.example")


def test_the_public_address_is_a_host_and_an_origin() -> None:
    door = Door(GatewaySettings(public_url="https://Desk.example/a2a/"))
    door.check({"host": "desk.example", "origin": "https://desk.example"}, "")
    assert door.base({"host": "localhost"}, "http", "/x") == "https://Desk.example/a2a"


@pytest.mark.proves("S-9-5")
@pytest.mark.parametrize(
    ("peer", "ok"),
    [
        ("10.1.2.3", True),
        ("::ffff:10.1.2.3", True),
        ("2001:db8::9", True),
        ("11.0.0.1", False),
        ("", False),
        ("x", False),
    ],
)
def test_forwarding_headers_come_from_trusted_proxies_only(peer: str, ok: bool) -> None:
    door = Door(OPEN)
    for name in ("x-forwarded-for", "x-real-ip", "forwarded", "x-forwarded-proto"):
        with comes_in(ok):
            door.check({"host": "localhost", name: "for=1.2.3.4"}, peer)


def test_a_forwarded_host_must_be_one_of_ours_and_is_the_one_pages_are_compared_with() -> None:
    door = Door(OPEN)
    through = {"host": "localhost", "x-forwarded-host": "desk.example"}
    door.check(through | {"origin": "https://desk.example"}, "10.0.0.1")
    with pytest.raises(Forbidden):
        door.check(through | {"origin": "http://localhost"}, "10.0.0.1")
    for name, value in (("x-forwarded-host", "evil.example"), ("forwarded", "host=evil.example")):
        with pytest.raises(Forbidden):
            door.check({"host": "localhost", name: value}, "10.0.0.1")


@pytest.mark.parametrize(
    ("headers", "address"),
    [
        ({}, "10.0.0.1"),
        ({"x-forwarded-for": "192.0.2.7"}, "192.0.2.7"),
        ({"x-forwarded-for": "1.1.1.1, 192.0.2.7, 10.0.0.2"}, "192.0.2.7"),
        ({"x-forwarded-for": "192.0.2.7:5000"}, "192.0.2.7"),
        ({"x-forwarded-for": "_" + "x" * 9_000}, "_" + "x" * 63),
        ({"forwarded": 'for="[2001:db9::1]:80";proto=http, for=10.9.9.9'}, "2001:db9::1"),
        ({"x-forwarded-for": "10.0.0.9"}, "10.0.0.1"),
        ({"x-forwarded-proto": "https"}, "10.0.0.1"),
    ],
)
def test_the_caller_is_the_last_hop_nobody_trusts(headers: dict[str, str], address: str) -> None:
    assert Door(OPEN).check({"host": "localhost"} | headers, "10.0.0.1") == address
    assert Door(OPEN).address(headers, "10.0.0.1") == address


def test_the_hops_a_stranger_tells_of_are_not_believed() -> None:
    assert Door(OPEN).check({"host": "localhost"}, "192.0.2.1") == "192.0.2.1"
    assert Door(OPEN).address({"x-forwarded-for": "1.1.1.1"}, "192.0.2.1") == "192.0.2.1"
    with pytest.raises(Forbidden):
        Door(OPEN).check({"host": "localhost", "x-forwarded-for": "1.1.1.1"}, "192.0.2.1")


@pytest.mark.parametrize(
    "headers", [{"x-forwarded-proto": "gopher"}, {"x-forwarded-prefix": "//x y"}, {"x-forwarded-prefix": "a"}]
)
def test_an_address_made_of_nonsense_is_refused(headers: dict[str, str]) -> None:
    with pytest.raises(InvalidRequest):
        Door(OPEN).base({"host": "localhost"} | headers, "http", "")


# --- whose addresses are ours for certain


@pytest.mark.parametrize(
    ("base", "ours"),
    [
        ("https://desk.example", True),
        ("https://DESK.example:8443/under/it", True),
        ("https://odd.example:8443", True),
        ("https://[2001:db8::2]:1", True),
        ("https://odd.example", False),
        ("https://a.team.example", False),
        ("https://evil.example", False),
        ("http://localhost:9999", False),
        ("http://127.0.0.1", False),
    ],
)
def test_only_names_that_were_named_are_vouched_for(base: str, ours: bool) -> None:
    assert Door(OPEN).vouches(base) is ours


@pytest.mark.parametrize("hosts", [(), ("127.0.0.1",), ("::1", "localhost"), ("[::1]:8000",)])
def test_loopback_is_vouched_for_where_nothing_else_is_served(hosts: tuple[str, ...]) -> None:
    door = Door(GatewaySettings(hosts=hosts))
    assert door.vouches("http://127.0.0.1:8000")
    assert door.vouches("http://localhost:1/root")
    assert not door.vouches("http://evil.example")


def test_with_a_public_address_every_base_is_that() -> None:
    assert Door(GatewaySettings(hosts=("*",), public_url="https://desk.example")).vouches("https://desk.example")
    assert not Door(GatewaySettings(hosts=("*",))).vouches("http://127.0.0.1")


# --- where every caller shows credentials of their own -------------------------------------------------------


@pytest.mark.parametrize("host", ["desk.example", "10.0.0.1:8000", "a.b.c", "[2001:db8::9]"])
def test_a_guarded_door_answers_to_any_name(host: str) -> None:
    Door(GatewaySettings(), guarded=True).check({"host": host}, "127.0.0.1")


@pytest.mark.parametrize("host", ["", "a b", "a\r\nb", "a/b", "user@host", "x" * 300])
def test_but_to_nothing_that_is_no_name(host: str) -> None:
    with pytest.raises(Forbidden):
        Door(GatewaySettings(), guarded=True).check({"host": host}, "127.0.0.1")


def test_a_guarded_door_lets_pages_try_and_read_nothing() -> None:
    door = Door(GatewaySettings(), guarded=True)
    door.check({"host": "desk.example", "origin": "https://evil.example"}, "127.0.0.1")
    assert not door.shared("https://evil.example")


def test_origins_that_are_configured_hold_all_the_same() -> None:
    door = Door(GatewaySettings(origins=("https://app.example",)), guarded=True)
    door.check({"host": "desk.example", "origin": "https://app.example"}, "127.0.0.1")
    with pytest.raises(Forbidden):
        door.check({"host": "desk.example", "origin": "https://evil.example"}, "127.0.0.1")


def test_forwarding_headers_count_from_trusted_proxies_only_also_then() -> None:
    with pytest.raises(Forbidden):
        Door(GatewaySettings(), guarded=True).check({"host": "a", "x-forwarded-host": "b"}, "192.0.2.1")


def test_a_guarded_door_vouches_for_no_name_it_was_not_told() -> None:
    door = Door(GatewaySettings(hosts=("desk.example",)), guarded=True)
    door.check({"host": "evil.example"}, "127.0.0.1")
    assert door.vouches("https://desk.example")
    assert not door.vouches("https://evil.example")
