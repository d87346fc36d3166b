"""Scores a trained model on held-out drives, beside a baseline that ignores the clip."""

from collections.abc import Callable, Iterator, Sequence
from random import Random

from headstart_lab.cache import Cache
from headstart_lab.language.questions import Question
from headstart_lab.scoring import Reference, Scores, judge
from headstart_lab.training.generation import answer
from headstart_lab.training.learner import Learner
from headstart_lab.training.lessons import Lesson, Lessons


def evaluate(
    learner: Learner,
    lessons: Lessons,
    num_lessons: int,
    num_questions: int = 4,
    report: Callable[[int, int], None] = lambda done, total: None,
) -> Scores:
    """The scores of greedy answers on ``num_lessons`` clips, evenly spread."""

    def speak(lesson: Lesson) -> list[str]:
        questions = [exchange.wording for exchange in lesson.exchanges]
        said = answer(learner, lesson.pictures, questions)
        return [learner.template.decode(ids) for ids in said]

    return _judge(speak, lessons, num_lessons, num_questions, report)


def evaluate_blind(
    known: dict[Question, str], lessons: Lessons, num_lessons: int, num_questions: int = 4
) -> Scores:
    """The scores on the same clips and questions of ``known``, one fixed answer a question."""

    def speak(lesson: Lesson) -> list[str]:
        return [known[exchange.question] for exchange in lesson.exchanges]

    return _judge(speak, lessons, num_lessons, num_questions, lambda done, total: None)


def said_in(cache: Cache, seeds: Sequence[int], model: str) -> Iterator[tuple[Question, str]]:
    """The reference answers for one of the two models on rendered drives."""
    for seed in seeds:
        for clip in cache.answers(seed):
            for question, said in clip[model].items():
                yield Question[question], said["text"]


def _judge(
    speak: Callable[[Lesson], list[str]],
    lessons: Lessons,
    num_lessons: int,
    num_questions: int,
    report: Callable[[int, int], None],
) -> Scores:
    texts: list[str] = []
    references: list[Reference] = []
    numbers = lessons.spread(num_lessons)
    for place, number in enumerate(numbers):
        lesson = lessons.lesson(number, Random(number), num_questions)
        texts += speak(lesson)
        references += [Reference(each.question, each.answer) for each in lesson.exchanges]
        report(place + 1, len(numbers))
    return judge(texts, references)
