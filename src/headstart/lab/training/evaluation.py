"""How much of what a model says is so, on drives it never saw; beside one who never looks.

Each model is held to the facts of its own house: what its camera can tell. The blind baseline
gives, to each question, the answer most common in the training drives.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

from headstart.lab.cache import Cache
from headstart.lab.language.facts import score
from headstart.lab.language.questions import Question
from headstart.lab.training.generation import answer
from headstart.lab.training.learner import Learner
from headstart.lab.training.lessons import Lesson, Lessons


@dataclass(frozen=True)
class Score:
    """Shares of facts stated right and of answers that are the reference word for word."""

    num_questions: int
    facts: float
    exact: float
    of_question: dict[str, float]


def evaluate(
    learner: Learner,
    lessons: Lessons,
    num_lessons: int,
    num_questions: int = 4,
    report: Callable[[int, int], None] = lambda done, total: None,
) -> Score:
    """Greedy answers on ``num_lessons`` clips, evenly spread, scored."""

    def speak(lesson: Lesson) -> list[str]:
        questions = [exchange.wording for exchange in lesson.exchanges]
        said = answer(learner, lesson.pictures, questions)
        return [learner.template.decode(ids) for ids in said]

    return _score(speak, lessons, num_lessons, num_questions, report)


def evaluate_blind(
    known: dict[Question, str], lessons: Lessons, num_lessons: int, num_questions: int = 4
) -> Score:
    """The same clips and questions, answered with what is usually said."""

    def speak(lesson: Lesson) -> list[str]:
        return [known[exchange.question] for exchange in lesson.exchanges]

    return _score(speak, lessons, num_lessons, num_questions, lambda done, total: None)


def usual_answers(cache: Cache, seeds: Sequence[int], house: str) -> dict[Question, str]:
    """The most common answer to each question, first in the alphabet among equals."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for seed in seeds:
        for clip in cache.answers(seed):
            for question, said in clip[house].items():
                counts[question][said["text"]] += 1
    return {
        Question[name]: min(texts, key=lambda text: (-texts[text], text))
        for name, texts in counts.items()
    }


def _score(
    speak: Callable[[Lesson], list[str]],
    lessons: Lessons,
    num_lessons: int,
    num_questions: int,
    report: Callable[[int, int], None],
) -> Score:
    scores: dict[str, list[float]] = defaultdict(list)
    exact = 0
    numbers = lessons.spread(num_lessons)
    for place, number in enumerate(numbers):
        lesson = lessons.lesson(number, Random(number), num_questions)
        for text, exchange in zip(speak(lesson), lesson.exchanges, strict=True):
            scores[exchange.question.name].append(score(text, exchange.answer.facts))
            exact += text == exchange.answer.text
        report(place + 1, len(numbers))
    every = [value for values in scores.values() for value in values]
    return Score(
        num_questions=len(every),
        facts=sum(every) / len(every),
        exact=exact / len(every),
        of_question={name: sum(v) / len(v) for name, v in sorted(scores.items())},
    )
