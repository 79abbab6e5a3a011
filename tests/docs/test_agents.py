"""docs/agents.md says first what surprises most."""

import re
from pathlib import Path

import pytest

from dragoman import Turn

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "agents.md").read_text("utf-8")


@pytest.mark.proves("S-5-3")
def test_the_first_paragraph_about_asking_says_that_code_runs_again() -> None:
    (section,) = re.findall(r"^## Asking.*?\n\n(.*?)\n\n", PAGE, re.DOTALL | re.MULTILINE)
    assert "Code outside `step` runs again" in section
    assert Turn.ask.__doc__ is not None
    assert "Code outside `step` runs again" in Turn.ask.__doc__.split("\n\n")[1]
