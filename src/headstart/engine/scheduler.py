"""Drafts inside vLLM's scheduler: all contact with it is in this file and in `rehearsals`.

vLLM asks its own place for drafts, the proposer, after a step for the next one, in the workers,
without request ids, and never before the first token. The scheduler knows every request, what is
confirmed of it and what its next step computes. So the drafters are asked here, right before a step
is laid out, and a draft that is ready when a prompt's last tokens are computed is verified in that
same step.

The target decides: a draft changes how many tokens a step confirms, never which.

    --scheduler-cls headstart.engine.scheduler.HeadstartScheduler
    --speculative-config '{"method": "custom_class", "num_speculative_tokens": 32,
                           "model": "headstart.engine.scheduler.NoProposals"}'
    --additional-config '{"headstart": {"sources": {"memory": true, "ngram": true}}}'

The last is optional; its fields are those of `engine.options.SchedulerOptions`.
"""

import time
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from vllm.config import VllmConfig
from vllm.v1.core.sched.output import SchedulerOutput
from vllm.v1.core.sched.scheduler import Scheduler
from vllm.v1.outputs import ModelRunnerOutput
from vllm.v1.request import Request, RequestStatus, StreamingUpdate

from headstart.doctor.findings import require_engine
from headstart.drafters.ngram import MAX_LOOK_BACK
from headstart.drafters.registry import MemoryOptions, build_cascade
from headstart.drafters.remembered import Remembered
from headstart.engine.draft_room import DraftRoom, DraftSlots, num_missing, num_wanted
from headstart.engine.drafts.channel import DraftChannel
from headstart.engine.drafts.scheduler_drafts import Arrived, SchedulerDrafts
from headstart.engine.engine_memory import answer_calls
from headstart.engine.model import text_vocabulary
from headstart.engine.options import SchedulerOptions, check_drafting
from headstart.engine.pass_clock import PassClock, padded_sizes
from headstart.engine.prompt_pace import Account, PacedSteps, PromptPace, cuts_prompts
from headstart.engine.rehearsals import Rehearsals
from headstart.engine.request_state import RequestState, tags_of, whole_answer
from headstart.engine.vllm_patches import NoProposals, ask_for_no_proposals
from headstart.engine.withheld_drafts import WithheldDrafts
from headstart.speculation.budget import DraftBudget
from headstart.speculation.draft import Draft
from headstart.speculation.drafted_request import DraftedRequest
from headstart.speculation.pass_costs import PassCosts

__all__ = ["HeadstartScheduler", "NoProposals"]  # what the flags name


