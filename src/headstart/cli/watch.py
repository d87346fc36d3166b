"""`headstart watch`: ask the same question about every window of one camera or of several."""

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from headstart.cli import options
from headstart.cli.ask import read_schema
from headstart.cli.output import OutputForm, output_of
from headstart.cli.settings import SET, setting
from headstart.cli.starting import start_headstart
from headstart.cli.terminal import report_errors, terminal
from headstart.engine.interrupts import interrupts_kept
from headstart.engine.options import DEFAULT_REHEARSALS, Sources
from headstart.errors import LiveError
from headstart.live import watching
from headstart.live.answer_log import AnswerLog, row_of
from headstart.live.sinks.hook import Hook
from headstart.live.sinks.mqtt import MqttPublisher
from headstart.live.sinks.outbox import AnswerSink, DeliveryCounts
from headstart.live.sources.folder import video_file
from headstart.live.sources.opening import events_beside, open_source
from headstart.live.sources.source import Source
from headstart.live.watching import WatchCounts
from headstart.live.when import Always, When, WhenChanged
from headstart.live.windows import Windows
from headstart.media.events import SensorSize

SIMULATED = "simulated"
MAX_WAITS = 100_000
"""The waits that the summary is made of: the newest of them."""


class Asked(StrEnum):
    """Which windows are asked about."""

    ALWAYS = "always"
    CHANGED = "changed"


@dataclass(frozen=True)
class WatchSettings(options.AskSettings):
    """How cameras are watched, beside what is asked."""

    at_least: float | None = setting(None, "With --when changed: ask every so many seconds anyway.")
    speed: float | None = setting(None, "Play files so many times as fast as they were taken.")
    rehearsals: float = setting(
        DEFAULT_REHEARSALS,
        "Answer questions before a window's last frame, in so much of the engine's time for a"
        " second of all else; 0: never.",
        at_least=0,
    )
    mqtt_discovery: bool = setting(
        False, "With --mqtt: have Home Assistant make a sensor of each source."
    )


@report_errors
def watch(
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="SOURCE... QUESTION",
            show_default=False,
            help="Cameras: files, folders, rtsp:// and http:// addresses, /dev/video0. Last, what"
            " to ask, in quotes.",
        ),
    ],
    target: options.Target,
    window: Annotated[float, typer.Option(help="Seconds that a question sees.")] = 2.0,
    step: Annotated[
        float | None,
        typer.Option(help="Seconds from one window's start to the next; by default the window."),
    ] = None,
    frames: options.Frames = None,
    when: Annotated[
        Asked, typer.Option(help="Ask about every window, or where events show a change.")
    ] = Asked.ALWAYS,
    events: Annotated[
        list[str] | None,
        typer.Option(
            metavar="EVENTS",
            help="Events beside a source: a recording, camera for an event camera that is plugged"
            " in, or simulated for events made from the frames; as often as there are sources.",
        ),
    ] = None,
    schema: options.JsonSchema = None,
    max_tokens: options.MaxTokens = 256,
    max_windows: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=1, hidden=True, help="End after so many answers, of all sources."
        ),
    ] = None,
    output: Annotated[
        OutputForm | None,
        typer.Option(hidden=True, help="By default text on a terminal, else jsonl."),
    ] = None,
    record: Annotated[
        Path | None,
        typer.Option(
            hidden=True,
            dir_okay=False,
            help="Append answers to a file that headstart replay reads.",
        ),
    ] = None,
    hook: Annotated[
        str | None, typer.Option(help="An address that each answer is posted to, as JSON.")
    ] = None,
    mqtt: Annotated[
        str | None,
        typer.Option(
            envvar="HEADSTART_MQTT",
            help="A broker that each answer is published to: mqtt://USER:PASSWORD@HOST/PREFIX.",
        ),
    ] = None,
    draft_model: options.DraftModel = None,
    vllm: options.Vllm = None,
    given: Annotated[list[str] | None, SET, WatchSettings] = None,
) -> None:
    """Answer a question about every window of cameras.

    Shows the wait from a window's last frame. Ends with the sources, or with Ctrl-C.
    """
    settings = WatchSettings.read(given)
    names, question = _split(words)
    windows = Windows(window, step)
    make_when = _when(when, settings.at_least, bool(events))
    if settings.mqtt_discovery and mqtt is None:
        raise LiveError("mqtt_discovery goes with --mqtt: name a broker, or leave the setting out")
    json_schema = None if schema is None else read_schema(schema)
    waits: deque[float] = deque(maxlen=MAX_WAITS)
    with ExitStack() as ending:
        with interrupts_kept():
            sources = _sources(names, settings, events or [])
        for source in sources:
            ending.callback(source.close)
        log = None if record is None else ending.enter_context(AnswerLog(record))
        sinks: dict[str, AnswerSink] = {}
        if hook is not None:
            sinks["hook"] = ending.enter_context(Hook(hook))
        if mqtt is not None:
            publisher = MqttPublisher(mqtt, has_discovery=settings.mqtt_discovery)
            sinks["mqtt"] = ending.enter_context(publisher)
        headstart = ending.enter_context(
            start_headstart(
                target,
                settings,
                draft_model=draft_model,
                sources=Sources(rehearsals=settings.rehearsals),
                num_frames=frames,
                vllm=vllm,
            )
        )
        out = output_of(output)
        with interrupts_kept():
            answers = watching.watch(
                sources,
                question,
                headstart=headstart,
                windows=windows,
                when=make_when,
                max_tokens=max_tokens,
                schema=json_schema,
                on_shown=out.on_shown,
            )
        try:
            with out, answers:
                for answer in islice(answers, max_windows):
                    waits.append(answer.wait_s)
                    out.print(answer)
                    row = row_of(answer)
                    if log is not None:
                        log.write(row)
                    for sink in sinks.values():
                        sink.post(row)
        except KeyboardInterrupt:
            pass
        finally:
            for sink in sinks.values():
                sink.close()
            deliveries = {name: sink.counts for name, sink in sinks.items()}
            terminal().say(summary(answers.counts.values(), waits, deliveries))


