"""What an attempt's end means: retries after 1, 3 and 9 s, none after what will not get better."""

from email.utils import formatdate

import pytest

from dragoman.client.exchange import Reply
from dragoman.push.settings import PushSettings
from dragoman.push.verdict import Verdict, of_failure, of_reply

NOW = 1_800_000_000_000
DEFAULT = PushSettings()
PATIENT = PushSettings(retry_busy=True, longest_wait=60_000)


def after(status: int, attempts: int = 0, retry_after: str = "", settings: PushSettings = DEFAULT) -> Verdict:
    return of_reply(Reply(status, retry_after), attempts, settings, NOW)


@pytest.mark.parametrize("status", [200, 201, 202, 204, 299])
def test_any_success_is_a_delivery(status: int) -> None:
    assert after(status, attempts=3) == Verdict(delivered=True)


@pytest.mark.parametrize("status", [301, 302, 304, 307, 308, 500, 502, 503, 504, 599, 600])
def test_what_may_get_better_is_tried_after_1_3_and_9_seconds_and_then_dead(status: int) -> None:
    found = [after(status, attempts) for attempts in range(4)]
    assert [each.wait for each in found] == [1_000, 3_000, 9_000, 0]
    assert [each.dead for each in found] == [False, False, False, True]
    assert {each.why for each in found} == {f"answered with status {status}"}


@pytest.mark.parametrize("status", [400, 401, 403, 404, 408, 410, 413, 422, 429, 451])
def test_what_is_refused_is_dead_at_once(status: int) -> None:
    assert after(status) == Verdict(dead=True, why=f"answered with status {status}")
    assert after(status, retry_after="1").dead


def test_429_is_tried_again_only_where_that_is_set() -> None:
    assert after(429, settings=PATIENT).wait == 1_000
    assert after(429, retry_after="7", settings=PATIENT).wait == 7_000
    assert after(429, attempts=3, retry_after="7", settings=PATIENT).dead
    assert after(408, settings=PATIENT).dead


@pytest.mark.parametrize(
    ("text", "wait"),
    [
        ("7", 7_000),
        (" 7 ", 7_000),
        ("0", 0),
        (formatdate(NOW / 1000 + 20, usegmt=True), 20_000),
        (formatdate(NOW / 1000 - 20, usegmt=True), 0),
        ("99999999999999999999", 60_000),
        ("", 1_000),
        ("soon", 1_000),
        ("-7", 1_000),
        ("7.5", 1_000),
        ("٧", 1_000),
        ("Wed, 99 Foo 2026 00:00:00 GMT", 1_000),
    ],
)
def test_a_busy_receiver_may_say_when_within_reason(text: str, wait: int) -> None:
    assert after(503, retry_after=text, settings=PATIENT) == Verdict(wait=wait, why="answered with status 503")


def test_only_a_busy_receiver_may_say_when() -> None:
    assert after(500, retry_after="7").wait == 1_000


def test_no_answer_is_tried_again_too() -> None:
    assert of_failure("did not answer in time", 1, DEFAULT) == Verdict(wait=3_000, why="did not answer in time")
    assert of_failure("did not answer in time", 0, PushSettings(retries=())).dead
