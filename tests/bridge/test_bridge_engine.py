"""A bridge inside a real engine: it is shown what both towers see, it drafts, nothing changes."""

import json
import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs what the engine brings")

from headstart import Headstart, Sources, Video
from headstart.engine.question import Question
from headstart.errors import CollectError, DraftingError, TrainingError
from headstart.speculation.draft import by_source
from headstart_research.bridge.config import BridgeConfig, FeatureSize
from headstart_research.bridge.pooling import DRAFTER, EARLIER, LAST, drafter_features
from headstart_research.bridge.tower import EventTower
from rig.waiting import wait_until
from tests.bridge.random_bridge import NEVER_SURE, save_random_bridge
from tests.bridge.witness import FILE, PREPARED, digest
from tests.engine.event_clips import clip_with_events
from tests.events.beside.drafts import ask_target, drafter_of, record_of
from tests.models.oracle import Asked, random_clip

pytestmark = pytest.mark.engine

MAX_TOKENS = 24
TOKENS_A_FRAME, NUM_FRAMES = 17, 8
QUESTIONS = ("What is happening?", "Who is there?")
ARGUMENTS = {"dtype": "float32", "enforce_eager": True, "block_size": 32}


def config_of(oracle, event_size=8):
    size = oracle.model.config.text_config.hidden_size
    return BridgeConfig(
        oracle.model.config.text_config.vocab_size - 8,  # without the placeholders at the end
        (
            FeatureSize(DRAFTER, event_size, 20),
            FeatureSize(EARLIER, size, 14),
            FeatureSize(LAST, size, TOKENS_A_FRAME),
        ),
        width=32,
        num_layers=2,
        num_heads=2,
        hidden=64,
        pointer_width=16,
    )


@pytest.fixture(scope="module")
def witnessed():
    FILE.unlink(missing_ok=True)
    yield FILE
    FILE.unlink(missing_ok=True)


@pytest.fixture(scope="module")
def bridged(tiny_target, tiny_drafter, oracle, tmp_path_factory, witnessed):
    event_size = json.loads((tiny_drafter / "config.json").read_text())["hidden_size"]
    directory = save_random_bridge(
        tmp_path_factory.mktemp("bridges") / "random",
        tiny_target,
        config_of(oracle, event_size),
        calibration=NEVER_SURE,
    )
    sources = Sources(("tests.bridge.witness:Witness", f"bridge={directory}"), abstain=False)
    with Headstart(
        tiny_target,
        draft_model=EventTower(tiny_drafter, ARGUMENTS),
        sources=sources,
        max_draft_tokens=16,
        vllm=ARGUMENTS,
    ) as running:
        yield running


def lines(file):
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def features_of(oracle, frames):
    pixels = oracle.image_processor(images=list(frames), return_tensors="pt")
    with torch.no_grad():
        seen = oracle.model.model.get_video_features(pixels["pixel_values_images"][None])
    return seen.pooler_output.reshape(NUM_FRAMES, TOKENS_A_FRAME, -1).numpy()


def test_answers_are_the_targets_own_and_the_bridge_drafts(bridged, oracle, rng):
    """Cameras that repeat clips, so that memory has something to copy and the bridge to follow."""
    clips = [random_clip(rng) for _ in range(3)]
    expected = {
        (number, question): oracle.answer(Asked(clip, question), MAX_TOKENS)[0]
        for number, clip in enumerate(clips)
        for question in QUESTIONS
    }

    def watch(camera):
        session = bridged.session(f"camera-{camera}")
        drafted, accepted = 0, 0
        for turn in range(8):
            number, question = (camera + turn) % 3, QUESTIONS[turn % 2]
            video = Video.from_frames(clips[number], fps=8)
            answer = session.ask(video, question, max_tokens=MAX_TOKENS)
            assert list(answer.token_ids) == expected[number, question]
            ours = by_source(answer.verdicts).get("bridge", (0, 0))
            drafted, accepted = drafted + ours[0], accepted + ours[1]
        return drafted, accepted

    with ThreadPoolExecutor(4) as pool:
        counts = list(pool.map(watch, range(4)))
    assert sum(drafted for drafted, _ in counts) > 0
    assert sum(accepted for _, accepted in counts) > 0


