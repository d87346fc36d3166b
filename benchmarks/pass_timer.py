"""Times every pass in the worker of an engine that is started with `PassTimer`.

    HEADSTART_PASSES=passes headstart bench ... \
        --vllm worker_extension_cls=benchmarks.pass_timer.PassTimer
    python -m benchmarks.pass_shares passes

vLLM imports such a class in its workers. From then on each writes one line for each pass into a
file of its own in the directory that the variable names.
"""

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from headstart.bench.result import BARE

DIRECTORY = "HEADSTART_PASSES"


class Pass(NamedTuple):
    """One pass of the target, on the clock that all processes share."""

    begun_s: float
    ended_s: float
    answers: int
    """Requests that say their next word."""
    drafted_tokens: int
    prompt_tokens: int
    tower_s: float
    """In the vision tower."""


class PassTimer:
    """What vLLM asks for; importing this module is what counts."""


class _Worker:
    """The passes of this process."""

    def __init__(self) -> None:
        self._prompts: dict[str, int] = {}
        """How many tokens each request's prompt has."""
        self._computed: dict[str, int] = {}
        self._begun: dict[str, Any] = {}
        self._file: Any = None

    def begin(self, worker: Any, step: Any) -> None:
        if self._file is None:
            config = worker.vllm_config.speculative_config
            method = BARE if config is None else config.method
            directory = Path(os.environ[DIRECTORY])
            directory.mkdir(parents=True, exist_ok=True)
            self._file = (directory / f"{method}.{os.getpid()}.jsonl").open("a", buffering=1)
        for new in step.scheduled_new_reqs:
            self._prompts[new.req_id] = len(new.prompt_token_ids or ())
            self._computed[new.req_id] = new.num_computed_tokens
        running = step.scheduled_cached_reqs
        self._computed.update(zip(running.req_ids, running.num_computed_tokens, strict=True))
        answers = drafted = prompts = 0
        for request_id, tokens in step.num_scheduled_tokens.items():
            missing = max(0, self._prompts[request_id] - self._computed[request_id])
            prompts += min(missing, tokens)
            answers += not missing
            drafted += max(0, tokens - max(missing, 1))  # one is the answer's own
        for request_id in step.finished_req_ids:
            self._prompts.pop(request_id, None)
            self._computed.pop(request_id, None)
        self._begun = {
            "begun_s": time.monotonic(),
            "answers": answers,
            "drafted_tokens": drafted,
            "prompt_tokens": prompts,
            "tower_s": 0.0,
        }

    def looked(self, seconds: float) -> None:
        if self._begun:
            self._begun["tower_s"] += seconds

    def end(self) -> None:
        if self._begun:
            done = Pass(ended_s=time.monotonic(), **self._begun)
            self._file.write(json.dumps(done) + "\n")
            self._begun = {}


def _time_passes() -> None:
    from vllm.v1.worker.cpu_worker import CPUWorker
    from vllm.v1.worker.gpu_model_runner import GPUModelRunner

    passes = _Worker()
    lay_out, sample = CPUWorker.execute_model, CPUWorker.sample_tokens
    look: Callable[..., Any] = GPUModelRunner._execute_mm_encoder

    def execute_model(self: Any, step: Any, *args: Any, **kwargs: Any) -> Any:
        passes.begin(self, step)
        return lay_out(self, step, *args, **kwargs)

    def sample_tokens(self: Any, *args: Any, **kwargs: Any) -> Any:
        done = sample(self, *args, **kwargs)
        passes.end()
        return done

    def execute_mm_encoder(self: Any, *args: Any, **kwargs: Any) -> Any:
        begun_s = time.monotonic()
        done = look(self, *args, **kwargs)
        passes.looked(time.monotonic() - begun_s)
        return done

    CPUWorker.execute_model, CPUWorker.sample_tokens = execute_model, sample_tokens
    GPUModelRunner._execute_mm_encoder = execute_mm_encoder


if DIRECTORY in os.environ:
    _time_passes()
