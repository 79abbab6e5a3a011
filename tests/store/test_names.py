"""Names of deliveries: in order, never twice, and telling nothing."""

from dragoman.store.names import Names


def test_later_names_sort_after_earlier_ones_also_within_a_millisecond_and_when_the_clock_goes_back() -> None:
    names = Names()
    times = [1_000, 1_000, 1_000, 999, 1_001, 5, 2_000_000_000_000, 2_000_000_000_001]
    given = [names.name(at, hook=3, seq=7) for at in times]
    assert given == sorted(given) and len(set(given)) == len(given)


def test_many_of_one_millisecond_stay_in_order() -> None:
    names = Names()
    given = [names.name(1, 1, 1) for _ in range(70_000)]
    assert given == sorted(given) and len(set(given)) == len(given)
    assert given[-1] < names.name(2, 1, 1)


def test_a_name_says_nothing_about_how_many_there_are() -> None:
    early, late = Names(), Names()
    for _ in range(1_000):
        late.name(5, 1, 1)
    assert early.name(9, 1, 1) == late.name(9, 1, 1)
