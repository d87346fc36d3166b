"""`Headstart` on a real engine: the target's own words, and an honest timeline."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from headstart import Headstart, Video
from headstart.answers.timeline import Stage
from headstart.errors import CheckpointError, EngineMissingError, EngineStartError, MediaError
from headstart_lab.street import street_video
from tests.models.oracle import Asked, random_asked

pytestmark = pytest.mark.engine

MAX_TOKENS = 16
QUESTION = "What is happening?"


@pytest.fixture
def street(tmp_path):
    path = tmp_path / "street.mp4"
    street_video().write(path)
    return path


def test_the_answer_is_transformers_answer(headstart, oracle, rng):
    for asked in random_asked(rng, 4):
        video = Video.from_frames(asked.frames, fps=8)
        answer = headstart.ask(video, asked.question, max_tokens=MAX_TOKENS)
        assert list(answer.token_ids) == oracle.answer(asked, MAX_TOKENS)[0]
        assert answer.num_prompt_tokens == len(oracle.prompt_ids(asked))


def test_a_file_is_answered_from_its_uniform_frames(headstart, oracle, street):
    video = Video.read(street, num_frames=8)
    answer = headstart.ask(street, QUESTION, max_tokens=MAX_TOKENS)
    expected, _ = oracle.answer(Asked(video.frames, QUESTION), MAX_TOKENS)
    assert list(answer.token_ids) == expected


def test_the_stream_adds_up_to_the_answer(headstart, street):
    pieces = []
    answer = headstart.ask(street, QUESTION, max_tokens=MAX_TOKENS, on_text=pieces.append)
    assert len(pieces) > 1
    assert "".join(pieces) == answer.text


def test_five_stages_account_for_the_wall_time(headstart, street, rng):
    timeline = headstart.ask(street, f"What {rng.random()}?", max_tokens=MAX_TOKENS).timeline
    assert [span.stage for span in timeline.spans] == list(Stage)
    starts = [span.start_s for span in timeline.spans]
    assert starts == sorted(starts)
    assert 0 < timeline.duration_s(Stage.DECODE) < timeline.total_s
    assert timeline.duration_s(Stage.LOAD) > 0
    assert timeline.between_stages_s >= 0


def test_frames_already_encoded_spend_no_time_in_vision(headstart, rng):
    (asked,) = random_asked(rng, 1)
    video = Video.from_frames(255 - asked.frames, fps=8)
    first = headstart.ask(video, "What is ahead?", max_tokens=1)
    second = headstart.ask(video, "Who is crossing?", max_tokens=1)
    assert first.timeline.duration_s(Stage.VISION) > 0
    assert first.num_cached_tokens == 0
    assert second.num_cached_tokens > 0
    assert second.timeline.duration_s(Stage.VISION) < first.timeline.duration_s(Stage.VISION)


def test_many_threads_get_each_their_own_answer(headstart, oracle, rng):
    asked = random_asked(rng, 6)

    def ask(one: Asked):
        video = Video.from_frames(one.frames, fps=8)
        return headstart.ask(video, one.question, max_tokens=MAX_TOKENS)

    with ThreadPoolExecutor(len(asked)) as threads:
        answers = list(threads.map(ask, asked))
    assert [list(a.token_ids) for a in answers] == [
        oracle.answer(one, MAX_TOKENS)[0] for one in asked
    ]


def test_a_missing_video_is_our_error_and_the_engine_goes_on(headstart, street, tmp_path):
    with pytest.raises(MediaError, match="check the path"):
        headstart.ask(tmp_path / "none.mp4", QUESTION)
    assert headstart.ask(street, QUESTION, max_tokens=2).token_ids


def test_a_directory_without_a_model_is_refused_before_an_engine_starts(tmp_path):
    with pytest.raises(EngineStartError, match=r"config\.json"):
        Headstart(tmp_path)


def test_a_checkpoint_with_a_key_missing_is_refused_before_an_engine_starts(tiny_target, tmp_path):
    import shutil

    from safetensors.torch import load_file, save_file

    copy = tmp_path / "copy"
    shutil.copytree(tiny_target, copy)
    tensors = load_file(copy / "model.safetensors")
    del tensors["language_model.lm_head.weight"]
    save_file(tensors, copy / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(CheckpointError, match=r"language_model\.lm_head\.weight"):
        Headstart(copy)


def test_an_argument_vllm_does_not_know_is_our_error(tiny_target):
    with pytest.raises(EngineStartError, match="warp_speed"):
        Headstart(tiny_target, vllm={"warp_speed": 9})


def test_another_vllm_is_refused_with_the_command_that_mends_it(tiny_target, monkeypatch):
    monkeypatch.setattr("headstart.doctor.findings.VLLM_VERSION", "99.0")
    with pytest.raises(
        EngineMissingError, match=r"written for 99\.0.*\npip install 'headstart\[cpu\]'"
    ):
        Headstart(tiny_target)
