"""A bridge as a drafter: what it reads, keeps, forgets and never raises. Its weights are random."""

import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("numba", reason="needs what the engine brings")

from headstart.drafters.memory import Memory
from headstart.speculation.drafter import DraftRequest, StreamKey
from headstart_research.bridge import bridged_answer
from headstart_research.bridge import drafter as module
from headstart_research.bridge.arithmetic import normed, product
from headstart_research.bridge.config import BridgeConfig, FeatureSize
from headstart_research.bridge.drafter import BridgeDrafter
from headstart_research.bridge.layers import read
from headstart_research.bridge.mixture import guess
from tests.bridge.random_bridge import random_bridge

WIDTH, HIDDEN, POINTER, WORDS = 16, 32, 8, 30
FEATURE = FeatureSize("eye", 4, 3)
CONFIG = BridgeConfig(
    WORDS,
    (FEATURE,),
    width=WIDTH,
    num_layers=2,
    num_heads=2,
    hidden=HIDDEN,
    pointer_width=POINTER,
    max_answers=2,
    max_answer_tokens=24,
    max_question_tokens=4,
    end_ids=(0,),
)
ANSWER = (*range(40, 55), 30)
"""Its last word is the one that ends an answer."""


def made(seed=0):
    return BridgeDrafter(random_bridge(CONFIG, range(30, 60), 100, seed), Memory())


@pytest.fixture
def drafter(monkeypatch):
    monkeypatch.setattr(bridged_answer, "MIN_CHANCE", 0.0)  # random weights are never sure
    return made()


def request(name="r", stream="s", question="q", remembered=True):
    return DraftRequest(name, StreamKey("", stream), question, (31, 32), remembered=remembered)


def looked(seed=0):
    return {"eye": np.random.default_rng(seed).normal(size=(3, 4)).astype(np.float16)}


def answered(drafter, answer=ANSWER, **more):
    drafter.begin(request("earlier", **more))
    drafter.finish("earlier", answer)


def test_a_draft_is_as_long_as_asked_for_unless_the_answer_ends(drafter):
    drafter.begin(request())
    for length in (1, 3, 12):
        draft = drafter.propose("r", (), length)
        assert 1 <= len(draft) <= length
        assert set(draft) <= set(range(30, 60))
        assert len(draft) == length or draft[-1] == 30  # the word that ends an answer
    assert drafter.propose("r", (), 0) == []


def test_a_proposal_changes_nothing(drafter):
    """Whatever was proposed before, and in whatever order, a draft is the same."""
    answered(drafter)
    drafter.begin(request())
    drafter.see("r", looked())
    places = [0, 5, 3, 15, 0, 9, 2, 15]
    drafts = {place: drafter.propose("r", ANSWER[:place], 6) for place in places}
    for place in places:
        fresh = made()
        answered(fresh)
        fresh.begin(request())
        fresh.see("r", looked())
        assert drafter.propose("r", ANSWER[:place], 6) == drafts[place]
        assert fresh.propose("r", ANSWER[:place], 6) == drafts[place]


@pytest.mark.parametrize("num_read", [1, 3, 23])
def test_how_much_is_read_at_a_time_changes_no_draft(drafter, monkeypatch, num_read):
    def drafts(made_now):
        answered(made_now)
        made_now.begin(request())
        made_now.see("r", looked())
        found = [made_now.propose("r", ANSWER[:place], 20) for place in range(len(ANSWER))]
        made_now.propose("r", (), 16)
        return found, np.round(made_now._requests["r"]._chances[:10], 4).tolist()

    wanted = drafts(drafter)
    monkeypatch.setattr(bridged_answer, "COPY_TOKENS", num_read)
    assert drafts(made()) == wanted
    assert max(map(len, wanted[0])) > 3


def test_nothing_is_compiled_in_a_step_of_the_engine(drafter):
    """One type of arguments each: those that the network was compiled for when it was made."""
    answered(drafter)
    drafter.begin(request())
    drafter.see("r", looked())
    assert drafter.propose("r", ANSWER[:4], 12)
    for function in (read, guess, product, normed):
        assert len(function.nopython_signatures) == 1


