import threading
from random import Random

import pytest

from headstart.drafters.memory import Memory
from headstart.drafters.ngram import Ngram
from headstart.errors import DraftingError
from headstart.speculation.board import TextVocabulary
from headstart.speculation.cascade import MAX_FAILED_TENANTS, Cascade
from headstart.speculation.draft import NOTHING, Draft, Verdict
from headstart.speculation.drafted_request import MAX_POSTERS
from headstart.speculation.drafter import DraftRequest, StreamKey
from headstart.speculation.expectations import MIN_MEMORY_TOKENS
from tests.speculation.scripted import Script, Scripted

CAMERA = StreamKey("tenant", "camera")
TEXT = TextVocabulary(1000)


def begin(cascade, request="r", stream=CAMERA, change=0.0):
    return cascade.begin(DraftRequest(request, stream, "q", change=change))


def answer_with(cascade, answer, request="r", change=0.0, posted=()):
    """Play the target: returns its answer as the verdicts build it, and who was heard."""
    drafted = begin(cascade, request, change=change)
    for draft in posted:
        cascade.post(drafted, draft)
    return answer_begun(cascade, drafted, answer)


def answer_begun(cascade, drafted, answer):
    said, heard = (), []
    while len(said) < len(answer):
        proposal = cascade.propose(drafted, said, 16)
        heard.append(proposal.source)
        accepted = Verdict.greedy(proposal, answer[len(said) :]).num_accepted
        said = answer[: len(said) + accepted + 1]
    cascade.finish(drafted, said)
    return said, heard


def random_answers(rng, num_answers):
    """Answers of a slowly changing stream."""
    answer = rng.choices(range(50), k=30)
    for _ in range(num_answers):
        answer = list(answer)
        answer[rng.randrange(len(answer))] = rng.randrange(50)
        yield tuple(answer)


@pytest.mark.parametrize("corruption", [0.0, 0.3, 1.0])
def test_any_mixture_of_drafters_reproduces_the_answers_exactly(corruption):
    rng = Random(6)
    answers = {str(i): answer for i, answer in enumerate(random_answers(rng, 60))}
    scripted = Scripted(answers, Script(acceptance=0.7, corruption=corruption))
    cascade = Cascade([Memory(), scripted, Ngram()], TEXT)
    for request, answer in answers.items():
        rubbish = tuple(rng.choices([-1, 5, 7, 10**6], k=20))
        posted = [Draft(rubbish, "hostile", 0.0), Draft(answer[:5], "late", 0.0)]
        said, _ = answer_with(cascade, answer, request, rng.random(), posted)
        assert said == answer


def test_every_proposal_is_text():
    cascade = Cascade([Scripted({"r": [5, 6]}, Script(corruption=1.0))], TEXT)
    assert cascade.propose(begin(cascade), [], 8) == NOTHING


def test_the_source_that_earns_more_comes_to_speak_first():
    cascade = Cascade([Memory()], TEXT)
    rng = Random(7)
    first = []
    for number in range(40):
        answer = tuple(rng.choices(range(500), k=20))  # memory cannot know it, the other does
        posted = [Draft(answer, "seeing", 0.0)]
        _, heard = answer_with(cascade, answer, str(number), posted=posted)
        first.append(heard[0])
    assert set(first[5:]) == {"seeing"}
    earned = [cascade.earnings.accepted(who, CAMERA, True) for who in ("seeing", "memory")]
    assert earned[0] > earned[1]


def test_a_refused_draft_is_judged_at_once_and_only_once():
    cascade = Cascade([Memory()], TEXT)
    answer_with(cascade, tuple(range(20)), "first")  # of which nothing is drafted before it begins

    def trials():
        """How often the first token of an opening draft was tried."""
        return cascade.earnings.export(CAMERA)["memory"]["0"][1][0]

    drafted = begin(cascade)
    assert cascade.propose(drafted, (), 16).tokens[:2] == (0, 1)
    cascade.propose(drafted, (7,), 16)
    assert trials() == 1.0
    cascade.finish(drafted, (7, 8, 9))
    assert trials() == 1.0


def test_a_source_never_heard_still_earns():
    cascade = Cascade([Memory()], TEXT)
    answer = tuple(range(20))
    for number in range(30):
        answer_with(cascade, answer, str(number), posted=[Draft(answer, "seeing", 0.0)])
    assert cascade.earnings.accepted("seeing", CAMERA, True) > 8


def test_change_takes_trust_from_memory():
    cascade = Cascade([Memory(), Ngram()], TEXT)
    answer = tuple(range(100, 140))
    for number in range(20):
        answer_with(cascade, answer, str(number))
    same, new = begin(cascade, "same"), begin(cascade, "new", change=1.0)
    assert len(cascade.propose(same, [], 32).tokens) == 32
    assert len(cascade.propose(new, [], 32).tokens) == MIN_MEMORY_TOKENS
    cascade.post(new, Draft((1, 2), "seeing", 0.0))
    assert cascade.propose(new, [], 32).source == "seeing"


def test_a_request_that_is_over_takes_no_draft_and_teaches_nothing_more():
    memory = Memory()
    cascade = Cascade([memory], TEXT)
    drafted = begin(cascade)
    answer_begun(cascade, drafted, (1, 2, 3))
    assert memory.num_answers == 1
    cascade.post(drafted, Draft((1,), "a", 0.0))
    assert cascade.propose(drafted, [], 8) == NOTHING
    begin(cascade)  # another one of this name is not ended either
    cascade.finish(drafted, [1, 2])
    assert memory.num_answers == cascade.num_open == 1


