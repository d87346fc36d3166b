"""`headstart train`: fits a small drafter to what was collected."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from headstart.cli.settings import SET, CommandSettings, setting
from headstart.cli.terminal import report_errors
from headstart_research.commands import train_memory

app = typer.Typer(help="Train a learned drafter.", no_args_is_help=True, add_completion=False)


app.command("memory")(train_memory.memory)


@app.callback()
def _train() -> None:
    """A group, so that what is trained is named: `headstart train bridge`."""


@dataclass(frozen=True)
class BridgeSettings(CommandSettings):
    """The network of a bridge, and how it is trained."""

    steps: int = setting(1200, "Steps on the records.", at_least=1)
    text_steps: int = setting(500, "Steps on the texts.", at_least=1)
    batch_size: int = setting(32, "Answers a step.", at_least=1)
    learning_rate: float = setting(1e-3, "AdamW's highest learning rate.")
    width: int = setting(128, "Of the network; 32 for each of its heads.")
    layers: int = setting(4, "Of the network.", at_least=1)
    seed: int = setting(0, "Of weights and order.")
    threads: int = setting(1, "Cores to use.", at_least=1)


@app.command()
@report_errors
def bridge(
    records: Annotated[Path, typer.Argument(help="A folder that `headstart collect` wrote.")],
    output: Annotated[Path, typer.Argument(help="Where the bridge is written.")],
    texts: Annotated[
        Path | None,
        typer.Option(help="Records of answers without clips, which are learnt first."),
    ] = None,
    given: Annotated[list[str] | None, SET, BridgeSettings] = None,
) -> None:
    """Train a bridge. A run that was killed continues when the same command is started again."""
    from headstart_research.bridge.config import BridgeConfig
    from headstart_research.training.bridge_run import BridgeRun
    from headstart_research.training.progress import Progress
    from headstart_research.training.schedule import TrainSchedule

    settings = BridgeSettings.read(given)
    console = Console()
    progress = Progress(lambda line: console.print(line, markup=False, highlight=False))

    def schedule(steps: int) -> TrainSchedule:
        size, rate = settings.batch_size, settings.learning_rate
        return TrainSchedule(steps, size, rate, seed=settings.seed)

    run = BridgeRun(
        records=records,
        output=output,
        sizes=BridgeConfig(
            vocabulary_size=1,
            width=settings.width,
            num_layers=settings.layers,
            num_heads=max(1, settings.width // 32),
            hidden=4 * settings.width,
        ),
        schedule=schedule(settings.steps),
        texts=texts,
        text_schedule=None if texts is None else schedule(settings.text_steps),
        num_threads=settings.threads,
    )
    written = run.train(progress.say, progress.of)
    console.print(f"the bridge is in {written}; its card is {written / 'README.md'}")
