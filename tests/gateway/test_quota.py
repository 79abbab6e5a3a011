"""How much at once and how often, per caller, per address and in total; and that the counting itself stays small."""

import asyncio
from collections.abc import Awaitable

import pytest

from dragoman.core.rates import SECOND
from dragoman.gateway.paces import Paces
from dragoman.gateway.quota import HERE, Quota, place_of
from dragoman.gateway.settings import GatewaySettings
from dragoman.model.errors import Busy, Overloaded

pytestmark = pytest.mark.anyio

THERE = "@192.0.2.1"
ELSEWHERE = "@192.0.2.2"


class Clock:
    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> int:
        return round(self.now * SECOND)


async def turn(waiting: Awaitable[None] | None) -> bool:
    """Whether the request may go on; True at once, or after being held back."""
    if waiting is None:
        return True
    try:
        await waiting
    except Busy as busy:
        assert busy.retry_after >= 1
        return False
    return True


# --- places


@pytest.mark.parametrize(
    ("address", "place"),
    [
        ("192.0.2.1", "@192.0.2.1"),
        ("::ffff:192.0.2.1", "@192.0.2.1"),
        ("2001:db8:1:2:3:4:5:6", "@2001:db8:1:2::/64"),
        ("2001:db8:1:2::9", "@2001:db8:1:2::/64"),
        ("2001:db8:1:3::9", "@2001:db8:1:3::/64"),
        ("127.0.0.1", HERE),
        ("127.9.9.9", HERE),
        ("::1", HERE),
        ("::ffff:127.0.0.1", HERE),
        ("", HERE),
        ("_hidden", "@_hidden"),
        ("unknown", "@unknown"),
        ("testclient", HERE),
    ],
)
def test_what_counts_as_one_address(address: str, place: str) -> None:
    assert place_of(address) == place


# --- how much at once


def test_streams_are_counted_per_caller_per_address_and_in_total_and_given_back() -> None:
    quota = Quota(GatewaySettings(streams=4, streams_per_caller=2, streams_per_address=3))
    quota.open("a", THERE)
    quota.open("a", THERE)
    with pytest.raises(Busy) as mine:
        quota.open("a", ELSEWHERE)
    assert (mine.value.limit, mine.value.most) == ("limits.streams_per_caller", "2")
    quota.open("b", THERE)
    with pytest.raises(Busy) as near:
        quota.open("c", THERE)
    assert (near.value.limit, near.value.most) == ("limits.streams_per_address", "3")
    quota.open("c", ELSEWHERE)
    with pytest.raises(Overloaded) as all_of_us:
        quota.open("d", HERE)
    assert (all_of_us.value.limit, all_of_us.value.most) == ("limits.streams", "4")
    for caller, place in (("a", THERE), ("a", THERE), ("b", THERE), ("c", ELSEWHERE)):
        quota.close(caller, place)
    assert quota.streams == 0
    assert not quota._streaming  # who left is forgotten
    quota.open("d", HERE)


def test_where_nobody_logs_in_an_address_is_a_caller() -> None:
    quota = Quota(GatewaySettings(streams_per_caller=1))
    quota.open(THERE, THERE)
    with pytest.raises(Busy):
        quota.open(THERE, THERE)
    quota.open(ELSEWHERE, ELSEWHERE)
    quota.close(THERE, THERE)
    quota.close(ELSEWHERE, ELSEWHERE)
    assert not quota._streaming


def test_requests_are_counted_per_caller_and_in_total_and_given_back() -> None:
    quota = Quota(GatewaySettings(requests=3, requests_per_caller=2))
    quota.enter("a")
    quota.enter("a")
    with pytest.raises(Busy) as mine:
        quota.enter("a")
    assert not isinstance(mine.value, Overloaded)
    assert mine.value.limit == "limits.requests_per_caller"
    quota.enter("b")
    with pytest.raises(Overloaded) as all_of_us:
        quota.enter("c")
    assert all_of_us.value.limit == "limits.requests"
    for caller in ("a", "a", "b"):
        quota.leave(caller)
    assert quota.requests == 0
    assert not quota._working


# --- how often


async def test_an_address_is_held_to_its_rate_and_another_one_is_not() -> None:
    clock = Clock()
    quota = Quota(GatewaySettings(rate_per_address=10, rate_burst=2, rate_wait=0.01), clock)
    assert quota.arrive(THERE) is None
    assert quota.arrive(THERE) is None
    assert not await turn(quota.arrive(THERE))  # its turn comes in 0.1 s, longer than anybody waits
    assert quota.arrive(ELSEWHERE) is None
    clock.now += 0.095
    assert await turn(quota.arrive(THERE))  # a little early: held back, then let in
    assert quota.waiting == 0


