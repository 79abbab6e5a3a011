"""The chart: one group of bars per scenario, written as SVG by hand. Each group has its own scale, from zero."""

from html import escape

from bench.results import Results
from bench.scenarios.scenario import Scenario

WIDTH, LABEL, BAR, ROW, GAP, TOP = 960, 260, 520, 20, 40, 70
OURS, THEIRS, CEILING = "#0b6e4f", "#9aa5b1", "#d9b44a"


def draw(about: dict[str, object], measured: list[tuple[Scenario, Results]]) -> str:
    parts: list[str] = []
    y = TOP
    for scenario, results in measured:
        names = [name for name in scenario.contenders if scenario.metric and results.has(name)]
        if names:
            parts.append(_group(scenario, results, names, y))
            y += GAP + ROW * len(names)
    title = f"dragoman bench · {about['started']} · commit {about['commit']}"
    under = f"{about['machine']} · medians of {about['rounds']} round(s){' · a quick look' if about['quick'] else ''}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{y + 10}" '
        f'viewBox="0 0 {WIDTH} {y + 10}" font-family="system-ui, sans-serif" font-size="12">\n'
        f'<rect width="100%" height="100%" fill="#fff"/>\n'
        f'<text x="16" y="28" font-size="18" font-weight="600">{escape(title)}</text>\n'
        f'<text x="16" y="46" fill="#555">{escape(under)}</text>\n' + "\n".join(parts) + "\n</svg>\n"
    )


def _group(scenario: Scenario, results: Results, names: list[str], y: int) -> str:
    values = {name: results.of(name, scenario.metric) for name in names}
    most = max(values.values()) or 1.0
    out = [f'<text x="16" y="{y}" font-weight="600">{escape(scenario.title)} — {escape(scenario.unit)}</text>']
    for index, name in enumerate(names):
        top, value = y + 8 + index * ROW, values[name]
        fill = OURS if name.startswith("dragoman") else CEILING if name in ("ceiling", "fsync probe") else THEIRS
        long = max(1.0, value / most * BAR)
        shown = f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
        out += [
            f'<text x="{LABEL - 8}" y="{top + 12}" text-anchor="end">{escape(name)}</text>',
            f'<rect x="{LABEL}" y="{top}" width="{long:.1f}" height="{ROW - 5}" rx="2" fill="{fill}"/>',
            f'<text x="{LABEL + long + 6:.1f}" y="{top + 12}">{shown}</text>',
        ]
    return "\n".join(out)
