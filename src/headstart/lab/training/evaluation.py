"""How much of what a model says is so, on drives it never saw; beside one who never looks."""

from collections.abc import Callable, Iterator, Sequence
from random import Random

from headstart.lab.cache import Cache
from headstart.lab.language.questions import Question
from headstart.lab.scoring import Reference, Scores, judge
from headstart.lab.training.generation import answer
from headstart.lab.training.learner import Learner
from headstart.lab.training.lessons import Lesson, Lessons


def evaluate(
    learner: Learner,
    lessons: Lessons,
    num_lessons: int,
    num_questions: int = 4,
    report: Callable[[int, int], None] = lambda done, total: None,
) -> Scores:
    """Greedy answers on ``num_lessons`` clips, evenly spread, scored."""

    def speak(lesson: Lesson) -> list[str]:
        questions = [exchange.wording for exchange in lesson.exchanges]
        said = answer(learner, lesson.pictures, questions)
        return [learner.template.decode(ids) for ids in said]

    return _judge(speak, lessons, num_lessons, num_questions, report)


def evaluate_blind(
    known: dict[Question, str], lessons: Lessons, num_lessons: int, num_questions: int = 4
) -> Scores:
    """The same clips and questions, answered with what is usually said."""

    def speak(lesson: Lesson) -> list[str]:
        return [known[exchange.question] for exchange in lesson.exchanges]

    return _judge(speak, lessons, num_lessons, num_questions, lambda done, total: None)


def said_in(cache: Cache, seeds: Sequence[int], house: str) -> Iterator[tuple[Question, str]]:
    """A house's answers on rendered drives."""
    for seed in seeds:
        for clip in cache.answers(seed):
            for question, said in clip[house].items():
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
