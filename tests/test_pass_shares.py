"""The shares of a pass, from passes whose costs are known."""

import pytest
from benchmarks.pass_shares import shares
from benchmarks.pass_timer import Pass


def test_the_costs_are_found_again():
    passes, clock_s = [], 0.0
    for number in range(60):
        answers, drafted, prompt = number % 5, 3 * (number % 4), 100 * (number % 3)
        tower_s = 0.1 if prompt else 0.0
        seconds = 0.02 + 0.002 * answers + 0.0005 * drafted + 0.0004 * prompt + tower_s
        passes.append(Pass(clock_s, clock_s + seconds, answers, drafted, prompt, tower_s))
        clock_s += seconds + 0.001
    found = shares(passes)
    assert found["pass_ms"] == pytest.approx(20.0)
    assert found["answer_ms"] == pytest.approx(2.0)
    assert found["drafted_token_ms"] == pytest.approx(0.5)
    assert found["prompt_token_ms"] == pytest.approx(0.4)
    assert found["between_passes_ms"] == pytest.approx(1.0)
    assert found["tower"] == pytest.approx(4.0 / sum(p.ended_s - p.begun_s for p in passes))
    assert sum(found[part] for part in ("tower", "prompts", "answers", "drafts")) == pytest.approx(
        1
    )
