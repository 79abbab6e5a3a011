"""Profiles: whose card says what."""

from dragoman import Agent
from dragoman.app.profiles import HITL, PRESETS, dress

DESK = Agent("Desk", description="Answers.")
OTHER = Agent("Other", description="Answers too.", extensions=[HITL])


def test_every_agent_declares_what_the_profile_s_system_does_and_none_twice() -> None:
    dressed = dress({"": DESK, "other": OTHER}, "proto", push=True, demo=False)
    assert [each.profile.extensions for each in dressed.values()] == [(HITL,), (HITL,)]
    for profile in ("coding-agent", "cortex"):
        dressed = dress({"": DESK, "other": OTHER}, profile, push=True, demo=False)
        assert [each.profile.transitions for each in dressed.values()] == [True, True]


def test_only_the_demo_agent_speaks_in_the_profile_s_words() -> None:
    for name, preset in PRESETS.items():
        (theirs,) = dress({"": DESK}, name, push=True, demo=False).values()
        assert (theirs.profile.name, theirs.profile.skills) == ("Desk", DESK.profile.skills)
        (ours,) = dress({"": DESK}, name, push=True, demo=True).values()
        assert all(getattr(ours.profile, member) == value for member, value in preset.text.items())


def test_without_a_profile_nothing_is_added() -> None:
    assert dress({"": DESK}, "", push=DESK.profile.push, demo=True)[""].profile == DESK.profile
