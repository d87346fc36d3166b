"""Registered drafters start every stream with the known answers, and with nothing else."""

import threading

import pytest

pytest.importorskip("pyarrow", reason="needs headstart[train]")

from headstart.errors import EvaluationError
from headstart.speculation.drafter import DraftRequest, StreamKey
from headstart_research.evaluation.contenders import registered
from headstart_research.evaluation.known_answers import KnownAnswers
from headstart_research.evaluation.measured import DraftTimes, Timed
from headstart_research.evaluation.taught import Taught
from tests.collect.records import clip_records

KNOWN = KnownAnswers(tuple(clip_records("elsewhere", 0)))
REQUEST = DraftRequest("r", StreamKey("", "a"), KNOWN.records[1].question)


class Pupil:
    """Drafts the last answer it has settled, whatever is asked."""

    name = "pupil"

    def __init__(self):
        self.heard, self.known, self.settled = [], [], 0

    def seed(self, tenant, question, answer):
        self.heard.append((tenant, question, tuple(answer)))

    def settle(self):
        self.known, self.settled = list(self.heard), self.settled + 1

    def begin(self, request):
        self.request = request

    def propose(self, request_id, confirmed, max_tokens):
        return self.known[-1][2][len(confirmed) :][:max_tokens] if self.known else ()

    def finish(self, request_id, answer):
        self.heard.append((self.request.stream.tenant, self.request.question, tuple(answer)))


class Locked(Pupil):
    def __init__(self):
        super().__init__()
        self.lock = threading.Lock()


def name_of(pupil):
    return f"{__name__}:{pupil.__name__}"


def drafts(drafter):
    drafter.begin(REQUEST)
    return tuple(drafter.propose("r", (), 64))


def test_each_drafter_knows_the_known_answers_and_learns_for_itself():
    taught = Taught(name_of(Pupil), KNOWN)
    first, second = Timed(taught.drafter(), DraftTimes()), taught.drafter()
    assert drafts(first) == KNOWN.records[-1].answer_ids
    first.finish("r", (5, 6))
    first.settle()
    assert drafts(first) == (5, 6)
    assert drafts(second) == drafts(taught.drafter()) == KNOWN.records[-1].answer_ids
    assert first.name == "pupil"


def test_where_nothing_is_known_it_starts_with_nothing():
    assert drafts(Taught(name_of(Locked), KnownAnswers()).drafter()) == ()


def test_what_learns_nothing_beforehand_is_measured_as_it_is():
    drafter = Taught("ngram", KNOWN).drafter()
    assert drafts(drafter) == ()
    drafter.finish("r", (1, 2))


def test_a_drafter_that_cannot_be_copied_says_what_it_lacks():
    with pytest.raises(EvaluationError, match="__deepcopy__"):
        Taught(name_of(Locked), KNOWN).drafter()


def test_memory_is_in_the_table_already():
    with pytest.raises(EvaluationError, match="anyway"):
        registered(["memory"], KNOWN)
    assert [contender.name for contender in registered(["ngram"], KNOWN)] == ["ngram"]
