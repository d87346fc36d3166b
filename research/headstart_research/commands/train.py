"""`headstart train`: drafters, and what they know at first, from collected or logged answers."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from headstart.cli.settings import SET, CommandSettings, setting
from headstart.cli.terminal import report_errors

if TYPE_CHECKING:
    from headstart.drafters.memory_log import RememberedAnswer

app = typer.Typer(help="Train a learned drafter.", no_args_is_help=True, add_completion=False)


@app.command()
@report_errors
def memory(
    answers: Annotated[
        Path,
        typer.Argument(
            exists=True,
            help="Logged answers, a JSON object a line; or a folder of headstart collect.",
        ),
    ],
    output: Annotated[Path, typer.Argument(dir_okay=False, help="The memory log to write.")],
    tokenizer: Annotated[
        Path | None,
        typer.Option(
            exists=True, file_okay=False, help="The target's directory, for logs of text."
        ),
    ] = None,
    tenant: Annotated[
        str | None,
        typer.Option(help="Whose answers they are; by default as each row says."),
    ] = None,
) -> None:
    """Make a memory log of answers, for an engine to quote from its first question on.

    A row of a log holds question and target_tokens (or target_text), and may hold tenant. Give the
    file to an engine as memory_log.
    """
    from headstart.drafters.memory_log import write_memory_log

    log = _collected(answers) if answers.is_dir() else _logged(answers, tokenizer)
    if tenant is not None:
        log = [replace(answer, tenant=tenant) for answer in log]
    written = write_memory_log(output, log)
    tenants = [answer.tenant for answer in written]
    for name in dict.fromkeys(tenants):
        typer.echo(f"{tenants.count(name)} answers of {repr(name) if name else 'no tenant'}")
    if len(written) < len(log):
        typer.echo(f"{len(log) - len(written)} older answers are left out: memory keeps no more")
    typer.echo(f"{output}: {output.stat().st_size} bytes")


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


def _logged(file: Path, tokenizer: Path | None) -> "list[RememberedAnswer]":
    from headstart.drafters.memory_log import RememberedAnswer
    from headstart_research.bench.log import model_tokens, read_log

    rows = read_log(file, model_tokens(tokenizer) if tokenizer else _refuse_text)
    return [
        RememberedAnswer(row.request.stream.tenant, row.request.question, row.tokens)
        for row in rows
    ]


def _collected(folder: Path) -> "list[RememberedAnswer]":
    from headstart_research.collect.record_table import require_pyarrow

    require_pyarrow()
    from headstart.drafters.memory_log import RememberedAnswer
    from headstart_research.collect.learnable import learnable_answers

    return [
        RememberedAnswer("", record.question, record.answer_ids)
        for record in learnable_answers(folder)
    ]


def _refuse_text(text: str) -> list[int]:
    raise ValueError("the row has text and no tokens: give the target's directory as --tokenizer")
