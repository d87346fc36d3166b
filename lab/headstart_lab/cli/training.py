"""`headstart lab data` and `headstart lab train`: render drives, then train the pair on them."""

from enum import Enum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from headstart.cli.errors import report_errors
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


@report_errors
def data(
    directory: Annotated[Path, typer.Argument(help="Where the drives are kept; made if absent.")],
    drives: Annotated[int, typer.Option(help="Drives to train on.")] = 900,
    held_out: Annotated[int, typer.Option(help="Drives that are only measured on.")] = 100,
    clips: Annotated[
        int, typer.Option(help="Clips of each drive, a second each, 15 seconds apart.")
    ] = 8,
    workers: Annotated[int, typer.Option(help="Processes that render.")] = 1,
) -> None:
    """Render seeded drives: frames, event slices, questions, answers. Rendered drives are kept."""
    from headstart_lab.cache import Cache, Recipe
    from headstart_lab.split import Split

    is_new = not (directory / "recipe.json").exists()
    cache = Cache(directory, Recipe(num_clips=clips) if is_new else None)
    if cache.recipe.num_clips != clips:
        raise LabError(
            f"{directory} holds drives of {cache.recipe.num_clips} clips: give --clips"
            f" {cache.recipe.num_clips}, or another directory"
        )
    # The held-out drives first: they are few, and every training run needs them.
    cache.fill([*Split.HELD_OUT.seeds(held_out), *Split.TRAIN.seeds(drives)], workers)
    Console().print(f"{drives} + {held_out} drives of {cache.recipe.num_clips} clips: {directory}")


@report_errors
def train(
    data: Annotated[Path, typer.Argument(help="Drives rendered by `headstart lab data`.")],
    output: Annotated[Path, typer.Argument(help="Where to write the models and the results.")],
    model: Annotated[Which, typer.Option(help="Which model of the pair.")] = Which.BOTH,
    steps: Annotated[
        int | None, typer.Option(help="Steps of the answer task; 420 or 360 unless given.")
    ] = None,
    eye_steps: Annotated[
        int | None, typer.Option(help="Steps of the vision task before; 750 or 1100 unless given.")
    ] = None,
    batch_size: Annotated[int, typer.Option(help="Clips a step.")] = 12,
    questions: Annotated[int, typer.Option(help="Questions packed with each clip.")] = 8,
    facts: Annotated[int, typer.Option(help="Single facts asked for with each clip.")] = 12,
    learning_rate: Annotated[float, typer.Option(help="AdamW's highest learning rate.")] = 1e-3,
    seed: Annotated[int, typer.Option(help="Of weights, order and questions.")] = 0,
    threads: Annotated[
        int, typer.Option(help="Cores to use; more than one only if nothing else needs them.")
    ] = 1,
    save_minutes: Annotated[float, typer.Option(help="How often the state is saved.")] = 5.0,
) -> None:
    """Train the pair on rendered drives. A run that was killed continues when started again."""
    from headstart_lab.cache import Cache
    from headstart_lab.training.run import Run, check_output, shared_tokenizer
    from headstart_lab.training.train_config import TrainConfig
    from headstart_lab.vocabulary import train_lab_tokenizer
    from headstart_research.training.progress import Progress

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
                num_steps=steps or _STEPS[which],
                batch_size=batch_size,
                num_questions=questions,
                num_drilled=facts,
                learning_rate=learning_rate,
                # The drafter averages over its slices, so it always gets the whole window.
                glance=2 if which is Which.TARGET else None,
                seed=seed,
            ),
            vision_config=TrainConfig(
                num_steps=eye_steps or _EYE_STEPS[which],
                batch_size=_VIEWS[which],
                learning_rate=learning_rate,
                seed=seed,
            ),
            save_every_s=save_minutes * 60,
            num_threads=threads,
        )
        run.train(which.value, tokenizer, progress.say, progress.of)
