"""A report as one HTML page and as a few lines: what to know first, then everything."""

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from headstart_research.bench.equality import ALONE, DRAFTED, num_different
from headstart_research.bench.gpu_report import FILE, GpuReport, results
from headstart_research.bench.page import document, how_it_was_run, measured, table
from headstart_research.bench.result import BenchResult

SEND = (
    f"Nothing was sent. To tell us, open an issue named 'GPU report' in headstart's repository and"
    f" attach {FILE}."
)
_NO_WORDS = (
    "It holds no pictures, no questions and no answers, only digests of the answers' tokens."
)


def page(report: GpuReport) -> str:
    about = report.about
    parts = [
        "<h1>headstart gpu-report</h1>",
        f"<p class=soft>{escape(str(about.get('date', '')))},"
        f" {escape(str(about.get('machine', '')))}</p>",
        f"<ul>{''.join(f'<li>{escape(line)}</li>' for line in summary(report))}</ul>",
        f"<p>{escape(SEND)} {'' if about['options'].get('words') else _NO_WORDS}</p>",
    ]
    for name, result in results(report.parts, "equality"):
        parts += [f"<h2>{escape(name)}</h2>", _comparisons(result["comparisons"])]
    for name, result in results(report.parts, "speed"):
        bench = BenchResult.parse(result["bench"])
        notes = "".join(f"<li>{escape(note)}</li>" for note in bench.notes)
        parts += [f"<h2>{escape(name)}</h2>", *measured(bench), f"<ul>{notes}</ul>"]
    parts += [_settings(report), _installation(report), how_it_was_run(about)]
    return document("headstart gpu-report", *parts)


def summary(report: GpuReport) -> list[str]:
    """What the report found, a line each."""
    lines = []
    for name, result in results(report.parts, "equality"):
        rows = result["comparisons"]
        differ, asked = num_different(rows, DRAFTED.name)
        drafted = sum(row["drafted_tokens"] for row in rows)
        line = f"{name}: {differ} of {asked} answers are not token for token bare vLLM's"
        if differ:
            itself, again = num_different(rows, ALONE.name)
            line += f"; of bare vLLM's own, asked again, {itself} of {again} are not"
        lines.append(line if drafted else f"{line}, and nothing was drafted: it shows nothing")
    for name, result in results(report.parts, "speed"):
        for workload, rows in BenchResult.parse(result["bench"]).summary().items():
            for method, row in rows.items():
                low, high = row["end_to_end_low"], row["end_to_end_high"]
                lines.append(
                    f"{name}, {workload}, {method}: {row['end_to_end']:.2f} times as fast as bare"
                    f" vLLM ({low:.2f} to {high:.2f}); first token {row['first_token']:.2f}"
                )
    for name in report.failed:
        lines.append(f"{name}: failed. {report.parts[name]['why']}")
    return lines


def _comparisons(rows: Sequence[Mapping[str, Any]]) -> str:
    headings = ("engine, asked", "answers", "differ", "drafted", "accepted", "largest margin")
    return table(
        headings,
        [
            (
                f"{row['engine']}, {row['way']}",
                row["answers"],
                len(row["differences"]),
                row["drafted_tokens"],
                row["accepted_tokens"],
                _largest_margin(row["differences"]),
            )
            for row in rows
        ],
    )


def _largest_margin(differences: Sequence[Mapping[str, Any]]) -> str:
    margins = [one["margin"] for one in differences if one["margin"] is not None]
    return f"{max(margins):.3f} nats" if margins else ""


def _settings(report: GpuReport) -> str:
    """What vLLM chose, an engine a column."""
    found = {
        f"{name}: {engine}": settings
        for kind in ("equality", "speed")
        for name, result in results(report.parts, kind)
        for engine, settings in result["settings"].items()
    }
    if not found:
        return ""
    names = list(next(iter(found.values())))
    rows = [(name, *(settings[name] for settings in found.values())) for name in names]
    return "<h2>What vLLM chose</h2>" + table(("", *found), rows)


def _installation(report: GpuReport) -> str:
    rows = [
        (finding["part"], finding["health"], finding["detail"])
        for _, result in results(report.parts, "doctor")
        for finding in result["findings"]
    ]
    return "<h2>Installation</h2>" + table(("", "", ""), rows)
