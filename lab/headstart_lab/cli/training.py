"""`headstart lab data` and `headstart lab train`: render drives, then train the pair on them."""

from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from headstart.cli.settings import SET, CommandSettings, setting
from headstart.cli.terminal import report_errors
from headstart_lab.errors import LabError


class Which(Enum):
    """Which model of the pair to train."""

    TARGET = "target"
    DRAFTER = "drafter"
    BOTH = "both"


_STEPS = {Which.TARGET: 420, Which.DRAFTER: 360}
_EYE_STEPS = {Which.TARGET: 750, Which.DRAFTER: 1100}
_VIEWS = {Which.TARGET: 64, Which.DRAFTER: 24}
"""Frames, or windows of events, in a step of the vision task."""


@dataclass(frozen=True)
class DataSettings(CommandSettings):
    """How much is rendered."""

    drives: int = setting(900, "Drives to train on.")
    held_out: int = setting(100, "Drives that are only measured on.")
    clips: int = setting(8, "Clips of each drive, a second each, 15 seconds apart.")
    workers: int = setting(1, "Processes that render.")


@report_errors
def data(
    directory: Annotated[Path, typer.Argument(help="Where the drives are kept; made if absent.")],
    given: Annotated[list[str] | None, SET, DataSettings] = None,
) -> None:
    """Render seeded drives: frames, event slices, questions, answers. Rendered drives are kept."""
    from headstart_lab.cache import Cache, Recipe
    from headstart_lab.split import Split

    settings = DataSettings.read(given)
    clips, held_out, drives = settings.clips, settings.held_out, settings.drives
    is_new = not (directory / "recipe.json").exists()
    cache = Cache(directory, Recipe(num_clips=clips) if is_new else None)
    if cache.recipe.num_clips != clips:
        raise LabError(
            f"{directory} holds drives of {cache.recipe.num_clips} clips: give --set"
            f" clips={cache.recipe.num_clips}, or another directory"
        )
    # The held-out drives first: they are few, and every training run needs them.
    cache.fill([*Split.HELD_OUT.seeds(held_out), *Split.TRAIN.seeds(drives)], settings.workers)
    Console().print(f"{drives} + {held_out} drives of {cache.recipe.num_clips} clips: {directory}")


@dataclass(frozen=True)
class PairSettings(CommandSettings):
    """How a pair is trained."""

    steps: int | None = setting(None, "Steps of the answer task; 420 or 360, else.")
    eye_steps: int | None = setting(None, "Steps of the vision task before; 750 or 1100, else.")
    batch_size: int = setting(12, "Clips a step.")
    questions: int = setting(8, "Questions packed with each clip.")
    facts: int = setting(12, "Single facts asked for with each clip.")
    learning_rate: float = setting(1e-3, "AdamW's highest learning rate.")
    seed: int = setting(0, "Of weights, order and questions.")
    threads: int = setting(1, "Cores to use; more than one only if nothing else needs them.")
    save_minutes: float = setting(5.0, "How often the state is saved.")


@report_errors
def train(
    data: Annotated[Path, typer.Argument(help="Drives rendered by `headstart lab data`.")],
    output: Annotated[Path, typer.Argument(help="Where to write the models and the results.")],
    model: Annotated[Which, typer.Option(help="Which model of the pair.")] = Which.BOTH,
    given: Annotated[list[str] | None, SET, PairSettings] = None,
) -> None:
    """Train the pair on rendered drives. A run that was killed continues when started again."""
    from headstart_lab.cache import Cache
    from headstart_lab.training.run import Run, check_output, shared_tokenizer
    from headstart_lab.training.train_config import TrainConfig
    from headstart_lab.vocabulary import train_lab_tokenizer
    from headstart_research.training.progress import Progress

    settings = PairSettings.read(given)
    chosen = [Which.TARGET, Which.DRAFTER] if model is Which.BOTH else [model]
    for which in chosen:
        check_output(output, which.value)
    console = Console()
    progress = Progress(lambda line: console.print(line, markup=False, highlight=False))
    tokenizer = shared_tokenizer(output, train_lab_tokenizer)
    for which in chosen:
        run = Run(
            cache=Cache(data),
            output=output,
            config=TrainConfig(
                num_steps=settings.steps or _STEPS[which],
                batch_size=settings.batch_size,
                num_questions=settings.questions,
                num_drilled=settings.facts,
                learning_rate=settings.learning_rate,
                # The drafter averages over its slices, so it always gets the whole window.
                glance=2 if which is Which.TARGET else None,
                seed=settings.seed,
            ),
            vision_config=TrainConfig(
                num_steps=settings.eye_steps or _EYE_STEPS[which],
                batch_size=_VIEWS[which],
                learning_rate=settings.learning_rate,
                seed=settings.seed,
            ),
            save_every_s=settings.save_minutes * 60,
            num_threads=settings.threads,
        )
        run.train(which.value, tokenizer, progress.say, progress.of)