def summary(
    cameras: Iterable[WatchCounts],
    waits_s: Sequence[float],
    deliveries: Mapping[str, DeliveryCounts],
) -> str:
    """One line about all that was watched. What did not happen is left out."""
    live, sources = zip(*((each.live, each.source) for each in cameras), strict=True)
    asked, skipped, dropped, unread = (
        sum(getattr(counts, name) for counts in live)
        for name in ("asked", "skipped", "dropped", "unread")
    )
    parts = [f"{asked} windows asked, {skipped} skipped, {dropped} dropped"]
    if unread:
        parts.append(f"{unread} not asked since answers were not read")
    if len(waits_s):
        median_s, p95_s = np.percentile(waits_s, (50, 95))
        parts.append(f"wait from the last frame: median {median_s:.2f} s, p95 {p95_s:.2f} s")
    if lost := sum(counts.dropped for counts in sources):
        parts.append(f"{lost} frames lost before they were read")
    if reconnects := sum(counts.reconnects for counts in sources):
        parts.append(f"{reconnects} reconnects")
    for name, counts in deliveries.items():
        parts.append(f"{name}: {counts.delivered} delivered, {counts.dropped} dropped")
        if counts.dropped and counts.last_error:
            parts[-1] += f" ({counts.last_error})"
    return "; ".join(parts)


def _split(words: Sequence[str]) -> tuple[list[str], str]:
    *names, question = words
    if not names:
        raise LiveError(
            f"{question!r} is all there is: give one or more sources, and then the question in"
            ' quotes, as in headstart watch street.mp4 "What is happening?"'
        )
    if Path(question).exists():
        raise LiveError(f"{question} is a file: give the question, in quotes, after the sources")
    return names, question


def _when(asked: Asked, at_least: float | None, has_events: bool) -> Callable[[], When]:
    if asked is Asked.ALWAYS:
        if at_least is not None:
            raise LiveError("at_least is for --when changed: every window is asked about")
        return Always
    if not has_events:
        raise LiveError(
            "--when changed looks at events: give a recording with --events, or --events simulated"
        )
    WhenChanged(at_least)  # a floor that cannot be is said now
    return lambda: WhenChanged(at_least)


def _sources(names: Sequence[str], settings: WatchSettings, events: Sequence[str]) -> list[Source]:
    if list(events) == [SIMULATED]:
        events = [SIMULATED] * len(names)
    if events and len(events) != len(names):
        raise LiveError(
            f"{len(events)} times --events for {len(names)} sources: give one for each, in the same"
            f" order, or {SIMULATED} for all"
        )
    speed, sensor = settings.speed, settings.sensor
    size = None if sensor is None else SensorSize.parse(sensor)
    for name in names:
        if speed is not None and not Path(name).is_file():
            raise LiveError(f"speed is for files, and {name} is none: leave it out")
    sources = [
        open_source(name) if speed is None else video_file(name, speed=speed) for name in names
    ]
    for number, given in enumerate(events):
        sources[number] = events_beside(sources[number], given, size)
    return sources
