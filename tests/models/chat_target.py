"""What holds for every target that is asked by its chat template, on real engines.

Each model's test file has a subclass. Where a model's frames are items, it is one of
`FramesAsItems`, whose tests come on top.
"""

import importlib.util
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from headstart import Clip, Headstart, RequestOptions, Sources, Video
from headstart.live.session import LiveSession
from headstart.live.windows import Windows
from rig.camera import SLOT_US, WINDOW_S, Camera, feed_slowly, forget_prefixes
from tests.models.oracle import BLOCK_SIZE, QUESTIONS, random_clip
from tests.models.tiny_targets import SAVING

NUM_CLIPS = 20
MAX_TOKENS = 12
NUM_FRAMES = 8
NUM_WINDOWS = int(os.environ.get("LIVE_WINDOWS", "8"))
"""Of each kind, tumbling and stepping."""
ENGINE = {
    "dtype": "float32",
    "enforce_eager": True,
    "block_size": BLOCK_SIZE,
    "kv_cache_memory_bytes": 2**28,
    "max_model_len": 2048,
    "limit_mm_per_prompt": {"image": 2, "video": 1},
}

needs_torchvision = pytest.mark.skipif(
    importlib.util.find_spec("torchvision") is None,
    reason="no torchvision, which these models' processors need: see docs/guides/model.md",
)


@dataclass(frozen=True)
class ChatTarget:
    """One checkpoint: transformers alone, vLLM alone, and with a head start."""

    checkpoint: Path
    bare: Headstart
    ours: Headstart

    def whole(self, video: Video, question: str) -> tuple[int, ...]:
        """What vLLM says that is left as it is."""
        return self.bare.ask(video, question, max_tokens=MAX_TOKENS).token_ids


def start(name: str, folder: Path, engine: Mapping[str, Any]) -> Iterator[ChatTarget]:
    """Both engines, until the class's tests are over."""
    SAVING[name](folder)
    with (
        Headstart(folder, max_draft_tokens=0, vllm=engine) as bare,
        Headstart(folder, sources=Sources(abstain=False), max_draft_tokens=16, vllm=engine) as ours,
    ):
        yield ChatTarget(folder, bare, ours)


def random_video(rng: np.random.Generator, num_frames: int = NUM_FRAMES) -> Video:
    """Frames of one random size at half a second's distance, as a steady camera takes them."""
    return Video(random_clip(rng, num_frames), np.arange(num_frames, dtype=np.int64) * 500_000)


class AnyChatTarget:
    """Words equal transformers', with drafts and without."""

    name: ClassVar[str]
    engine: ClassVar[Mapping[str, Any]] = ENGINE
    max_frames: ClassVar[int] = NUM_FRAMES
    is_timed: ClassVar[bool] = False
    """Whether vLLM tells the model's processor when frames were taken."""

    @pytest.fixture(scope="class")
    def target(self, tmp_path_factory):
        yield from start(self.name, tmp_path_factory.mktemp(self.name), self.engine)

    @pytest.fixture(scope="class")
    def oracle(self, target):
        from tests.models.chat_oracle import ChatOracle

        return ChatOracle(target.checkpoint, is_timed=self.is_timed)

    def test_tokens_equal_transformers_with_drafts_and_without(self, target, oracle, rng):
        camera = target.ours.session(f"{self.name} clips")
        answers, drafted, accepted = set(), 0, 0
        for number in range(NUM_CLIPS):
            video = random_video(rng, int(rng.integers(1, self.max_frames + 1)))
            question = f"{QUESTIONS[number % len(QUESTIONS)]} {rng.integers(1000)}"
            expected = oracle.answer(Clip(video), question, MAX_TOKENS)
            assert target.whole(video, question) == expected
            for _ in range(2):  # first with others' words as drafts, then with its own
                answer = camera.ask(video, question, max_tokens=MAX_TOKENS)
                assert answer.token_ids == expected
                drafted += answer.num_drafted_tokens
                accepted += answer.num_accepted_tokens
            ids = oracle.inputs(Clip(video), question)["input_ids"]
            assert answer.num_prompt_tokens == ids.shape[1]
            answers.add(expected)
        # A model that said the same to everything would pass without having looked.
        assert len(answers) > NUM_CLIPS // 2
        assert drafted > accepted > 0

    def test_a_clip_is_asked_about_by_its_file(self, target, rng, tmp_path):
        file, video = tmp_path / "clip.mkv", random_video(rng)
        video.write(file, fps=2)
        read = Video.read(file)
        answer = target.ours.ask(file, QUESTIONS[0], max_tokens=MAX_TOKENS)
        assert answer.token_ids == target.whole(read, QUESTIONS[0])

    def test_pictures_and_a_system_prompt_reach_the_model(self, target, oracle, rng):
        system, seen = "Answer with numbers.", set()
        for num_pictures, has_video in ((1, False), (2, False), (1, True)):
            pictures = tuple(random_clip(rng, 1)[0] for _ in range(num_pictures))
            video = random_video(rng, self.max_frames) if has_video else None
            clip = Clip(video, pictures=pictures)
            expected = oracle.answer(clip, QUESTIONS[1], MAX_TOKENS, system)
            for headstart in (target.bare, target.ours):
                told = headstart.session("told", options=RequestOptions(system))
                answer = told.ask(clip, QUESTIONS[1], max_tokens=MAX_TOKENS)
                assert answer.token_ids == expected
            plain = target.ours.ask(clip, QUESTIONS[1], max_tokens=MAX_TOKENS)
            seen |= {answer.token_ids, plain.token_ids}
        assert len(seen) > 3  # the system prompt makes a difference, and so do the pictures

    def test_sampling_parameters_are_vllms(self, target, rng):
        video = random_video(rng)
        plain, unlike = (
            [
                headstart.session("s", options=RequestOptions(sampling=sampling))
                .ask(video, QUESTIONS[2], max_tokens=MAX_TOKENS)
                .token_ids
                for headstart in (target.bare, target.ours, target.ours)
            ]
            for sampling in ({}, {"repetition_penalty": 1.5})
        )
        assert len(set(plain)) == len(set(unlike)) == 1
        assert plain[0] != unlike[0]


