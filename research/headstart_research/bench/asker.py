"""Asks one engine about a stream's clips: each as a whole, or frame by frame as a camera does."""

import time
from dataclasses import dataclass
from typing import Protocol

from headstart.answers.answer import Answer
from headstart.engine.session import Session
from headstart.live.session import LiveSession
from headstart.live.standing import StandingQuestion
from headstart.live.windows import Windows
from headstart_research.bench.workloads import Item, Workload


@dataclass(frozen=True)
class Asked:
    """An answer, and the time from which its wait counts until it was there."""

    answer: Answer
    asked_s: float
    answered_s: float


class Asker(Protocol):
    """Asks about one clip after the other."""

    def ask(self, item: Item) -> Asked:
        """The answer about a clip; of a live workload, timed from the clip's last frame."""


class WholeClip:
    """Hands over each clip as a whole; of a live workload, at the moment of its last frame."""

    def __init__(self, session: Session, work: Workload) -> None:
        self._session, self._work = session, work

    def ask(self, item: Item) -> Asked:
        asked_s = time.monotonic()
        answer = self._session.ask(
            item.clip, item.question, max_tokens=self._work.max_tokens, schema=self._work.schema
        )
        return Asked(answer, asked_s, time.monotonic())


class FrameByFrame:
    """Feeds the frames of each clip at the workload's pace, with a standing question."""

    def __init__(self, session: Session, work: Workload) -> None:
        self._session, self._work = session, work
        self._num_frames = session.target.view.num_frames or 1
        self._frame_us = round(work.frame_s * 1e6)
        # Rehearsals have a program of their own: `python -m benchmarks.rehearsal`.
        windows = Windows(self._num_frames * work.frame_s)
        self._live = LiveSession(session, windows, rehearse=False)
        self._standing: StandingQuestion | None = None
        self._question = ""
        self._num_windows = 0

    def ask(self, item: Item) -> Asked:
        answers = self._about(item.question)
        video, events = item.filmed(self._num_frames)
        start_us = self._num_windows * self._num_frames * self._frame_us
        self._num_windows += 1
        begun_s, heard_us = time.monotonic(), 0
        for number, (frame, seen_us) in enumerate(
            zip(video.frames, video.times_us.tolist(), strict=True)
        ):
            time.sleep(max(0.0, begun_s + number * self._work.frame_s - time.monotonic()))
            part = None if events is None else events.between(heard_us, seen_us + 1)
            heard_us = seen_us + 1
            self._live.feed(frame, start_us + number * self._frame_us, part)
        answer = next(answers)
        return Asked(answer.answer, answer.landed_s, time.monotonic())

    def _about(self, question: str) -> StandingQuestion:
        if self._standing is None or question != self._question:
            if self._standing is not None:
                self._standing.close()
            self._question = question
            self._standing = self._live.standing(
                question, max_tokens=self._work.max_tokens, schema=self._work.schema
            )
        return self._standing
