"""Which files of ours a warm question walks through, and a warm live window, in all processes.

    python -m tests.engine.walks TARGET FILE

asks the same until memory has drafted the answer, then shows windows likewise, and writes a line
for each function of ours that ran: the number of the question, the process, the file, the function.
The engine's process is forked from this one (`quick_starts`), so it is watched as well.
`test_walks` counts the files; `tests.serve.watched_server` watches a server.
"""

import importlib.util
import mmap
import os
import sys
import threading
from collections import defaultdict
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from types import FrameType
from typing import Any, TypeVar

import numpy as np

from headstart import Headstart, LiveSession, Video, Windows
from rig.camera import in_loop
from rig.waiting import wait_until

Result = TypeVar("Result")
NUM_COLD, MAX_ASKED = 2, 20
"""Questions after which all that is known is known, and those that may be asked."""
FIRST_WINDOW = 100
"""Windows are numbered from here on."""
QUESTION, MAX_TOKENS = "What is happening?", 24
NUM_FRAMES, FPS = 8, 8
ENGINE = {"dtype": "float32", "enforce_eager": True, "block_size": 32}


def _folders() -> dict[Path, Path]:
    """Where each package of ours lies, and what the names of its files are told from."""
    found = {}
    for name in ("headstart", "headstart_client", "headstart_events", "headstart_server"):
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.origin is not None:
            folder = Path(spec.origin).parent
            found[folder] = folder if name == "headstart" else folder.parent
    return found


FOLDERS = _folders()


def file_of(code: Any) -> str | None:
    """The file in which a function is, if it is one of ours."""
    path = Path(code.co_filename)
    for folder, start in FOLDERS.items():
        if path.is_relative_to(folder):
            return str(path.relative_to(start))
    return None


class Turn:
    """The number of the question under way, in a byte that all processes share; 0 is none."""

    def __init__(self, file: Path) -> None:
        handle = os.open(file.with_suffix(".turn"), os.O_RDWR | os.O_CREAT)
        os.ftruncate(handle, 1)
        self._byte = mmap.mmap(handle, 1)
        os.close(handle)

    def to(self, number: int) -> None:
        """Note what runs from now on under this number, or nothing under 0."""
        self._byte[0] = number

    @property
    def number(self) -> int:
        return self._byte[0]


class Watch:
    """Notes each function of ours that runs, here and in every process forked from here."""

    def __init__(self, file: Path) -> None:
        self.turn = Turn(file)
        self._file = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND)
        self._caller = os.getpid()
        self._seen: set[tuple[int, Any]] = set()

    def begin(self) -> None:
        """Watch this thread, and those that begin from now on."""
        threading.setprofile(self._see)
        sys.setprofile(self._see)

    def _see(self, frame: FrameType, event: str, argument: Any) -> None:
        number = self.turn.number
        if not number or event != "call" or (number, frame.f_code) in self._seen:
            return
        self._seen.add((number, frame.f_code))
        if (file := file_of(frame.f_code)) is not None:
            process = "caller" if os.getpid() == self._caller else "engine"
            words = (number, process, file, frame.f_code.co_qualname)
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
    places = {(file, code.co_qualname) for code in seen if (file := file_of(code)) is not None}
    return result, places


def walks_in(file: Path) -> dict[int, dict[str, set[str]]]:
    """The files of each question, by process."""
    found: defaultdict[int, defaultdict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for line in file.read_text().splitlines():
        number, process, place, _ = line.split(maxsplit=3)
        found[int(number)][process].add(place)
    return {number: dict(files) for number, files in found.items()}


def ask(running: Headstart, video: Video, turn: Turn) -> None:
    session = running.session("front")
    for number in range(1, MAX_ASKED + 1):
        turn.to(number)
        answer = session.ask(video, QUESTION, max_tokens=MAX_TOKENS)
        turn.to(0)
        if number > NUM_COLD and "memory" in {one.draft.source for one in answer.verdicts}:
            return
    raise SystemExit("memory has drafted nothing")


def show(running: Headstart, frames: np.ndarray, turn: Turn) -> None:
    """Each frame is computed before the next lands, so that every window goes the same way."""
    feeder = running.target.feeder
    with closing(LiveSession(running.session("camera"), Windows(NUM_FRAMES / FPS))) as live:
        answers = iter(live.standing(QUESTION, max_tokens=MAX_TOKENS))
        for number in range(MAX_ASKED):
            turn.to(FIRST_WINDOW + number)
            for slot, frame in enumerate(frames, NUM_FRAMES * number):
                live.feed(frame, slot * 1_000_000 // FPS)
                wait_until(lambda: in_loop(running, lambda: feeder.is_idle))
            verdicts = next(answers).answer.verdicts
            turn.to(0)
            if number > NUM_COLD and "memory" in {one.draft.source for one in verdicts}:
                return
    raise SystemExit("memory has drafted nothing about a window")


def main(target: str, file: str) -> None:
    watch = Watch(Path(file))
    watch.begin()
    frames = np.random.default_rng(1).integers(0, 256, (NUM_FRAMES, 56, 56, 3), dtype=np.uint8)
    with Headstart(target, max_draft_tokens=16, vllm=ENGINE) as running:
        ask(running, Video.from_frames(frames, fps=FPS), watch.turn)
        show(running, frames, watch.turn)


if __name__ == "__main__":
    main(*sys.argv[1:])
