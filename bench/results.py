"""What was measured, round by round, and what is said about it."""

from dataclasses import dataclass, field
from statistics import median
from typing import Literal

Sample = dict[str, float]
Verdict = Literal["pass", "miss", ""]


@dataclass(frozen=True)
class Row:
    """One line of the table. `verdict` is empty where there is no target (the line is for orientation)."""

    what: str
    value: str
    target: str = ""
    verdict: Verdict = ""


@dataclass
class Results:
    """Samples of one scenario by contender, one per round."""

    samples: dict[str, list[Sample]] = field(default_factory=dict[str, list[Sample]])
    failures: dict[str, str] = field(default_factory=dict[str, str])

    def add(self, contender: str, sample: Sample) -> None:
        self.samples.setdefault(contender, []).append(sample)

    def has(self, *contenders: str) -> bool:
        return all(self.samples.get(contender) for contender in contenders)

    def of(self, contender: str, metric: str) -> float:
        return median(sample[metric] for sample in self.samples[contender])

    def ratio(self, one: str, other: str, metric: str) -> float:
        """Median over the rounds of one ÷ other: what disturbed a whole round disturbed both."""
        pairs = zip(self.samples[one], self.samples[other], strict=False)
        return median(a[metric] / b[metric] for a, b in pairs)


def at_least(what: str, value: float, target: float, form: str = "{:.1f}×") -> Row:
    return Row(what, form.format(value), "≥ " + form.format(target), "pass" if value >= target else "miss")


def at_most(what: str, value: float, target: float, form: str = "{:.1f}×") -> Row:
    return Row(what, form.format(value), "≤ " + form.format(target), "pass" if value <= target else "miss")


def shown(what: str, value: float, form: str) -> Row:
    return Row(what, form.format(value))
