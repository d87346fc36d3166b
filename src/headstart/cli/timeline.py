"""Timelines as tables with bars: where the time went, and what became of the drafts."""

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from headstart.drafting.fate import Fate
from headstart.drafting.timeline import Stage, Timeline

_BAR_WIDTH = 40
_COLOURS = {
    Stage.LOAD: "blue",
    Stage.PREPROCESS: "cyan",
    Stage.VISION: "magenta",
    Stage.PREFILL: "yellow",
    Stage.DECODE: "green",
}


def stage_table(timeline: Timeline, beside: Timeline | None = None) -> Table:
    """One row a stage, its bar drawn where it happened; ``beside`` is drawn on the same scale."""
    start_s = min(timeline.start_s, beside.start_s if beside else timeline.start_s)
    end_s = max(timeline.end_s, beside.end_s if beside else timeline.end_s)
    table = Table(box=None, pad_edge=False)
    table.add_column("stage")
    table.add_column("ms", justify="right")
    table.add_column("", no_wrap=True)
    _add_stages(table, timeline, start_s, end_s)
    if beside is not None:
        table.add_section()
        table.add_row("drafter", "", "", style="bold")
        _add_stages(table, beside, start_s, end_s)
    return table


def fate_table(fates: Sequence[Fate], start_s: float) -> Table:
    """One row a draft: who made it and when, where it stood, and how much of it was right."""
    table = Table(box=None, pad_edge=False)
    for name, justify in (("drafts", "left"), ("made at ms", "right"), ("after", "right")):
        table.add_column(name, justify="left" if justify == "left" else "right")
    table.add_column("", no_wrap=True)
    for fate in fates:
        verdict = Text("█" * fate.num_accepted, style="green")
        verdict.append("░" * (len(fate.tokens) - fate.num_accepted), style="red")
        verdict.append(f" {fate.num_accepted} of {len(fate.tokens)}")
        made_at_ms = f"{(fate.made_at_s - start_s) * 1e3:.1f}"
        table.add_row(fate.source, made_at_ms, f"token {fate.start}", verdict)
    return table


def _add_stages(table: Table, timeline: Timeline, start_s: float, end_s: float) -> None:
    for stage in Stage:
        bar = _bar(timeline, stage, start_s, end_s)
        table.add_row(stage, f"{timeline.duration_s(stage) * 1e3:.1f}", bar)
    table.add_row("between", f"{timeline.between_stages_s * 1e3:.1f}", "", style="dim")
    table.add_row("total", f"{timeline.total_s * 1e3:.1f}", "", style="bold")


def _bar(timeline: Timeline, stage: Stage, start_s: float, end_s: float) -> Text:
    bar = Text(" " * _BAR_WIDTH)
    for span in timeline.spans:
        if span.stage is stage and span.duration_s > 0:
            scale = _BAR_WIDTH / (end_s - start_s)
            start = min(int((span.start_s - start_s) * scale), _BAR_WIDTH - 1)
            width = max(1, round(span.duration_s * scale))
            end = min(start + width, _BAR_WIDTH)
            bar = Text(bar.plain[:start] + "█" * (end - start) + bar.plain[end:])
    bar.stylize(_COLOURS[stage])
    return bar
