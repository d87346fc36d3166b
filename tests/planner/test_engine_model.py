"""What one simulated engine does with a short KV cache, and with streams that it does not know."""

from dataclasses import replace
from random import Random

from headstart_research.planning.cameras import Cameras, percentile
from headstart_research.planning.costs import Costs
from headstart_research.planning.engine_model import Asked, EngineModel, Questions
from headstart_research.planning.live import LiveWindow
from headstart_research.planning.survival import Survival

SURE = Questions(
    Costs(0.05, 0.01), LiveWindow(8, 2.0, 2.0, 0.01), 33, Survival((1.0,) * 32), half_warm_answers=2
)


def answer(model, camera=0):
    """Ask one question on an idle engine; how many steps it took."""
    model.land(Asked(camera, 0, 0.0, 2.0))
    for step in range(1, 100):
        work = model.work(2.0)
        if work.ended:
            model.end(work.ended[0])
            return step
    raise AssertionError("no answer")


def test_a_stream_that_is_not_known_has_no_drafts_and_becomes_known():
    model = EngineModel(SURE, Random(1))
    first = answer(model)
    later = [answer(model) for _ in range(60)]
    assert first == 33  # a token a step
    assert sum(later[-20:]) < 20 * 3
    assert answer(model, camera=1) == 33


def test_a_stream_whose_memory_came_along_is_known_at_once():
    model = EngineModel(SURE, Random(1))
    model.remember(0)
    assert sum(answer(model) for _ in range(20)) < 20 * 3


def test_a_short_kv_cache_lets_questions_wait_and_frames_unfed():
    crowded = Cameras(Costs(0.02, 0.01), LiveWindow(8, 2.0, 2.0, 0.01), 50, Survival(), is_fed=True)
    whole, short = (replace(crowded, max_windows=most).load(12) for most in (None, 2))
    assert short.fed_share < 0.5 < whole.fed_share
    assert percentile(short.last_word_s, 0.5) > 1.5 * percentile(whole.last_word_s, 0.5)


def test_further_requests_of_a_batch_cost_what_the_calibration_says():
    free, dear = (
        Cameras(Costs(0.02, 0.02, request_s=more_s), LiveWindow(8, 2.0, 2.0, 0.02), 50).load(8)
        for more_s in (0.0, 0.01)
    )
    assert percentile(dear.last_word_s, 0.5) > 1.2 * percentile(free.last_word_s, 0.5)
