"""Our scheduler against vLLM's own, on random schedules; and that the fuzz can find something."""

import pytest

pytest.importorskip("vllm")
from tests.schedule_fuzz import Plan, Result, compare, fuzz, plan_of

from headstart.engine import scheduler
from headstart.engine.scheduler import HeadstartScheduler

pytestmark = pytest.mark.engine

NUM_DRAFTED = 60_000
MAX_SEARCHED = 60  # plans of a kind in which a corner must show


def test_no_schedule_changes_a_token():
    result = fuzz(NUM_DRAFTED, seed=1, on_progress=lambda _: None)
    assert result.differences == []
    counts = result.counts
    assert counts.drafted >= NUM_DRAFTED
    assert min(counts.accepted, counts.fused, counts.preemptions, result.sampled_answers) > 0
    assert result.answers > 1000
    assert result.refused_plans > 0


def pads_cached_prompts(monkeypatch):
    made = HeadstartScheduler.__init__

    def padding(self, *args, **kwargs):
        made(self, *args, **kwargs)
        self.dynamic_sd_lookup = None

    monkeypatch.setattr(HeadstartScheduler, "__init__", padding)


def drafts_past_min_tokens(monkeypatch):
    monkeypatch.setattr(
        scheduler, "num_wanted", lambda request: request.max_tokens - request.num_output_tokens - 1
    )


def refuses_nothing(monkeypatch):
    monkeypatch.setattr(scheduler, "check_drafting", lambda *_: None)


def drafts_after_unknown_tokens(monkeypatch):
    refuses_nothing(monkeypatch)
    monkeypatch.setattr(HeadstartScheduler, "_ends_now", lambda *_: True)


def keeps_the_last_token_of_a_turn(monkeypatch):
    monkeypatch.delattr(HeadstartScheduler, "_handle_stopped_request")


def threshold(plan: Plan) -> int:
    return plan.arguments.get("long_prefill_token_threshold", 0)


def is_sampled(plan: Plan) -> bool:
    return any("seed" in turn.params for asked in plan.asked for turn in asked.turns)


CORNERS = {
    "A, sampled on a cached prompt": (
        pads_cached_prompts,
        lambda plan: is_sampled(plan) and not threshold(plan),
    ),
    "B, min_tokens": (drafts_past_min_tokens, lambda plan: not threshold(plan)),
    "C, two steps in flight": (
        drafts_after_unknown_tokens,
        lambda plan: plan.num_in_flight > 1,
    ),
    "F, drafts longer than 128": (refuses_nothing, lambda plan: plan.max_draft_tokens > 128),
    "G, threshold below a draft's width": (
        pads_cached_prompts,
        lambda plan: 0 < threshold(plan) <= plan.max_draft_tokens and not is_sampled(plan),
    ),
    "a growing prompt's last token": (
        keeps_the_last_token_of_a_turn,
        lambda plan: any(len(asked.turns) > 1 for asked in plan.asked),
    ),
}


@pytest.mark.parametrize("corner", CORNERS)
def test_the_fuzz_finds_a_corner_whose_mend_is_taken_out(corner, monkeypatch):
    take_out, concerns = CORNERS[corner]
    take_out(monkeypatch)
    result = Result()
    plans = (plan for seed in range(10_000) if concerns(plan := plan_of(seed)))
    for plan, _ in zip(plans, range(MAX_SEARCHED), strict=False):
        compare(plan, result)
        if result.differences:
            break
    assert result.differences, f"not found in {result.plans} plans"
    print(f"{corner}: found in plan {result.plans}: {result.differences[0][:300]}")
