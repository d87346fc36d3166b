"""What an observer brings back: bare vLLM's answers, and the features transformers computes."""

import numpy as np
import pytest
import torch

from headstart.errors import CollectError
from headstart.media.clip import Clip
from headstart.media.events import Events, SensorSize
from headstart.media.video import Video
from tests.models.oracle import QUESTIONS, Asked, random_clip

pytestmark = pytest.mark.engine

MAX_TOKENS = 12
PLAIN = {
    "dtype": "float32",
    "enforce_eager": True,
    "block_size": 32,
    "kv_cache_memory_bytes": 2**28,
}


@pytest.fixture(scope="module")
def observer(tiny_target):
    from headstart_research.collect.observer import Observer

    with Observer(tiny_target, vllm=PLAIN) as running:
        yield running


@pytest.fixture(scope="module")
def bare(tiny_target):
    """vLLM without anything of headstart but the model itself."""
    from vllm import LLM, SamplingParams

    llm = LLM(str(tiny_target), **PLAIN)
    params = SamplingParams(temperature=0.0, max_tokens=MAX_TOKENS, detokenize=False)

    def say(frames, question):
        (output,) = llm.generate([Asked(frames, question).prompt], params, use_tqdm=False)
        completion = output.outputs[0]
        return tuple(output.prompt_token_ids), tuple(completion.token_ids), completion.finish_reason

    yield say
    llm.llm_engine.engine_core.shutdown()


def clip_of(frames):
    return Clip(Video.from_frames(frames, 8.0))


@torch.no_grad()
def tower_features(oracle, frames):
    """Tower and projector of transformers' model, ``[frames, tokens, size]``."""
    model, config = oracle.model.model, oracle.model.config
    pixels = oracle.image_processor(images=list(frames), return_tensors="pt")
    hidden = model.video_tower(pixels["pixel_values_images"], output_hidden_states=True)
    return model.multi_modal_projector(hidden.hidden_states[config.vision_feature_layer]).numpy()


def relative_error(found, expected):
    return np.abs(found.astype(np.float32) - expected).max() / np.abs(expected).max()


def test_answers_are_bare_vllms_to_the_token(observer, bare, rng):
    said = set()
    for _ in range(6):
        frames = random_clip(rng)
        observed = observer.observe(clip_of(frames), QUESTIONS, MAX_TOKENS)
        found = [(each.prompt_ids, each.token_ids, each.finish_reason) for each in observed.said]
        assert found == [bare(frames, question) for question in QUESTIONS]
        assert [each.question for each in observed.said] == list(QUESTIONS)
        said |= {each.token_ids for each in observed.said}
    assert len(said) > 6  # a model that said the same to everything would pass unseen


def test_features_are_the_towers_of_each_frame(observer, oracle, rng):
    for num_frames in (8, 8, 3):
        frames = random_clip(rng, num_frames)
        observed = observer.observe(clip_of(frames), QUESTIONS[:2], MAX_TOKENS)
        expected = tower_features(oracle, frames)
        assert [item.shape for item in observed.items] == [expected.shape[1:]] * num_frames
        assert all(item.dtype == np.float16 for item in observed.items)
        # Half precision has 11 bits; another frame's features are far off.
        assert relative_error(np.stack(observed.items), expected) < 1e-3
        assert relative_error(np.stack(observed.items[::-1]), expected) > 1e-2


def test_the_same_clip_gives_the_same_bits_whatever_was_asked_before(observer, rng):
    frames = random_clip(rng)
    first = observer.observe(clip_of(frames), QUESTIONS, MAX_TOKENS)
    # Half of its frames, so that an engine that shared them would compute the others alone.
    observer.observe(clip_of(np.concatenate([frames[:4], 255 - frames[4:]])), QUESTIONS[:1], 2)
    again = observer.observe(clip_of(frames), QUESTIONS, MAX_TOKENS)
    assert again.said == first.said
    assert [item.tobytes() for item in again.items] == [item.tobytes() for item in first.items]


def test_equal_frames_in_a_clip_have_their_features_each(observer, oracle, rng):
    still = np.repeat(random_clip(rng, num_frames=1), 8, axis=0)
    observed = observer.observe(clip_of(still), QUESTIONS[:1], 1)
    assert len(observed.items) == 8
    assert relative_error(np.stack(observed.items), tower_features(oracle, still)) < 1e-3


def test_several_clips_at_once_do_not_get_each_others_features(observer, oracle, rng):
    from concurrent.futures import ThreadPoolExecutor

    shown = [random_clip(rng) for _ in range(8)]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda f: observer.observe(clip_of(f), QUESTIONS[:2], 4), shown))
    for frames, observed in zip(shown, found, strict=True):
        assert relative_error(np.stack(observed.items), tower_features(oracle, frames)) < 1e-3


def test_an_event_model_is_only_its_tower(tiny_drafter, rng):
    from headstart_events.eventgpt.config import EventChatConfig
    from headstart_research.collect.observer import Observer
    from tests.models.eventgpt_reference import EventGptReference

    reference = EventGptReference(tiny_drafter, EventChatConfig.from_pretrained(tiny_drafter))
    count, size = 4000, SensorSize(96, 72)
    with Observer(tiny_drafter, tower_only=True, vllm=PLAIN) as tower:
        for _ in range(3):
            events = Events(
                x=rng.integers(0, 96, count).astype(np.uint16),
                y=rng.integers(0, 72, count).astype(np.uint16),
                t=np.sort(rng.integers(0, 300_000, count)).astype(np.int64),
                p=rng.integers(0, 2, count).astype(bool),
                sensor=size,
            )
            clip = Clip(events=events)
            (window,) = tower.look(clip)
            slices = tower.view.pictures(tower.view.glance(clip))
            expected = reference.event_tokens(slices).numpy()
            assert window.shape == expected.shape
            assert relative_error(window, expected) < 1e-3


@pytest.mark.parametrize("name", ["ec_transfer_config", "worker_extension_cls"])
def test_what_collecting_needs_of_vllm_cannot_be_given(tiny_target, name):
    from headstart_research.collect.observer import Observer

    with pytest.raises(CollectError, match=name):
        Observer(tiny_target, vllm={**PLAIN, name: "mine"})


def test_several_engines_in_one_are_refused(tiny_target):
    from headstart_research.collect.observer import Observer

    with pytest.raises(CollectError, match="--set shard="):
        Observer(tiny_target, vllm={"data_parallel_size": 2})
