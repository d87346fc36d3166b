"""The same `Headstart`, asked about events: slicing and drawing are the model's own."""

import numpy as np
import pytest

from headstart import ClipFiles, Events, Video
from headstart.answers.timeline import Stage
from headstart.errors import MediaError
from headstart.media.events import SensorSize
from headstart_events.eventgpt.view import event_prompt
from headstart_events.rendering import latest
from headstart_events.writers.writing import write_recording
from tests.models.eventgpt_reference import EventGptReference

pytestmark = pytest.mark.engine

SENSOR = SensorSize(96, 72)
MAX_TOKENS = 8
QUESTION = "What is happening?"


def random_events(rng, num_events: int, duration_us: int) -> Events:
    return Events.checked(
        rng.integers(0, SENSOR.width, num_events),
        rng.integers(0, SENSOR.height, num_events),
        np.sort(rng.integers(0, duration_us, num_events)),
        rng.integers(0, 2, num_events),
        SENSOR,
    )


def drawn(events: Events, num_slices: int) -> list[np.ndarray]:
    """Event by event, as the model's authors describe it."""
    size = len(events) // num_slices
    pictures = []
    for number in range(num_slices):
        stop = (number + 1) * size if number < num_slices - 1 else len(events)
        picture = np.full((SENSOR.height, SENSOR.width, 3), 255, dtype=np.uint8)
        for i in range(number * size, stop):
            picture[events.y[i], events.x[i]] = (255, 0, 0) if events.p[i] else (0, 0, 255)
        pictures.append(picture)
    return pictures


def test_a_window_is_answered_as_the_reference_answers(eventgpt_engine, tiny_drafter, rng):
    from transformers import AutoConfig

    reference = EventGptReference(tiny_drafter, AutoConfig.from_pretrained(tiny_drafter))
    for _ in range(3):
        events = random_events(rng, 3_001, 49_000)
        answer = eventgpt_engine.ask(events, QUESTION, max_tokens=MAX_TOKENS)
        expected, _, num_prompt_tokens = reference.answer(
            drawn(events, 5), event_prompt(QUESTION), MAX_TOKENS
        )
        assert list(answer.token_ids) == expected
        assert answer.num_prompt_tokens == num_prompt_tokens


def test_a_recording_is_answered_from_its_file(eventgpt_engine, rng, tmp_path):
    events = random_events(rng, 4_000, 1_000_000)
    write_recording(tmp_path / "events.npz", [events], SENSOR)
    window = ClipFiles(events=tmp_path / "events.npz", start_us=200_000, stop_us=250_000)
    answer = eventgpt_engine.ask(window, QUESTION, max_tokens=MAX_TOKENS)
    same = eventgpt_engine.ask(events.between(200_000, 250_000), QUESTION, max_tokens=MAX_TOKENS)
    assert answer.token_ids == same.token_ids
    assert answer.timeline.duration_s(Stage.LOAD) > 0


def test_a_window_too_long_is_refused_and_never_cut_silently(eventgpt_engine, rng):
    events = random_events(rng, 4_000, 1_000_000)
    with pytest.raises(MediaError, match="under 100 ms; choose a part"):
        eventgpt_engine.ask(events, QUESTION)
    assert eventgpt_engine.ask(latest(events, 99_000), QUESTION, max_tokens=1).token_ids


def test_too_few_events_and_no_events_say_what_to_do(eventgpt_engine, rng):
    with pytest.raises(MediaError, match="choose a longer window"):
        eventgpt_engine.ask(random_events(rng, 4, 40_000), QUESTION)
    video = Video.from_frames(np.zeros((8, 72, 96, 3), np.uint8), fps=8)
    with pytest.raises(MediaError, match="give a recording"):
        eventgpt_engine.ask(video, QUESTION)
