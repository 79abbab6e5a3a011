"""The checklist of protocol 1.0 (every MUST and SHOULD), by its numbers."""

from tests.manifest.requirement import Requirement

REQUIREMENTS: tuple[Requirement, ...] = ()
