"""Which files of ours a warm question walks through, in all processes.

    python -m tests.engine.walks TARGET FILE

asks the same until memory has drafted the answer, and writes a line for each function of ours that
ran: the number of the question, the process, the file, the function. The engine's process is forked
from this one (`quick_starts`), so it is watched as well. `test_walks` counts the files.
"""

import mmap
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any, TypeVar

import numpy as np

import headstart
from headstart import Headstart, Video

Result = TypeVar("Result")
OURS = Path(headstart.__file__).parent
NUM_COLD, MAX_ASKED = 2, 20
"""Questions after which all that is known is known, and those that may be asked."""


class Watch:
    """Notes each function of ours that runs, here and in every process forked from here."""

    def __init__(self, file: Path) -> None:
        self._question = mmap.mmap(-1, 1)  # of all processes; 0 is none
        self._file = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND)
        self._caller = os.getpid()
        self._seen: set[tuple[int, Any]] = set()

    def begin(self) -> None:
        """Watch this thread, and those that begin from now on."""
        threading.setprofile(self._see)
        sys.setprofile(self._see)

    def turn_to(self, question: int) -> None:
        """Note what runs from now on under this number, or nothing under 0."""
        self._question[0] = question

    def _see(self, frame: FrameType, event: str, argument: Any) -> None:
        number = self._question[0]
        if not number or event != "call" or (number, frame.f_code) in self._seen:
            return
        self._seen.add((number, frame.f_code))
        if (path := Path(frame.f_code.co_filename)).is_relative_to(OURS):
            process = "caller" if os.getpid() == self._caller else "engine"
            words = (number, process, path.relative_to(OURS), frame.f_code.co_qualname)
            os.write(self._file, (" ".join(map(str, words)) + "\n").encode())


def walk_of(work: Callable[[], Result]) -> tuple[Result, set[tuple[str, str]]]:
    """What some work returns, and the functions of ours that run for it in this thread."""
    seen = set()

    def see(frame: FrameType, event: str, argument: Any) -> None:
        if event == "call":
            seen.add(frame.f_code)

    sys.setprofile(see)
    try:
        result = work()
    finally:
        sys.setprofile(None)
    ours = [code for code in seen if Path(code.co_filename).is_relative_to(OURS)]
    places = {(str(Path(one.co_filename).relative_to(OURS)), one.co_qualname) for one in ours}
    return result, places


def main(target: str, file: str) -> None:
    watch = Watch(Path(file))
    watch.begin()
    engine = {"dtype": "float32", "enforce_eager": True, "block_size": 32}
    frames = np.random.default_rng(1).integers(0, 256, (8, 56, 56, 3), dtype=np.uint8)
    video = Video.from_frames(frames, fps=8)
    with Headstart(target, max_draft_tokens=16, vllm=engine) as running:
        session = running.session("front")
        for number in range(1, MAX_ASKED + 1):
            watch.turn_to(number)
            answer = session.ask(video, "What is happening?", max_tokens=24)
            watch.turn_to(0)
            if number > NUM_COLD and "memory" in {one.draft.source for one in answer.verdicts}:
                return
    raise SystemExit("memory has drafted nothing")


if __name__ == "__main__":
    main(*sys.argv[1:])
