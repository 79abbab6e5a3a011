"""The shape of a scenario, and how long each measurement may take."""

from collections.abc import Callable
from dataclasses import dataclass, field

from bench.contenders import Contender
from bench.results import Results, Row, Sample


@dataclass(frozen=True)
class Pace:
    """A quick look uses smaller sizes and one round; its verdicts are hints."""

    quick: bool
    rounds: int
    seconds: float
    warm: float

    def size(self, full: int, quick: int) -> int:
        return quick if self.quick else full


@dataclass
class Run:
    """What the measurements of one run share. `answers`: a good reply per scenario, for the ceiling to repeat."""

    pace: Pace
    answers: dict[str, bytes] = field(default_factory=dict[str, bytes])


@dataclass(frozen=True)
class Scenario:
    name: str
    title: str
    contenders: tuple[str, ...]
    measure: Callable[[Contender, Run], Sample]
    rows: Callable[[Results], list[Row]]
    metric: str = ""  # what the chart draws
    unit: str = ""
    once: bool = False  # too long to repeat; it takes its own medians
