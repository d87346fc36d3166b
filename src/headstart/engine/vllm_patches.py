"""Patches of vLLM 0.32, for what goes wrong or costs where its scheduler is ours.

Each patch says what is wrong without it. `require_engine` pins the version; with the next one,
check whether the patch is still needed. Each may be applied any number of times.
"""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vllm.config import VllmConfig


def sample_plainly_without_drafts() -> None:
    """Sample a step that has no drafts as if no speculative method were configured.

    Models with recurrent layers take such steps through vLLM's rejection sampler. There, on CPUs,
    any sampled request with ``top_k`` and without ``top_p`` ends the engine: it takes the largest
    of no values. A request that names tokens for its logprobs (``logprob_token_ids``) loses them,
    and ends the engine where another asks for logprobs. A budget for thinking holds but once.
    """
    from vllm.v1.sample.rejection_sampler import RejectionSampler

    original = RejectionSampler.forward
    if getattr(original, "is_headstarts", False):
        return

    def forward(self: Any, metadata: Any, probabilities: Any, logits: Any, sampling: Any) -> Any:
        drafted = metadata.max_spec_len > 0
        if sampling.thinking_budget_state_holder is not None:
            sampling.thinking_budget_state_holder.in_spec_mode = drafted
        if drafted:
            return original(self, metadata, probabilities, logits, sampling)
        return self.sampler(logits[metadata.bonus_logits_indices], sampling)

    forward.is_headstarts = True  # type: ignore[attr-defined]
    RejectionSampler.forward = forward


def compute_plainly_without_drafts() -> None:
    """Let the workers compute a step without drafts as if no speculative method were configured.

    Otherwise every such step prepares the verification of no drafts, samples through the rejection
    sampler and asks the proposer, which takes some tenths of a millisecond. Models with recurrent
    layers keep all that: their state after a step is read as a speculative one's.

    What holds budgets for thinking is told which of both a step is. It lays out its rows by that,
    and by what the engine was started with would write the end of thinking into others' rows.
    """
    from vllm.v1.worker.gpu_model_runner import GPUModelRunner

    original = GPUModelRunner.execute_model
    if getattr(original, "is_headstarts", False):
        return

    def execute_model(self: Any, scheduler_output: Any, *args: Any, **kwargs: Any) -> Any:
        model, drafter = self.model_config, getattr(self, "drafter", None)
        recurrent = model.is_hybrid or model.has_inner_state
        if getattr(drafter, "proposes_nothing", False) and not recurrent:
            # It stays so until the next step: `sample_tokens` completes this one.
            drafted = bool(scheduler_output.scheduled_spec_decode_tokens)
            self.speculative_config = self.vllm_config.speculative_config if drafted else None
            budgets = self.input_batch.thinking_budget_state_holder
            if budgets is not None:
                budgets.in_spec_mode = drafted
        return original(self, scheduler_output, *args, **kwargs)

    execute_model.is_headstarts = True  # type: ignore[attr-defined]
    GPUModelRunner.execute_model = execute_model


def leave_no_budget_behind() -> None:
    """Let no request take over the budget for thinking of one that has ended.

    When a request ends, vLLM moves the last one of the batch into its row. One without a budget
    came under the budget that was left there, drafts or not, and had its own thinking cut short.
    """
    from vllm.v1.sample.logits_processor.interface import MoveDirectionality
    from vllm.v1.sample.thinking_budget_state import ThinkingBudgetStateHolder

    original = ThinkingBudgetStateHolder.sync_batch
    if getattr(original, "is_headstarts", False):
        return

    def sync_batch(self: Any, update: Any) -> None:
        original(self, replace(update, moved=()) if update else update)
        for start, end, direction in update.moved if update else ():
            moved, there = self._state.pop(start, None), self._state.pop(end, None)
            if moved is not None:
                self._state[end] = moved
            if there is not None and direction == MoveDirectionality.SWAP:
                self._state[start] = there

    sync_batch.is_headstarts = True  # type: ignore[attr-defined]
    ThinkingBudgetStateHolder.sync_batch = sync_batch


def ask_for_no_proposals() -> None:
    """Do not ask the workers for proposals after every step, in an engine where they have none.

    The question is a round trip to another process where the workers are in one.
    """
    from vllm.v1.engine.core import EngineCore

    original = EngineCore.post_step
    if getattr(original, "is_headstarts", False):
        return

    def post_step(self: Any, model_executed: bool) -> None:
        if not getattr(self.scheduler, "drafts_by_itself", False):
            original(self, model_executed)

    post_step.is_headstarts = True  # type: ignore[attr-defined]
    EngineCore.post_step = post_step


class NoProposals:
    """Leaves drafting to the scheduler. vLLM verifies drafts only where it has a proposer."""

    proposes_nothing = True
    """A step without drafts is computed as if it did not exist: see above."""

    def __init__(self, vllm_config: "VllmConfig") -> None:
        # Built in the worker's process, where passes are computed.
        sample_plainly_without_drafts()
        compute_plainly_without_drafts()
        leave_no_budget_behind()

    def load_model(self, *args: object, **kwargs: object) -> None:
        """Nothing to load."""

    def propose(
        self, sampled_token_ids: list[list[int]], *args: object, **kwargs: object
    ) -> list[list[int]]:
        """No draft for any request of the batch."""
        return [[] for _ in sampled_token_ids]
