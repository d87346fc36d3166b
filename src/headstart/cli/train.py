"""`headstart train bridge`: fits a small drafter to what was collected."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from headstart.cli.errors import report_errors

app = typer.Typer(help="Train a learned drafter.", no_args_is_help=True, add_completion=False)


@app.callback()
def _train() -> None:
    """A group, so that the kind of drafter is named: `headstart train bridge`."""


@app.command()
@report_errors
def bridge(
    records: Annotated[Path, typer.Argument(help="A folder that `headstart collect` wrote.")],
    output: Annotated[Path, typer.Argument(help="Where the bridge is written.")],
    texts: Annotated[
        Path | None,
        typer.Option(help="Records of answers without clips, which are learnt first."),
    ] = None,
    steps: Annotated[int, typer.Option(min=1, help="Steps on the records.")] = 1200,
    text_steps: Annotated[int, typer.Option(min=1, help="Steps on the texts.")] = 500,
    batch_size: Annotated[int, typer.Option(min=1, help="Answers a step.")] = 32,
    learning_rate: Annotated[float, typer.Option(help="AdamW's highest learning rate.")] = 1e-3,
    width: Annotated[int, typer.Option(help="Of the network; 32 for each of its heads.")] = 128,
    layers: Annotated[int, typer.Option(min=1, help="Of the network.")] = 4,
    seed: Annotated[int, typer.Option(help="Of weights and order.")] = 0,
    threads: Annotated[int, typer.Option(min=1, help="Cores to use.")] = 1,
) -> None:
    """Train a bridge. A run that was killed continues when the same command is started again."""
    from headstart.bridges.config import BridgeConfig
    from headstart.training.bridge_run import BridgeRun
    from headstart.training.progress import Progress
    from headstart.training.schedule import TrainSchedule

    console = Console()
    progress = Progress(lambda line: console.print(line, markup=False, highlight=False))
    run = BridgeRun(
        records=records,
        output=output,
        sizes=BridgeConfig(
            vocabulary_size=1,
            width=width,
            num_layers=layers,
            num_heads=max(1, width // 32),
            hidden=4 * width,
        ),
        schedule=TrainSchedule(steps, batch_size, learning_rate, seed=seed),
        texts=texts,
        text_schedule=None
        if texts is None
        else TrainSchedule(text_steps, batch_size, learning_rate, seed=seed),
        num_threads=threads,
    )
    written = run.train(progress.say, progress.of)
    console.print(f"the bridge is in {written}; its card is {written / 'README.md'}")
