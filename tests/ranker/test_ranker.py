"""The ranker learns to choose what memory cannot, is bounded, and keeps tenants apart."""

import gc
import subprocess
import sys
import threading
from itertools import cycle
from pathlib import Path
from random import Random

import pytest

pytest.importorskip("numba")

from headstart.drafters.memory import Memory
from headstart.drafters.registry import Ingredients, MemoryOptions, registration
from headstart.errors import DraftingError
from headstart.speculation.drafter import DraftRequest, StreamKey
from headstart_research.bench.log import LoggedAnswer, read_log
from headstart_research.bench.replay import DraftLimits, replay
from headstart_research.ranker import answer_log
from headstart_research.ranker.ranker import Ranker
from tests.speculation.scripted import RUBBISH

CAMERA = StreamKey("tenant", "camera")
TRACES = Path(__file__).parents[3] / "shared" / "traces"


def tell(ranker, answer, question="what?", stream=CAMERA):
    ranker.begin(DraftRequest("told", stream, question))
    ranker.finish("told", answer)
    ranker.settle()


def asked(ranker, confirmed=(), question="what?", stream=CAMERA, max_tokens=64):
    ranker.begin(DraftRequest("asked", stream, question))
    try:
        return list(ranker.propose("asked", confirmed, max_tokens))
    finally:
        ranker.finish("asked", ())


def scenes(seed, num_answers):
    """Answers that name one of eight scenes, and later the two things that belong to it.

    A word that is anybody's guess comes between, so the longest match says nothing of the scene.
    """
    rng = Random(seed)
    for number in range(num_answers):
        scene, noise = rng.randrange(8), rng.sample(range(300, 400), 2)
        answer = [1, 2, 3, 100 + scene, 4, 5, noise[0], 6, 7, 8, 120 + scene]
        answer += [9, 10, noise[1], 11, 12, 13, 140 + scene, 14, 15]
        yield LoggedAnswer(DraftRequest(str(number), CAMERA, "what?"), tuple(answer))


def test_it_learns_to_choose_by_what_was_said_before():
    log = list(scenes(1, 240))
    learnt = replay(log, Ranker(), DraftLimits()).after(120)
    memory = replay(log, Memory(), DraftLimits()).after(120)
    # Per answer the scene and two guesses are anybody's: four passes are the fewest possible.
    assert learnt.tokens_per_pass > 4.6
    assert memory.tokens_per_pass < 3.8


def test_the_same_answers_and_seed_give_the_same_drafts(monkeypatch):
    # Hashes are drawn anew for each ranker, so that nobody can choose words that share one.
    drawn = cycle([Random(number).getrandbits(64) for number in range(8)])
    monkeypatch.setattr(answer_log.secrets, "randbits", lambda bits: next(drawn))
    log = list(scenes(2, 60))
    first, again = (replay(log, Ranker(seed=3), DraftLimits()) for _ in range(2))
    assert first == again


def test_before_it_has_learnt_it_drafts_as_memory_does():
    ranker, memory = Ranker(), Memory()
    for taught in (ranker, memory):
        taught.begin(DraftRequest("a", CAMERA, "what?"))
        taught.finish("a", [1, 2, 3, 4, 5])
    for confirmed in ([], [1], [1, 2, 3]):
        assert asked(ranker, confirmed) == asked(memory, confirmed) != []
    ranker = Ranker()
    ranker.close()  # it learns nothing
    tell(ranker, [1, 2, 3, 10, 11])
    tell(ranker, [7, 2, 3, 20, 21])
    assert asked(ranker, [1, 2, 3], max_tokens=2) == [10, 11]
    assert asked(ranker, [9, 2, 3], max_tokens=2) == [20, 21]


def test_tenants_share_neither_answers_nor_weights():
    ranker, alone = Ranker(), Ranker()
    ours, theirs = StreamKey("ours", "camera"), StreamKey("theirs", "camera")
    rows = [row.tokens for row in scenes(3, 40)]
    for row in rows:
        tell(ranker, row, stream=ours)
        tell(alone, row, stream=ours)
        tell(ranker, [word + 1000 for word in row[::-1]], stream=theirs)
    for row in rows[:20]:
        for at in range(0, len(row), 5):
            drafted = asked(ranker, row[:at], stream=ours)
            assert drafted == asked(alone, row[:at], stream=ours)
            assert all(word < 1000 for word in drafted)
    assert asked(ranker, [1, 2, 3], stream=theirs) == []
    assert asked(ranker, stream=StreamKey("nobody", "camera")) == []


