"""A result as one HTML page, without scripts or anything to load, readable on a phone."""

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from headstart_research.bench.calibration import check_forecasts
from headstart_research.bench.panels import (
    acceptance,
    colours_of,
    distribution,
    gantt,
    methods_of,
    speedup_by_length,
    stages,
    waits_by_rate,
)
from headstart_research.bench.result import BenchResult
from headstart_research.bench.svg import STYLE

_STYLE = (
    STYLE
    + """
*{box-sizing:border-box}body{margin:0 auto;max-width:1180px;padding:20px 16px 60px;
background:var(--paper);color:var(--ink);font:15px/1.5 system-ui,sans-serif}
h1{font-size:24px;margin:8px 0 2px}h2{font-size:19px;margin:34px 0 2px}
h3{font-size:14px;margin:0 0 6px}p{margin:4px 0 10px}.soft,.none{color:var(--grey)}
.charts{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,340px),1fr));gap:16px}
figure{margin:0;padding:12px;border:1px solid var(--rule);border-radius:10px;min-width:0}
.wide{overflow-x:auto}table{border-collapse:collapse;font-variant-numeric:tabular-nums;
font-size:14px;margin:6px 0 14px}th,td{padding:4px 14px 4px 0;text-align:right;white-space:nowrap;
border-bottom:1px solid var(--rule)}th{font-weight:600;color:var(--grey)}
th:first-child,td:first-child{text-align:left}b.key{display:inline-block;width:9px;height:9px;
border-radius:5px;margin-right:7px}.win{font-weight:650}
dl{display:grid;grid-template-columns:max-content minmax(0,1fr);gap:2px 14px;font-size:14px}
dt{color:var(--grey)}dd{margin:0;overflow-wrap:anywhere}li{margin-bottom:4px}
"""
)


def page(result: BenchResult) -> str:
    date = str(result.environment.get("date", ""))
    return document(
        f"headstart bench {date}",
        "<h1>headstart bench</h1>",
        f"<p class=soft>{escape(date)}, {escape(str(result.environment.get('machine', '')))}</p>",
        *measured(result),
        _forecasts(result),
        _notes(result),
        how_it_was_run(
            {**result.environment, **{f"method {k}": v for k, v in result.methods.items()}}
        ),
    )


def document(title: str, *parts: str) -> str:
    """An HTML document of these parts, in the style of the bench's pages."""
    head = (
        "<!doctype html><html lang=en><head><meta charset=utf-8>"
        '<meta name=viewport content="width=device-width,initial-scale=1">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head><body>"
    )
    return "".join([head, *parts, "</body></html>\n"])


def measured(result: BenchResult) -> list[str]:
    """How to read the figures, and a section for each workload."""
    summary = result.summary()
    workloads = dict.fromkeys(name for name, _ in result.measured())
    return [
        "<p>Wall time of whole answers, prefill included, against bare vLLM in the same run. Above"
        " 1.00 is faster than bare vLLM; brackets hold the 95% interval.</p>",
        *(_loads(result, name) for name in dict.fromkeys(load.workload for load in result.loads)),
        *(_section(result, workload, summary[workload]) for workload in workloads),
    ]


def _loads(result: BenchResult, workload: str) -> str:
    """An open workload: how long answers take at each rate."""
    capacity = next(load.capacity for load in result.loads if load.workload == workload)
    figures = [
        _figure(f"{percent}% of the answers within", waits_by_rate(result, workload, percent))
        for percent in (50, 95, 99)
    ]
    return (
        f"<h2>{escape(workload)}, by load</h2><p class=soft>Questions arrive by themselves, and a"
        " wait counts from the arrival to the last token. Bare vLLM's capacity, all cameras asking"
        f" again at once: {capacity:.2f} answers a second.</p>"
        f"<div class=charts>{''.join(figures)}</div>"
    )


def _section(result: BenchResult, workload: str, rows: dict[str, dict[str, float]]) -> str:
    chart, words = gantt(result, workload)
    first, later = acceptance(result, workload)
    return "".join(
        [
            f"<h2>{escape(workload)}</h2>",
            f"<p class=soft>{escape(result.workloads.get(workload, ''))}</p>",
            _table(result, workload, rows),
            "<div class=charts>",
            _figure(
                "End to end, every answer",
                distribution(result, workload, "end_to_end_s", "ms from question to last token"),
            ),
            _figure(
                "First token, every answer",
                distribution(result, workload, "first_token_s", "ms from question to first token"),
            ),
            _figure("Acceptance by position, verified with the prompt", first),
            _figure("Acceptance by position, later drafts", later),
            _figure("Five stages", stages(result, workload)),
            _figure("One answer", chart, words),
            _figure("Speed-up against answer length", speedup_by_length(result, workload)),
            "</div>",
        ]
    )


