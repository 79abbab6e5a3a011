"""A2X: its page, sentence by sentence, and what its users try first."""

from tests.manifest.requirement import Requirement

REQUIREMENTS: tuple[Requirement, ...] = ()
