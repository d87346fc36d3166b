"""Sources that take time are judged while the target computes: no answer waits for that."""

import pytest

from headstart.speculation.board import TextVocabulary
from headstart.speculation.budget import DraftBudget
from headstart.speculation.cascade import MAX_MEANWHILE_S, Cascade
from headstart.speculation.draft import Match, Verdict
from headstart.speculation.drafter import DraftRequest, StreamKey

STEP_S = 0.010
CAMERA = StreamKey("tenant", "camera")
ANSWER = tuple(range(60))


class Knowing:
    """Knows so many of the next words."""

    name = "quick"

    def __init__(self, num_right):
        self._num_right = num_right
        self.asked_at = []

    def begin(self, request):
        pass

    def propose(self, request_id, confirmed, max_tokens):
        at = len(confirmed)
        self.asked_at.append((request_id, at))
        return [*range(at, at + self._num_right), 999][:max_tokens]

    def finish(self, request_id, answer):
        pass


class Slow(Knowing):
    """The same, and takes its time."""

    name = "slow"

    def __init__(self, num_right, seconds, clock):
        super().__init__(num_right)
        self._seconds, self._clock = seconds, clock
        self.prepared = []

    def prepare(self, request_id):
        self.prepared.append(request_id)

    def propose(self, request_id, confirmed, max_tokens):
        self._clock[0] += self._seconds
        return super().propose(request_id, confirmed, max_tokens)


@pytest.fixture
def clock():
    return [0.0]


def made(clock, *drafters):
    budget = DraftBudget()
    return Cascade(drafters, TextVocabulary(1000), clock=lambda: clock[0], budget=budget)


def begin(cascade, name):
    return cascade.begin(DraftRequest(name, CAMERA, "q"))


def answer_with(cascade, name):
    """Play an engine that tells the cascade when the target computes; who was heard."""
    request = begin(cascade, name)
    said, heard = (), []
    while len(said) < len(ANSWER):
        cascade.pass_begins(1)
        draft = cascade.propose(request, said, min(16, len(ANSWER) - len(said) - 1))
        heard.append(draft.source)
        cascade.while_computing([(request, said)])
        cascade.pass_ended(len(draft.tokens), STEP_S)
        said = ANSWER[: len(said) + Verdict.greedy(draft, ANSWER[len(said) :]).num_accepted + 1]
    cascade.finish(request, said)
    return heard


def test_a_source_that_is_not_heard_is_judged_once_before_and_once_after_the_first_token(clock):
    slow = Slow(6, 5 * STEP_S, clock)
    cascade = made(clock, Knowing(4), slow)
    for number in range(30):
        heard = answer_with(cascade, str(number))
    assert "slow" not in heard
    asked_at = [at for request, at in slow.asked_at if request == "29"]
    assert asked_at[:2] == [0, 5]
    assert len(asked_at) <= 3  # once more if the pass is not among those kept of a long answer
    for is_opening in (True, False):
        earned = [cascade.earnings.accepted(who, CAMERA, is_opening) for who in ("slow", "quick")]
        assert earned[0] > earned[1] > 3


def test_its_time_before_the_first_token_includes_getting_ready(clock):
    class Reading(Slow):
        """Takes longer over its first draft of an answer."""

        def propose(self, request_id, confirmed, max_tokens):
            self._clock[0] += 0.0 if confirmed else 4 * STEP_S
            return super().propose(request_id, confirmed, max_tokens)

    cascade = made(clock, Knowing(4), Reading(6, 0.5 * STEP_S, clock))
    for number in range(30):
        opening, *later = answer_with(cascade, str(number))
    assert opening == "quick"
    assert "slow" in later


def test_a_draft_that_is_not_worth_verifying_still_tells_how_sure_others_can_be(clock):
    """After so short a match the slow source was never right either, so it is not waited for."""

    class Matching(Knowing):
        """Right after long matches, wrong after a match of one word; later it mostly has none."""

        def propose(self, request_id, confirmed, max_tokens):
            at = len(confirmed)
            if at < 20:
                return Match([at, at + 1], 8)
            return () if at % 5 else Match([999], 1)

    class Copying(Slow):
        """Follows the short match too, and knows what comes next where there is none."""

        def propose(self, request_id, confirmed, max_tokens):
            known = super().propose(request_id, confirmed, max_tokens)
            return known if len(confirmed) % 5 else Match([999], 1)

    slow = Copying(1, 0.2 * STEP_S, clock)
    cascade = made(clock, Matching(0), slow)
    for number in range(30):
        slow.asked_at.clear()
        answer_with(cascade, str(number))
    late = [at for _, at in slow.asked_at if at >= 20]
    assert [at for at in late if at % 5]
    assert not [at for at in late if not at % 5]


def test_who_was_asked_for_the_pass_gets_ready_for_the_next(clock):
    slow = Slow(6, 0.5 * STEP_S, clock)
    cascade = made(clock, slow)
    num_passes = len(answer_with(cascade, "r"))
    assert slow.prepared == ["r"] * num_passes


def test_what_may_outlast_the_pass_is_not_begun(clock):
    slow = Slow(2, 0.6 * MAX_MEANWHILE_S, clock)
    cascade = made(clock, Knowing(4), slow)
    names = [f"many-{number}" for number in range(10)]
    cascade.pass_begins(16)
    requests = [begin(cascade, name) for name in names]
    for request in requests:
        assert cascade.propose(request, (), 16).source == "quick"
    assert not slow.asked_at
    cascade.while_computing((request, ()) for request in requests)
    assert [request for request, _ in slow.asked_at] == names[:2]


@pytest.mark.parametrize("method", ["prepare", "propose"])
def test_a_drafter_that_fails_meanwhile_is_dismissed(clock, method, caplog):
    def fail(*arguments):
        raise RuntimeError("out of order")

    quick, slow = Knowing(4), Slow(6, 0.0, clock)
    cascade = made(clock, quick, slow)
    answer_with(cascade, "before")
    setattr(slow, method, fail)
    for number in range(3):
        answer_with(cascade, str(number))
    assert cascade.order(begin(cascade, "after"), is_opening=True) == ["quick"]
    assert caplog.text.count("is not asked any more") == 1


def test_a_request_that_is_over_is_no_error(clock):
    slow = Slow(6, 0.0, clock)
    cascade = made(clock, slow)
    request = begin(cascade, "r")
    cascade.while_computing([(request, ())])  # a part of its prompt, for which nobody was asked
    assert slow.prepared == ["r"]
    cascade.finish(request, ())
    cascade.while_computing([(request, ())])
    assert slow.prepared == ["r"]
