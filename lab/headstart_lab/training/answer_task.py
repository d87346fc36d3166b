"""The second training task: the whole model answers questions about clips."""

from collections.abc import Sequence
from dataclasses import replace
from random import Random

import torch

from headstart_lab.language.facts import Fact
from headstart_lab.training.learner import Learner
from headstart_lab.training.lessons import Lesson, Lessons, drawn
from headstart_lab.training.packing import Packed, Turn, pack
from headstart_lab.training.train_config import TrainConfig
from headstart_research.training.precision import fast


class AnswerTask:
    """Trains a model to give the reference answers.

    Most steps show only the last few pictures of a clip, since neighbouring pictures hardly differ
    and fewer of them cost less. The last share of the steps shows all of them, as at inference.

    Few words of a sentence depend on the clip. So a step also asks for single facts ("road edge",
    answered with "kerb"), from which the model learns which word depends on what in the picture.
    """

    def __init__(
        self, learner: Learner, lessons: Lessons, held_out: Lessons, config: TrainConfig
    ) -> None:
        self._learner, self._config = learner, config
        self._lessons, self._held_out = lessons, held_out

    def training_step(self, step: int) -> float:
        """Compute the mean loss over all answer tokens, add its gradient, and return it."""
        config = self._config
        packs, batch = [], []
        for number, random in drawn(step, config.batch_size, len(self._lessons), config.seed):
            lesson = self._lessons.lesson(number, random, config.num_questions)
            lesson = self._glance(lesson, step)
            num_drilled = min(config.num_drilled, len(lesson.facts))
            packs.append(
                pack_lesson(self._learner, lesson, random.sample(lesson.facts, num_drilled))
            )
            batch.append(lesson)
        num_targets = sum(len(packed.targets) for packed in packs)
        total = 0.0
        for packed, lesson in zip(packs, batch, strict=True):
            with fast():
                loss = self._learner.loss(packed, lesson.pictures)
            (loss / num_targets).backward()
            total += loss.item()
        return total / num_targets

    @torch.no_grad()
    def held_out_loss(self) -> float:
        """The mean loss over the answer tokens of a fixed set of lessons, with all pictures."""
        total, num_targets = 0.0, 0
        for number in self._held_out.spread(self._config.num_examined):
            lesson = self._held_out.lesson(number, Random(number), self._config.num_questions)
            packed = pack_lesson(self._learner, lesson)
            with fast():
                total += self._learner.loss(packed, lesson.pictures).item()
            num_targets += len(packed.targets)
        return total / num_targets

    def _glance(self, lesson: Lesson, step: int) -> Lesson:
        num = self._config.num_glanced(step) or len(lesson.pictures)
        return replace(lesson, pictures=lesson.pictures[-num:])


def pack_lesson(learner: Learner, lesson: Lesson, drilled: Sequence[Fact] = ()) -> Packed:
    """A lesson, and questions for the ``drilled`` facts, as one packed sequence."""
    asked = [(each.wording, each.answer.text) for each in lesson.exchanges]
    asked += [(f"{fact.subject} {fact.attribute}", fact.value) for fact in drilled]
    template = learner.template
    num_tokens = learner.num_tokens(len(lesson.pictures))
    return pack(
        [
            Turn(template.prompt(question, num_tokens), template.answer(answer))
            for question, answer in asked
        ]
    )
