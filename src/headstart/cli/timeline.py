"""A timeline as a table with bars: where the time went, at a glance."""

from rich.table import Table
from rich.text import Text

from headstart.drafting.timeline import Stage, Timeline

_BAR_WIDTH = 40
_COLOURS = {
    Stage.LOAD: "blue",
    Stage.PREPROCESS: "cyan",
    Stage.VISION: "magenta",
    Stage.PREFILL: "yellow",
    Stage.DECODE: "green",
}


def stage_table(timeline: Timeline) -> Table:
    """One row a stage, its bar drawn where it happened."""
    table = Table(box=None, pad_edge=False)
    table.add_column("stage")
    table.add_column("ms", justify="right")
    table.add_column("", no_wrap=True)
    for stage in Stage:
        table.add_row(stage, f"{timeline.duration_s(stage) * 1e3:.1f}", _bar(timeline, stage))
    table.add_row("between", f"{timeline.between_stages_s * 1e3:.1f}", "", style="dim")
    table.add_row("total", f"{timeline.total_s * 1e3:.1f}", "", style="bold")
    return table


def _bar(timeline: Timeline, stage: Stage) -> Text:
    bar = Text(" " * _BAR_WIDTH)
    for span in timeline.spans:
        if span.stage is stage and span.duration_s > 0:
            scale = _BAR_WIDTH / timeline.total_s
            start = min(int((span.start_s - timeline.start_s) * scale), _BAR_WIDTH - 1)
            width = max(1, round(span.duration_s * scale))
            end = min(start + width, _BAR_WIDTH)
            bar = Text(bar.plain[:start] + "█" * (end - start) + bar.plain[end:])
    bar.stylize(_COLOURS[stage])
    return bar
