"""A training run: trains one model on rendered drives and writes a checkpoint that vLLM loads.

The output directory gets ``target/`` or ``drafter/`` with the finished model and its digests, and
``training/target/`` or ``training/drafter/`` with the saved state, ``results.json`` and
``loss.png``. A run that was killed continues from its saved state when it is started again; a run
that has finished is not repeated.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from headstart.doctor.digests import write_digests
from headstart_lab.cache import Cache
from headstart_lab.errors import LabError
from headstart_lab.place import check_place
from headstart_lab.scoring import usual_answers
from headstart_lab.split import Split
from headstart_lab.training.answer_task import AnswerTask
from headstart_lab.training.evaluation import evaluate, evaluate_blind, said_in
from headstart_lab.training.learner import DrafterLearner, Learner, TargetLearner
from headstart_lab.training.lessons import CachedLessons
from headstart_lab.training.results import Results
from headstart_lab.training.sizes import PairSize
from headstart_lab.training.train_config import TrainConfig
from headstart_lab.training.vision_task import VisionTask
from headstart_research.training.curve import draw_curve
from headstart_research.training.loop import Report, train
from headstart_research.training.optimizer import optimizer_of
from headstart_research.training.savepoint import History, Savepoint

Say = Callable[[str], None]


@dataclass(frozen=True)
class Run:
    """What to train on what: the vision task by ``vision_config``, then answers by ``config``."""

    cache: Cache
    output: Path
    config: TrainConfig
    vision_config: TrainConfig
    size: PairSize = field(default_factory=PairSize)
    save_every_s: float = 300.0
    num_looked_at: int = 125
    num_evaluated: int = 40
    num_questions_each: int = 4
    num_threads: int = 1

    def train(self, which: str, tokenizer: Any, say: Say, report: Callable[[str], Report]) -> Path:
        """Train one of the pair; return the directory of the finished model."""
        torch.set_num_threads(self.num_threads)
        model = self.output / which
        notes = self.output / "training" / which
        if (notes / "results.json").exists():
            say(f"{which} is trained: {model}, {notes / 'results.json'}")
            return model
        check_output(self.output, which)
        torch.manual_seed(self.config.seed)
        learner = make_learner(which, self.size, tokenizer)
        known = rendered(self.cache, Split.TRAIN)
        lessons = CachedLessons(self.cache, known, which)
        held_out = CachedLessons(self.cache, rendered(self.cache, Split.HELD_OUT), which)
        names = self._train_vision(learner, held_out, notes, say, report(f"{which}'s eyes"))
        # The number of drives is part of the config: a resumed run refuses drives added since.
        config = replace(self.config, num_drives=len(known))
        history = train(
            learner.model,
            optimizer_of(learner.model, config.weight_decay, slow=learner.vision_modules),
            AnswerTask(learner, lessons, held_out, config),
            config,
            Savepoint(notes / "checkpoint.pt"),
            self.save_every_s,
            report(which),
        )
        learner.save(model)
        write_digests(model)
        draw_curve(
            notes / "loss.png", f"{which}, seed {config.seed}", history.losses, history.held_out
        )
        self._evaluate(learner, known, held_out, config, history, names, notes, say)
        return model

    def _train_vision(
        self,
        learner: Learner,
        held_out: CachedLessons,
        notes: Path,
        say: Say,
        report: Report,
    ) -> dict[str, float]:
        """Train on the vision task; return the accuracy of each classification."""
        config = self.vision_config
        task = VisionTask(learner, held_out, config)
        modules = nn.ModuleList([*learner.vision_modules, task.heads])
        optimizer = optimizer_of(modules, decay=config.weight_decay)
        savepoint = Savepoint(notes / "eyes.pt")
        train(modules, optimizer, task, config, savepoint, self.save_every_s, report)
        names = task.accuracies(self.num_looked_at)
        named = ", ".join(f"{name} {share:.2f}" for name, share in names.items())
        say(f"{learner.name}'s eyes are right on held-out clips: {named}")
        return names

    def _evaluate(
        self,
        learner: Learner,
        known: Sequence[int],
        held_out: CachedLessons,
        config: TrainConfig,
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
            config=config,
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


def check_output(output: Path, which: str) -> None:
    """Raise `LabError` if this model would overwrite one that no run to this directory wrote."""
    check_place(output / which, has_begun=(output / "training" / which).exists())


def make_learner(which: str, size: PairSize, tokenizer: Any) -> Learner:
    """An untrained model by its name; its weights are drawn from torch's current seed."""
    if which == "target":
        return TargetLearner(size.target, tokenizer)
    if which == "drafter":
        return DrafterLearner(size.drafter, tokenizer)
    raise LabError(f"{which} is not one of the pair; choose target or drafter")


def shared_tokenizer(output: Path, make: Callable[[], Any]) -> Any:
    """The tokenizer of both models: made once for an output directory, and kept there."""
    from transformers import AutoTokenizer

    path = output / "training" / "tokenizer"
    if not path.exists():
        partial = path.with_name("tokenizer.partial")
        make().save_pretrained(partial)
        partial.replace(path)
    return AutoTokenizer.from_pretrained(path)


def rendered(cache: Cache, split: Split) -> list[int]:
    """The seeds of the split's drives that are rendered completely."""
    stems = sorted(path.stem for path in cache.directory.glob("drive-*.json"))
    seeds = [int(stem.removeprefix("drive-")) for stem in stems]
    found = [seed for seed in seeds if seed in split.value]
    if not found:
        raise LabError(
            f"{cache.directory} has no {split.name.lower()} drive; render some with"
            f" headstart lab data {cache.directory}"
        )
    return found
