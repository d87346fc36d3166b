"""The content of the demo: each second of a drive, both models' answers, and the right ones."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from headstart_lab.answering import (
    Asked,
    OpenEngine,
    Report,
    answer_all,
    held_out_drive,
    open_engine,
    say_nothing,
)
from headstart_lab.cache import event_pictures
from headstart_lab.language.questions import Question
from headstart_lab.language.styles import DRAFTER_STYLE, TARGET_STYLE, Answer
from headstart_lab.pair import Pair
from headstart_lab.world.drive import LabClip


@dataclass(frozen=True, eq=False)
class Side:
    """One model: the pictures it saw, its reference answer, and the answer it gave."""

    pictures: NDArray[np.uint8]
    truth: Answer
    said: str


@dataclass(frozen=True, eq=False)
class Shown:
    """One second of the drive and one question about it."""

    second: int
    question: str
    target: Side
    drafter: Side


def show_drive(
    pair: Pair,
    num_clips: int,
    *,
    skip: int = 0,
    report: Report = say_nothing,
    start: OpenEngine = open_engine,
) -> list[Shown]:
    """The first seconds of a held-out drive; the questions take turns.

    Starts one engine after the other, so that a laptop's memory is enough.
    """
    kinds = list(Question)
    asked = [
        Asked(clip, kinds[clip.index % len(kinds)], kinds[clip.index % len(kinds)].usual)
        for clip in held_out_drive(num_clips, skip, report)
    ]
    target = _spoken(pair.target, "target", asked, report, start)
    drafter = _spoken(pair.drafter, "drafter", asked, report, start)
    return [
        Shown(
            second=one.clip.index,
            question=one.wording,
            target=Side(_frames(one.clip), TARGET_STYLE.answer(one.clip.scene, one.question), ours),
            drafter=Side(
                event_pictures(one.clip.clip),
                DRAFTER_STYLE.answer(one.clip.scene, one.question),
                theirs,
            ),
        )
        for one, ours, theirs in zip(asked, target, drafter, strict=True)
    ]


def _spoken(
    model: Path, name: str, asked: list[Asked], report: Report, start: OpenEngine
) -> list[str]:
    report(f"starting vLLM with the {name}", 0, 1)
    with start(model) as headstart:
        report(f"starting vLLM with the {name}", 1, 1)
        answers = answer_all(
            headstart, asked, report=lambda work, done, num: report(f"{name} {work}", done, num)
        )
    return [answer.text.strip() for answer in answers]


def _frames(clip: LabClip) -> NDArray[np.uint8]:
    assert clip.clip.video is not None
    return clip.clip.video.frames
