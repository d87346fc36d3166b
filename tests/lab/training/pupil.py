"""Trains a tiny drafter on made-up clips; as a program, to be killed or run to its end.

``python -m tests.lab.training.pupil STATE [STEP]`` prints the number of each finished step, and at
the end the losses as JSON; after STEP it waits to be killed.
"""

import json
import sys
from pathlib import Path

import numpy as np
import torch

from headstart_lab.language.questions import Question
from headstart_lab.language.styles import Answer
from headstart_lab.tokenizer import train_tokenizer
from headstart_lab.training.answer_task import AnswerTask
from headstart_lab.training.lessons import Exchange, Lesson, evenly
from headstart_lab.training.run import make_learner
from headstart_lab.training.sizes import DrafterSize, LlamaSize, PairSize, TargetSize, TowerSize
from headstart_lab.training.train_config import TrainConfig
from headstart_lab.vocabulary import LAB_PLACEHOLDERS
from headstart_research.training.loop import train
from headstart_research.training.optimizer import optimizer_of
from headstart_research.training.savepoint import Savepoint

_TOWER = TowerSize(28, patch_size=14, hidden=32, num_layers=1, num_heads=2)
_LLAMA = LlamaSize(48, 96, 2, 3, max_tokens=512)
TINY = PairSize(TargetSize(_TOWER, _LLAMA, num_frames=2), DrafterSize(_TOWER, _LLAMA, num_slices=2))
"""A pair that trains in seconds."""
WORDS = ["red", "car", "tree", "night", "rain", "left", "right", "ahead"]


class MadeUpLessons:
    """Pictures of one grey each, and answers that name it."""

    def __init__(self, num=6, num_pictures=2, size=28):
        self.num, self.num_pictures, self.size = num, num_pictures, size

    def __len__(self):
        return self.num

    def spread(self, num):
        return evenly(self.num, num)

    def lesson(self, number, random, num_questions):
        grey = 20 + 200 * number // self.num
        pictures = np.full((self.num_pictures, self.size, self.size, 3), grey, dtype=np.uint8)
        asked = random.sample(list(Question), num_questions)
        return Lesson(
            pictures,
            tuple(
                Exchange(q, q.usual, Answer(f"A {WORDS[number]} {q.name[:3]}.", ())) for q in asked
            ),
        )


def make_tokenizer():
    tokenizer = train_tokenizer([" ".join(WORDS)], 400, added_tokens=LAB_PLACEHOLDERS)
    tokenizer.pad_token = "<pad>"
    return tokenizer


def config(num_steps=10):
    return TrainConfig(num_steps, batch_size=2, num_questions=2, num_examinations=2, num_examined=2)


def run(path, which="drafter", report=lambda config, history: None):
    torch.set_num_threads(1)
    torch.manual_seed(0)
    learner = make_learner(which, TINY, make_tokenizer())
    return teach(learner, MadeUpLessons(), config(), path, report)


def teach(learner, lessons, config, path, report=lambda config, history: None):
    return train(
        learner.model,
        optimizer_of(learner.model, config.weight_decay),
        AnswerTask(learner, lessons, lessons, config),
        config,
        Savepoint(path),
        0.0,
        report,
    )


if __name__ == "__main__":
    last = int(sys.argv[2]) if len(sys.argv) > 2 else None

    def report(config, history):
        print(history.num_steps, flush=True)
        if history.num_steps == last:
            sys.stdin.read()  # until it is killed

    history = run(Path(sys.argv[1]), report=report)
    print(json.dumps({"losses": history.losses, "held_out": history.held_out}))
