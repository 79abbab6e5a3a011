"""What outsiders may make us call: one reading of a URL, public addresses only, exceptions only where configured."""

from ipaddress import ip_address

import pytest

from dragoman.core.addresses import Guard, Target, guard, lane, literal, read_host
from dragoman.model.errors import AddressRefused
from tests.core.hostile_urls import HOSTILE, LOOPBACK, PRIVATE

CLOSED = Guard()


def test_there_are_enough_attacks() -> None:
    assert len(set(HOSTILE)) == len(HOSTILE) >= 60


@pytest.mark.parametrize("url", HOSTILE, ids=[ascii(url)[:60] for url in HOSTILE])
def test_a_hostile_url_is_refused_with_a_reason_and_not_repeated(url: str) -> None:
    with pytest.raises(AddressRefused) as refused:
        CLOSED.target(url)
    reason = str(refused.value)
    assert reason
    assert "secret" not in reason and "169.254" not in reason and len(reason) < 120


@pytest.mark.parametrize(
    ("url", "target"),
    [
        ("https://desk.example", Target("https", "desk.example", 443, "/")),
        ("HTTPS://Desk.Example/A/b?c=D&e", Target("https", "desk.example", 443, "/A/b?c=D&e")),
        ("http://desk.example?c", Target("http", "desk.example", 80, "/?c")),
        ("http://desk.example:443/", Target("http", "desk.example", 443, "/")),
        ("https://desk.example:1024/", Target("https", "desk.example", 1024, "/")),
        ("https://desk.example:65535//x", Target("https", "desk.example", 65535, "//x")),
        ("https://xn--dsk-hma.example/", Target("https", "xn--dsk-hma.example", 443, "/")),
        ("https://a_b-c.d/", Target("https", "a_b-c.d", 443, "/")),
        ("http://localhost:8000/", Target("http", "localhost", 8000, "/")),
        ("https://8.8.8.8/", Target("https", "8.8.8.8", 443, "/")),
        ("https://[2606:4700::1]:8443/x", Target("https", "2606:4700::1", 8443, "/x")),
        ("https://[2606:4700::1]/", Target("https", "2606:4700::1", 443, "/")),
        ("https://[::ffff:8.8.8.8]/", Target("https", "::ffff:8.8.8.8", 443, "/")),
        ("https://[64:ff9b::8.8.8.8]/", Target("https", "64:ff9b::8.8.8.8", 443, "/")),
        ("https://desk.example/%0d%0a", Target("https", "desk.example", 443, "/%0d%0a")),
    ],
)
def test_an_ordinary_url_is_read(url: str, target: Target) -> None:
    assert CLOSED.target(url) == target


def test_a_target_says_its_authority_and_its_own_address() -> None:
    said = {
        url: CLOSED.target(url).authority
        for url in ("https://a.b", "https://a.b:80", "http://a.b:80", "http://a.b:443")
    }
    assert list(said.values()) == ["a.b", "a.b:80", "a.b", "a.b:443"]
    six = CLOSED.target("https://[2606:4700::1]:8443/")
    assert (six.authority, six.address) == ("[2606:4700::1]:8443", "2606:4700::1")
    assert CLOSED.target("https://[2606:4700::1]/").authority == "[2606:4700::1]"
    assert CLOSED.target("https://a.b/").address == ""


def test_a_secure_guard_wants_https() -> None:
    secure = guard(secure=True)
    assert secure.target("https://desk.example/").port == 443
    with pytest.raises(AddressRefused, match=r"must begin with https://$"):
        secure.target("http://desk.example/")


# --- what names lead to ---


@pytest.mark.parametrize(
    "addresses",
    [["93.184.216.34"], ["93.184.216.34", "2606:4700::1"], ["64:ff9b::93.184.216.34"], ["1.1.1.1", "1.1.1.1"]],
)
def test_public_addresses_may_be_dialled(addresses: list[str]) -> None:
    assert CLOSED.admit(CLOSED.target("https://desk.example/"), addresses) == tuple(dict.fromkeys(addresses))


@pytest.mark.parametrize(
    "addresses",
    [
        [],
        ["10.0.0.1"],
        ["93.184.216.34", "10.0.0.1"],
        ["93.184.216.34", "::1"],
        ["169.254.169.254"],
        ["fd00:ec2::254"],
        ["2606:4700::1%2"],
        ["fe80::1%eth0"],
        ["2002:a00:1::"],
        ["not an address"],
        ["0x7f000001"],
    ],
)
def test_one_address_that_is_not_public_refuses_the_name_in_words_that_tell_nothing(addresses: list[str]) -> None:
    reasons: set[str] = set()
    with pytest.raises(AddressRefused) as refused:
        CLOSED.admit(CLOSED.target("https://desk.example/"), addresses)
    reasons.add(str(refused.value))
    with pytest.raises(AddressRefused) as unknown:
        CLOSED.admit(CLOSED.target("https://desk.example/"), [])
    reasons.add(str(unknown.value))
    assert len(reasons) == 1


