"""A cache of rendered drives on disk, which training reads many times.

A drive is two files: ``drive-00007.npz`` with the frames and event slices of each clip, compressed
one by one so that a clip can be read alone, and ``drive-00007.json`` with the reference answers of
both models to every question, and their facts. The second file is written last and marks the drive
as complete, so rendering that was killed continues with the first incomplete drive.
"""

import json
import multiprocessing
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile

import numpy as np
from numpy.typing import NDArray

from headstart.media.clip import Clip
from headstart.media.events import SensorSize
from headstart_events.eventgpt.view import EventGptView
from headstart_events.rendering import COLOURS
from headstart_lab.errors import LabError
from headstart_lab.language.facts import Fact
from headstart_lab.language.questions import Question
from headstart_lab.language.styles import DRAFTER_STYLE, TARGET_STYLE, Answer, Style
from headstart_lab.world.drive import LAB_SIZE, Drive
from headstart_lab.world.scene import Scene

FORMAT = 2
NUM_SLICES = 5
MAX_WINDOW_US = 100_000


@dataclass(frozen=True)
class Recipe:
    """The settings shared by all drives of a cache."""

    num_clips: int = 8
    seconds_between: int = 15
    """From one clip to the next; after so long most clips show another street."""
    width: int = LAB_SIZE.width
    height: int = LAB_SIZE.height
    format: int = FORMAT

    @property
    def seconds(self) -> range:
        """The seconds of a drive that are rendered as clips."""
        return range(0, self.num_clips * self.seconds_between, self.seconds_between)

    @property
    def size(self) -> SensorSize:
        """The size of the frames and of the event sensor."""
        return SensorSize(self.width, self.height)


@dataclass(frozen=True, eq=False)
class CachedClip:
    """A clip as the models get it.

    ``frames`` is uint8 [8, height, width, 3]; ``slices`` is uint8 [5, height, width, 3], drawn by
    EventGPT's own view.
    """

    frames: NDArray[np.uint8]
    slices: NDArray[np.uint8]
    target: dict[Question, Answer]
    drafter: dict[Question, Answer]


class Cache:
    """A directory of rendered drives, all of one recipe. Reading is safe from many processes."""

    def __init__(self, directory: Path, recipe: Recipe | None = None) -> None:
        self.directory = directory
        note = directory / "recipe.json"
        if note.exists():
            written = Recipe(**json.loads(note.read_text()))
            if recipe not in (None, written):
                raise LabError(f"{directory} holds {written}, not {recipe}; use another directory")
            self.recipe = written
        elif recipe is None:
            raise LabError(f"{directory} holds no rendered drives; fill it first")
        else:
            directory.mkdir(parents=True, exist_ok=True)
            self.recipe = recipe
            _write(note, json.dumps(asdict(recipe)).encode())

    def fill(self, seeds: Iterable[int], num_workers: int = 1) -> None:
        """Render the missing drives of ``seeds``; shows a progress bar."""
        from rich.progress import track

        missing = [seed for seed in seeds if not self.has(seed)]
        steps = self._render(missing, num_workers)
        for _ in track(steps, description="Rendering drives", total=len(missing)):
            pass

    def has(self, seed: int) -> bool:
        """Whether this drive is complete."""
        return self._path(seed, "json").exists()

    def clip(self, seed: int, second: int) -> CachedClip:
        """One clip of a cached drive; reads only the pictures of that clip."""
        written = self.answers(seed)[self.recipe.seconds.index(second)]
        with np.load(self._path(seed, "npz")) as arrays:
            return CachedClip(
                frames=arrays[f"frames{second}"],
                slices=draw_codes(arrays[f"slices{second}"]),
                target=_read_answers(written["target"]),
                drafter=_read_answers(written["drafter"]),
            )

    def answers(self, seed: int) -> list[dict[str, Any]]:
        """The reference answers of a drive, without its pictures, as they are in the file."""
        if not self.has(seed):
            raise LabError(f"drive {seed} is not in {self.directory}; fill the cache with it")
        clips: list[dict[str, Any]] = json.loads(self._path(seed, "json").read_text())
        return clips

    def _render(self, seeds: list[int], num_workers: int) -> Iterator[None]:
        if num_workers <= 1:
            for seed in seeds:
                render_drive(self.directory, seed, self.recipe)
                yield
            return
        # Spawned, not forked: torch's threads do not survive a fork.
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(num_workers, mp_context=context) as pool:
            jobs = [pool.submit(render_drive, self.directory, seed, self.recipe) for seed in seeds]
            for job in as_completed(jobs):
                job.result()
                yield

    def _path(self, seed: int, suffix: str) -> Path:
        return _drive_path(self.directory, seed, suffix)


def render_drive(directory: Path, seed: int, recipe: Recipe) -> None:
    """Render one drive into ``directory``; rendering it again writes the same files."""
    drive = Drive(seed, recipe.size)
    arrays: dict[str, NDArray[np.uint8]] = {}
    words = []
    for second in recipe.seconds:
        clip = drive.clip(second)
        assert clip.clip.video is not None
        arrays[f"frames{second}"] = clip.clip.video.frames
        arrays[f"slices{second}"] = code_pictures(event_pictures(clip.clip))
        words.append(
            {
                "target": _answers(clip.scene, TARGET_STYLE),
                "drafter": _answers(clip.scene, DRAFTER_STYLE),
            }
        )
    path = _drive_path(directory, seed, "npz")
    partial = path.with_name(path.name + ".partial")
    # The format of np.savez_compressed in a quarter of its time: that has no compression level.
    with ZipFile(partial, "w", ZIP_DEFLATED, compresslevel=1) as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w") as member:
                np.save(member, array)
    partial.replace(path)
    _write(_drive_path(directory, seed, "json"), json.dumps(words).encode())


def event_pictures(clip: Clip) -> NDArray[np.uint8]:
    """The slices of a clip as EventGPT's view draws them: uint8 [5, height, width, 3]."""
    view = EventGptView(None, NUM_SLICES, MAX_WINDOW_US, num_text_ids=0)
    return view.pictures(clip)


def code_pictures(pictures: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Pictures of events as indices of `COLOURS`: 0 background, 1 darker, 2 brighter."""
    # Of these only `darker` has no red, and only `brighter` has no blue.
    red, blue = pictures[..., 0], pictures[..., 2]
    return (red == 0).astype(np.uint8) + 2 * (blue == 0).astype(np.uint8)


def draw_codes(codes: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """The pictures that `code_pictures` coded."""
    pictures: NDArray[np.uint8] = COLOURS[codes]
    return pictures


def _answers(scene: Scene, style: Style) -> dict[str, Any]:
    answers = {question: style.answer(scene, question) for question in Question}
    return {
        question.name: {
            "text": answer.text,
            "facts": [[fact.subject, fact.attribute, fact.value] for fact in answer.facts],
        }
        for question, answer in answers.items()
    }


def _read_answers(written: dict[str, Any]) -> dict[Question, Answer]:
    return {
        Question[name]: Answer(answer["text"], tuple(Fact(*fact) for fact in answer["facts"]))
        for name, answer in written.items()
    }


def _drive_path(directory: Path, seed: int, suffix: str) -> Path:
    return directory / f"drive-{seed:05d}.{suffix}"


def _write(path: Path, content: bytes) -> None:
    """Write atomically: a process that is killed leaves no partial file under this name."""
    partial = path.with_name(path.name + ".partial")
    partial.write_bytes(content)
    partial.replace(path)
