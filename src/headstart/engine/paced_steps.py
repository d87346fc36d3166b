"""Which requests of a step answer and which have a prompt to compute, where prompts are paced.

How many tokens of prompts fit is the rule of `PromptPace`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from vllm.config import VllmConfig
from vllm.v1.core.sched.request_queue import RequestQueue
from vllm.v1.request import Request

from headstart.engine.draft_room import num_missing
from headstart.engine.prompt_pace import Account, PromptPace
from headstart.engine.request_state import RequestState


@dataclass(frozen=True, slots=True)
class PacedStep:
    """A step beside answers that have waited for long."""

    answers: Sequence[Request]
    """Laid out first, whatever they miss."""
    prompts: Sequence[Request]
    room: int
    """How many tokens of these prompts, and of those that wait, the step computes."""


def cuts_prompts(vllm_config: VllmConfig) -> bool:
    """Whether vLLM may end a step anywhere in a prompt.

    Not where it computes pictures or blocks of a recurrent state as a whole. It would cut a picture
    at whose beginning the last step has ended, and words of a picture may read each other.
    """
    config = vllm_config.scheduler_config
    whole_items = config.disable_chunked_mm_input
    whole_blocks = vllm_config.cache_config.mamba_cache_mode == "align"
    return config.enable_chunked_prefill and not (whole_items or whole_blocks)


class PacedSteps:
    """Looks at the requests before each step. Not thread-safe."""

    def __init__(
        self,
        vllm_config: VllmConfig,
        pace: PromptPace,
        states: Mapping[str, RequestState],
        *,
        paces: bool = True,
    ) -> None:
        """``states`` are those of all requests there are, at any time."""
        self.pace, self._states, self._paces = pace, states, paces
        self._by_priority = vllm_config.scheduler_config.policy == "priority"

    def next_step(self, running: Sequence[Request], waiting: RequestQueue) -> PacedStep | None:
        """The next one; none where vLLM may lay it out as it does without us."""
        # What vLLM has computed to its end is an answer.
        prompts = [one for one in running if one.is_prefill_chunk and not _answers(one)]
        if not self._paces or not (prompts or waiting):
            return None
        answers = [request for request in running if _answers(request)]
        held = [*prompts, waiting.peek_request()] if waiting else prompts
        if any(request.num_output_tokens > 0 for request in held):
            return None  # it has answered already, and was put back
        spared = answers
        if self._by_priority:
            # Who is more urgent than an answer does not make way for it.
            most_urgent = min(request.priority for request in held)
            spared = [request for request in answers if request.priority <= most_urgent]
        room = self.pace.room(self._accounts(spared), self._accounts(held))
        return None if room is None else PacedStep(answers, prompts, room)

    def _accounts(self, requests: Sequence[Request]) -> list[Account]:
        return [self._states[request.request_id].account for request in requests]


def _answers(request: Request) -> bool:
    """Whether a request has begun to answer. One that was put back computes its words anew."""
    return num_missing(request) <= 1 or request.num_output_tokens > 0
