"""The time of a source counts: a better draft that is waited for too long is not asked for."""

import pytest

from headstart.speculation.board import TextVocabulary
from headstart.speculation.budget import DraftBudget
from headstart.speculation.cascade import MAX_JUDGING_S, Cascade
from headstart.speculation.draft import Verdict
from headstart.speculation.drafter import DraftRequest, StreamKey
from headstart.speculation.expectations import AskingTimes

STEP_S = 0.010
CAMERA = StreamKey("tenant", "camera")


class Knowing:
    """Knows so many of the next words, and takes its time."""

    def __init__(self, name, num_right, seconds, clock):
        self.name, self.num_asked = name, 0
        self._num_right, self._seconds, self._clock = num_right, seconds, clock

    def begin(self, request):
        pass

    def propose(self, request_id, confirmed, max_tokens):
        self.num_asked += 1
        self._clock[0] += self._seconds
        at = len(confirmed)
        return [*range(at, at + self._num_right), 999][:max_tokens]

    def finish(self, request_id, answer):
        pass


def heard_of(slow_s, num_answers=30, batch=1):
    """Which sources were heard in the last answer, and the slow one, as often as it was judged."""
    clock = [0.0]
    quick, slow = Knowing("quick", 4, 0.0, clock), Knowing("slow", 6, slow_s, clock)
    cascade = Cascade(
        [quick, slow], TextVocabulary(1000), clock=lambda: clock[0], budget=DraftBudget()
    )
    answer = tuple(range(60))
    for number in range(num_answers):
        request = cascade.begin(DraftRequest(str(number), CAMERA, "q"))
        said, heard = (), []
        while len(said) < len(answer):
            cascade.pass_begins(batch)
            draft = cascade.propose(request, said, min(16, len(answer) - len(said) - 1))
            heard.append(draft.source)
            cascade.pass_ended(len(draft.tokens), STEP_S)
            accepted = Verdict.greedy(draft, answer[len(said) :]).num_accepted
            said = answer[: len(said) + accepted + 1]
        slow.num_asked = 0
        cascade.finish(request, said)
    return set(heard) - {""}, slow


def test_two_more_words_are_worth_less_than_two_steps_of_time():
    assert "slow" in heard_of(1.0 * STEP_S)[0]
    assert heard_of(3.0 * STEP_S)[0] == {"quick"}


def test_a_batch_waits_together():
    assert "slow" in heard_of(0.2 * STEP_S)[0]
    assert heard_of(0.2 * STEP_S, batch=16)[0] == {"quick"}


@pytest.mark.parametrize(("share", "expected"), [(30.0, 1), (0.4, 2)])
def test_a_slow_source_that_is_not_heard_is_judged_at_few_passes(share, expected):
    heard, slow = heard_of(share * MAX_JUDGING_S, batch=64)
    assert "slow" not in heard
    assert slow.num_asked == expected


def test_times_are_the_latest_and_interruptions_are_not_believed():
    times = AskingTimes()
    assert times.seconds("never timed", False) == 0.0
    for _ in range(100):
        times.note("source", False, 0.001)
    times.note("source", False, 10.0)
    assert times.seconds("source", False) < 0.0015
    assert times.seconds("source", True) == 0.0
    for _ in range(100):
        times.note("source", False, 0.002)
    assert times.seconds("source", False) == pytest.approx(0.002, rel=0.05)
