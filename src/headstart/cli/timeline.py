"""Tables of an answer's stages, drawn as bars, and of its drafts and their verdicts."""

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from headstart.answers.timeline import STAGE_COLOURS, Stage, Timeline
from headstart.speculation.draft import Verdict

_BAR_WIDTH = 40


def stage_table(timeline: Timeline, beside: Timeline | None = None) -> Table:
    """One row a stage, with a bar on a time axis that both timelines share."""
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


def verdict_table(verdicts: Sequence[Verdict], start_s: float) -> Table:
    """One row a draft: its source, when it was made, where it begins, how much was accepted."""
    table = Table(box=None, pad_edge=False)
    table.add_column("drafts")
    table.add_column("made at ms", justify="right")
    table.add_column("after", justify="right")
    table.add_column("", no_wrap=True)
    for verdict in verdicts:
        draft, num_accepted = verdict.draft, verdict.num_accepted
        bar = Text("█" * num_accepted, style="green")
        bar.append("░" * (len(draft.tokens) - num_accepted), style="red")
        bar.append(f" {num_accepted} of {len(draft.tokens)}")
        made_at_ms = f"{(draft.made_at_s - start_s) * 1e3:.1f}"
        table.add_row(draft.source, made_at_ms, f"token {draft.start}", bar)
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
    bar.stylize(STAGE_COLOURS[stage])
    return bar
