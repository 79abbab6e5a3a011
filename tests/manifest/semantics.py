"""What exactly happens: identity, log, turns, parking, cancel, streams, safety."""

from tests.manifest.requirement import Requirement

REQUIREMENTS: tuple[Requirement, ...] = ()
