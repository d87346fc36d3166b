"""Times the engine's passes, from which the draft budget and the pace of prompts learn."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vllm.config import CompilationConfig
    from vllm.v1.core.sched.output import SchedulerOutput


@dataclass(frozen=True, slots=True)
class TimedPass:
    """A pass that no other one overlapped."""

    answers: tuple[str, ...]
    """The requests that decoded: one token of each, and its draft."""
    drafted_tokens: int
    prompt_tokens: int
    seconds: float
    """From the scheduler's first look at the pass to the arrival of its tokens."""


class PassClock:
    """Times one pass at a time. Passes that overlap are not timed."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._begun_s = 0.0
        self._timed: SchedulerOutput | None = None
        self._in_flight = 0

    def begin(self) -> None:
        self._begun_s = self._clock()

    def laid_out(self, step: "SchedulerOutput") -> None:
        self._in_flight += 1
        self._timed = step if self._in_flight == 1 else None

    def end(self, step: "SchedulerOutput") -> TimedPass | None:
        self._in_flight -= 1
        alone = id(self._timed) == id(step)
        self._timed = None
        if not alone or not step.num_scheduled_tokens:
            return None
        seconds = self._clock() - self._begun_s
        drafts = step.scheduled_spec_decode_tokens
        drafted = sum(map(len, drafts.values()))
        own = step.total_num_scheduled_tokens - drafted
        if own == len(step.num_scheduled_tokens) and not step.scheduled_new_reqs:
            return TimedPass(tuple(step.num_scheduled_tokens), drafted, 0, seconds)
        new = {request.req_id for request in step.scheduled_new_reqs}
        answers, prompts = [], 0
        for request_id, num_tokens in step.num_scheduled_tokens.items():
            num_drafted = len(drafts.get(request_id, ()))
            # More than one token of its own is a prompt, or one that was put back.
            if num_tokens == 1 + num_drafted and request_id not in new:
                answers.append(request_id)
            else:
                prompts += num_tokens - num_drafted
        return TimedPass(tuple(answers), drafted, prompts, seconds)


def padded_sizes(config: "CompilationConfig") -> Sequence[int]:
    """The sizes that vLLM pads steps to, in order; none where it has captured nothing.

    A token that only fills up a size is free.
    """
    from vllm.config.compilation import CUDAGraphMode

    if config.cudagraph_mode in (None, CUDAGraphMode.NONE):
        return ()
    return sorted(config.cudagraph_capture_sizes or ())
