"""A whole run: one model from rendered drives to a checkpoint vLLM loads, with its results.

In the output directory: ``target/`` or ``drafter/`` with the finished model, and beside it
``training/target/`` with the state to go on from, ``results.json`` and ``loss.png``. A run that
was killed goes on from its state when it is started again; one that is done is not done again.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch

from headstart.errors import LabError
from headstart.lab.cache import Cache
from headstart.lab.split import Split
from headstart.lab.training.course import Course
from headstart.lab.training.curve import draw_curve
from headstart.lab.training.evaluation import evaluate, evaluate_blind, usual_answers
from headstart.lab.training.learner import DrafterLearner, Learner, TargetLearner
from headstart.lab.training.lessons import CachedLessons
from headstart.lab.training.loop import Report, seconds_a_lesson, train
from headstart.lab.training.results import Results
from headstart.lab.training.savepoint import History, Savepoint
from headstart.lab.training.sizes import PairSize

Say = Callable[[str], None]


@dataclass(frozen=True)
class Run:
    """What to train on what; either ``course.num_steps`` holds or, if given, ``minutes``.

    With ``minutes`` the number of steps is measured once, at the start, and kept in the state:
    the learning rate has to know the end.
    """

    cache: Cache
    output: Path
    course: Course
    size: PairSize = field(default_factory=PairSize)
    minutes: float | None = None
    save_every_s: float = 300.0
    num_evaluated: int = 125
    num_questions_each: int = 4
    num_threads: int = 1

    def train(self, which: str, tokenizer: Any, say: Say, report: Report) -> Path:
        """Train one of the pair; return where the model is."""
        torch.set_num_threads(self.num_threads)
        model = self.output / which
        notes = self.output / "training" / which
        if (notes / "results.json").exists():
            say(f"{which} is trained: {model}, {notes / 'results.json'}")
            return model
        torch.manual_seed(self.course.seed)
        learner = make_learner(which, self.size, tokenizer)
        known = rendered(self.cache, Split.TRAIN)
        savepoint = Savepoint(notes / "checkpoint.pt")
        course = self._course(learner, known, savepoint, say)
        if len(known) < course.num_drives:
            raise LabError(
                f"{which} began with {course.num_drives} drives and {self.cache.directory} has"
                f" {len(known)}; render them again with headstart lab data"
            )
        known = known[: course.num_drives]
        lessons = CachedLessons(self.cache, known, which)
        held_out = CachedLessons(self.cache, rendered(self.cache, Split.HELD_OUT), which)
        history = train(learner, lessons, held_out, course, savepoint, self.save_every_s, report)
        learner.save(model)
        draw_curve(
            notes / "loss.png", f"{which}, seed {course.seed}", history.losses, history.held_out
        )
        self._evaluate(learner, known, held_out, course, history, notes, say)
        return model

    def _course(
        self, learner: Learner, known: Sequence[int], savepoint: Savepoint, say: Say
    ) -> Course:
        before = savepoint.course()
        if before is not None:
            say(f"{learner.name}: going on with the run of {before.num_steps} steps")
            course = replace(self.course, num_drives=before.num_drives)
            return course if self.minutes is None else replace(course, num_steps=before.num_steps)
        course = replace(self.course, num_drives=len(known))
        if self.minutes is None:
            return course
        lessons = CachedLessons(self.cache, known, learner.name)
        seconds = seconds_a_lesson(learner, lessons, course.num_questions)
        num_steps = max(1, int(self.minutes * 60 / (seconds * course.batch_size)))
        say(f"{learner.name}: {seconds:.2f} s a clip, so {num_steps} steps in {self.minutes:g} min")
        return replace(course, num_steps=num_steps)

    def _evaluate(
        self,
        learner: Learner,
        known: Sequence[int],
        held_out: CachedLessons,
        course: Course,
        history: History,
        notes: Path,
        say: Say,
    ) -> None:
        def progress(done: int, total: int) -> None:
            if done % 25 == 0 or done == total:
                say(f"{learner.name}: {done} of {total} held-out clips answered")

        num, each = self.num_evaluated, self.num_questions_each
        score = evaluate(learner, held_out, num, each, progress)
        usual = usual_answers(self.cache, known, learner.name)
        blind = evaluate_blind(usual, held_out, num, each)
        Results(
            model=learner.name,
            size=getattr(self.size, learner.name),
            course=course,
            num_clips=len(known) * self.cache.recipe.num_clips,
            history=history,
            score=score,
            blind=blind,
            num_threads=self.num_threads,
        ).write(notes / "results.json")
        say(
            f"{learner.name}: {score.facts:.1%} of facts right on {score.num_questions} held-out"
            f" questions, {blind.facts:.1%} without looking; {notes / 'results.json'}"
        )


def make_learner(which: str, size: PairSize, tokenizer: Any) -> Learner:
    """A fresh model by its name, from torch's current seed."""
    if which == "target":
        return TargetLearner(size.target, tokenizer)
    if which == "drafter":
        return DrafterLearner(size.drafter, tokenizer)
    raise LabError(f"{which} is not one of the pair; choose target or drafter")


def shared_tokenizer(output: Path, make: Callable[[], Any]) -> Any:
    """The pair's tokenizer: made once for an output directory, and kept there."""
    from transformers import AutoTokenizer

    path = output / "training" / "tokenizer"
    if not path.exists():
        partial = path.with_name("tokenizer.partial")
        make().save_pretrained(partial)
        partial.replace(path)
    return AutoTokenizer.from_pretrained(path)


def rendered(cache: Cache, split: Split) -> list[int]:
    """Seeds of the split's drives that are complete."""
    stems = sorted(path.stem for path in cache.directory.glob("drive-*.json"))
    seeds = [int(stem.removeprefix("drive-")) for stem in stems]
    found = [seed for seed in seeds if seed in split.value]
    if not found:
        raise LabError(
            f"{cache.directory} has no {split.name.lower()} drive; render some with"
            f" headstart lab data {cache.directory}"
        )
    return found
