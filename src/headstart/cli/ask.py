"""`headstart ask`: stream the answer to one question about one clip, then show its timeline."""

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from headstart.answers.timeline import STAGE_COLOURS, Stage, Timeline
from headstart.cli import options
from headstart.cli.output import answer_screen
from headstart.cli.settings import SET
from headstart.cli.starting import start_headstart
from headstart.cli.terminal import report_errors, terminal
from headstart.engine.question import schema_text
from headstart.errors import MediaError, SchemaError
from headstart.media.clip import ClipFiles
from headstart.media.events import SensorSize
from headstart.speculation.draft import Verdict

_BAR_WIDTH = 40

if TYPE_CHECKING:
    from headstart.answers.answer import Answer
    from headstart.engine.headstart import Headstart


@report_errors
def ask(
    target: options.Target,
    question: Annotated[str, typer.Option(help="What to ask about the clip.")],
    video: Annotated[Path | None, typer.Option(exists=True, help="Any file FFmpeg reads.")] = None,
    picture: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", exists=True, help="A still picture; repeatable."),
    ] = None,
    events: Annotated[
        Path | None, typer.Option(exists=True, help="A recording of an event camera.")
    ] = None,
    clip: options.ClipTimes = None,
    frames: options.Frames = None,
    schema: options.JsonSchema = None,
    max_tokens: options.MaxTokens = 256,
    sampling: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE",
            hidden=True,
            help="A sampling parameter of vLLM's own; repeatable. The default is greedy.",
        ),
    ] = None,
    draft_model: options.DraftModel = None,
    vllm: options.Vllm = None,
    given: Annotated[list[str] | None, SET, options.AskSettings] = None,
) -> None:
    """Answer one question about a clip.

    A clip is a video, still pictures or a recording of events; or the first and the last together.
    Shows the words as they come, then where the time went and what became of each draft.
    """
    if video is None and not picture and events is None:
        raise MediaError(
            "there is no clip to ask about: give --video, --picture or --events, e.g."
            " --video street.mp4"
        )
    settings = options.AskSettings.read(given)
    start_us, stop_us = options.clip_times(clip)
    files = ClipFiles(
        video=video,
        pictures=tuple(picture or ()),
        events=events,
        start_us=start_us,
        stop_us=stop_us,
        sensor=None if settings.sensor is None else SensorSize.parse(settings.sensor),
    )
    json_schema = None if schema is None else read_schema(schema)
    headstart = start_headstart(
        target,
        settings,
        draft_model=draft_model,
        num_frames=frames,
        sampling=sampling,
        vllm=vllm,
    )
    out = Console(file=terminal().out)
    with headstart:
        answer = asyncio.run(_show(headstart, files, question, max_tokens, json_schema, out))
    out.print()
    out.print(stage_table(answer.timeline, answer.drafter_timeline))
    if answer.verdicts:
        out.print()
        out.print(verdict_table(answer.verdicts, answer.timeline.start_s))
    out.print(
        f"[dim]{answer.num_prompt_tokens} prompt tokens, {answer.num_cached_tokens} of them cached;"
        f" {len(answer.token_ids)} tokens answered in {answer.num_passes} passes, ended by"
        f" {answer.finish_reason}[/]"
    )


async def _show(
    headstart: "Headstart",
    files: ClipFiles,
    question: str,
    max_tokens: int,
    schema: dict[str, Any] | None,
    out: Console,
) -> "Answer":
    from headstart.answers.answer import Answer

    with answer_screen(out) as show:
        async for event in headstart.stream(files, question, max_tokens=max_tokens, schema=schema):
            if isinstance(event, Answer):
                return event
            show(event)
    raise AssertionError("a stream ends with its answer")


def read_schema(given: str) -> dict[str, Any]:
    """A JSON schema, or that in a file. What is none is found before an engine is started."""
    is_text = given.lstrip().startswith("{")
    try:
        schema = json.loads(given if is_text else Path(given).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        where = "--json" if is_text else given
        raise SchemaError(
            f"{where} holds no JSON ({error}): give a file with one JSON schema"
        ) from error
    schema_text(schema)
    return dict(schema)


def stage_table(timeline: Timeline, beside: Timeline | None = None) -> Table:
    """One row a stage, with a bar on a time axis that both timelines share."""
    every = [timeline] if beside is None else [timeline, beside]
    start_s, end_s = min(each.start_s for each in every), max(each.end_s for each in every)
    table = Table(box=None, pad_edge=False)
    table.add_column("stage")
    table.add_column("ms", justify="right")
    table.add_column("", no_wrap=True)
    for each in every:
        if each is beside:
            table.add_section()
            table.add_row("drafter", "", "", style="bold")
        for stage in Stage:
            bar = _bar(each, stage, start_s, _BAR_WIDTH / (end_s - start_s))
            table.add_row(stage, f"{each.duration_s(stage) * 1e3:.1f}", bar)
        table.add_row("between", f"{each.between_stages_s * 1e3:.1f}", "", style="dim")
        table.add_row("total", f"{each.total_s * 1e3:.1f}", "", style="bold")
    return table


def _bar(timeline: Timeline, stage: Stage, start_s: float, cells_a_second: float) -> Text:
    cells = [" "] * _BAR_WIDTH
    for span in timeline.spans:
        if span.stage is stage and span.duration_s > 0:
            start = min(int((span.start_s - start_s) * cells_a_second), _BAR_WIDTH - 1)
            stop = min(start + max(1, round(span.duration_s * cells_a_second)), _BAR_WIDTH)
            cells[start:stop] = "█" * (stop - start)
    return Text("".join(cells), style=STAGE_COLOURS[stage])


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
