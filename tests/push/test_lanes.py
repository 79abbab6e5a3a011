"""Who gets how much: receivers that hang have little under way, and never all of it."""

import pytest

from dragoman.ports import Delivery
from dragoman.push import lanes as module
from dragoman.push.lanes import AHEAD, SLOW, Begun, Lanes
from tests.push.deliveries import delivery


def offered(lanes: Lanes, name: str, count: int = 1) -> int:
    """How many of so many deliveries for one receiver are taken."""
    return sum(lanes.take(name, delivery()) for _ in range(count))


def begun(lanes: Lanes, name: str = "a", count: int = 1) -> list[Begun]:
    offered(lanes, name, count)
    return list(lanes.begin())


def end(lanes: Lanes, attempts: list[Begun], *, answered: bool = True, seconds: float = 0.01) -> list[Delivery]:
    return [each for begun in attempts for each in lanes.end(begun, answered=answered, seconds=seconds)]


def quick(lanes: Lanes, name: str, rounds: int = 10) -> None:
    """Let a receiver answer quickly until it has what it can get."""
    for _ in range(rounds):
        end(lanes, begun(lanes, name))


def test_a_receiver_nobody_knows_gets_one_at_a_time() -> None:
    lanes = Lanes(64, 8)
    assert offered(lanes, "a", 5) == 1
    assert lanes.busy() == ["a"]
    (first,) = lanes.begin()
    assert offered(lanes, "a") == 0
    end(lanes, [first])
    assert lanes.busy() == []


def test_quick_answers_double_what_a_receiver_gets_up_to_the_limit() -> None:
    lanes = Lanes(64, 8)
    seen = []
    for _ in range(6):
        attempts = begun(lanes, count=100)
        seen.append(len(attempts))
        while attempts:
            end(lanes, [attempts.pop()])
            attempts += lanes.begin()
    assert seen[0] == 1
    assert max(seen) == seen[-1] == 8


def test_a_quick_receiver_has_some_waiting_in_memory_and_is_asked_for_again_at_half_of_it() -> None:
    lanes = Lanes(64, 8)
    quick(lanes, "a")
    assert offered(lanes, "a", 1000) == 8 * AHEAD
    assert lanes.busy() == ["a"]
    running = list(lanes.begin())
    assert len(running) == 8
    done = 0
    while lanes.busy():
        end(lanes, [running.pop()])
        running += lanes.begin()
        done += 1
    assert done == 4 * AHEAD + 1
    assert lanes.share == done


def test_a_slow_receiver_gets_a_few() -> None:
    lanes = Lanes(64, 16)
    quick(lanes, "a")
    end(lanes, begun(lanes, "a"), seconds=3)
    assert offered(lanes, "a", 100) == SLOW
    attempts = begun(lanes, "b", 100)
    for _ in range(8):
        end(lanes, attempts, seconds=3)
        attempts = begun(lanes, "b", 100)
    assert len(attempts) == SLOW


def test_a_receiver_that_does_not_answer_falls_back_to_one_and_gives_back_what_waited() -> None:
    lanes = Lanes(64, 8)
    quick(lanes, "a")
    running = begun(lanes, "a", 1000)
    assert len(running) == 8
    back = end(lanes, running[:1], answered=False)
    assert len(back) == 8 * AHEAD - 8 and not any(begun.lane.waiting for begun in running)
    assert not list(lanes.begin())
    end(lanes, running[1:], answered=False)
    assert offered(lanes, "a", 10) == 1


def test_receivers_that_hang_never_have_all_of_it() -> None:
    lanes = Lanes(16, 4)
    quick(lanes, "good")
    hanging = [attempt for number in range(100) for attempt in begun(lanes, f"bad{number}")]
    assert len(hanging) == 12
    assert len(begun(lanes, "good", 100)) == 4
    assert lanes.open is False


def test_who_found_no_room_is_busy_until_there_is_some() -> None:
    lanes = Lanes(4, 4)
    hanging = [attempt for number in range(3) for attempt in begun(lanes, f"bad{number}")]
    assert offered(lanes, "late") == 0
    assert sorted(lanes.busy()) == ["bad0", "bad1", "bad2", "late"]
    quick(lanes, "good", rounds=0)
    end(lanes, hanging[:1], answered=False)
    assert "late" not in lanes.busy()
    assert begun(lanes, "late")


def test_too_many_who_found_no_room_close_the_door_until_there_is_some(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "STALLED", 3)
    lanes = Lanes(4, 4)
    hanging = [attempt for number in range(3) for attempt in begun(lanes, f"bad{number}")]
    for number in range(3):
        assert lanes.open
        offered(lanes, f"late{number}")
    assert not lanes.open
    end(lanes, hanging[:1], answered=False)
    assert lanes.open


def test_receivers_take_turns() -> None:
    lanes = Lanes(8, 2)
    for name in "ab":
        quick(lanes, name)
    offered(lanes, "a", 8)
    offered(lanes, "b", 8)
    assert [begun.lane.name for begun in lanes.begin()] == ["a", "b", "a", "b"]


def test_those_that_wait_for_a_first_try_come_before_the_quick_ones() -> None:
    lanes = Lanes(4, 8)
    quick(lanes, "good")
    offered(lanes, "good", 100)
    offered(lanes, "new")
    assert [begun.lane.name for begun in lanes.begin()] == ["new", "good", "good", "good"]


def test_how_a_receiver_did_is_forgotten_when_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "REMEMBERED", 2)
    lanes = Lanes(64, 8)
    for name in "abc":
        quick(lanes, name)
    assert offered(lanes, "c", 100) == 8 * AHEAD
    assert offered(lanes, "a", 100) == 1


def test_everything_that_was_taken_is_begun_in_the_end() -> None:
    lanes = Lanes(10, 3)
    waiting = dict.fromkeys(("a", "b", "c", "d", "e"), 25)
    made = 0
    running: list[Begun] = []
    for _ in range(1000):
        for name in waiting:
            waiting[name] -= offered(lanes, name, min(waiting[name], lanes.share))
        running += lanes.begin()
        assert len(running) <= 10
        if running:
            end(lanes, [running.pop(0)])
            made += 1
    assert made == 125 and not running and lanes.busy() == []
