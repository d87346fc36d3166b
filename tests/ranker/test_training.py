"""The thread of lessons: in turn, bounded, and gone when it is closed."""

import threading

import numpy as np
import pytest

pytest.importorskip("numba")

from headstart_research.ranker.answer_log import AnswerLog
from headstart_research.ranker.learner import MAX_LESSONS, REVIEWS, Learner
from headstart_research.ranker.training import Training


def log_of(num_answers):
    log = AnswerLog()
    for number in range(num_answers):
        log.learn("", "q", [1, 2, 3 + number % 3, 4, 5 + number % 2, 6])
    return log


class Recorder(Learner):
    """Notes whose turn it was instead of learning."""

    def __init__(self, name, num_bites, turns):
        super().__init__()
        self._name, self._left, self._turns = name, num_bites, turns

    @property
    def has_lessons(self):
        return self._left > 0

    def take_bite(self):
        self._left -= 1
        self._turns.append(self._name)
        return self._left > 0


def test_a_lesson_changes_the_weights_when_it_is_over_and_not_before():
    learner, log = Learner(), log_of(30)
    first = learner.weights
    learner.give(log)
    for _ in range(REVIEWS):
        assert learner.take_bite()
        assert learner.weights is first
    while learner.take_bite():
        pass
    assert (learner.weights != first).any()
    assert np.isfinite(learner.weights).all()
    assert not learner.has_lessons


def test_of_many_lessons_the_oldest_are_left_out():
    learner, log = Learner(), log_of(5)
    for _ in range(10 * MAX_LESSONS):
        learner.give(log)
    num_bites = 0
    while learner.take_bite():
        num_bites += 1
    assert num_bites <= MAX_LESSONS * (REVIEWS + 3)


def test_weights_that_are_no_numbers_are_never_handed_out():
    learner, log = Learner(), log_of(20)
    learner._draft[:] = np.nan
    learner.give(log)
    while learner.take_bite():
        pass
    assert np.isfinite(learner.weights).all()
    learner.give(log)
    while learner.take_bite():
        pass
    assert (learner.weights != Learner().weights).any()


def test_learners_take_turns():
    turns = []
    training = Training()
    long, short = Recorder("long", 50, turns), Recorder("short", 5, turns)
    with training._changed:  # both are there before the thread begins
        training.ask(long)
        training.ask(short)
    training.settle()
    training.close()
    assert len(turns) == 55
    assert turns[:10] == ["long", "short"] * 5


def test_settling_waits_for_what_is_left_to_learn():
    training, learner, log = Training(), Learner(), log_of(30)
    first = learner.weights
    learner.give(log)
    training.ask(learner)
    training.settle()
    assert learner.weights is not first
    training.settle()
    training.close()


def test_closing_ends_the_thread_and_later_lessons_are_left_out():
    training, learner, log = Training(), Learner(), log_of(30)
    learner.give(log)
    training.ask(learner)
    training.close()
    training.settle()
    assert not any(thread is training._thread for thread in threading.enumerate())
    learner.give(log)
    thread = training._thread
    training.ask(learner)
    assert not training._waiting
    assert training._thread is thread
    assert not thread.is_alive()
    training.close()
