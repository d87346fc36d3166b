"""Teaching a model to answer: a clip's pictures, and all its questions packed behind them."""

from collections.abc import Sequence
from dataclasses import replace
from random import Random

import torch

from headstart.lab.language.facts import Fact
from headstart.lab.training.course import Course
from headstart.lab.training.learner import Learner
from headstart.lab.training.lessons import Lesson, Lessons, drawn
from headstart.lab.training.packing import Packed, Turn, pack
from headstart.lab.training.precision import fast


class Speaking:
    """The lessons of answering.

    For most of the course a clip is shown as a glance, the last few of its pictures, since
    neighbouring ones hardly differ and a glance costs a fraction. The last share of the steps sees
    all of them, as the finished model will: the same before the question, with more before that.

    A sentence holds few words that depend on the clip. So beside the questions single facts are
    asked for ("road edge" - "kerb"): what to look at for which word is learned from those.
    """

    def __init__(
        self, learner: Learner, lessons: Lessons, held_out: Lessons, course: Course
    ) -> None:
        self._learner, self._course = learner, course
        self._lessons, self._held_out = lessons, held_out

    def teach(self, step: int) -> float:
        """Add the gradient of the mean loss over all answer tokens; return that mean."""
        course = self._course
        packs, batch = [], []
        for number, random in drawn(step, course.batch_size, len(self._lessons), course.seed):
            lesson = self._lessons.lesson(number, random, course.num_questions)
            lesson = self._glance(lesson, step)
            num_drilled = min(course.num_drilled, len(lesson.facts))
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
    def examine(self) -> float:
        """The mean loss over the answer tokens of always the same lessons, seen whole."""
        total, num_targets = 0.0, 0
        for number in self._held_out.spread(self._course.num_examined):
            lesson = self._held_out.lesson(number, Random(number), self._course.num_questions)
            packed = pack_lesson(self._learner, lesson)
            with fast():
                total += self._learner.loss(packed, lesson.pictures).item()
            num_targets += len(packed.targets)
        return total / num_targets

    def _glance(self, lesson: Lesson, step: int) -> Lesson:
        num = self._course.num_glanced(step) or len(lesson.pictures)
        return replace(lesson, pictures=lesson.pictures[-num:])


def pack_lesson(learner: Learner, lesson: Lesson, drilled: Sequence[Fact] = ()) -> Packed:
    """A lesson in the learner's own ids."""
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