def test_no_more_sources_are_listened_to_than_may_post():
    cascade = Cascade([], TEXT)
    drafted = begin(cascade)
    for number in range(2 * MAX_POSTERS):
        cascade.post(drafted, Draft((number,), f"source-{number}", 0.0))
    assert cascade.order(drafted, True) == [f"source-{number}" for number in range(MAX_POSTERS)]


def test_nobody_speaks_in_a_drafters_name():
    cascade = Cascade([Memory()], TEXT)
    drafted = begin(cascade)
    cascade.post(drafted, Draft((1,), "memory", 0.0))
    assert cascade.propose(drafted, [], 8) == NOTHING


def test_posting_from_another_thread_until_after_the_end_disturbs_nothing():
    cascade = Cascade([Memory()], TEXT)
    drafted = [begin(cascade, str(number)) for number in range(50)]
    done = threading.Event()

    def post():
        rng = Random(8)
        while not done.is_set():
            tokens = tuple(rng.choices([-1, 1, 2, 10**9], k=10))
            cascade.post(rng.choice(drafted), Draft(tokens, str(rng.randrange(20)), 0.0))

    poster = threading.Thread(target=post)
    poster.start()
    try:
        for one, answer in zip(drafted, random_answers(Random(9), 50), strict=True):
            assert answer_begun(cascade, one, answer)[0] == answer
    finally:
        done.set()
        poster.join()


def test_two_drafters_of_one_name_are_refused():
    with pytest.raises(DraftingError, match="same name"):
        Cascade([Memory(), Memory()], TEXT)


def test_a_change_outside_its_range_is_refused():
    with pytest.raises(DraftingError, match="change"):
        DraftRequest("r", CAMERA, "q", change=1.5)


def test_asking_again_before_the_target_speaks_is_one_pass_to_judge():
    """Chunks of a long prompt ask again and again; what came meanwhile must earn its due."""
    times = iter(float(number) for number in range(1000))
    cascade = Cascade([Memory()], TEXT, clock=lambda: next(times))
    answer, drafted = tuple(range(20)), begin(cascade)
    for _ in range(20):
        assert cascade.propose(drafted, [], 16) == NOTHING
    cascade.post(drafted, Draft(answer, "seeing", 0.0))
    assert cascade.propose(drafted, [], 16).tokens == answer[:16]
    cascade.finish(drafted, answer)
    assert cascade.earnings.accepted("seeing", CAMERA, True) > 1


@pytest.mark.parametrize("method", ["begin", "see", "propose", "finish"])
def test_a_drafter_that_fails_is_dismissed_and_the_others_go_on(method, caplog):
    class Failing(Scripted):
        name = "failing"

        def see(self, request_id, features):
            """Look."""

    def fail(*arguments):
        raise RuntimeError("out of order")

    answers = {"first": [5, 6, 7], "second": [5, 6, 7]}
    failing, other = Failing(answers), Scripted(answers)
    setattr(failing, method, fail)
    cascade = Cascade([failing, other], TEXT)
    for request in answers:
        drafted = begin(cascade, request)
        cascade.see(drafted, {})
        cascade.propose(drafted, [], 8)
        assert cascade.propose(drafted, [5], 8).tokens == (6, 7)
        cascade.finish(drafted, (5, 6, 7))
    assert caplog.text.count("is not asked any more") == 1
    assert cascade.order(begin(cascade, "third"), is_opening=True) == [other.name]


class Cracking(Scripted):
    """Fails for some tenants."""

    name = "cracking"

    def __init__(self, answers, tenants):
        super().__init__(answers)
        self._tenants, self._asked = set(tenants), {}

    def begin(self, request):
        self._asked[request.id] = request.stream.tenant
        super().begin(request)

    def propose(self, request_id, confirmed, max_tokens):
        if self._asked[request_id] in self._tenants:
            raise RuntimeError("out of order")
        return super().propose(request_id, confirmed, max_tokens)


def test_a_drafter_that_fails_for_one_tenant_drafts_for_the_others():
    answers = dict.fromkeys(("first", "second", "third"), (5, 6, 7))
    cascade = Cascade([Cracking(answers, ["north"])], TEXT)
    drafts = {}
    for request, tenant in (("first", "north"), ("second", "south"), ("third", "north")):
        drafted = begin(cascade, request, StreamKey(tenant, "camera"))
        drafts[request] = cascade.propose(drafted, [], 8).tokens
        cascade.finish(drafted, (5, 6, 7))
    assert drafts == {"first": (), "second": (5, 6, 7), "third": ()}


def test_a_drafter_that_fails_for_many_tenants_drafts_for_nobody():
    names = [f"tenant-{number}" for number in range(MAX_FAILED_TENANTS)]
    answers = dict.fromkeys([*names, "sound"], (5, 6, 7))
    cascade, found = Cascade([Cracking(answers, names)], TEXT), []
    for tenant in [*names, "sound"]:
        drafted = begin(cascade, tenant, StreamKey(tenant, "camera"))
        found.append(cascade.propose(drafted, [], 8).tokens)
    assert found == [()] * len(answers)
