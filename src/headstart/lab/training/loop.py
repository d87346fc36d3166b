"""The training loop: AdamW in bf16 on a CPU, resumable to the same losses.

Plain torch, on purpose. accelerate and transformers' Trainer were weighed: what they take over is
devices, processes and mixed precision, which here are one CPU, one process and one
``torch.autocast``; what this run needs would be written around them all the same: packed
sequences of one clip with a loss summed over all clips' answer tokens, data that follows from the
step number, state written by the clock and atomically, and a resumption that repeats the
uninterrupted run bit for bit. That is this file.
"""

from collections.abc import Callable
from random import Random
from time import monotonic

import torch

from headstart.lab.training.course import Course
from headstart.lab.training.learner import Learner
from headstart.lab.training.lessons import Lesson, Lessons, Schedule
from headstart.lab.training.packing import Packed, Turn, pack
from headstart.lab.training.savepoint import History, Savepoint

Report = Callable[[Course, History], None]
_WARM_LESSONS, _TIMED_LESSONS = 2, 4


def train(
    learner: Learner,
    lessons: Lessons,
    held_out: Lessons,
    course: Course,
    savepoint: Savepoint,
    save_every_s: float = 300.0,
    report: Report = lambda course, history: None,
) -> History:
    """Teach until the course is done, from the savepoint if there is one.

    Writes the savepoint every ``save_every_s`` seconds and at the end; ``report`` is called after
    each step. The learner's weights change in place.
    """
    optimizer = make_optimizer(learner, course)
    history = savepoint.read(learner.model, optimizer, course)
    schedule = Schedule(len(lessons), course.batch_size, course.num_questions, course.seed)
    learner.model.train()
    saved = monotonic()
    for step in range(history.num_steps, course.num_steps):
        started = monotonic()
        for group in optimizer.param_groups:
            group["lr"] = course.rate(step)
        history.losses.append(teach(learner, schedule.batch(lessons, step)))
        torch.nn.utils.clip_grad_norm_(learner.model.parameters(), course.max_gradient_norm)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        history.seconds += monotonic() - started
        if course.is_examined_after(step):
            loss = examine(learner, held_out, course.num_examined, course.num_questions)
            history.held_out.append((step + 1, loss))
        last = step + 1 == course.num_steps
        if last or monotonic() - saved >= save_every_s:
            savepoint.write(learner.model, optimizer, course, history)
            saved = monotonic()
        report(course, history)
    return history


def make_optimizer(learner: Learner, course: Course) -> torch.optim.Optimizer:
    """AdamW; only matrices decay."""
    learned = [each for each in learner.model.parameters() if each.requires_grad]
    groups = [
        {"params": [p for p in learned if p.dim() >= 2], "weight_decay": course.weight_decay},
        {"params": [p for p in learned if p.dim() < 2], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=course.learning_rate, betas=(0.9, 0.95), fused=True)


def teach(learner: Learner, lessons: list[Lesson]) -> float:
    """Add the gradient of the mean loss over all answer tokens; return that mean."""
    packs = [pack_lesson(learner, lesson) for lesson in lessons]
    num_targets = sum(len(packed.targets) for packed in packs)
    total = 0.0
    for packed, lesson in zip(packs, lessons, strict=True):
        with torch.autocast("cpu", torch.bfloat16):
            loss = learner.loss(packed, lesson.pictures)
        (loss / num_targets).backward()
        total += loss.item()
    return total / num_targets


@torch.no_grad()
def examine(learner: Learner, lessons: Lessons, num_lessons: int, num_questions: int) -> float:
    """The mean loss over the answer tokens of always the same lessons, evenly spread."""
    total, num_targets = 0.0, 0
    num_lessons = min(num_lessons, len(lessons))
    for place in range(num_lessons):
        number = place * len(lessons) // num_lessons
        lesson = lessons.lesson(number, Random(number), num_questions)
        packed = pack_lesson(learner, lesson)
        with torch.autocast("cpu", torch.bfloat16):
            total += learner.loss(packed, lesson.pictures).item()
        num_targets += len(packed.targets)
    return total / num_targets


def seconds_a_lesson(learner: Learner, lessons: Lessons, num_questions: int) -> float:
    """How long a clip takes on this machine now; weights stay as they are."""
    started = 0.0
    for place in range(_WARM_LESSONS + _TIMED_LESSONS):
        if place == _WARM_LESSONS:
            started = monotonic()
        teach(learner, [lessons.lesson(place % len(lessons), Random(place), num_questions)])
    seconds = (monotonic() - started) / _TIMED_LESSONS
    learner.model.zero_grad(set_to_none=True)
    return seconds


def pack_lesson(learner: Learner, lesson: Lesson) -> Packed:
    """A lesson in the learner's own ids."""
    template = learner.template
    return pack(
        [
            Turn(template.prompt(each.wording), template.answer(each.answer.text))
            for each in lesson.exchanges
        ]
    )