def test_without_numba_it_says_what_to_install(tmp_path):
    code = f"""
import sys
sys.modules["numba"] = sys.modules["llvmlite"] = None
import headstart.cli
from pathlib import Path
from headstart.errors import DraftingError
from headstart.drafters.registry import MemoryOptions, build_cascade
from headstart.speculation.board import TextVocabulary
try:
    build_cascade(("bridge={tmp_path}",), TextVocabulary(100))
except DraftingError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "pip install numba" in done.stdout, done.stderr


def test_what_the_target_said_instead_is_read(drafter):
    drafter.begin(request())
    first = drafter.propose("r", (), 8)
    other = tuple(59 - token + 30 for token in first)
    moved = [drafter.propose("r", other[:num], 8) for num in range(1, len(other))]
    fresh = made()
    fresh.begin(request())
    assert moved == [fresh.propose("r", other[:num], 8) for num in range(1, len(other))]


def test_it_sees_the_clip_also_when_that_comes_late(drafter):
    drafter.begin(request())
    blind = drafter.propose("r", ANSWER[:4], 8)
    drafter.see("r", looked())
    late = drafter.propose("r", ANSWER[:4], 8)
    early = made()
    early.begin(request())
    early.see("r", looked())
    assert late == early.propose("r", ANSWER[:4], 8)
    seen = {tuple(blind), tuple(late)}
    for seed in range(1, 6):
        drafter.begin(request(str(seed)))
        drafter.see(str(seed), looked(seed))
        seen.add(tuple(drafter.propose(str(seed), ANSWER[:4], 8)))
    assert len(seen) > 2


def test_features_of_another_shape_or_name_are_not_looked_at(drafter):
    drafter.begin(request())
    blind = drafter.propose("r", (), 8)
    drafter.see("r", {"eye": np.zeros((3, 9), np.float16), "ear": np.ones((3, 4), np.float16)})
    drafter.see("r", {"eye": np.empty((0, 4), np.float16)})
    assert drafter.propose("r", (), 8) == blind
    drafter.see("r", looked())
    once = drafter.propose("r", (), 8)
    drafter.see("r", looked(1))  # a second time: the first counts
    assert drafter.propose("r", (), 8) == once


def test_it_remembers_a_stream_and_no_other(drafter):
    for name in ("s", "elsewhere"):
        drafter.begin(request(name, stream=name))
    before = {name: drafter.propose(name, (), 8) for name in ("s", "elsewhere")}
    assert before["s"] == before["elsewhere"]
    answered(drafter, stream="s")
    drafter.begin(request("again", stream="s"))
    assert drafter.propose("again", (), 8) != before["s"]
    tenant = DraftRequest("t", StreamKey("another", "s"), "q", (31, 32))
    drafter.begin(tenant)
    assert drafter.propose("t", (), 8) == before["s"]


def test_what_may_not_be_remembered_is_not(drafter):
    drafter.begin(request("before"))
    before = drafter.propose("before", (), 8)
    answered(drafter, remembered=False)
    answered(drafter, answer=())
    drafter.begin(request("after"))
    assert drafter.propose("after", (), 8) == before


@pytest.mark.parametrize("answer", [ANSWER * 4, (7,) * 40, (5, 2**31 - 1, 99, 30)])
def test_long_and_unknown_words_are_no_error(drafter, answer):
    answered(drafter, answer)
    drafter.begin(request())
    for place in range(0, len(answer), 3):
        draft = drafter.propose("r", answer[:place], 32)
        assert len(draft) <= 32
    drafter.finish("r", answer)


def test_unknown_requests_get_nothing(drafter):
    assert drafter.propose("nobody", (), 8) == ()
    drafter.see("nobody", looked())
    drafter.finish("nobody", ANSWER)


def test_streams_are_bounded(drafter, monkeypatch):
    monkeypatch.setattr(module, "MAX_STREAMS", 3)
    for number in range(10):
        answered(drafter, stream=str(number))
    assert len(drafter._streams) == 3


def test_what_was_read_is_given_up_for_others_and_read_again(drafter, monkeypatch):
    monkeypatch.setattr(module, "MAX_READINGS", 2)
    answered(drafter)
    names = ("a", "b", "c")
    for name in names:
        drafter.begin(request(name))
        drafter.see(name, looked())
    first = {name: drafter.propose(name, ANSWER[:4], 6) for name in names}
    assert len(drafter._reading) == 2
    assert {name: drafter.propose(name, ANSWER[:4], 6) for name in names} == first
    for name in names:
        drafter.finish(name, ())
    assert not drafter._reading


def test_a_prepared_request_is_drafted_alike(drafter):
    answered(drafter)
    for name in ("prepared", "not"):
        drafter.begin(request(name))
    drafter.prepare("prepared")
    drafter.prepare("nobody")
    for name in ("prepared", "not"):
        drafter.see(name, looked())
    assert drafter.propose("prepared", (), 8) == drafter.propose("not", (), 8)


def test_a_draft_says_by_how_many_words_memory_found_its_part(drafter):
    answered(drafter)
    drafter.begin(request())
    for place in (0, 3, 9):
        found = drafter.memory.propose("r", ANSWER[:place], 6)
        assert drafter.propose("r", ANSWER[:place], 6).match == found.match
    assert found.match > 8
    assert drafter.propose("r", (59, 59, 59), 6).match == 0


def test_features_are_looked_at_when_it_gets_ready_and_not_when_they_come(drafter, monkeypatch):
    """They come with a pass's words, which would wait."""
    looked_at, look = [], drafter.bridge.network.look

    def noted(reading, features):
        looked_at.append(sorted(features))
        look(reading, features)

    monkeypatch.setattr(drafter.bridge.network, "look", noted)
    drafter.begin(request())
    drafter.propose("r", (), 8)
    drafter.see("r", looked())
    assert looked_at == [[]]
    drafter.prepare("r")
    assert looked_at == [[], ["eye"]]
    drafter.propose("r", (), 8)
    drafter.prepare("r")
    assert looked_at == [[], ["eye"]]
