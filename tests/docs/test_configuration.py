"""docs/configuration.md tells the truth about every setting."""

import re
from pathlib import Path

import pytest

from dragoman.app.settings import NAMES, SECTIONS, Settings, value_of
from dragoman.app.sources import ALIASES
from dragoman.cli.config import literal

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "configuration.md").read_text("utf-8")


def rows() -> dict[tuple[str, str], list[str]]:
    """Section and key → the other cells of its row."""
    found: dict[tuple[str, str], list[str]] = {}
    for section in re.split(r"^## ", PAGE, flags=re.MULTILINE)[1:]:
        name = section.splitlines()[0].strip("`[] ")
        for line in section.splitlines():
            if match := re.match(r"\| `(\w+)` \|(.*)\|$", line):
                found[name, match[1]] = [cell.strip() for cell in match[2].split("|")]
    return found


@pytest.mark.proves("W-070")
def test_how_long_a_conversation_lasts_is_told_where_retention_is() -> None:
    """What it says is held by the engine's tests of retention."""
    section = PAGE.partition("## `[store]`")[2].partition("\n## ")[0]
    (told,) = re.findall(r"A context .*? lasts as long as one of its tasks: .*?`retention`", section, re.DOTALL)
    assert told


@pytest.mark.proves("D-2-7")
@pytest.mark.parametrize("name", sorted(NAMES))
def test_a_setting_is_documented_with_its_variables_and_its_default(name: str) -> None:
    row = rows().get(NAMES[name])
    assert row is not None, f"{NAMES[name]} has no row in docs/configuration.md"
    variables, default, meaning = row
    assert f"`DRAGOMAN_{name.upper()}`" in variables
    assert default == f"`{literal(value_of(Settings(), name))}`"
    assert len(meaning) > 10
    for alias, of in ALIASES.items():
        assert (f"`{alias}`" in variables) == (of == name)


def test_nothing_is_documented_that_is_no_setting() -> None:
    assert set(rows()) == set(NAMES.values())
    assert {section for section, _ in rows()} == set(SECTIONS)
