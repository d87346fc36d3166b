"""A tiny pair and a tokenizer of the lab's shape: no engine, seconds."""

import pytest

torch = pytest.importorskip("torch")

from headstart_lab.tokenizer import train_tokenizer
from headstart_lab.training.learner import DrafterLearner, TargetLearner
from headstart_lab.vocabulary import LAB_PLACEHOLDERS
from tests.lab.training.pupil import TINY

SENTENCES = [
    "USER: What is ahead of us? ASSISTANT: A red car drives ahead of us.",
    "USER: Is it safe to go on? ASSISTANT: No, two people are crossing from the left.",
    "A chat between a curious human and an artificial intelligence assistant.",
]


@pytest.fixture(scope="session")
def tokenizer():
    tokenizer = train_tokenizer(SENTENCES, max_pieces=400, added_tokens=LAB_PLACEHOLDERS)
    tokenizer.pad_token = "<pad>"
    return tokenizer


@pytest.fixture
def learners(tokenizer):
    torch.set_num_threads(1)
    torch.manual_seed(0)
    return [TargetLearner(TINY.target, tokenizer), DrafterLearner(TINY.drafter, tokenizer)]