def test_streams_of_a_tenant_are_quoted_only_if_it_is_warm():
    other = StreamKey("tenant", "other")
    for warm, expected in ((True, [1, 2, 3]), (False, [])):
        ranker = Ranker(warm=warm)
        tell(ranker, [1, 2, 3])
        assert asked(ranker, stream=other) == expected
        assert asked(ranker) == [1, 2, 3]
    with pytest.raises(DraftingError, match="warm"):
        ranker.seed("tenant", "what?", [1, 2])


def test_a_stream_goes_on_with_its_own_answer_and_not_with_a_newer_one_of_another():
    ranker = Ranker()
    ranker.close()
    tell(ranker, [1, 2, 3])
    tell(ranker, [4, 5, 6], stream=StreamKey("tenant", "other"))
    assert asked(ranker, stream=StreamKey("tenant", "other")) == [4, 5, 6]


def test_nothing_hostile_raises_or_is_drafted():
    ranker = Ranker()
    tell(ranker, [1, 2, 3, 4])
    for confirmed in (RUBBISH, (2**70,), ("words",), (None,), (1.5,), (-1,) * 2000, [1] * 5000):
        assert all(type(word) is int and word >= 0 for word in asked(ranker, confirmed))
    for answer in (RUBBISH, (2**70,), ("words",), (None, 1), (-7,) * 50, [1] * 5000, range(3000)):
        tell(ranker, answer)
    assert asked(ranker, max_tokens=0) == asked(ranker, max_tokens=-3) == []
    assert all(word >= 0 for word in asked(ranker, [1, 2], max_tokens=10**9))
    assert len(asked(ranker, [1, 2], max_tokens=10**9)) <= 128


def test_random_answers_and_prefixes_are_no_error():
    rng, ranker = Random(5), Ranker()
    for _ in range(150):
        answer = rng.choices(range(rng.choice((1, 2, 6, 32_000))), k=rng.randrange(1, 60))
        at = rng.randrange(len(answer) + 1)
        confirmed = answer[:at] if rng.random() < 0.5 else rng.choices(answer, k=at)
        assert len(asked(ranker, confirmed, max_tokens=16)) <= 16
        tell(ranker, answer, rng.choice("ab"), StreamKey("tenant", rng.choice("xyz")))


def test_unknown_aborted_and_unremembered_requests_teach_nothing():
    ranker = Ranker()
    assert list(ranker.propose("never begun", [1], 8)) == []
    ranker.finish("never begun", [1, 2])
    tell(ranker, [])
    ranker.begin(DraftRequest("a", CAMERA, "what?", remembered=False))
    ranker.finish("a", [1, 2, 3])
    assert asked(ranker) == []
    assert ranker.num_bytes == 0


def test_the_tenant_heard_of_longest_ago_is_forgotten_first():
    ranker = Ranker()
    tell(ranker, [1, 2], stream=StreamKey("0", "camera"))
    ranker = Ranker(max_bytes=int(2.5 * ranker.num_bytes))
    for tenant in ("0", "1", "0", "2"):
        tell(ranker, [1, 2], stream=StreamKey(tenant, "camera"))
    answered = [asked(ranker, stream=StreamKey(tenant, "camera")) for tenant in "012"]
    assert answered == [[1, 2], [], [1, 2]]


def test_its_thread_ends_with_it():
    def threads():
        return [thread for thread in threading.enumerate() if thread.name == "headstart-ranker"]

    gc.collect()
    before = len(threads())
    ranker = Ranker()
    assert len(threads()) == before  # none until there is something to learn
    ranker.begin(DraftRequest("a", CAMERA, "what?"))
    ranker.finish("a", [1, 2])
    assert len(threads()) == before + 1
    del ranker
    gc.collect()
    assert len(threads()) == before


def test_a_log_is_known_from_the_start(tmp_path):
    log = tmp_path / "log.jsonl"
    log.write_text('{"tenant": "tenant", "question": "what?", "target_tokens": [5, 6, 7]}\n')
    ranker = registration("ranker").built(Ingredients(MemoryOptions(log=log)))
    assert asked(ranker) == [5, 6, 7]


def test_without_numba_it_says_what_to_install():
    code = """
import sys
sys.modules["numba"] = None
from headstart.errors import DraftingError
from headstart.drafters.registry import Ingredients, MemoryOptions, registration
try:
    registration("ranker").built(Ingredients())
except DraftingError as error:
    print(error)
assert "torch" not in sys.modules
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "pip install numba" in done.stdout, done.stderr


def test_real_answers_are_drafted_better_than_by_memory():
    file = TRACES / "dsec-1s-50tok.jsonl"
    if not file.exists():
        pytest.skip("the traces of the real pair are not on this machine")
    log = read_log(file)[:330]
    memory = replay(log, Memory(), DraftLimits()).after(220)
    learnt = replay(log, Ranker(), DraftLimits()).after(220)
    assert learnt.tokens_per_pass > 1.05 * memory.tokens_per_pass
