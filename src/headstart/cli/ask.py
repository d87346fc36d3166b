"""`headstart ask`: one question about one clip, streamed, then where the time went."""

import json
import os
import warnings
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from headstart.cli.errors import report_errors
from headstart.cli.timeline import stage_table
from headstart.media.clip import ClipFiles
from headstart.media.events import SensorSize


@report_errors
def ask(
    target: Annotated[
        str,
        typer.Option(
            "--target",
            "--model",
            help="A Video-LLaVA or an EventGPT: a directory, or a name on the hub.",
        ),
    ],
    question: Annotated[str, typer.Option(help="What to ask about the clip.")],
    video: Annotated[Path | None, typer.Option(exists=True, help="Any file FFmpeg reads.")] = None,
    events: Annotated[
        Path | None, typer.Option(exists=True, help="A recording of an event camera.")
    ] = None,
    start_us: Annotated[int | None, typer.Option(help="From this time on.")] = None,
    stop_us: Annotated[int | None, typer.Option(help="Up to, not including, this time.")] = None,
    sensor: Annotated[
        str | None, typer.Option(help="Size of the event sensor where its file says none: 640x480.")
    ] = None,
    max_tokens: Annotated[int, typer.Option(min=1, help="Longest answer.")] = 256,
    vllm: Annotated[
        list[str] | None,
        typer.Option(help="An engine argument of vLLM's own, as name=value; repeatable."),
    ] = None,
    verbose: Annotated[bool, typer.Option(help="Show vLLM's own messages.")] = False,
) -> None:
    """Answer one question about a clip: a video, a recording of events, or both."""
    files = ClipFiles(
        video=video,
        events=events,
        start_us=start_us,
        stop_us=stop_us,
        sensor=None if sensor is None else SensorSize.parse(sensor),
    )
    if not verbose:
        quieten()
    out, progress_out = Console(), Console(stderr=True)
    arguments = {"use_tqdm_on_load": verbose, **engine_arguments(vllm or [])}

    with Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        TimeElapsedColumn(),
        console=progress_out,
        transient=True,
    ) as progress:
        loading = progress.add_task(f"starting vLLM with {target}")
        from headstart.engine.headstart import Headstart

        headstart = Headstart(target, vllm=arguments)
        seconds = progress.tasks[loading].elapsed or 0.0
    progress_out.print(f"[dim]{target} is up after {seconds:.0f} s[/]")

    with headstart:
        answer = headstart.ask(
            files,
            question,
            max_tokens=max_tokens,
            on_text=lambda text: out.print(text, end="", markup=False, highlight=False),
        )
    out.print("\n")
    out.print(stage_table(answer.timeline))
    out.print(
        f"[dim]{answer.num_prompt_tokens} prompt tokens, {answer.num_cached_tokens} of them cached;"
        f" {len(answer.token_ids)} tokens answered, ended by {answer.finish_reason}[/]"
    )


def quieten() -> None:
    """Leave the terminal to the answer. In the environment, so that engine processes hear it."""
    os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")
    os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")
    os.environ.setdefault("PYTHONWARNINGS", "ignore")
    warnings.simplefilter("ignore")


def engine_arguments(pairs: list[str]) -> dict[str, Any]:
    """``name=value`` pairs as vLLM's arguments; a value is JSON where it parses, else text."""
    arguments: dict[str, Any] = {}
    for pair in pairs:
        name, separator, value = pair.partition("=")
        if not separator or not name:
            raise typer.BadParameter(f"{pair!r} is not name=value, e.g. --vllm dtype=float32")
        try:
            arguments[name.replace("-", "_")] = json.loads(value)
        except json.JSONDecodeError:
            arguments[name.replace("-", "_")] = value
    return arguments
