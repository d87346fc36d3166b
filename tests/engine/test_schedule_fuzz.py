"""Our scheduler against vLLM's own, on random schedules; and that the fuzz can find something."""

import pytest

pytest.importorskip("vllm")
from headstart.engine import scheduler
from headstart.engine.pass_clock import TimedPass
from headstart.engine.scheduler import HeadstartScheduler
from rig import schedule_engine
from tests.request_tables import traces
from tests.schedule_fuzz import Result, compare, fuzz, summed
from tests.schedule_plans import Plan, plan_of

pytestmark = pytest.mark.engine

NUM_DRAFTED = 40_000
NUM_KINDS = 12
MAX_SEARCHED = 60  # plans of a kind in which a corner must show


def test_no_schedule_changes_a_token_leaves_a_trace_or_lets_a_request_wait():
    result = fuzz(NUM_DRAFTED, seed=10, on_progress=lambda _: None)
    assert result.findings == result.not_ended_by_vllm == []
    counts = result.counts
    assert counts.drafted >= NUM_DRAFTED
    assert min(counts.accepted, counts.fused, counts.preemptions, result.sampled_answers) > 0
    assert min(counts.constrained, counts.encoded, counts.rehearsed) > 0
    assert len(result.plans_with) == NUM_KINDS
    assert result.answers > 1000
    assert result.refused_plans > 0


def test_a_trace_is_found_wherever_a_table_is_added():
    made = schedule_engine.scheduler(8)
    assert traces(made, ["one"]) == []
    made._cascade.added = {("tenant", "one"): 1}
    made._added = TimedPass((), 0, [{"of": {"one"}}], 0.0)
    assert sorted(traces(made, ["one"])) == [
        "HeadstartScheduler._added.prompt_tokens[][][]",
        "HeadstartScheduler._cascade.added[key][]",
    ]


def test_slices_are_told_as_one_run():
    one, other = Result(plans=2, plans_with={"pictures": 1}), Result(plans=3)
    one.took("a request", 0.25)
    other.took("a request", 0.5)
    other.leaks.append("seed 7: there")
    told = summed([{**one.told(), "seed": 1}, {**other.told(), "seed": 2}])
    assert (told["seeds"], told["plans"], told["leaks"]) == ([1, 2], 5, 1)
    assert told["plans_with"] == {"pictures": 1}
    assert told["longest_share_of_steps"] == {"a request": 0.5}
    assert told["first_findings"] == ["seed 7: there"]


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


def remembers_the_aborted(monkeypatch):
    update = HeadstartScheduler.update_from_output

    def update_from_output(self, step, output):
        for name in step.num_scheduled_tokens:
            self._states.setdefault(name, None)
        return update(self, step, output)

    monkeypatch.setattr(HeadstartScheduler, "update_from_output", update_from_output)


class Demanded:
    """Slots for drafts that a request waits for, as of vLLM's own lookahead."""

    def __init__(self, manager, num_wanted):
        pass

    def step_begins(self, num_draft_tokens, *, anyone_waits):
        return num_draft_tokens

    def reserved(self, request_id):
        return 128

    def step_ended(self):
        pass


def waits_for_slots(monkeypatch):
    monkeypatch.setattr(scheduler, "DraftSlots", Demanded)


def threshold(plan: Plan) -> int:
    return plan.arguments.get("long_prefill_token_threshold", 0)


def is_sampled(plan: Plan) -> bool:
    return any("seed" in turn.params for asked in plan.asked for turn in asked.turns)


CORNERS = {
    "A, sampled on a cached prompt": (
        pads_cached_prompts,
        lambda plan: is_sampled(plan) and not threshold(plan),
    ),
    "B, min_tokens": (
        drafts_past_min_tokens,
        lambda plan: not threshold(plan) and plan.has("min_tokens") and not plan.is_paced,
    ),
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
    "the state of a request aborted in a step": (
        remembers_the_aborted,
        lambda plan: any(asked.is_aborted_in_a_step for asked in plan.asked),
    ),
    "slots for drafts in the least pool": (
        waits_for_slots,
        lambda plan: not plan.num_spare_blocks and 0 not in plan.windows,
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
        if result.findings:
            break
    assert result.findings, f"not found in {result.plans} plans"
    print(f"{corner}: found in plan {result.plans}: {result.findings[0][:300]}")