class FramesAsItems(AnyChatTarget):
    """What is computed of a clip's first frames serves every clip that begins with them."""

    frames_per_item: ClassVar[int]

    def item_starts(self, target: ChatTarget, video: Video) -> list[int]:
        """Where the items of a video begin in its prompt."""
        rendering = target.ours.target.render(QUESTIONS[0], Clip(video), "")
        rendered = target.ours.loop.submit(rendering).result()
        return sorted(
            place.offset for places in rendered["mm_placeholders"].values() for place in places
        )

    def test_a_clip_has_an_item_for_so_many_frames(self, target, rng):
        video = random_video(rng)
        assert target.ours.target.view.frames_per_item == self.frames_per_item
        starts = self.item_starts(target, video)
        assert len(starts) >= NUM_FRAMES // self.frames_per_item
        # The other engine is left as it is.
        assert target.bare.target.view.frames_per_item is None

    @pytest.mark.parametrize("num_same", range(1, NUM_FRAMES))
    def test_clips_that_begin_alike_share_the_blocks_before_they_differ(
        self, target, rng, num_same
    ):
        first = random_video(rng)
        frames = first.frames.copy()
        frames[num_same:] = 255 - frames[num_same:]
        second = Video(frames, first.times_us)
        assert forget_prefixes(target.ours)
        asked = target.ours.ask(first, QUESTIONS[0], max_tokens=1)
        assert asked.num_cached_tokens == 0
        answer = target.ours.ask(second, QUESTIONS[0], max_tokens=MAX_TOKENS)
        same_until = self.item_starts(target, second)[num_same // self.frames_per_item]
        assert answer.num_cached_tokens == same_until // BLOCK_SIZE * BLOCK_SIZE
        assert answer.token_ids == target.whole(second, QUESTIONS[0])

    @pytest.mark.parametrize("every", [None, WINDOW_S / 2])
    def test_live_windows_equal_whole_clips(self, target, rng, every):
        session = target.ours.session(f"{self.name} {every}")
        camera = Camera(LiveSession(session, Windows(WINDOW_S, every)))
        standing = camera.live.standing(QUESTIONS[0], max_tokens=MAX_TOKENS)
        num_frames = NUM_WINDOWS * NUM_FRAMES // (1 if every is None else 2)
        feed_slowly(target.ours, camera, random_clip(rng, num_frames))
        camera.live.end()
        answers, fed = list(standing), target.ours.target.feeder.counts.frames
        assert len(answers) >= NUM_WINDOWS
        for answer in answers:
            times_us = np.arange(answer.num_frames, dtype=np.int64) * SLOT_US + answer.start_us
            video = Video(camera.clip(answer), times_us)
            assert answer.answer.token_ids == target.whole(video, QUESTIONS[0])
        assert fed > 0
        cached = [answer.answer.num_cached_tokens for answer in answers]
        assert min(cached[: NUM_WINDOWS // 2]) > 0
        assert sum(answer.answer.num_drafted_tokens for answer in answers) > 0
