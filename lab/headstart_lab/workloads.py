"""What `headstart bench` asks without a folder: questions about the lab's held-out drives."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

from headstart.media.clip import Clip
from headstart_lab.language.questions import Question
from headstart_lab.split import Split
from headstart_lab.world.drive import Drive
from headstart_research.bench.open_loop import Load
from headstart_research.bench.workloads import Item, Workload, rotating

STREAMS = (2, 4, 8, 16)
OPEN_STREAMS = (8, 16)
SHARES = (0.5, 0.7, 0.85, 0.95)
"""Of bare vLLM's capacity, at which questions arrive singly."""
BURST_SHARE = 0.7
"""The same where half of the cameras ask at the same moment."""
ROTATING = (Question.DESCRIBE, Question.VEHICLES, Question.WEATHER, Question.GOING_ON)
SHORT, LONG = Question.SAFE, Question.ELABORATE
SHORT_TOKENS = 16
FRAME_S = 0.125
"""Between the frames of a live camera: a second is as many frames as the target is shown."""
SITE_DRIVE, SITE_ANSWERS = 100, 40
"""The drive of another camera at the live camera's site, and how many seconds it has been asked
about before."""
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

The lab's target was trained on prose, not on JSON. Where the schema asks for words that the target
uses in prose, its choice depends on the clip; where it asks for a number, true or false, the target
gives every clip the same one.
"""


def lab_workloads(answers: int, max_tokens: int) -> list[Workload]:
    """The workloads on held-out drives; clips come in order.

    Each camera has a drive of its own in each round. If two saw the same second, an engine that
    remembers could quote one's answer to the other.
    """

    @cache
    def seen(drive: int, index: int) -> Clip:
        (seed,) = Split.HELD_OUT.seeds(1, skip=drive)
        return Drive(seed).clip(index).clip

    def camera(questions: Sequence[Question], drive: int) -> list[Item]:
        clips = [seen(drive, index) for index in range(answers)]
        return rotating(clips, [question.usual for question in questions])

    def asking(
        name: str,
        words: str,
        questions: Sequence[Question],
        tokens: int,
        streams: int = 1,
        schema: Mapping[str, Any] | None = None,
        frame_s: float = 0.0,
        site: Callable[[int], Sequence[Item]] | None = None,
        loads: tuple[Load, ...] = (),
    ) -> Workload:
        return Workload(
            name,
            words,
            lambda number, stream: camera(questions, number * streams + stream),
            tokens,
            streams,
            schema,
            frame_s,
            site,
            loads,
        )

    def site(number: int) -> list[Item]:
        # Another drive than any round's.
        clips = [seen(SITE_DRIVE + number, index) for index in range(SITE_ANSWERS)]
        return rotating(clips, [question.usual for question in fixed])

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
        asking(
            "live",
            "the lab's drive as it is seen, eight frames a second, one question on every second",
            fixed,
            max_tokens,
            frame_s=FRAME_S,
            site=site,
        ),
        *(
            asking(
                f"open-{count}",
                f"{count} cameras, one question each time",
                fixed,
                max_tokens,
                count,
                loads=(*map(Load, SHARES), Load(BURST_SHARE, burst=count // 2)),
            )
            for count in OPEN_STREAMS
        ),
    ]