class HeadstartScheduler(Scheduler):
    """vLLM's scheduler, with drafters beside it in the engine's process."""

    drafts_by_itself = True
    """The workers' proposer is not asked for drafts; see `engine.vllm_patches`."""
    max_num_scheduled_tokens: int

    def __init__(self, vllm_config: VllmConfig, *args: Any, **kwargs: Any) -> None:
        require_engine()  # of this very version: the interface below is not a public one
        options = SchedulerOptions.parse(vllm_config.additional_config)
        super().__init__(vllm_config, *args, **kwargs)
        if not self.num_spec_tokens:
            raise ValueError(
                "HeadstartScheduler has nowhere to put drafts. Add --speculative-config"
                ' \'{"method": "custom_class", "num_speculative_tokens": 32,'
                ' "model": "headstart.engine.scheduler.NoProposals"}\''
            )
        check_drafting(self.num_spec_tokens, vllm_config.max_concurrent_batches)
        ask_for_no_proposals()
        if options.channel is not None and vllm_config.parallel_config.data_parallel_size > 1:
            raise ValueError(
                "a draft channel leads to one engine; with data_parallel_size leave it out"
            )
        # vLLM widens the row of a fully cached prompt to a whole draft of blanks, unless the
        # width depends on the batch. The CPU kernel samples wrongly from such a row, and a
        # long_prefill_token_threshold below its width ends the engine. So it depends on the
        # batch, with the same width for every batch.
        self.dynamic_sd_lookup: list[int] | None = [self.num_spec_tokens] * (
            self.max_num_running_reqs + 1
        )
        self.num_lookahead_tokens: int = self.num_spec_tokens  # of new requests; see `_fuse`
        self._slots = DraftSlots(self.kv_cache_manager, self._num_draftable)
        self._vocabulary = text_vocabulary(vllm_config.model_config.hf_config)
        sources, costs = options.sources, PassCosts()
        sizes = padded_sizes(vllm_config.compilation_config)
        self._cascade = build_cascade(
            sources.drafters,
            self._vocabulary,
            MemoryOptions(options.memory, sources.warm, sources.memory_log),
            DraftBudget(costs, sizes) if sources.abstain else None,
        )
        self.remembered = Remembered(self._cascade)
        answer_calls()
        self._channel: SchedulerDrafts | None = None
        if options.channel is not None:
            self._channel = SchedulerDrafts(DraftChannel(options.channel), sources.resync)
        self._clock = PassClock()
        pace = PromptPace(costs, cuts_prompts=cuts_prompts(vllm_config))
        self._states: dict[str, RequestState] = {}
        """Of all requests alive; what is known of one is nowhere else."""
        self._paced_steps = PacedSteps(vllm_config, pace, self._account, paces=sources.paced)
        self._max_step_tokens: int = self.max_num_scheduled_tokens
        self._room = DraftRoom(self.kv_cache_manager, self._max_step_tokens)
        self._withheld = WithheldDrafts()
        self._rehearsals = Rehearsals(self, sources.rehearsals, costs)
        self._step_limit = self._max_step_tokens
        """Of the tokens in the step under way."""

    def add_request(self, request: Request) -> None:
        """Tell the drafters of a new request, if it is tagged or names a session."""
        is_new = request.request_id not in self.requests
        super().add_request(request)
        if is_new:
            self._begin(request)

    def _update_request_as_session(self, session: Request, update: StreamingUpdate) -> None:
        """More input for a request whose prompt grows: the next answer is another one."""
        super()._update_request_as_session(session, update)
        self._begin(session)

    def _begin(self, request: Request) -> None:
        self._forget(request.request_id)
        state = self._states[request.request_id] = self._new_state(request)
        tags, drafted = state.tags, state.drafted
        if tags is None or drafted is None:
            return
        if rehearsed := self._rehearsals.begin(state):
            self._cascade.post(drafted, Draft(rehearsed, "rehearsal", time.monotonic()))
        if tags.prediction:
            self._cascade.post(drafted, Draft(tags.prediction, "caller", time.monotonic()))
        if self._channel is not None and tags.name:
            state.followed, early = self._channel.begin(drafted, tags.name, is_shown=tags.preview)
            for arrived in early:
                self._take(drafted, arrived)
            if tags.preview:
                self._proposal(request, drafted, self.num_spec_tokens)

    def _new_state(self, request: Request) -> RequestState:
        """What is known of a request as it comes; it is drafted for from now on.

        Together with `_step_ended` the place for a subclass that knows more of requests.
        """
        withheld = self._withheld.begin(request.sampling_params)
        account = self._paced_steps.pace.begin()
        state = RequestState(request, withheld, account, tags_of(request))
        if state.tags is not None:
            prompt = self._vocabulary.text_suffix((request.prompt_token_ids or [])[-MAX_LOOK_BACK:])
            state.drafted = self._cascade.begin(state.tags.request(request.request_id, prompt))
        return state

    def _take(self, drafted: DraftedRequest, arrived: Arrived) -> None:
        if isinstance(arrived, Draft):
            self._cascade.post(drafted, arrived)
        else:
            self._cascade.see(drafted, arrived)

    def _handle_stopped_request(self, request: Request) -> bool:
        """An answer is complete; a request whose prompt grows may go on after it."""
        if request.resumable:
            self._finish(self._states[request.request_id])
            # vLLM goes on from what is computed, which with an accepted draft may include the
            # answer's last token. Without drafts that token is never computed, and dropped.
            computed = min(request.num_computed_tokens, request.num_tokens - 1)
            request.num_computed_tokens = computed
        return super()._handle_stopped_request(request)

    def _free_request(self, request: Request, *args: Any, **kwargs: Any) -> Any:
        state = self._states[request.request_id]
        answer = self._finish(state)
        self._rehearsals.ended(state, is_whole=bool(answer))
        self._forget(request.request_id)
        left_by_connector, left_by_encoder = super()._free_request(request, *args, **kwargs)
        is_told = request.status != RequestStatus.FINISHED_ABORTED and not state.rehearses
        if left_by_connector is None and is_told and state.is_reported:
            num_said, num_remembered = request.num_output_tokens, self.remembered.num_answers
            report = state.record.report(
                answer, num_said, num_remembered, self._rehearsals.counted()
            )
            left_by_connector = report.params()
        return left_by_connector, left_by_encoder

    def _forget(self, request_id: str) -> None:
        if (state := self._states.pop(request_id, None)) is not None:
            self._withheld.end(state.withheld)
            self._paced_steps.pace.end(state.account)
            if self._channel is not None and state.followed is not None:
                self._channel.end(state.followed)

    def _finish(self, state: RequestState) -> tuple[int, ...]:
        """The drafters learn all that was said, if it came to an end, and it is returned."""
        tokenizer = getattr(self.structured_output_manager, "tokenizer", None)
        answer = whole_answer(state.request, tokenizer)
        if state.drafted is not None:
            self._cascade.finish(state.drafted, answer)
        return answer

    def _preempt_request(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Put a request back, and forget blocks of it that are counted as cached and are not.

        vLLM counts a block as cached when the step that fills it is laid out. By priority it may
        take a request out of that very step, and the next one with this prefix, often the same
        request, would read a block that was never computed.
        """
        for manager in self.kv_cache_manager.coordinator.single_type_managers:
            num_filled = request.num_computed_tokens // manager.block_size
            blocks = manager.req_to_blocks.get(request.request_id, ())[num_filled:]
            self.kv_cache_manager.evict_blocks({block.block_id for block in blocks})
        super()._preempt_request(request, *args, **kwargs)

    def schedule(self, throttle_prefills: bool = False) -> SchedulerOutput:
        """Hand every running request its draft, then let vLLM lay out the step.

        vLLM takes no more of a draft than the step has room for, and none before the
        prompt is computed to its end.
        """
        self._clock.begin()
        rehearsed = self._rehearsals.set_aside()
        self._cascade.pass_begins(len(self.running) + len(rehearsed.taking_part))
        if self._channel is not None:
            for drafted, arrived in self._channel.arrived():
                self._take(drafted, arrived)
        limit = self._hand_out_drafts()
        if rehearsed.taking_part:
            limit = self._rehearsals.bring_in(rehearsed, limit)
            for request in rehearsed.running:
                self._hand_out(request, rehearsed.num_tokens)
        self._step_limit = limit if rehearsed.taking_part else self._max_step_tokens
        self.max_num_scheduled_tokens = limit
        self.num_lookahead_tokens = self._slots.step_begins(
            self.num_spec_tokens, anyone_waits=bool(self.waiting or self.kv_holding_waiting)
        )
        try:
            step = super().schedule(throttle_prefills)
        finally:
            self.max_num_scheduled_tokens = self._max_step_tokens
            self._slots.step_ended()
            self._rehearsals.put_back(rehearsed.left_out)
        self._clock.laid_out(step)
        return step

    def _hand_out_drafts(self) -> int:
        """Hand every running request its draft; returns how many tokens the step may compute.

        That is fewer than it can where answers would wait too long for prompts. The answers are
        then laid out before the prompts.
        """
        # On a CPU vLLM cannot split the prompt of a sampled request with a seed.
        can_cut = not self._withheld.samples
        paced = self._paced_steps.next_step(self.running, self.waiting) if can_cut else None
        self._room.step_begins(self.running, anyone_waits=bool(self.waiting))
        if paced is None:
            for request in self._drafted_for():
                self._hand_out(request, self._max_step_tokens)
            return self._max_step_tokens
        self.running[:] = [*paced.answers, *paced.prompts]
        num_tokens, room = 0, paced.room
        for request in paced.answers:
            num_tokens += num_missing(request) + self._hand_out(request, self._max_step_tokens)
        for request in paced.prompts:
            taken = min(num_missing(request), room)
            num_tokens += taken + self._hand_out(request, room)
            room -= taken
        return min(num_tokens + room, self._max_step_tokens)

    def _hand_out(self, request: Request, room: int) -> int:
        """Draft for a running request, if the step may compute all that is known of it."""
        draft: list[int] = []
        if self._ends_now(request, room):
            draft = self._draft(request, min(self.num_spec_tokens, self._room.num_tokens))
            self._room.take(len(draft))
        request.spec_token_ids = draft
        return len(draft)

    def _ends_now(self, request: Request, room: int) -> bool:
        """Whether a step with room for so many tokens computes all that is known of a request.

        With recurrent layers, not if the step also computes a part of the prompt: their state
        after a refused draft could not be taken back to where the prompt ended.
        """
        missing = num_missing(request)
        if self.has_mamba_layers:
            return missing == 1 and request.num_output_tokens > 0
        return 1 <= missing <= room

    def _drafted_for(self) -> list[Request]:
        """The running requests for which a draft may pay. The others have none from before."""
        # A drafter elsewhere follows every pass of an answer.
        resting = self._cascade.resting if self._channel is None else ()
        running = self.running if len(resting) < self._cascade.num_open else ()
        states = [(one, self._states[one.request_id].drafted) for one in running]
        return [one for one, drafted in states if drafted and drafted not in resting]

    def _update_after_schedule(self, scheduler_output: SchedulerOutput) -> None:
        for new in scheduler_output.scheduled_new_reqs if not self.has_mamba_layers else ():
            self._fuse(self.requests[new.req_id], scheduler_output)
        super()._update_after_schedule(scheduler_output)

    def _fuse(self, request: Request, step: SchedulerOutput) -> None:
        """Add a draft to the step that takes a new request's whole prompt.

        vLLM schedules a request from the waiting queue without its draft.
        """
        request_id = request.request_id
        num_scheduled = step.num_scheduled_tokens[request_id]
        if request.num_computed_tokens + num_scheduled < request.num_tokens:
            return
        room = min(
            self._slots.reserved(request_id),
            self._step_limit - step.total_num_scheduled_tokens,
            self.max_model_len - request.num_tokens - self.num_sampled_tokens_per_step,
        )
        if draft := self._draft(request, room):
            step.num_scheduled_tokens[request_id] += len(draft)
            step.total_num_scheduled_tokens += len(draft)
            step.scheduled_spec_decode_tokens[request_id] = draft

    def get_grammar_bitmask(self, scheduler_output: SchedulerOutput) -> Any:
        """vLLM asks for it while the workers compute the step: time for drafters to get ready."""
        if self._cascade.prepares:
            computed = self._alive(scheduler_output.num_scheduled_tokens)
            self._cascade.while_computing(
                (one.drafted, one.request.output_token_ids) for one in computed if one.drafted
            )
        return super().get_grammar_bitmask(scheduler_output)

    def update_from_output(
        self, scheduler_output: SchedulerOutput, model_runner_output: ModelRunnerOutput
    ) -> Any:
        """Note what became of each draft, then let vLLM take the step's tokens."""
        said, places = model_runner_output.sampled_token_ids, model_runner_output.req_id_to_index
        drafts = scheduler_output.scheduled_spec_decode_tokens
        if timed := self._clock.end(scheduler_output):
            accepted = sum(max(0, len(said[places[name]]) - 1) for name in drafts if said)
            accounts = [one.account for one in self._alive(timed.answers) if not one.rehearses]
            self._rehearsals.passed(timed, scheduler_output.num_scheduled_tokens)
            self._paced_steps.pace.pass_ended(timed, accounts, accepted)
            if not timed.prompt_tokens:
                self._cascade.pass_ended(timed.drafted_tokens, timed.seconds)
        for request_id, draft in drafts.items() if said else ():
            state, words = self._states.get(request_id), said[places[request_id]]
            if state is not None and words:
                state.record.passed(state.request.num_output_tokens, len(draft), len(words))
        outputs = super().update_from_output(scheduler_output, model_runner_output)
        self._rehearsals.tell(outputs)
        self._step_ended()
        return outputs

    def _step_ended(self) -> None:
        """A step's words are taken in, and what its encoders have seen; see `_new_state`."""

    def _alive(self, names: Iterable[str]) -> list[RequestState]:
        """Of the requests of a step those that were not aborted meanwhile."""
        return [state for name in names if (state := self._states.get(name)) is not None]

    def _account(self, request: Request) -> Account:
        return self._states[request.request_id].account

    def _num_draftable(self, request: Request) -> int:
        """How many tokens may be drafted for a request: none if it is not tagged."""
        can_draft = self._draftable(self._states[request.request_id]) is not None
        return max(0, num_wanted(request)) if can_draft else 0

    def _draftable(self, state: RequestState) -> DraftedRequest | None:
        return None if self._withheld.withholds(state.withheld) else state.drafted

    def _draft(self, request: Request, room: int) -> list[int]:
        state = self._states[request.request_id]
        if (drafted := self._draftable(state)) is None:
            return []
        if self._channel is not None and state.followed is not None:
            self._channel.follow(state.followed, request.output_token_ids)
        return self._proposal(request, drafted, room)

    def _proposal(self, request: Request, drafted: DraftedRequest, room: int) -> list[int]:
        state, said = self._states[request.request_id], request.output_token_ids
        draft = self._cascade.propose(drafted, said, min(room, num_wanted(request)))
        if request.use_structured_output and request.status == RequestStatus.RUNNING:
            # Its grammar is compiled; what that would refuse is not proposed.
            tokens = self.structured_output_manager.validate_tokens(request, list(draft.tokens))
            draft = replace(draft, tokens=tuple(tokens))
        state.record.hand(draft)
        if self._channel is not None and state.followed is not None:
            self._channel.show(state.followed, draft)
        return list(draft.tokens)