def test_the_edges_of_what_is_public() -> None:
    public = "9.255.255.255 11.0.0.0 172.15.255.255 172.32.0.0 100.63.255.255 100.128.0.0 168.63.129.17 223.255.255.255"
    public += " 2000:: 2001:200:: 2003:: 2606:4700:4700::1111 3ffe::1"
    assert [each for each in public.split() if CLOSED.objection(ip_address(each))] == []


# --- what operators allow ---


def test_an_allowed_host_is_called_wherever_it_leads_on_the_usual_ports() -> None:
    allowed = guard(["Workstacean", "10.0.0.9", "::1", "[fd00::1]"])
    target = allowed.target("http://workstacean:8080/hook")
    assert target.trusted
    assert allowed.admit(target, ["172.18.0.4", "fe80::1%eth0"]) == ("172.18.0.4", "fe80::1%eth0")
    for url in ("http://10.0.0.9/", "http://[::1]:9000/", "http://[fd00::1]/"):
        assert allowed.target(url).trusted
    with pytest.raises(AddressRefused):
        allowed.admit(target, [])
    with pytest.raises(AddressRefused, match="port"):
        allowed.target("http://workstacean:25/")
    with pytest.raises(AddressRefused, match="private"):
        allowed.target("http://10.0.0.8/")
    assert not allowed.target("http://sub.workstacean/").trusted


def test_an_allowed_host_with_a_port_is_allowed_there_and_nowhere_else() -> None:
    allowed = guard(["desk.internal:81", "[::1]:25"])
    assert allowed.target("http://desk.internal:81/").trusted
    assert allowed.target("http://[::1]:25/").trusted
    assert not allowed.target("http://desk.internal:8080/").trusted
    with pytest.raises(AddressRefused, match="port"):
        allowed.target("http://desk.internal:82/")


def test_an_allowed_network_counts_as_public() -> None:
    allowed = guard(networks=["10.0.0.0/8", "127.0.0.1", "fd00::/8"])
    assert allowed.target("http://10.1.2.3/").address == "10.1.2.3"
    assert allowed.target("http://127.0.0.1:8000/").address == "127.0.0.1"
    assert allowed.target("http://[fd12::1]/").address == "fd12::1"
    assert allowed.target("http://[::ffff:10.1.2.3]/").address == "::ffff:10.1.2.3"
    assert allowed.admit(allowed.target("http://desk.example/"), ["10.9.9.9", "1.1.1.1"]) == ("10.9.9.9", "1.1.1.1")
    for url in ("http://127.0.0.2/", "http://192.168.0.1/", "http://[fe80::1]/", "http://[::10.0.0.1]/"):
        with pytest.raises(AddressRefused):
            allowed.target(url)


def test_allowing_everything_is_possible_and_says_so_in_two_networks() -> None:
    everything = guard(networks=["0.0.0.0/0", "::/0"])
    for url in (*LOOPBACK, *PRIVATE):
        everything.target(url)


@pytest.mark.parametrize(
    "entry",
    [
        "",
        "*",
        "*.example",
        "http://desk",
        "desk/",
        "desk:",
        "desk:0",
        "desk:http",
        "a b",
        "[::1",
        "dësk",
        "1.2.3",
        "a@b",
    ],
)
def test_a_malformed_allowed_host_is_an_error_that_shows_it(entry: str) -> None:
    with pytest.raises(ValueError, match="Expected a host") as error:
        guard([entry])
    assert repr(entry) in str(error.value)


@pytest.mark.parametrize("entry", ["", "10.0.0.0/33", "10.0.0.0/-1", "desk", "10.0.0", "10.0.0.0-10.0.0.9", "::/129"])
def test_a_malformed_network_is_an_error_that_shows_it(entry: str) -> None:
    with pytest.raises(ValueError, match=r"Expected a network such as 10\.0\.0\.0/8") as error:
        guard(networks=[entry])
    assert repr(entry) in str(error.value)


def test_an_address_with_a_length_that_cuts_into_it_is_not_guessed_at() -> None:
    with pytest.raises(ValueError, match=r"such as 10\.0\.0\.0/8 or an address of it, got '10\.0\.0\.1/8'"):
        guard(networks=["10.0.0.1/8"])


def test_hosts_are_compared_in_one_spelling() -> None:
    assert read_host("DESK.Example") == "desk.example"
    assert read_host("[2606:4700::A]") == "2606:4700::a"
    assert literal("1.1.1.1") == ip_address("1.1.1.1")
    assert literal("desk") is None


@pytest.mark.parametrize(
    "url",
    [
        "https://Desk.example:8443",
        "https://desk.example:8443/a/b?c#d",
        "HTTPS://desk.example:8443?c",
        "https://desk.example:8443#d",
    ],
)
def test_a_lane_is_scheme_host_and_port(url: str) -> None:
    assert lane(url) == "https://desk.example:8443"
