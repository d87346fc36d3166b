"""The training loop: one CPU process, resumable to the same losses.

It is plain torch on purpose. accelerate and transformers' Trainer take over devices, processes and
mixed precision, which here are one CPU, one process and one ``torch.autocast``. What this loop
needs beside that would be our code with them too: a task's own sum of losses, data that depends on
the step number alone, state saved every few minutes and atomically, and a resumed run that repeats
the uninterrupted one bit for bit.
"""

from collections.abc import Callable
from time import monotonic
from typing import Protocol

import torch
from torch import nn

from headstart_research.training.optimizer import MuonAdamW
from headstart_research.training.savepoint import History, Savepoint
from headstart_research.training.schedule import TrainSchedule

Report = Callable[[TrainSchedule, History], None]


class Task(Protocol):
    """What is trained. The data of step N depends on the config and N alone."""

    def training_step(self, step: int) -> float: ...

    def held_out_loss(self) -> float: ...


def train(
    model: nn.Module,
    optimizer: MuonAdamW,
    task: Task,
    config: TrainSchedule,
    savepoint: Savepoint,
    save_every_s: float = 300.0,
    report: Report = lambda config, history: None,
) -> History:
    """Train for ``config.num_steps`` steps, from the savepoint if there is one.

    Writes the savepoint every ``save_every_s`` seconds and at the end; ``report`` is called after
    each step. The model's weights change in place.
    """
    history = savepoint.read(model, optimizer, config)
    model.train()
    saved = monotonic()
    for step in range(history.num_steps, config.num_steps):
        started = monotonic()
        history.losses.append(task.training_step(step))
        torch.nn.utils.clip_grad_norm_(model.parameters(), config.max_gradient_norm)
        optimizer.step(config.rate(step))
        history.seconds += monotonic() - started
        if config.is_examined_after(step):
            history.held_out.append((step + 1, task.held_out_loss()))
        last = step + 1 == config.num_steps
        if last or monotonic() - saved >= save_every_s:
            savepoint.write(model, optimizer, config, history)
            saved = monotonic()
        report(config, history)
    return history
