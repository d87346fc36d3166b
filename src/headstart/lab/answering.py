"""Clips of drives that nobody was trained on, asked about on an engine, many at once."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from headstart.engine.answer import Answer
from headstart.engine.headstart import Headstart
from headstart.lab.language.questions import Question
from headstart.lab.split import Split
from headstart.lab.world.drive import Drive, LabClip

MAX_TOKENS = 128
"""Longer than any answer of either house."""
QUESTIONS_A_CLIP = 4
CLIPS_A_DRIVE = 5
SECONDS_BETWEEN = 15
"""As in training: few clips of a drive show the same street."""

Report = Callable[[str, int, int], None]
"""What is being done, how much of it is done, and how much there is."""
OpenEngine = Callable[..., Headstart]


def say_nothing(work: str, done: int, total: int) -> None:
    """A report to nobody."""


@dataclass(frozen=True, eq=False)
class Asked:
    """A kind of question about a clip, in one of its wordings."""

    clip: LabClip
    question: Question
    wording: str


def held_out_drive(num_clips: int, skip: int = 0, report: Report = say_nothing) -> list[LabClip]:
    """The first seconds of one held-out drive, in order."""
    (seed,) = Split.HELD_OUT.seeds(1, skip=skip)
    return _rendered([(seed, second) for second in range(num_clips)], report)


def held_out_questions(num: int, seed: int = 0, report: Report = say_nothing) -> list[Asked]:
    """``num`` questions about a few seconds each of as many held-out drives as that takes.

    Kinds come equally often, shuffled by ``seed``, as are their wordings; none comes twice on a
    clip.
    """
    num_clips = -(-num // QUESTIONS_A_CLIP)
    places = [
        (drive, SECONDS_BETWEEN * place)
        for drive in Split.HELD_OUT.seeds(-(-num_clips // CLIPS_A_DRIVE))
        for place in range(CLIPS_A_DRIVE)
    ][:num_clips]
    random = Random(seed)
    kinds: list[Question] = []
    # Whole rounds of all kinds, a multiple of the questions of a clip.
    while len(kinds) < num:
        kinds += random.sample(list(Question), len(Question))
    clips = _rendered(places, report)
    return [
        Asked(clips[number // QUESTIONS_A_CLIP], kind, random.choice(kind.value))
        for number, kind in enumerate(kinds[:num])
    ]


def open_engine(model: Path, **vllm: Any) -> Headstart:
    """An engine as every measurement of the lab has it, without drafts; ``vllm`` overrides."""
    settings = {
        # Compiling takes longer than these small models save by it.
        "enforce_eager": True,
        # What the pair's sizes are chosen for, on any processor.
        "dtype": "float32",
        "kv_cache_memory_bytes": 2**30,
        "use_tqdm_on_load": False,
    }
    return Headstart(model, max_draft_tokens=0, vllm=settings | vllm)


def answer_all(
    headstart: Headstart,
    asked: Sequence[Asked],
    *,
    max_tokens: int = MAX_TOKENS,
    num_at_once: int = 8,
    report: Report = say_nothing,
) -> list[Answer]:
    """The answers in the order of the questions; vLLM batches ``num_at_once`` of them."""

    def ask(one: Asked) -> Answer:
        return headstart.ask(one.clip.clip, one.wording, max_tokens=max_tokens)

    answers = []
    with ThreadPoolExecutor(num_at_once) as threads:
        for answer in threads.map(ask, asked):
            answers.append(answer)
            report("answering", len(answers), len(asked))
    return answers


def _rendered(places: Sequence[tuple[int, int]], report: Report) -> list[LabClip]:
    drives: dict[int, Drive] = {}
    clips = []
    for seed, second in places:
        clips.append(drives.setdefault(seed, Drive(seed)).clip(second))
        report("rendering", len(clips), len(places))
    return clips
