"""Views without an engine: what a target is shown, and what it refuses."""

from types import SimpleNamespace

import numpy as np
import pytest

from headstart import Clip, Video
from headstart.engine.model import _showing
from headstart.engine.startup import model_arguments
from headstart.errors import DraftingError, MediaError, ModelConfigError
from headstart.models.chat import ChatView, Qwen3VlView
from headstart.models.video_llava.view import VideoLlavaView
from headstart.models.view import view_of
from headstart_events.eventgpt.view import EventGptView

PICTURE = np.zeros((4, 6, 3), np.uint8)
VIDEO = Video(np.zeros((3, 4, 6, 3), np.uint8), np.array([5, 10, 400_005], dtype=np.int64))


def config(*architectures):
    text = SimpleNamespace(vocab_size=99)
    return SimpleNamespace(architectures=architectures, get_text_config=lambda: text)


def kinds(messages):
    return [part["type"] for part in messages[-1]["content"]]


def test_a_model_without_a_view_of_its_own_is_a_chat():
    view = view_of(config("SomeNewModelForConditionalGeneration"))
    assert type(view) is ChatView
    assert view.frames_per_item is None
    assert not view.engine_arguments


def test_a_chat_has_a_place_for_each_picture_and_the_video():
    view = view_of(config("Other"))
    clip = Clip(VIDEO, pictures=(PICTURE, PICTURE))
    assert kinds(view.prompt("Why?", clip)) == ["image_url", "image_url", "video_url", "text"]
    assert kinds(view.prompt("Why?", Clip(pictures=(PICTURE,)))) == ["image_url", "text"]
    assert [m["role"] for m in view.prompt("Why?", clip, "Be brief.")] == ["system", "user"]
    assert sorted(view.media(clip)) == ["image", "video"]


def test_qwen3_vl_reads_the_times_of_its_frames():
    view = view_of(config("Qwen3VLForConditionalGeneration"))
    assert isinstance(view, Qwen3VlView)
    _, timing = view.media(Clip(VIDEO))["video"]
    assert np.allclose(np.array(timing["frames_indices"]) / timing["fps"], [0, 5e-6, 0.4])
    alone = Video(VIDEO.frames[:1], VIDEO.times_us[:1])
    frames, timing = view.media(Clip(alone))["video"]
    assert len(frames) == len(timing["frames_indices"]) == timing["total_num_frames"] == 2


def test_an_engine_that_is_left_as_it_is_gets_no_class_of_ours():
    view = view_of(config("Qwen3VLForConditionalGeneration"))
    assert not view.whole.engine_arguments
    assert model_arguments(view, 32, {"hf_overrides": {"a": 1}}) == {
        "hf_overrides": {"architectures": ["HeadstartQwen3VLForConditionalGeneration"], "a": 1}
    }
    with pytest.raises(DraftingError, match="hf_overrides is a function"):
        model_arguments(view, 32, {"hf_overrides": lambda config: config})


@pytest.mark.parametrize(
    "view", [VideoLlavaView(None, 8, 99), EventGptView(None, 5, 100_000, num_text_ids=99)]
)
def test_pictures_are_refused_where_they_would_not_be_seen(view):
    with pytest.raises(MediaError, match="no still pictures"):
        view.media(Clip(VIDEO, pictures=(PICTURE,)))


def test_the_number_of_frames_is_the_callers_only_where_the_model_has_none():
    assert _showing(view_of(config("Other")), 16).num_frames == 16
    with pytest.raises(ModelConfigError, match="one at least"):
        _showing(view_of(config("Other")), 0)
    with pytest.raises(ModelConfigError, match="shown 8 frames"):
        _showing(VideoLlavaView(None, 8, 99), 16)
