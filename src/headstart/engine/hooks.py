"""Drafts inside vLLM: all contact with its scheduler is in this file.

vLLM's own place for drafts, the proposer, is asked after a step for the next one, in the
workers, without request ids, and never before the first token. The scheduler stands earlier
and sees more: it knows every request, what is confirmed of it and what its next step will
compute. So drafts are handed over here, at the last moment before a step is laid out, and a
draft that is ready when a prompt's last tokens are computed is verified in that same step.

The target decides as ever: a draft can change how many tokens a step confirms, never which.

    --scheduler-cls headstart.engine.hooks.HeadstartScheduler
    --speculative-config '{"method": "custom_class", "num_speculative_tokens": 32,
                           "model": "headstart.engine.hooks.NoProposals"}'
"""

import time
from typing import Any

from vllm.config import VllmConfig
from vllm.v1.core.sched.output import SchedulerOutput
from vllm.v1.core.sched.scheduler import Scheduler
from vllm.v1.request import Request, RequestStatus

from headstart.drafters.cascade import Cascade
from headstart.drafters.memory import Memory
from headstart.drafting.draft import Draft
from headstart.engine.asking import AskDetails
from headstart.engine.installation import require_engine
from headstart.engine.speech import text_vocabulary

_ANSWERED = (RequestStatus.FINISHED_STOPPED, RequestStatus.FINISHED_LENGTH_CAPPED)


class NoProposals:
    """The proposer that leaves drafting to the scheduler.

    It must exist: vLLM verifies drafts only where one is configured.
    """

    def __init__(self, vllm_config: VllmConfig) -> None:
        pass

    def load_model(self, *args: object, **kwargs: object) -> None:
        """Nothing to load."""

    def propose(
        self, sampled_token_ids: list[list[int]], *args: object, **kwargs: object
    ) -> list[list[int]]:
        """No draft for any request of the batch."""
        return [[] for _ in sampled_token_ids]


class HeadstartScheduler(Scheduler):
    """vLLM's scheduler, with drafters beside it in the engine's process."""

    def __init__(self, vllm_config: VllmConfig, *args: Any, **kwargs: Any) -> None:
        require_engine()  # of this very version: the interface below is not a public one
        super().__init__(vllm_config, *args, **kwargs)
        if not self.num_spec_tokens:
            raise ValueError(
                "HeadstartScheduler has nowhere to put drafts. Add --speculative-config"
                ' \'{"method": "custom_class", "num_speculative_tokens": 32,'
                ' "model": "headstart.engine.hooks.NoProposals"}\''
            )
        # Room for a draft is reserved with its request's own, also at admission: there is
        # then a slot for each token verified together with the prompt.
        self.num_lookahead_tokens: int = max(vllm_config.num_lookahead_tokens, self.num_spec_tokens)
        vocabulary = text_vocabulary(vllm_config.model_config.hf_config)
        self._drafters = Cascade([Memory()], vocabulary)

    def add_request(self, request: Request) -> None:
        """Tell the drafters of a new request, if it says anything of itself."""
        super().add_request(request)
        params = request.sampling_params
        details = AskDetails.parse(params.extra_args) if params is not None else None
        if details is None:
            return
        self._drafters.begin(details.ask(request.request_id))
        if details.draft:
            draft = Draft(details.draft, "caller", time.monotonic())
            self._drafters.post(request.request_id, draft)

    def _free_request(self, request: Request, *args: Any, **kwargs: Any) -> Any:
        aborted = request.status not in _ANSWERED
        answer = () if aborted else tuple(request.output_token_ids)
        self._drafters.finish(request.request_id, answer)
        return super()._free_request(request, *args, **kwargs)

    def schedule(self, throttle_prefills: bool = False) -> SchedulerOutput:
        """Hand every running request its draft, then let vLLM lay out the step.

        vLLM takes no more of a draft than the step has room for, and none before the
        prompt is computed to its end.
        """
        for request in self.running:
            request.spec_token_ids = self._draft(request, self.num_spec_tokens)
        return super().schedule(throttle_prefills)

    def _update_after_schedule(self, scheduler_output: SchedulerOutput) -> None:
        for new in scheduler_output.scheduled_new_reqs:
            self._fuse(self.requests[new.req_id], scheduler_output)
        super()._update_after_schedule(scheduler_output)

    def _fuse(self, request: Request, step: SchedulerOutput) -> None:
        """Add a draft to the step that takes a new request's whole prompt.

        vLLM schedules a request from the waiting queue without its draft.
        """
        request_id = request.request_id
        padding = step.scheduled_spec_decode_tokens.get(request_id)
        if padding:
            # A fully cached prompt: vLLM has made the row as wide as a draft and left it blank.
            draft = self._draft(request, len(padding))
            padding[: len(draft)] = draft
            return
        num_scheduled = step.num_scheduled_tokens[request_id]
        if request.num_computed_tokens + num_scheduled < request.num_tokens:
            return
        room = min(
            self.num_spec_tokens,
            self.max_num_scheduled_tokens - step.total_num_scheduled_tokens,
            self.max_model_len - request.num_tokens - self.num_sampled_tokens_per_step,
        )
        if draft := self._draft(request, room):
            step.num_scheduled_tokens[request_id] += len(draft)
            step.total_num_scheduled_tokens += len(draft)
            step.scheduled_spec_decode_tokens[request_id] = draft

    def _draft(self, request: Request, room: int) -> list[int]:
        params = request.sampling_params
        if params is None or params.prompt_logprobs is not None or request.use_structured_output:
            return []  # left to vLLM alone: not shown to be the same with drafts
        # One token comes out of the step without a draft.
        room = min(room, request.max_tokens - request.num_output_tokens - 1)
        proposal = self._drafters.propose(request.request_id, request.output_token_ids, room)
        return list(proposal.tokens)
