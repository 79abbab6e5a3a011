"""Where things are, and what the bench says when something it needs is missing."""

from pathlib import Path

BENCH = Path(__file__).resolve().parent
ROOT = BENCH.parent
AGENTS = BENCH / "agents"
OUT = BENCH / "out"
ENVIRONMENTS = ROOT / ".envs"
LOAD = BENCH / "lua" / "load.lua"


class BenchError(Exception):
    """Something that makes a number impossible or worthless. The message is for a person and names the next step."""
