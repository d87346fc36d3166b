"""`headstart train`: fits a small drafter to what was collected, or a KV bridge to recordings."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from headstart.cli.clip_options import Sensor
from headstart.cli.errors import report_errors
from headstart.cli.starting import engine_arguments, quieten
from headstart_research.commands import train_memory
from headstart_research.commands.collect import LAB_CLIPS, clip_source

app = typer.Typer(help="Train a learned drafter.", no_args_is_help=True, add_completion=False)


app.command("memory")(train_memory.memory)


@app.callback()
def _train() -> None:
    """A group, so that what is trained is named: `headstart train bridge`."""


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
    from headstart_research.bridge.config import BridgeConfig
    from headstart_research.training.bridge_run import BridgeRun
    from headstart_research.training.progress import Progress
    from headstart_research.training.schedule import TrainSchedule

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


@app.command()
@report_errors
def kv(
    output: Annotated[Path, typer.Argument(help="Where the KV bridge is written.")],
    target: Annotated[
        str,
        typer.Option(
            "--target", "--model", help="A Video-LLaVA: a directory, or a name on the hub."
        ),
    ],
    drafter: Annotated[str, typer.Option(help="An EventGPT, whose tower it will read.")],
    folder: Annotated[
        Path | None,
        typer.Option(
            exists=True,
            file_okay=False,
            help="Your recordings with events; without it headstart-lab's drives.",
        ),
    ] = None,
    sensor: Sensor = None,
    drives: Annotated[int, typer.Option(min=2, help="How many of the lab's drives.")] = 40,
    clips: Annotated[
        int | None,
        typer.Option(
            min=1,
            help=f"Seconds of each recording, else all; of each of the lab's drives {LAB_CLIPS}.",
        ),
    ] = None,
    drafter_vllm: Annotated[
        list[str] | None, typer.Option(help="An engine argument of vLLM's, as name=value.")
    ] = None,
    threads: Annotated[int, typer.Option(min=1, help="Cores to use.")] = 1,
) -> None:
    """Train a KV bridge, which guesses what the target computes of a clip from its events.

    It is for study: no engine reads it.
    """
    from headstart_research.kv_bridge.run import KvRun

    console = Console()
    quieten()
    run = KvRun(
        target,
        drafter,
        clip_source(folder, [], sensor, drives, clips, held_out=False),
        output,
        {"use_tqdm_on_load": False, **engine_arguments(drafter_vllm or [])},
        threads,
    )
    written = run.train(lambda line: console.print(line, markup=False, highlight=False))
    console.print(f"the KV bridge is in {written}; its card is {written / 'README.md'}")
