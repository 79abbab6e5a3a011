"""Which URLs may be registered: every address behind a name counts, and none is told."""

import asyncio

import pytest

from dragoman.client.dialler import Dialler
from dragoman.client.poster import Poster
from dragoman.core.addresses import guard
from dragoman.model.errors import AddressRefused, InvalidParams
from dragoman.push.screen import AddressScreen
from tests.client.receivers import receiving
from tests.core.hostile_urls import HOSTILE
from tests.push.nameserver import Asking, naming

pytestmark = pytest.mark.anyio

PUBLIC = "93.184.215.14"


async def refusal(screen: AddressScreen, url: str) -> str:
    with pytest.raises(InvalidParams) as refused:
        await screen.admit(url)
    (violation,) = refused.value.violations
    assert violation.field == ""
    return violation.description


async def test_a_name_that_leads_to_public_addresses_is_admitted() -> None:
    async with naming(desk_example=[[PUBLIC, "2606:2800:21f:cb07:6820:80da:af6b:8b2c"]]) as names:
        screen = AddressScreen(guard(), Asking(names))
        await screen.admit("https://desk.example/hook")
        assert names.asked == ["desk.example"]
        await screen.admit(f"https://{PUBLIC}/hook")
        assert names.asked == ["desk.example"], "an address was resolved"


async def test_one_private_address_among_others_refuses_a_name_without_saying_so() -> None:
    inside = {"127.0.0.1", "10.1.2.3", "172.16.0.9", "192.168.1.1", "169.254.169.254", "::1", "fd00::1", "fe80::1"}
    async with naming(nothing_example=[[]]) as names:
        screen = AddressScreen(guard(), Asking(names))
        unknown = await refusal(screen, "https://nothing.example/hook")
        for number, address in enumerate(sorted(inside)):
            names.table[f"n{number}.example"] = [[PUBLIC, address]]
            assert await refusal(screen, f"https://n{number}.example/hook") == unknown
            assert address not in unknown


@pytest.mark.parametrize("url", HOSTILE, ids=[ascii(url)[:60] for url in HOSTILE])
async def test_a_hostile_url_is_refused_without_asking_anybody(url: str) -> None:
    async with naming() as names:
        assert await refusal(AddressScreen(guard(), Asking(names)), url)
        assert names.asked == []


async def test_an_allowed_host_is_admitted_without_asking_dns() -> None:
    async with naming() as names:
        screen = AddressScreen(guard(["workstacean", "automaker-server"]), Asking(names))
        await screen.admit("http://workstacean/hook")
        await screen.admit("http://automaker-server:8080/hook")
        assert names.asked == []


async def test_allowed_networks_admit_the_names_that_lead_into_them() -> None:
    async with naming(inside_example=[["10.1.2.3"]], other_example=[["192.168.1.1"]]) as names:
        screen = AddressScreen(guard(networks=["10.0.0.0/8", "172.16.0.0/12"]), Asking(names))
        await screen.admit("http://inside.example/hook")
        await screen.admit("http://172.16.3.4/hook")
        await refusal(screen, "http://other.example/hook")


async def test_a_name_that_never_answers_is_refused_in_time_like_one_that_leads_nowhere() -> None:
    async with naming(silent_example=None, nothing_example=[[]]) as names:
        screen = AddressScreen(guard(), Asking(names), seconds=0.05)
        async with asyncio.timeout(10):
            silent = await refusal(screen, "https://silent.example/")
        assert silent == await refusal(AddressScreen(guard(), Asking(names)), "https://nothing.example/")


async def test_a_name_that_was_admitted_and_then_leads_inside_is_not_called() -> None:
    """DNS rebinding: the name server answers the screen with a public address, and the sender with loopback."""
    async with receiving() as victim, naming(evil_example=[[PUBLIC], ["127.0.0.1"]]) as names:
        url = victim.url(host="evil.example")
        await AddressScreen(guard(), Asking(names)).admit(url)
        posting = Poster(Dialler(guard(), Asking(names)))
        with pytest.raises(AddressRefused):
            await posting.post(guard().target(url), (), b"{}", seconds=10)
        assert victim.connections == 0
        assert names.asked == ["evil.example"] * 2
        await posting.close()
