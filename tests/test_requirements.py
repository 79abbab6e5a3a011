"""The manifest and the tests agree."""

from collections import Counter

from tests.requirements import ALL, proofs

PROOFS = proofs()


def test_no_two_promises_share_an_id() -> None:
    assert not [id for id, times in Counter(each.id for each in ALL).items() if times > 1]


def test_every_promise_has_a_test_or_says_why_not() -> None:
    bare = [each for each in ALL if each.id not in PROOFS and not each.pending and not each.elsewhere]
    assert not bare, "\n".join(f"{each.id}: {each.text}" for each in bare)


def test_nothing_waits_or_is_somebody_elses_that_a_test_proves() -> None:
    done = [each.id for each in ALL if each.id in PROOFS and (each.pending or each.elsewhere)]
    assert not done, f"proved, so no longer pending: {done}"


def test_every_proof_is_of_a_promise() -> None:
    known = {each.id for each in ALL}
    strays = {id: where for id, where in PROOFS.items() if id not in known}
    assert not strays