def test_it_is_shown_what_the_targets_tower_saw(bridged, oracle, witnessed, rng):
    before = len(lines(witnessed))
    frames = 255 - random_clip(rng)  # the clip itself was shown before
    video = Video.from_frames(frames, fps=8)
    session = bridged.session("a clip of its own")
    session.ask(video, QUESTIONS[0], max_tokens=4)
    session.ask(video, QUESTIONS[1], max_tokens=4)  # whose frames are cached: shown all the same
    prepared, first, *rest = lines(witnessed)[before:]
    assert prepared == {PREPARED: True}  # while the prompt was computed, so before the clip is seen
    second = next(line for line in rest if PREPARED not in line)
    assert first == second
    seen = features_of(oracle, frames)
    assert first[LAST]["shape"] == list(seen[-1].shape)
    assert first[EARLIER]["shape"] == [2 * (NUM_FRAMES - 1), seen.shape[-1]]
    np.testing.assert_allclose(first[LAST]["values"], seen[-1].ravel()[:8], rtol=2e-3, atol=5e-3)
    upper = np.array_split(seen[0], 2)[0].mean(axis=0)
    np.testing.assert_allclose(first[EARLIER]["values"], upper[:8], rtol=2e-3, atol=5e-3)


def test_a_clip_is_seen_with_the_first_word(bridged, witnessed, rng):
    before = len(lines(witnessed))
    video = Video.from_frames(random_clip(rng) // 2, fps=8)
    bridged.session("short").ask(video, QUESTIONS[0], max_tokens=2)
    assert [PREPARED in line for line in lines(witnessed)[before:]][:2] == [True, False]


def ask_until_events_are_seen(bridged, witnessed, clip, words):
    """The row of what was shown of them: the tower looks first, then the target is asked."""
    found = []

    def is_shown():
        before, name = len(lines(witnessed)), f"look-{time.monotonic()}"
        with drafter_of(bridged).drafting(Question(words, clip, 4), record_of(name)):
            time.sleep(0.5)  # plays: a question that ends after its clip; too early is asked again
            ask_target(bridged, clip, words, name, 4)
        found[:] = lines(witnessed)[before:]
        return any(DRAFTER in row for row in found)

    wait_until(is_shown, "the events before the bridge")
    return next(row for row in found if DRAFTER in row), found


def test_it_is_shown_of_events_what_collecting_keeps_and_before_the_frames(
    bridged, tiny_drafter, witnessed, rng
):
    from headstart_research.collect.observer import Observer

    with Observer(tiny_drafter, tower_only=True, vllm=ARGUMENTS) as tower:
        shown = [clip_with_events(rng)[1] for _ in range(3)]
        expected = [drafter_features(tower.look(clip))[DRAFTER] for clip in shown]
    assert len({digest(features) for features in expected}) == 3
    for clip, features in zip(shown, expected, strict=True):
        row, rows = ask_until_events_are_seen(bridged, witnessed, clip, QUESTIONS[0])
        assert row.keys() == {DRAFTER}
        assert row[DRAFTER]["shape"] == list(features.shape)
        assert row[DRAFTER]["digest"] == digest(features)
        seen = [row for row in rows if PREPARED not in row]
        assert [set(row) for row in seen] == [{DRAFTER}, {LAST, EARLIER}]
    # A clip that the tower knows is shown for another question too.
    again, _ = ask_until_events_are_seen(bridged, witnessed, shown[0], QUESTIONS[1])
    assert again[DRAFTER]["digest"] == digest(expected[0])


def test_answers_are_the_targets_with_a_tower_and_when_it_is_killed(
    bridged, oracle, witnessed, rng
):
    before, session = len(lines(witnessed)), bridged.session("beside a tower")
    process = drafter_of(bridged).process
    for number in range(6):
        if number == 3:
            killed = process.pid
            os.kill(killed, signal.SIGKILL)
        frames, clip = clip_with_events(rng)
        expected, _ = oracle.answer(Asked(frames, QUESTIONS[0]), MAX_TOKENS)
        answer = session.ask(clip, QUESTIONS[0], max_tokens=MAX_TOKENS)
        assert list(answer.token_ids) == expected
        assert answer.drafter_timeline is None  # a tower drafts nothing
    assert any(DRAFTER in row for row in lines(witnessed)[before:])
    wait_until(lambda: process.is_ready and process.pid != killed, "another tower")
    ask_until_events_are_seen(bridged, witnessed, clip, QUESTIONS[0])


def test_what_cannot_work_is_refused_before_the_engine_starts(tiny_target, tmp_path, oracle):
    with pytest.raises(TrainingError, match="train bridge"):
        Headstart(tiny_target, sources=Sources((f"bridge={tmp_path / 'nowhere'}",)))
    directory = save_random_bridge(tmp_path / "bridge", tiny_target, config_of(oracle))
    sources = Sources((f"bridge={directory}",))
    with pytest.raises(DraftingError, match="ec_transfer_config"):
        Headstart(tiny_target, sources=sources, vllm={"ec_transfer_config": {}})
    tower = EventTower(tiny_target, {"worker_extension_cls": "mine"})
    with pytest.raises(CollectError, match="worker_extension_cls"):
        Headstart(tiny_target, draft_model=tower, sources=sources)
    with pytest.raises(DraftingError, match="0 and no draft model"):
        Headstart(tiny_target, draft_model=tower, max_draft_tokens=0)
