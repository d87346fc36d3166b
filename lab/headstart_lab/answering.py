"""Asks an engine questions about clips of held-out drives, several at once."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headstart.answers.answer import Answer
from headstart.engine.headstart import Headstart
from headstart_lab.language.questions import Question
from headstart_lab.split import Split
from headstart_lab.world.drive import Drive, LabClip

MAX_TOKENS = 128
"""Longer than any reference answer."""

Report = Callable[[str, int, int], None]
"""A progress callback: the name of the work, how much of it is done, and how much there is."""
OpenEngine = Callable[..., Headstart]


def say_nothing(work: str, done: int, total: int) -> None:
    """The progress callback that does nothing."""


@dataclass(frozen=True, eq=False)
class Asked:
    """A kind of question about a clip, in one of its wordings."""

    clip: LabClip
    question: Question
    wording: str


def held_out_drive(num_clips: int, skip: int = 0, report: Report = say_nothing) -> list[LabClip]:
    """The first seconds of one held-out drive, in order."""
    (seed,) = Split.HELD_OUT.seeds(1, skip=skip)
    return rendered([(seed, second) for second in range(num_clips)], report)


def open_engine(model: Path, **vllm: Any) -> Headstart:
    """An engine without drafts, set up for the lab's models; ``vllm`` overrides its settings."""
    settings = {
        # Compiling takes longer than these small models save by it.
        "enforce_eager": True,
        # The pair's sizes are chosen for float32, on any processor.
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


def rendered(places: Sequence[tuple[int, int]], report: Report) -> list[LabClip]:
    """The clips at ``places``, which are pairs of a drive's seed and a second."""
    drives: dict[int, Drive] = {}
    clips = []
    for seed, second in places:
        clips.append(drives.setdefault(seed, Drive(seed)).clip(second))
        report("rendering", len(clips), len(places))
    return clips
