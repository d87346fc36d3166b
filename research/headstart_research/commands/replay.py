"""`headstart replay`: measures drafting on logged answers, without a model."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import track
from rich.table import Table

from headstart.cli.settings import SET, CommandSettings, setting
from headstart.cli.terminal import report_errors
from headstart_research.commands.options import Also, named_drafters
from headstart_research.commands.tables import figures_table

if TYPE_CHECKING:
    from headstart_research.bench.replay import Replay

NUM_PARTS = 4
POSITION_WIDTH = 10
MAX_POSITIONS = 8


@dataclass(frozen=True)
class ReplaySettings(CommandSettings):
    """How a log is read and drafted for."""

    max_draft: int = setting(32, "Longest draft within an answer.", at_least=0)
    max_first_draft: int = setting(64, "Longest draft before the first token.", at_least=0)
    stream_field: str = setting("stream", "The field that says of which stream an answer is.")
    cut: int | None = setting(None, "Cut the log into streams of so many answers.", at_least=1)


@report_errors
def replay(
    file: Annotated[
        Path,
        typer.Argument(exists=True, dir_okay=False, help="Logged answers, a JSON object a line."),
    ],
    tokenizer: Annotated[
        Path | None,
        typer.Option(
            exists=True,
            file_okay=False,
            help="A model's directory, for logs of text; by default every word is a token.",
        ),
    ] = None,
    also: Also = None,
    learn_from: Annotated[
        float,
        typer.Option(min=0.0, max=0.99, help="Count only what comes after this share of the log."),
    ] = 0.0,
    given: Annotated[list[str] | None, SET, ReplaySettings] = None,
) -> None:
    """Measure drafters on logged answers, without a model.

    Answers are replayed in order, and a drafter sees only earlier ones. A row holds question and
    target_tokens (or target_text), and may hold draft_tokens and stream. Prints tables, and one
    line of JSON last.
    """
    from headstart_research.bench.log import cut as cut_into_streams
    from headstart_research.bench.log import model_tokens, read_log
    from headstart_research.bench.replay import DraftLimits, methods
    from headstart_research.bench.replay import replay as run

    settings = ReplaySettings.read(given)
    names, bridges = named_drafters(also)
    if len(bridges) > 1:
        raise typer.BadParameter("replay takes one bridge: headstart eval tells several apart")
    log = read_log(file, model_tokens(tokenizer) if tokenizer else None, settings.stream_field)
    if settings.cut is not None:
        log = cut_into_streams(log, settings.cut)
    num_streams = len({row.request.stream for row in log})
    limits = DraftLimits(settings.max_first_draft, settings.max_draft)
    makers, num_learnt = methods(log, names, next(iter(bridges), None)), int(learn_from * len(log))
    runs = [
        run(log, make(), limits).after(num_learnt)
        for make in track(makers, "replaying", console=Console(stderr=True), transient=True)
    ]
    log = log[num_learnt:]

    quarters = (f"quarter {part + 1}" for part in range(NUM_PARTS))
    table = figures_table(
        "method", figures=("tokens/pass", "first block", "passes p50", "p95", *quarters)
    )
    for result in runs:
        table.add_row(
            _title(result.method, result.cheats),
            f"{result.tokens_per_pass:.2f}",
            f"{result.first_block:.2f}",
            str(result.passes(0.5)),
            str(result.passes(0.95)),
            *(f"{value:.2f}" for value in result.by_time(NUM_PARTS)),
            style="dim" if result.cheats else None,
        )

    num_positions = min(MAX_POSITIONS, len(runs[0].by_position(POSITION_WIDTH)))
    starts = range(0, num_positions * POSITION_WIDTH, POSITION_WIDTH)
    positions = figures_table(
        "drafted share of tokens",
        figures=(f"{start + 1}-{start + POSITION_WIDTH}" for start in starts),
    )
    for result in runs:
        shares = result.by_position(POSITION_WIDTH)[:num_positions]
        positions.add_row(
            _title(result.method, result.cheats), *(f"{share:.0%}" for share in shares)
        )

    out = Console()
    num_tokens = sum(len(row.tokens) for row in log)
    of_streams = f" of {num_streams} streams" if num_streams > 1 else ""
    drafts = f"drafts of {limits.first}/{limits.later}"
    after = f" after the first {num_learnt}" if num_learnt else ""
    out.print(f"{len(log)} answers{after}{of_streams}, {num_tokens} tokens, {drafts}")
    out.print()
    out.print(table)
    out.print()
    out.print(positions)
    if num_streams > 1:
        out.print()
        out.print(_by_age([result for result in runs if result.method.startswith("memory")]))
    if any(result.cheats for result in runs):
        out.print("\n* knows the answer: an upper bound, not a method", style="dim")
    typer.echo(json.dumps({result.method: result.summary() for result in runs}))


def _by_age(runs: "list[Replay]") -> Table:
    ages = Table(box=None, pad_edge=False)
    ages.add_column("tokens/pass by age", no_wrap=True)
    for age in runs[0].by_age():
        ages.add_column(age, justify="right", no_wrap=True)
    for result in runs:
        ages.add_row(result.method, *(f"{value:.2f}" for value in result.by_age().values()))
    return ages


def _title(method: str, cheats: bool) -> str:
    return f"{method} *" if cheats else method
