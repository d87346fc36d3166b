"""`headstart replay`: measures drafting on logged answers, without a model."""

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import track
from rich.table import Table

from headstart.cli.errors import report_errors

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
) -> None:
    """Replay logged answers through every drafter, in order; a drafter sees only earlier answers.

    A row holds question and target_tokens (or target_text), and may hold draft_tokens and stream.
    Prints a table, and one line of JSON last.
    """
    from headstart.bench.log import model_tokens, read_log
    from headstart.bench.replay import DraftLimits, Replay, methods
    from headstart.bench.replay import replay as run

    log = read_log(file, model_tokens(tokenizer) if tokenizer else None)
    limits = DraftLimits(max_first_draft, max_draft)
    runs: list[Replay] = [
        run(log, make(), limits)
        for make in track(methods(log), "replaying", console=Console(stderr=True), transient=True)
    ]

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
    out.print(f"{len(log)} answers, {num_tokens} tokens, drafts of {limits.first}/{limits.later}")
    out.print()
    out.print(table)
    out.print()
    out.print(positions)
    if any(result.cheats for result in runs):
        out.print("\n* knows the answer: an upper bound, not a method", style="dim")
    typer.echo(json.dumps({result.method: result.summary() for result in runs}))


def _title(method: str, cheats: bool) -> str:
    return f"{method} *" if cheats else method
