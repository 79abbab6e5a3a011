"""docs/walk.md: the counted part of it. `python -m tests.walk.page` writes it anew."""

import re
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.walk.walking import Walk, walks

PAGE = Path(__file__).resolve().parents[2] / "docs" / "walk.md"
START, END = "<!-- walk -->\n", "<!-- /walk -->\n"
HEAD = (
    "| dialect | request | passed through | calls between | both ways | asked | files in all | calls in all | swapped |"
)


def counted(found: Sequence[Walk]) -> str:
    """The table."""
    by_name = {walk.way.name: walk for walk in found}
    lines = [HEAD, "|---" * HEAD.count(" |") + "|"]
    for walk in found:
        numbers = (walk.passed, walk.between, walk.both_ways, walk.asked, walk.files, walk.calls)
        swapped = sorted(walk.swapped(by_name[walk.way.like]))
        cells = (walk.way.name, f"`{walk.way.asks}`", *map(len, numbers), ", ".join(f"`{each}`" for each in swapped))
        lines.append("| " + " | ".join(str(cell) or "none" for cell in cells) + " |")
    return "\n".join(lines) + "\n"


def renewed(page: str, found: Sequence[Walk]) -> str:
    before, _, rest = page.partition(START)
    return f"{before}{START}{counted(found)}{END}{rest.partition(END)[2]}"


def lag(page: str, found: Sequence[Walk]) -> int:
    """How far the page's numbers are behind. Raises when it tells other dialects, files or limits than there are."""
    stands = re.findall(r"[^\n|]+", page.partition(START)[2].partition(END)[0])
    wanted = re.findall(r"[^\n|]+", counted(found))
    apart = [(one.strip(), other.strip()) for one, other in zip(stands, wanted, strict=True) if one != other]
    if strange := [pair for pair in apart if not all(each.isdecimal() for each in pair)]:
        raise ValueError(f"the page says {strange[0][0]}, the walk {strange[0][1]}")
    return max((abs(int(one) - int(other)) for one, other in apart), default=0)


def told(page: str) -> list[str]:
    """The files the page's steps name, as often as they do."""
    steps = page.partition("## Step by step\n")[2].partition("\n## ")[0]
    return re.findall(r"`([a-z0-9_/]+\.py)`", steps)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as home:
        PAGE.write_text(renewed(PAGE.read_text("utf-8"), walks(Path(home) / "tasks.db")), "utf-8")
