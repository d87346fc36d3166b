"""What `headstart bench` asks: the lab's held-out drives, or a person's own folder."""

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from headstart.bench.folder import clips_in
from headstart.bench.workloads import Item, Workload, rotating
from headstart.lab.language.questions import Question
from headstart.lab.split import Split
from headstart.lab.world.drive import Drive
from headstart.media.clip import Clip
from headstart.media.events import SensorSize

STREAMS = (2, 4, 8, 16)
NUM_FRAMES = 8
ROTATING = (Question.DESCRIBE, Question.VEHICLES, Question.WEATHER, Question.GOING_ON)
SHORT, LONG = Question.SAFE, Question.ELABORATE
SHORT_TOKENS = 16
REPORT: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "road": {"type": "string", "pattern": r"^We are on an? [a-z -]+\.$"},
        "traffic": {
            "type": "string",
            "pattern": r"^We can see (a|an|two|three|several|no) [a-z -]+\.$",
        },
        "weather": {
            "enum": [
                f"a {sky} {light}"
                for sky in ("cloudless", "rainy", "foggy")
                for light in ("day", "evening", "night")
            ]
        },
        "advice": {"enum": ["we can keep going", "we can go on with care", "we have to wait"]},
    },
    "required": ["road", "traffic", "weather", "advice"],
    "additionalProperties": False,
}
"""What a camera on the lab's drive reports each second.

The lab's target learnt prose, and no JSON: it chooses by what it sees only among words that it
uses itself. Of numbers, true and false it says the same of every scene.
"""
DEFAULT_QUESTION = "What is happening in this scene?"


def lab_workloads(answers: int, max_tokens: int) -> list[Workload]:
    """Clips that no training has seen, in the order they were driven; other drives each round."""

    @cache
    def seen(number: int, index: int) -> Clip:
        (seed,) = Split.HELD_OUT.seeds(1, skip=number)
        return Drive(seed).clip(index).clip

    def camera(questions: Sequence[Question], number: int, stream: int) -> list[Item]:
        # Streams start at different places of a drive, so that not all say the same at once.
        clips = [seen(number, index) for index in range(stream, stream + answers)]
        return rotating(clips, [question.usual for question in questions])

    def asking(
        name: str,
        words: str,
        questions: Sequence[Question],
        tokens: int,
        streams: int = 1,
        schema: Mapping[str, Any] | None = None,
    ) -> Workload:
        return Workload(
            name,
            words,
            lambda number, stream: camera(questions, number, stream),
            tokens,
            streams,
            schema,
        )

    fixed = (Question.DESCRIBE,)
    return [
        asking("fixed", "the lab's drive, one question a second", fixed, max_tokens),
        asking("rotating", "the lab's drive, four questions in turn", ROTATING, max_tokens),
        asking("short", "the lab's drive, short answers", (SHORT,), SHORT_TOKENS),
        asking("long", "the lab's drive, long answers", (LONG,), 2 * max_tokens),
        asking(
            "json",
            "the lab's drive, a JSON report of four fields a second, by one schema",
            fixed,
            2 * max_tokens,
            schema=REPORT,
        ),
        *(
            asking(
                f"streams-{count}",
                f"{count} cameras at once, one question each time",
                fixed,
                max_tokens,
                count,
            )
            for count in STREAMS
        ),
    ]


def folder_workloads(
    folder: Path,
    questions: Sequence[str],
    answers: int,
    max_tokens: int,
    sensor: SensorSize | None,
) -> list[Workload]:
    """The folder's recordings, a clip a second, the same in every round."""
    clips = clips_in(folder, answers, NUM_FRAMES, sensor)
    items = rotating(clips, list(questions) or [DEFAULT_QUESTION])
    words = f"{len(clips)} clips of a second from {folder.name}"
    return [Workload("folder", words, lambda number, stream: items, max_tokens)]
