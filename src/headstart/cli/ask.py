"""`headstart ask`: stream the answer to one question about one clip, then show its timeline."""

import asyncio
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from headstart.cli.clip_options import Frames, Sensor
from headstart.cli.errors import report_errors
from headstart.cli.screen import AnswerScreen
from headstart.cli.starting import engine_arguments, start_headstart
from headstart.cli.terminal import terminal
from headstart.cli.timeline import stage_table, verdict_table
from headstart.engine.question import Manner, schema_text
from headstart.errors import MediaError, SchemaError
from headstart.media.clip import ClipFiles
from headstart.media.events import SensorSize

if TYPE_CHECKING:
    from headstart.answers.answer import Answer
    from headstart.engine.headstart import Headstart


@report_errors
def ask(
    target: Annotated[
        str,
        typer.Option(
            "--target",
            "--model",
            help="Any vision model of vLLM's, or an EventGPT: a directory, or a name on the hub.",
        ),
    ],
    question: Annotated[str, typer.Option(help="What to ask about the clip.")],
    drafter: Annotated[
        str | None,
        typer.Option(help="An EventGPT that drafts from the clip's events, beside the target."),
    ] = None,
    video: Annotated[Path | None, typer.Option(exists=True, help="Any file FFmpeg reads.")] = None,
    picture: Annotated[
        list[Path] | None, typer.Option(exists=True, help="A still picture; repeatable.")
    ] = None,
    events: Annotated[
        Path | None, typer.Option(exists=True, help="A recording of an event camera.")
    ] = None,
    system: Annotated[str, typer.Option(help="A system prompt.")] = "",
    lora: Annotated[
        Path | None,
        typer.Option(exists=True, file_okay=False, help="A LoRA adapter to answer with."),
    ] = None,
    sampling: Annotated[
        list[str] | None,
        typer.Option(
            help="A sampling parameter of vLLM's own, as name=value; repeatable. The default is"
            " greedy."
        ),
    ] = None,
    frames: Frames = None,
    start_us: Annotated[int | None, typer.Option(help="From this time on.")] = None,
    stop_us: Annotated[int | None, typer.Option(help="Up to, not including, this time.")] = None,
    sensor: Sensor = None,
    max_tokens: Annotated[int, typer.Option(min=1, help="Longest answer.")] = 256,
    schema: Annotated[
        Path | None,
        typer.Option(
            exists=True, dir_okay=False, help="A JSON schema; the answer is JSON that follows it."
        ),
    ] = None,
    vllm: Annotated[
        list[str] | None,
        typer.Option(help="An engine argument of vLLM's own, as name=value; repeatable."),
    ] = None,
    max_draft_tokens: Annotated[
        int, typer.Option(min=0, help="Longest draft that one pass verifies; 0 turns drafting off.")
    ] = 32,
    drafter_vllm: Annotated[
        list[str] | None, typer.Option(help="As --vllm, for the drafter's engine.")
    ] = None,
    verbose: Annotated[bool, typer.Option(help="Show vLLM's own messages.")] = False,
) -> None:
    """Answer one question about a clip: a video, a recording of events, or both."""
    if video is None and not picture and events is None:
        raise MediaError(
            "there is no clip to ask about: give --video, --picture or --events, e.g."
            " --video street.mp4"
        )
    files = ClipFiles(
        video=video,
        pictures=tuple(picture or ()),
        events=events,
        start_us=start_us,
        stop_us=stop_us,
        sensor=None if sensor is None else SensorSize.parse(sensor),
    )
    manner = Manner(system, engine_arguments(sampling or []), lora)
    given_schema = None if schema is None else read_schema(schema)
    headstart = start_headstart(
        target,
        drafter,
        max_draft_tokens,
        {**({"enable_lora": True} if lora else {}), **engine_arguments(vllm or [])},
        engine_arguments(drafter_vllm or []),
        num_frames=frames,
        manner=manner,
        verbose=verbose,
    )
    out = Console(file=terminal().out)
    with headstart:
        answer = asyncio.run(_show(headstart, files, question, max_tokens, given_schema, out))
    out.print()
    out.print(stage_table(answer.timeline, answer.drafter_timeline))
    if answer.verdicts:
        out.print()
        out.print(verdict_table(answer.verdicts, answer.timeline.start_s))
    out.print(
        f"[dim]{answer.num_prompt_tokens} prompt tokens, {answer.num_cached_tokens} of them cached;"
        f" {len(answer.token_ids)} tokens answered in {answer.num_passes} passes, ended by"
        f" {answer.finish_reason}[/]"
    )


async def _show(
    headstart: "Headstart",
    files: ClipFiles,
    question: str,
    max_tokens: int,
    schema: dict[str, Any] | None,
    out: Console,
) -> "Answer":
    from headstart.answers.answer import Answer

    with AnswerScreen(out) as screen:
        async for event in headstart.stream(files, question, max_tokens=max_tokens, schema=schema):
            if isinstance(event, Answer):
                return event
            screen.show(event)
    raise AssertionError("a stream ends with its answer")


def read_schema(file: Path) -> dict[str, Any]:
    """The JSON schema in a file. Wrong files are found here, before an engine is started."""
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise SchemaError(
            f"{file} holds no JSON ({error}): give a file with one JSON schema"
        ) from error
    return parse_schema(text, str(file))


def parse_schema(text: str, where: str) -> dict[str, Any]:
    """The JSON schema in a text, which was found in ``where``."""
    try:
        schema = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise SchemaError(
            f"{where} holds no JSON ({error}): give a file with one JSON schema"
        ) from error
    schema_text(schema)
    return dict(schema)
