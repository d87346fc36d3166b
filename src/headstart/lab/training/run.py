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
from torch import nn

from headstart.errors import LabError
from headstart.lab.cache import Cache
from headstart.lab.scoring import usual_answers
from headstart.lab.split import Split
from headstart.lab.training.course import Course
from headstart.lab.training.curve import draw_curve
from headstart.lab.training.evaluation import evaluate, evaluate_blind, said_in
from headstart.lab.training.eyes import Naming
from headstart.lab.training.learner import DrafterLearner, Learner, TargetLearner
from headstart.lab.training.lessons import CachedLessons
from headstart.lab.training.loop import Report, train
from headstart.lab.training.optimizer import optimizer_of
from headstart.lab.training.results import Results
from headstart.lab.training.savepoint import History, Savepoint
from headstart.lab.training.sizes import PairSize
from headstart.lab.training.speaking import Speaking

Say = Callable[[str], None]


@dataclass(frozen=True)
class Run:
    """What to train on what: first the eyes by ``eye_course``, then the words by ``course``."""

    cache: Cache
    output: Path
    course: Course
    eye_course: Course
    size: PairSize = field(default_factory=PairSize)
    save_every_s: float = 300.0
    num_looked_at: int = 125
    num_evaluated: int = 40
    num_questions_each: int = 4
    num_threads: int = 1

    def train(self, which: str, tokenizer: Any, say: Say, report: Callable[[str], Report]) -> Path:
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
        lessons = CachedLessons(self.cache, known, which)
        held_out = CachedLessons(self.cache, rendered(self.cache, Split.HELD_OUT), which)
        names = self._open_eyes(learner, held_out, notes, say, report(f"{which}'s eyes"))
        # Drives that came since are another course, and refused.
        course = replace(self.course, num_drives=len(known))
        history = train(
            learner.model,
            optimizer_of(learner.model, course.weight_decay, slow=learner.eyes),
            Speaking(learner, lessons, held_out, course),
            course,
            Savepoint(notes / "checkpoint.pt"),
            self.save_every_s,
            report(which),
        )
        learner.save(model)
        draw_curve(
            notes / "loss.png", f"{which}, seed {course.seed}", history.losses, history.held_out
        )
        self._evaluate(learner, known, held_out, course, history, names, notes, say)
        return model

    def _open_eyes(
        self,
        learner: Learner,
        held_out: CachedLessons,
        notes: Path,
        say: Say,
        report: Report,
    ) -> dict[str, float]:
        """Teach the eyes; return how often they name each thing right."""
        course = self.eye_course
        naming = Naming(learner, held_out, course)
        eyes = nn.ModuleList([*learner.eyes, naming.heads])
        optimizer = optimizer_of(eyes, decay=course.weight_decay)
        savepoint = Savepoint(notes / "eyes.pt")
        train(eyes, optimizer, naming, course, savepoint, self.save_every_s, report)
        names = naming.accuracies(self.num_looked_at)
        named = ", ".join(f"{name} {share:.2f}" for name, share in names.items())
        say(f"{learner.name}'s eyes name right, of what they never saw: {named}")
        return names

    def _evaluate(
        self,
        learner: Learner,
        known: Sequence[int],
        held_out: CachedLessons,
        course: Course,
        history: History,
        names: dict[str, float],
        notes: Path,
        say: Say,
    ) -> None:
        def progress(done: int, total: int) -> None:
            if done % 25 == 0 or done == total:
                say(f"{learner.name}: {done} of {total} held-out clips answered")

        num, each = self.num_evaluated, self.num_questions_each
        score = evaluate(learner, held_out, num, each, progress)
        usual = usual_answers(said_in(self.cache, known, learner.name))
        blind = evaluate_blind(usual, held_out, num, each)
        Results(
            model=learner.name,
            size=getattr(self.size, learner.name),
            course=course,
            num_clips=len(known) * self.cache.recipe.num_clips,
            history=history,
            score=score,
            blind=blind,
            names=names,
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
