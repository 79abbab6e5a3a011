"""The table people read: per scenario what each contender did, then the ratios with target and verdict."""

from bench.contenders import CONTENDERS
from bench.results import Results
from bench.scenarios.scenario import Scenario

WIDE = 62


def render(about: dict[str, object], measured: list[tuple[Scenario, Results]]) -> str:
    lines = [
        "",
        f"dragoman bench · {about['started']} · commit {about['commit']} · Python {about['python']}",
        f"{about['machine']} · {about['rounds']} round(s), {about['seconds']} s in all",
    ]
    if about["quick"]:
        lines.append("A quick look: short loads, smaller sizes. The verdicts are hints, not results.")
    verdicts: list[str] = []
    for scenario, results in measured:
        rows = scenario.rows(results)
        verdicts += [row.verdict for row in rows]
        lines += ["", f"{scenario.name}: {scenario.title}"]
        lines += _figures(scenario, results)
        lines += [f"  {row.what:<{WIDE}} {row.value:>12}  {row.target:<22} {row.verdict}".rstrip() for row in rows]
        if not any(row.verdict for row in rows):
            lines.append("  no verdict: dragoman, or what it is compared with, was not measured")
        lines += [f"  {name} was left out: {reason}" for name, reason in results.failures.items()]
    lines += ["", f"{verdicts.count('pass')} targets met, {verdicts.count('miss')} missed"]
    return "\n".join(lines)


def _figures(scenario: Scenario, results: Results) -> list[str]:
    if not scenario.metric:
        return []
    out: list[str] = []
    for name in scenario.contenders:
        if results.has(name):
            value = results.of(name, scenario.metric)
            form = f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
            note = CONTENDERS[name].note
            out.append(f"    {name:<{WIDE - 2}} {form:>12}  {scenario.unit}{'  (' + note + ')' if note else ''}")
    return out
