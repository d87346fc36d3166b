"""`headstart replay`: measures drafting on logged answers, without a model."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import track
from rich.table import Table

from headstart.cli.errors import report_errors

if TYPE_CHECKING:
    from headstart_research.bench.replay import Replay

NUM_PARTS = 4
POSITION_WIDTH = 10
MAX_POSITIONS = 8


@report_errors
def replay(
    file: Annotated[
        Path,
        typer.Argument(exists=True, dir_okay=False, help="Logged answers, a JSON object a line."),
    ],
    max_draft: Annotated[int, typer.Option(min=0, help="Longest draft within an answer.")] = 32,
    max_first_draft: Annotated[
        int, typer.Option(min=0, help="Longest draft before the first token.")
    ] = 64,
    tokenizer: Annotated[
        Path | None,
        typer.Option(
            exists=True,
            file_okay=False,
            help="A model's directory, for logs of text; by default every word is a token.",
        ),
    ] = None,
    stream_field: Annotated[
        str, typer.Option(help="The field that says of which stream an answer is.")
    ] = "stream",
    cut: Annotated[
        int | None,
        typer.Option(
            min=1, help="Cut the log into streams of so many answers, under way at a time."
        ),
    ] = None,
    also: Annotated[
        list[str] | None,
        typer.Option(help="Replay this drafter too: ranker, or a class as package.module:Class."),
    ] = None,
    bridge: Annotated[
        Path | None,
        typer.Option(
            exists=True,
            file_okay=False,
            help="Replay this bridge too. Count only answers it was not trained on: --learn-from.",
        ),
    ] = None,
    learn_from: Annotated[
        float,
        typer.Option(min=0.0, max=0.99, help="Count only what comes after this share of the log."),
    ] = 0.0,
) -> None:
    """Replay logged answers through every drafter, in order; a drafter sees only earlier answers.

    A row holds question and target_tokens (or target_text), and may hold draft_tokens and stream.
    Prints tables, and one line of JSON last.
    """
    from headstart_research.bench.log import cut as cut_into_streams
    from headstart_research.bench.log import model_tokens, read_log
    from headstart_research.bench.replay import DraftLimits, methods
    from headstart_research.bench.replay import replay as run

    log = read_log(file, model_tokens(tokenizer) if tokenizer else None, stream_field)
    if cut is not None:
        log = cut_into_streams(log, cut)
    num_streams = len({row.request.stream for row in log})
    limits = DraftLimits(max_first_draft, max_draft)
    makers, num_learnt = methods(log, also or (), bridge), int(learn_from * len(log))
    runs = [
        run(log, make(), limits).after(num_learnt)
        for make in track(makers, "replaying", console=Console(stderr=True), transient=True)
    ]
    log = log[num_learnt:]

    table = Table(box=None, pad_edge=False)
    table.add_column("method", no_wrap=True)
    for heading in ("tokens/pass", "first block", "passes p50", "p95"):
        table.add_column(heading, justify="right")
    for part in range(NUM_PARTS):
        table.add_column(f"quarter {part + 1}", justify="right")
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
    positions = Table(box=None, pad_edge=False)
    positions.add_column("drafted share of tokens", no_wrap=True)
    for start in range(0, num_positions * POSITION_WIDTH, POSITION_WIDTH):
        positions.add_column(f"{start + 1}-{start + POSITION_WIDTH}", justify="right")
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