async def test_a_caller_is_held_to_a_rate_of_their_own_wherever_they_come_from() -> None:
    quota = Quota(GatewaySettings(rate_per_caller=10, rate_burst=1, rate_wait=0.01), Clock())
    assert quota.knock("anna", THERE) is None
    with pytest.raises(Busy) as refused:
        await (quota.knock("anna", ELSEWHERE) or asyncio.sleep(0))
    assert (refused.value.limit, refused.value.most) == ("limits.rate_per_caller", "10")
    assert quota.knock("bert", THERE) is None
    assert quota.knock("", THERE) is None  # nobody in particular: the address counts


async def test_who_logged_in_does_not_use_up_what_their_neighbours_have() -> None:
    quota = Quota(GatewaySettings(rate_per_address=10, rate_per_caller=0, rate_burst=2, rate_wait=0), Clock())
    for _ in range(20):
        assert quota.arrive(THERE) is None
        assert quota.knock("anna", THERE) is None
    assert await turn(quota.arrive(THERE)) and await turn(quota.arrive(THERE))
    assert not await turn(quota.arrive(THERE))  # two who did not log in, and that is the burst


async def test_this_machine_is_free_unless_told_otherwise() -> None:
    free = Quota(GatewaySettings(rate_per_address=1, rate_per_caller=1, rate_burst=1), Clock())
    assert [free.arrive(HERE) for _ in range(5)] == [None] * 5
    assert [free.knock("a", HERE) for _ in range(5)] == [None] * 5
    held = GatewaySettings(rate_per_address=1, rate_per_caller=1, rate_burst=1, rate_wait=0, rate_loopback=True)
    quota = Quota(held, Clock())
    assert await turn(quota.knock("a", HERE))
    assert not await turn(quota.knock("a", HERE))
    assert await turn(quota.arrive(HERE))
    assert not await turn(quota.arrive(HERE))


async def test_no_rate_means_any_number() -> None:
    quota = Quota(GatewaySettings(rate_per_address=0, rate_per_caller=0, rate_burst=1), Clock())
    assert [quota.arrive(THERE) for _ in range(5)] == [None] * 5
    assert [quota.knock("a", THERE) for _ in range(5)] == [None] * 5


async def test_a_large_request_counts_for_several() -> None:
    clock = Clock()
    quota = Quota(GatewaySettings(rate_per_caller=10, rate_per_address=10, rate_burst=1, rate_wait=0), clock)
    assert quota.knock("anna", THERE) is None
    quota.weigh("anna", THERE, 5 * 65_536)
    for _ in range(5):
        clock.now += 0.1
        assert not await turn(quota.knock("anna", THERE))
    clock.now += 0.1
    assert await turn(quota.knock("anna", THERE))
    assert quota.arrive(ELSEWHERE) is None
    quota.weigh("", ELSEWHERE, 65_536)
    clock.now += 0.1
    assert not await turn(quota.arrive(ELSEWHERE))
    clock.now += 0.1
    assert await turn(quota.arrive(ELSEWHERE))
    assert quota.arrive(HERE) is None
    quota.weigh("", HERE, 10**9)
    quota.weigh("bert", HERE, 10**9)
    assert quota.knock("bert", THERE) is None


async def test_who_is_refused_waits_for_that_too() -> None:
    """An answer that costs nothing would invite the next request."""
    quota = Quota(GatewaySettings(rate_per_address=1, rate_burst=1, rate_wait=0.05), Clock())
    assert quota.arrive(THERE) is None
    began = asyncio.get_running_loop().time()
    assert not await turn(quota.arrive(THERE))
    assert asyncio.get_running_loop().time() - began >= 0.045


async def test_only_so_many_wait() -> None:
    quota = Quota(GatewaySettings(rate_per_address=1, rate_burst=1, rate_wait=30, requests=2), Clock())
    quota.arrive(THERE)
    waiting = [asyncio.ensure_future(quota.arrive(THERE) or asyncio.sleep(0)) for _ in range(2)]
    await asyncio.sleep(0)
    assert quota.waiting == 2
    with pytest.raises(Overloaded):
        await (quota.arrive(THERE) or asyncio.sleep(0))
    for each in waiting:
        each.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    assert quota.waiting == 0


# --- memory


def test_who_paid_back_is_forgotten() -> None:
    clock = Clock()
    paces = Paces(10, 5, 0.0, clock)
    for number in range(1_000):
        paces.wait(str(number))
    assert len(paces) == 1_000
    for _ in range(3):
        clock.now += 1.0
        paces.wait("again")
    assert len(paces) <= 2


def test_nobody_is_forgotten_before_they_paid_back() -> None:
    clock = Clock()
    paces = Paces(10, 5, 0.0, clock)
    for _ in range(5):
        assert paces.wait("a") == 0
    for step in range(1, 200):
        clock.now = 1_000.0 + step / 1_000
        paces.wait(f"other {step}")
        if step < 100:
            assert paces.wait("a") > 0


def test_however_many_come_memory_is_bounded() -> None:
    clock = Clock()
    paces = Paces(1, 100, 2.0, clock, most=1_000)
    for number in range(50_000):
        paces.wait(str(number))
        clock.now += 0.00001
    assert len(paces) <= 2_000
