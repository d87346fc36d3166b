"""A tiny drafter taught from made-up clips; as a program, to be killed or heard to its end.

``python -m tests.lab.training.pupil STATE [STEP]`` prints the number of each step as it is done
and in the end what was measured, as JSON; after STEP it waits to be killed.
"""

import json
import sys
from pathlib import Path

import numpy as np
import torch

from headstart.lab.language.questions import Question
from headstart.lab.language.styles import Answer
from headstart.lab.tokenizer import train_tokenizer
from headstart.lab.training.course import Course
from headstart.lab.training.lessons import Exchange, Lesson, evenly
from headstart.lab.training.loop import train
from headstart.lab.training.optimizer import optimizer_of
from headstart.lab.training.run import make_learner
from headstart.lab.training.savepoint import Savepoint
from headstart.lab.training.sizes import PairSize
from headstart.lab.training.speaking import Speaking
from headstart.lab.vocabulary import LAB_PLACEHOLDERS

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


def course(num_steps=10):
    return Course(num_steps, batch_size=2, num_questions=2, num_examinations=2, num_examined=2)


def run(path, which="drafter", report=lambda course, history: None):
    torch.set_num_threads(1)
    torch.manual_seed(0)
    learner = make_learner(which, PairSize.tiny(), make_tokenizer())
    return teach(learner, MadeUpLessons(), course(), path, report)


def teach(learner, lessons, course, path, report=lambda course, history: None):
    return train(
        learner.model,
        optimizer_of(learner.model, course.weight_decay),
        Speaking(learner, lessons, lessons, course),
        course,
        Savepoint(path),
        0.0,
        report,
    )


if __name__ == "__main__":
    last = int(sys.argv[2]) if len(sys.argv) > 2 else None

    def report(course, history):
        print(history.num_steps, flush=True)
        if history.num_steps == last:
            sys.stdin.read()  # until it is killed

    history = run(Path(sys.argv[1]), report=report)
    print(json.dumps({"losses": history.losses, "held_out": history.held_out}))