def _table(result: BenchResult, workload: str, rows: dict[str, dict[str, float]]) -> str:
    colours = colours_of(result)
    headings = (
        *("method", "end to end", "its p95", "first token", "tokens/pass", "passes"),
        *("accepted with the prompt", "throughput", "median", "n"),
    )
    lines = []
    for method in methods_of(result, workload)[1:]:
        row = rows[method]
        low, high = row["end_to_end_low"], row["end_to_end_high"]
        won = " class=win" if low > 1 else ""
        lines.append(
            f"<tr><td><b class=key style='background:var(--{colours[method]})'></b>"
            f"{escape(method)}</td>"
            f"<td{won}>{row['end_to_end']:.2f} <span class=soft>[{low:.2f}, {high:.2f}]</span></td>"
            f"<td>{row['end_to_end_p95']:.2f}</td><td>{row['first_token']:.2f}</td>"
            f"<td>{row['tokens_per_pass']:.2f}</td><td>{row['passes_per_answer']:.1f}</td>"
            f"<td>{_with_prompt(row)}</td>"
            f"<td>{row['throughput']:.2f}</td><td>{row['end_to_end_ms']:.0f} ms</td>"
            f"<td>{row['answers']:.0f}</td></tr>"
        )
    head = "".join(f"<th>{heading}</th>" for heading in headings)
    return f"<div class=wide><table><tr>{head}</tr>{''.join(lines)}</table></div>"


def _with_prompt(row: dict[str, float]) -> str:
    drafted = row["drafted_with_prompt"]
    return f"{row['accepted_with_prompt']:.1f} of {drafted:.1f}" if drafted else "no draft"


def _forecasts(result: BenchResult) -> str:
    checks = check_forecasts(result)
    if not checks:
        return ""
    rows = [
        (
            f"{check.workload}, {check.method}",
            f"{check.measured_s * 1e3:.0f} ms",
            f"{check.forecast_s * 1e3:.0f} ms",
            f"{check.error:+.1%}",
        )
        for check in checks
    ]
    return (
        "<h2>Forecast</h2><p class=soft>What the planner's cost model says of the same answers,"
        " from one line of costs a workload, each method's survival and the machine's pace beside"
        " it. Mean end to end.</p>"
        + table(("workload, method", "measured", "forecast", "off by"), rows)
    )


def _notes(result: BenchResult) -> str:
    summary = result.summary()
    different = [
        f"{workload}, {method}: {row['other_words']:.0f} of {row['answers']:.0f} answers are not"
        " token for token bare vLLM's"
        for workload, rows in summary.items()
        for method, row in rows.items()
        if row["other_words"]
    ]
    same = [] if different else ["Every answer of every method is bare vLLM's, token for token."]
    notes = [
        *result.notes,
        *same,
        *different,
        "Only the method called timed times its vision tower apart; in the others it is part of the"
        " prefill.",
    ]
    listed = "".join(f"<li>{escape(note)}</li>" for note in notes)
    return f"<h2>What to know</h2><ul>{listed}</ul>"


def table(headings: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    head = "".join(f"<th>{escape(heading)}</th>" for heading in headings)
    body = "".join(
        f"<tr>{''.join(f'<td>{escape(str(cell))}</td>' for cell in row)}</tr>" for row in rows
    )
    return f"<div class=wide><table><tr>{head}</tr>{body}</table></div>"


def how_it_was_run(about: Mapping[str, Any]) -> str:
    rows = "".join(
        f"<dt>{escape(name)}</dt><dd>{escape(_words(value))}</dd>" for name, value in about.items()
    )
    return f"<h2>How it was run</h2><dl>{rows}</dl>"


def _words(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {part}" for name, part in value.items())
    return str(value)


def _figure(title: str, chart: str, words: str = "") -> str:
    caption = f"<p class=soft>{escape(words)}</p>" if words else ""
    return f"<figure><h3>{escape(title)}</h3>{chart}{caption}</figure>"
