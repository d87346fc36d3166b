"""The training loop: bf16 on a CPU, resumable to the same losses.

Plain torch, on purpose. accelerate and transformers' Trainer were weighed: what they take over is
devices, processes and mixed precision, which here are one CPU, one process and one
``torch.autocast``; what this run needs would be written around them all the same: packed
sequences of one clip with a loss summed over all clips' answer tokens, data that follows from the
step number, state written by the clock and atomically, and a resumption that repeats the
uninterrupted run bit for bit. That is this file.
"""

from collections.abc import Callable
from time import monotonic
from typing import Protocol

import torch
from torch import nn

from headstart.lab.training.course import Course
from headstart.lab.training.optimizer import Turning
from headstart.lab.training.savepoint import History, Savepoint

Report = Callable[[Course, History], None]


class Teaching(Protocol):
    """What is taught. Everything about step N follows from the course and N."""

    def teach(self, step: int) -> float:
        """Add one step's gradient; return its loss."""
        ...

    def examine(self) -> float:
        """The loss on what is never taught. Changes nothing."""
        ...


def train(
    model: nn.Module,
    optimizer: Turning,
    teaching: Teaching,
    course: Course,
    savepoint: Savepoint,
    save_every_s: float = 300.0,
    report: Report = lambda course, history: None,
) -> History:
    """Teach until the course is done, from the savepoint if there is one.

    Writes the savepoint every ``save_every_s`` seconds and at the end; ``report`` is called after
    each step. The model's weights change in place.
    """
    history = savepoint.read(model, optimizer, course)
    model.train()
    saved = monotonic()
    for step in range(history.num_steps, course.num_steps):
        started = monotonic()
        history.losses.append(teaching.teach(step))
        torch.nn.utils.clip_grad_norm_(model.parameters(), course.max_gradient_norm)
        optimizer.step(course.rate(step))
        history.seconds += monotonic() - started
        if course.is_examined_after(step):
            history.held_out.append((step + 1, teaching.examine()))
        last = step + 1 == course.num_steps
        if last or monotonic() - saved >= save_every_s:
            savepoint.write(model, optimizer, course, history)
            saved = monotonic()
        report(course, history)
    return history
