"""`headstart collect`: gathers what a learned drafter is trained on."""

import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from headstart.cli.clip_options import Frames, Sensor
from headstart.cli.errors import report_errors
from headstart.cli.starting import engine_arguments, quieten
from headstart.engine.interrupts import interrupts_kept
from headstart.errors import CollectError
from headstart.media.events import SensorSize
from headstart_research.commands.collect_progress import CollectProgress

if TYPE_CHECKING:
    from headstart_research.collect.clip_source import ClipSource
    from headstart_research.collect.models import CollectedModels

DEFAULT_QUESTION = "What is happening in this scene?"
LAB_CLIPS = 9
INTERRUPTED = 130


@report_errors
def collect(
    target: Annotated[
        str,
        typer.Option(
            "--target",
            "--model",
            help="A vision model of vLLM's: a directory, or a name on the hub.",
        ),
    ],
    out: Annotated[Path, typer.Option(file_okay=False, help="The folder of the records.")],
    drafter: Annotated[
        str | None, typer.Option(help="An EventGPT, whose view of the events is kept too.")
    ] = None,
    folder: Annotated[
        Path | None,
        typer.Option(
            exists=True,
            file_okay=False,
            help="Your recordings; without it and --log, headstart-lab's drives.",
        ),
    ] = None,
    question: Annotated[
        list[str] | None, typer.Option(help="What to ask about every clip; repeatable.")
    ] = None,
    sensor: Sensor = None,
    drives: Annotated[int, typer.Option(min=1, help="How many of the lab's drives.")] = 112,
    held_out: Annotated[
        bool,
        typer.Option(
            "--held-out", help="The lab's held-out drives: records to measure drafters with."
        ),
    ] = False,
    clips: Annotated[
        int | None,
        typer.Option(
            min=1,
            help=f"Seconds of each recording, else all; of each of the lab's drives {LAB_CLIPS}.",
        ),
    ] = None,
    log: Annotated[
        Path | None,
        typer.Option(
            exists=True, dir_okay=False, help="The target's answers so far, a JSON object a line."
        ),
    ] = None,
    tenant: Annotated[
        str | None, typer.Option(help="Whose answers in the log: no others are taken.")
    ] = None,
    shard: Annotated[
        str, typer.Option(help="Only this part of the streams: 2/8 is the second of eight.")
    ] = "1/1",
    licence: Annotated[
        str | None,
        typer.Option(help="Of the records, for the manifest; else what the models' cards say."),
    ] = None,
    max_tokens: Annotated[int, typer.Option(min=1, help="Longest answer.")] = 256,
    frames: Frames = None,
    at_once: Annotated[
        int, typer.Option(min=1, help="Clips that are asked about at the same time.")
    ] = 4,
    clips_a_file: Annotated[
        int, typer.Option(min=1, help="After a kill, at most about so many are asked again.")
    ] = 64,
    vllm: Annotated[
        list[str] | None, typer.Option(help="An engine argument of vLLM's, as name=value.")
    ] = None,
    drafter_vllm: Annotated[
        list[str] | None, typer.Option(help="The same for the drafter's engine.")
    ] = None,
    verbose: Annotated[bool, typer.Option(help="Show vLLM's own messages.")] = False,
) -> None:
    """Ask a target about recordings; keep questions, answers and vision features for training.

    Run the same command again after any end, and it goes on where it was. Prints one line of JSON
    last.
    """
    from headstart.doctor.findings import require_engine
    from headstart_research.collect.record_table import require_pyarrow
    from headstart_research.collect.shard import Shard

    require_pyarrow()
    _check_choice(folder, log, tenant, drafter, question, held_out)
    part = Shard.parse(shard)
    if log is None:
        require_engine()
    from headstart_research.collect.collection import Collection
    from headstart_research.collect.feature_shape import feature_shapes
    from headstart_research.collect.models import CollectedModels

    collection = Collection(out, part, licence, clips_a_file)
    with _resumable(out), CollectProgress(Console(stderr=True)) as progress:
        if log is not None:
            counts = collection.collect_log(log, tenant or "", target, progress)
        else:
            models = CollectedModels(
                target,
                drafter,
                max_tokens,
                frames,
                engine_arguments(vllm or []),
                engine_arguments(drafter_vllm or []),
            )
            counts = collection.collect_clips(
                models,
                clip_source(folder, question or [], sensor, drives, clips, held_out=held_out),
                progress,
                start=partial(_started, verbose=verbose),
                at_once=at_once,
            )
    Console().print(
        f"{counts.in_all} records of shard {part} are in {out}, {counts.new} of them new",
        highlight=False,
    )
    shapes = feature_shapes(out)
    if shapes:
        listed = ", ".join(f"{name} {shape}" for name, shape in shapes.items())
        Console().print(f"features of all shards in it: {listed}", markup=False, highlight=False)
    said = {"out": str(out), "records": counts.in_all, "new": counts.new}
    typer.echo(json.dumps({**said, "features": {n: asdict(s) for n, s in shapes.items()}}))


def _check_choice(
    folder: Path | None,
    log: Path | None,
    tenant: str | None,
    drafter: str | None,
    questions: list[str] | None,
    held_out: bool,
) -> None:
    if held_out and (folder is not None or log is not None):
        raise CollectError(
            "the lab's drives are held out, not your recordings or logs: give --held-out without"
            " --folder and --log"
        )
    if log is None:
        if tenant is not None:
            raise CollectError("a tenant is of a log: give --log as well, or leave --tenant out")
        return
    if tenant is None:
        raise CollectError(
            "a log may hold answers of several tenants: say with --tenant whose are collected, '' "
            "for rows without a tenant"
        )
    if folder is not None or drafter is not None or questions:
        raise CollectError(
            "a log holds questions and answers and no recordings: give --log without --folder,"
            " --question and --drafter"
        )


def clip_source(
    folder: Path | None,
    questions: Sequence[str],
    sensor: str | None,
    drives: int,
    clips: int | None,
    *,
    held_out: bool,
) -> "ClipSource":
    """What the options name: a folder of recordings, or the lab's drives."""
    from headstart_research.collect.clip_source import folder_source, lab_source

    if folder is None:
        return lab_source(drives, clips or LAB_CLIPS, questions, held_out=held_out)
    size = SensorSize.parse(sensor) if sensor else None
    return folder_source(folder, questions or [DEFAULT_QUESTION], clips, size)


@contextmanager
def _started(models: "CollectedModels", *, verbose: bool) -> Iterator[tuple[Any, Any]]:
    """The models, started without vLLM's messages unless they are wanted."""
    if not verbose:
        quieten()
    quiet = {"use_tqdm_on_load": verbose}
    models = replace(
        models,
        vllm={**quiet, **models.vllm},
        drafter_vllm={**quiet, **models.drafter_vllm},
    )
    with ExitStack() as running:
        with interrupts_kept():
            observers = running.enter_context(models.started())
        yield observers


@contextmanager
def _resumable(out: Path) -> Iterator[None]:
    """Say how to go on after Ctrl-C."""
    try:
        yield
    except KeyboardInterrupt:
        typer.echo(
            f"stopped. What is complete is in {out}: run the same command again to go on", err=True
        )
        raise typer.Exit(code=INTERRUPTED) from None
