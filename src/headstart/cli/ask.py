"""`headstart ask`: stream the answer to one question about one clip, then show its timeline."""

import asyncio
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from headstart.cli.errors import report_errors
from headstart.cli.options import (
    AskSettings,
    ClipTimes,
    DraftModel,
    Frames,
    JsonSchema,
    MaxTokens,
    Target,
    Vllm,
    clip_times,
)
from headstart.cli.screen import AnswerScreen
from headstart.cli.settings import SET
from headstart.cli.starting import start_headstart
from headstart.cli.terminal import terminal
from headstart.cli.timeline import stage_table, verdict_table
from headstart.engine.question import schema_text
from headstart.errors import MediaError, SchemaError
from headstart.media.clip import ClipFiles
from headstart.media.events import SensorSize

if TYPE_CHECKING:
    from headstart.answers.answer import Answer
    from headstart.engine.headstart import Headstart


@report_errors
def ask(
    target: Target,
    question: Annotated[str, typer.Option(help="What to ask about the clip.")],
    video: Annotated[Path | None, typer.Option(exists=True, help="Any file FFmpeg reads.")] = None,
    picture: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", exists=True, help="A still picture; repeatable."),
    ] = None,
    events: Annotated[
        Path | None, typer.Option(exists=True, help="A recording of an event camera.")
    ] = None,
    clip: ClipTimes = None,
    frames: Frames = None,
    schema: JsonSchema = None,
    max_tokens: MaxTokens = 256,
    sampling: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE",
            hidden=True,
            help="A sampling parameter of vLLM's own; repeatable. The default is greedy.",
        ),
    ] = None,
    draft_model: DraftModel = None,
    vllm: Vllm = None,
    given: Annotated[list[str] | None, SET, AskSettings] = None,
) -> None:
    """Answer one question about a clip: a video, a recording of events, or both."""
    if video is None and not picture and events is None:
        raise MediaError(
            "there is no clip to ask about: give --video, --picture or --events, e.g."
            " --video street.mp4"
        )
    settings = AskSettings.read(given)
    start_us, stop_us = clip_times(clip)
    files = ClipFiles(
        video=video,
        pictures=tuple(picture or ()),
        events=events,
        start_us=start_us,
        stop_us=stop_us,
        sensor=None if settings.sensor is None else SensorSize.parse(settings.sensor),
    )
    json_schema = None if schema is None else read_schema(schema)
    headstart = start_headstart(
        target,
        settings,
        draft_model=draft_model,
        num_frames=frames,
        sampling=sampling,
        vllm=vllm,
    )
    out = Console(file=terminal().out)
    with headstart:
        answer = asyncio.run(_show(headstart, files, question, max_tokens, json_schema, out))
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


def read_schema(given: str) -> dict[str, Any]:
    """A JSON schema, or that in a file. What is none is found before an engine is started."""
    is_text = given.lstrip().startswith("{")
    try:
        schema = json.loads(given if is_text else Path(given).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        where = "--json" if is_text else given
        raise SchemaError(
            f"{where} holds no JSON ({error}): give a file with one JSON schema"
        ) from error
    schema_text(schema)
    return dict(schema)
