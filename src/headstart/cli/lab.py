"""`headstart lab`: models and pictures made on this machine, nothing downloaded."""

from enum import Enum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from headstart.cli.errors import report_errors
from headstart.errors import LabError
from headstart.media.events import SensorSize

app = typer.Typer(help="Small models and scenes to try headstart with.", no_args_is_help=True)


@app.command()
@report_errors
def tiny(
    directory: Annotated[Path, typer.Argument(help="Where to write; made if absent.")],
    real_geometry: Annotated[
        bool, typer.Option(help="Pictures as large as the published models': 2056 and 582 tokens.")
    ] = False,
) -> None:
    """Write untrained models and a short street scene, as video and as events, to ask about.

    The models are laid out like the published ones and answer noise: they show that everything
    works, not what trained ones say.
    """
    from headstart.lab.street import street_video
    from headstart.lab.tiny import TinyEventGpt, TinyVideoLlava
    from headstart.media.simulation import simulate
    from headstart.media.writers.writing import write_recording

    target = TinyVideoLlava.real_geometry() if real_geometry else TinyVideoLlava()
    drafter = TinyEventGpt.real_geometry() if real_geometry else TinyEventGpt()
    target.save(directory / "target")
    drafter.save(directory / "drafter")
    street = street_video()
    street.write(directory / "street.mp4")
    seen = zip(street.times_us.tolist(), street.frames, strict=True)
    sensor = SensorSize(street.frames.shape[2], street.frames.shape[1])
    write_recording(directory / "street.npz", simulate(seen), sensor)

    console = Console()
    console.print(f"wrote target and drafter (random weights) and a street scene to {directory}\n")
    for line in (
        f"headstart ask --target {directory}/target --video {directory}/street.mp4"
        " --question 'What is happening?'",
        f"headstart ask --model {directory}/drafter --events {directory}/street.npz"
        " --start-us 500000 --stop-us 550000 --question 'What is happening?'",
    ):
        console.print(line, style="cyan", markup=False, highlight=False, soft_wrap=True)


class Which(Enum):
    """Which of the pair."""

    TARGET = "target"
    DRAFTER = "drafter"
    BOTH = "both"


_STEPS = {Which.TARGET: 420, Which.DRAFTER: 360}
_EYE_STEPS = {Which.TARGET: 750, Which.DRAFTER: 1100}
_VIEWS = {Which.TARGET: 64, Which.DRAFTER: 24}
"""Frames, or windows of events, that the eyes see in a step."""


@app.command()
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
    """Render seeded drives: frames, event slices, questions, answers. What is there stays."""
    from headstart.lab.cache import Cache, Recipe
    from headstart.lab.split import Split

    is_new = not (directory / "recipe.json").exists()
    cache = Cache(directory, Recipe(num_clips=clips) if is_new else None)
    if cache.recipe.num_clips != clips:
        raise LabError(
            f"{directory} holds drives of {cache.recipe.num_clips} clips: give --clips"
            f" {cache.recipe.num_clips}, or another directory"
        )
    # The held-out ones first: they are few, and no run ends without them.
    cache.fill([*Split.HELD_OUT.seeds(held_out), *Split.TRAIN.seeds(drives)], workers)
    Console().print(f"{drives} + {held_out} drives of {cache.recipe.num_clips} clips: {directory}")


@app.command()
@report_errors
def train(
    data: Annotated[Path, typer.Argument(help="Drives rendered by `headstart lab data`.")],
    output: Annotated[Path, typer.Argument(help="Where the models go, and what a run notes.")],
    model: Annotated[Which, typer.Option(help="Which of the pair.")] = Which.BOTH,
    steps: Annotated[
        int | None, typer.Option(help="Steps of answering; 420 or 360 unless given.")
    ] = None,
    eye_steps: Annotated[
        int | None, typer.Option(help="Steps of seeing before; 750 or 1100 unless given.")
    ] = None,
    batch_size: Annotated[int, typer.Option(help="Clips a step.")] = 12,
    questions: Annotated[int, typer.Option(help="Questions packed with each clip.")] = 8,
    facts: Annotated[int, typer.Option(help="Single facts asked for beside them.")] = 12,
    learning_rate: Annotated[float, typer.Option(help="AdamW's, at its highest.")] = 1e-3,
    seed: Annotated[int, typer.Option(help="Of weights, order and questions.")] = 0,
    threads: Annotated[
        int, typer.Option(help="Cores to use; more than one only if nothing else needs them.")
    ] = 1,
    save_minutes: Annotated[float, typer.Option(help="How often the state is kept.")] = 5.0,
) -> None:
    """Train the pair on rendered drives. Killed, it goes on where it was when started again."""
    from headstart.lab.cache import Cache
    from headstart.lab.training.course import Course
    from headstart.lab.training.progress import Progress
    from headstart.lab.training.run import Run, shared_tokenizer
    from headstart.lab.vocabulary import train_lab_tokenizer

    console = Console()
    progress = Progress(lambda line: console.print(line, markup=False, highlight=False))
    tokenizer = shared_tokenizer(output, train_lab_tokenizer)
    for which in (Which.TARGET, Which.DRAFTER):
        if model not in (Which.BOTH, which):
            continue
        run = Run(
            cache=Cache(data),
            output=output,
            course=Course(
                num_steps=steps or _STEPS[which],
                batch_size=batch_size,
                num_questions=questions,
                num_drilled=facts,
                learning_rate=learning_rate,
                # The drafter's slices are averaged: it always sees the window whole.
                glance=2 if which is Which.TARGET else None,
                seed=seed,
            ),
            eye_course=Course(
                num_steps=eye_steps or _EYE_STEPS[which],
                batch_size=_VIEWS[which],
                learning_rate=learning_rate,
                seed=seed,
            ),
            save_every_s=save_minutes * 60,
            num_threads=threads,
        )
        run.train(which.value, tokenizer, progress.say, progress.of)
