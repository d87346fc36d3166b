"""A KV bridge in a real engine: rotated and written right, and never found by exact requests."""

import json
import os
import signal

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs what the engine brings")

from safetensors.numpy import save_file
from tests.engine.drafts import drafter_of
from tests.engine.event_clips import clip_with_events
from tests.live.camera import forget_prefixes
from tests.models.oracle import Asked
from tests.waiting import wait_until

from headstart import ApproximateKv, EventDrafter, EventTower, Headstart, Manner, Sources
from headstart.bridges.kv_bridge import WEIGHTS
from headstart.engine.model import Model, check_guessing
from headstart.errors import ApproximateError
from headstart_research.training.kv_states import TargetStates

pytestmark = pytest.mark.engine

MAX_TOKENS = 16
QUESTION = "What is happening?"
ARGUMENTS = {"dtype": "float32", "enforce_eager": True, "block_size": 32}
NUM_QUESTION_TOKENS = 40  # no question here has as many


@pytest.fixture(scope="module")
def clips():
    rng = np.random.default_rng(7)
    return [clip_with_events(rng) for _ in range(3)]


@pytest.fixture(scope="module")
def recalling(tiny_target, tiny_drafter, clips, tmp_path_factory):
    """A KV bridge that gives one clip's own keys and values, whatever the events say."""
    states = TargetStates(tiny_target)
    size = json.loads((tiny_drafter / "config.json").read_text())["hidden_size"]
    config = states.kv_config(size)
    directory = tmp_path_factory.mktemp("kv") / "recalling"
    directory.mkdir()
    config.write(directory)
    arrays = {
        "means": states.rows(clips[0][1]),
        "centre": np.zeros((config.tokens_per_frame, 2 * size), np.float32),
        "weights": np.zeros((2, 2 * size, config.row_size), np.float32),
    }
    save_file(arrays, directory / WEIGHTS)
    return ApproximateKv(directory)


@pytest.fixture(scope="module")
def guessing(tiny_target, tiny_drafter, recalling):
    with Headstart(
        tiny_target,
        drafter=EventTower(tiny_drafter, ARGUMENTS),
        sources=Sources(abstain=False),
        max_draft_tokens=16,
        manner=Manner(approximate=recalling),
        vllm=ARGUMENTS,
    ) as running:
        yield running


@pytest.fixture
def ask(guessing):
    """Answers in a manner; nothing is cached when the test begins."""
    assert forget_prefixes(guessing)

    def run(clip, manner, question=QUESTION, tenant=""):
        camera = guessing.session("camera", tenant, manner)
        return camera.ask(clip, question, max_tokens=MAX_TOKENS)

    return run


def exact(oracle, frames, question=QUESTION):
    return list(oracle.answer(Asked(frames, question), MAX_TOKENS)[0])


def test_the_target_speaks_of_the_clip_whose_states_it_is_given(ask, recalling, oracle, clips):
    """Right layers, heads, slots and positions, or other words would come."""
    (recalled, _), (frames, clip), _ = clips
    assert exact(oracle, recalled) != exact(oracle, frames)
    for question in (QUESTION, "Who is there, and where do they go?"):
        answer = ask(clip, Manner(approximate=recalling), question)
        assert list(answer.token_ids) == exact(oracle, recalled, question)
        assert answer.approximate == recalling


def test_the_clip_is_neither_prefilled_nor_looked_at(ask, recalling, clips):
    answer = ask(clips[1][1], Manner(approximate=recalling))
    assert answer.num_prompt_tokens - answer.num_cached_tokens < NUM_QUESTION_TOKENS
    stages = {span.stage.value: span.duration_s for span in answer.timeline.spans}
    assert stages["vision"] == 0.0
    assert ask(clips[1][1], Manner()).num_cached_tokens == 0


def test_exact_answers_after_approximate_ones_are_exact(ask, recalling, oracle, clips):
    """Of the same clip, question and tenant; a liar's bridge is no better than this one."""
    for frames, clip in clips[1:]:
        expected, others = exact(oracle, frames), exact(oracle, clips[0][0])
        for tenant in ("", "north"):
            guessed = ask(clip, Manner(approximate=recalling), tenant=tenant)
            assert list(guessed.token_ids) == others
            assert list(ask(clip, Manner(), tenant=tenant).token_ids) == expected
            again = ask(clip, Manner(approximate=recalling), tenant=tenant)
            assert list(again.token_ids) == others
            assert again.num_cached_tokens >= guessed.num_cached_tokens


def test_another_prompt_than_it_was_trained_with_is_computed(ask, recalling, clips):
    system, clip = "You drive.", clips[2][1]
    answer = ask(clip, Manner(system, approximate=recalling))
    assert answer.num_cached_tokens == 0
    assert answer.token_ids == ask(clip, Manner(system)).token_ids


def test_a_clip_without_events_is_refused(ask, recalling, clips):
    with pytest.raises(ApproximateError, match="has no events"):
        ask(clips[2][1].video, Manner(approximate=recalling))


@pytest.mark.last
def test_without_the_tower_all_is_computed(guessing, ask, recalling, oracle, clips):
    process = drafter_of(guessing).process
    os.kill(process.pid, signal.SIGKILL)
    wait_until(lambda: not process.is_ready)
    frames, clip = clips[1]
    answer = ask(clip, Manner(approximate=recalling), "Who?")
    assert list(answer.token_ids) == exact(oracle, frames, "Who?")


def test_what_a_kv_bridge_needs_is_said_before_an_engine_starts(tiny_target, tiny_drafter):
    target, tower = Model.checked(tiny_target), EventTower(tiny_drafter)
    check_guessing(target, tower, Sources())
    with pytest.raises(ApproximateError, match="is no Video-LLaVA"):
        check_guessing(Model.checked(tiny_drafter), tower, Sources())
    for drafter in (None, EventDrafter(tiny_drafter)):
        with pytest.raises(ApproximateError, match="name the model that it was trained with"):
            check_guessing(target, drafter, Sources())
    with pytest.raises(ApproximateError, match="leave out one of them"):
        check_guessing(target, tower, Sources(bridge=tiny_target))
