"""`headstart collect`: gathers what a learned drafter is trained on."""

import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from headstart.cli.options import SENSOR, DraftModel, Target, Vllm
from headstart.cli.settings import SET, CommandSettings, engine_arguments, setting
from headstart.cli.terminal import is_verbose, quieten, report_errors
from headstart.engine.interrupts import interrupts_kept
from headstart.errors import CollectError
from headstart.media.events import SensorSize
from headstart_research.commands.collect_progress import CollectProgress
from headstart_research.commands.options import Folder, Questions

if TYPE_CHECKING:
    from headstart_research.collect.clip_source import ClipSource
    from headstart_research.collect.models import CollectedModels

DEFAULT_QUESTION = "What is happening in this scene?"
LAB_CLIPS = 9
INTERRUPTED = 130


@dataclass(frozen=True)
class CollectSettings(CommandSettings):
    """Which clips are looked at, and how records are collected, beside of what."""

    drives: int = setting(112, "How many of the lab's drives.", at_least=1)
    clips: int | None = setting(
        None, f"Seconds of each recording, else all; of a lab's drive {LAB_CLIPS}.", at_least=1
    )
    sensor: str | None = setting(None, SENSOR)
    frames: int | None = setting(None, "Frames of a clip that the target sees.", at_least=1)
    max_tokens: int = setting(256, "Longest answer.", at_least=1)
    shard: str = setting("1/1", "Only this part of the streams: 2/8 is the second of eight.")
    licence: str | None = setting(None, "Of the records; else what the models' cards say.")
    at_once: int = setting(4, "Clips that are asked about at the same time.", at_least=1)
    clips_a_file: int = setting(64, "After a kill, so many are asked again.", at_least=1)


@report_errors
def collect(
    target: Target,
    out: Annotated[Path, typer.Option(file_okay=False, help="The folder of the records.")],
    folder: Folder = None,
    question: Questions = None,
    log: Annotated[
        Path | None,
        typer.Option(exists=True, dir_okay=False, help="Answers so far, in place of recordings."),
    ] = None,
    tenant: Annotated[
        str | None, typer.Option(help="Whose answers in the log: no others are taken.")
    ] = None,
    held_out: Annotated[
        bool,
        typer.Option("--held-out", help="The lab's held-out drives, to measure drafters with."),
    ] = False,
    draft_model: DraftModel = None,
    vllm: Vllm = None,
    given: Annotated[list[str] | None, SET, CollectSettings] = None,
) -> None:
    """Keep a target's answers and vision features for training.

    It is asked about your recordings, or headstart-lab's drives. Run the same command again after
    any end, and it goes on where it was. Prints one line of JSON last.
    """
    from headstart.doctor.findings import require_engine
    from headstart_research.collect.record_table import require_pyarrow
    from headstart_research.collect.shard import Shard

    require_pyarrow()
    settings = CollectSettings.read(given)
    arguments, beside = engine_arguments(vllm, draft_model)
    _check_choice(folder, log, tenant, draft_model, question, held_out)
    part = Shard.parse(settings.shard)
    if log is None:
        require_engine()
    from headstart_research.collect.collection import Collection
    from headstart_research.collect.feature_shape import feature_shapes
    from headstart_research.collect.models import CollectedModels

    collection = Collection(out, part, settings.licence, settings.clips_a_file)
    with _resumable(out), CollectProgress(Console(stderr=True)) as progress:
        if log is not None:
            counts = collection.collect_log(log, tenant or "", target, progress)
        else:
            models = CollectedModels(
                target, draft_model, settings.max_tokens, settings.frames, arguments, beside
            )
            counts = collection.collect_clips(
                models,
                clip_source(folder, question or [], settings, held_out=held_out),
                progress,
                start=_started,
                at_once=settings.at_once,
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
    draft_model: str | None,
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
    if folder is not None or draft_model is not None or questions:
        raise CollectError(
            "a log holds questions and answers and no recordings: give --log without --folder,"
            " --question and --draft-model"
        )


def clip_source(
    folder: Path | None,
    questions: Sequence[str],
    settings: CollectSettings,
    *,
    held_out: bool,
) -> "ClipSource":
    """What the options name: a folder of recordings, or the lab's drives."""
    from headstart_research.collect.clip_source import folder_source, lab_source

    if folder is None:
        clips = settings.clips or LAB_CLIPS
        return lab_source(settings.drives, clips, questions, held_out=held_out)
    size = SensorSize.parse(settings.sensor) if settings.sensor else None
    return folder_source(folder, questions or [DEFAULT_QUESTION], settings.clips, size)


@contextmanager
def _started(models: "CollectedModels") -> Iterator[tuple[Any, Any]]:
    """The models, started without vLLM's messages unless they are wanted."""
    quieten()
    quiet = {"use_tqdm_on_load": is_verbose()}
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
