"""vLLM's engine client, which also keeps a `RequestRecord` of each request.

Python callers and vLLM's HTTP routes both generate through it. It changes nothing that passes, and
sends the requests of a stream to the data-parallel rank that has its memory.
"""

import contextlib
import hashlib
import json
import time
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from functools import partial
from operator import attrgetter
from typing import Any

from headstart.engine.model import text_vocabulary
from headstart.engine.request_record import Report, RequestRecord
from headstart.speculation.drafter import StreamKey

TAKE_VISION_TIMES = "get_encoder_timing_stats"
"""What the workers are asked."""
MAX_VISION_TIMES = 1000


class VisionTimes:
    """How long the vision tower took for each request, as vLLM's workers measured it.

    By vLLM's name of the request, which contains the one it was given. The workers hand over the
    times of all requests at once and forget them; here they are kept, up to a bound.
    """

    def __init__(self) -> None:
        self._seconds: dict[str, float] = {}

    def __len__(self) -> int:
        return len(self._seconds)

    def note(self, workers: Iterable[Mapping[str, Mapping[str, float]]], renderer: Any) -> None:
        """Keep what each worker handed over."""
        for worker in workers:
            for name, stats in worker.items():
                # Several workers encode the same pictures together: the slowest counts.
                seconds = stats["encoder_forward_secs"]
                self._seconds[name] = max(self._seconds.get(name, 0.0), seconds)
        while len(self._seconds) > MAX_VISION_TIMES:
            del self._seconds[next(iter(self._seconds))]
        # The switch that times the tower makes vLLM's renderer keep times that are never read.
        if (unread := getattr(renderer, "_mm_timing_registry", None)) is not None:
            unread.stat()

    def take(self, mark: str) -> float:
        """The time of the requests with this in their name, which are then forgotten."""
        ours = [name for name in self._seconds if mark in name]
        return sum(self._seconds.pop(name) for name in ours)


def rank_of(stream: StreamKey, num_ranks: int) -> int:
    """The stream's data-parallel rank: the same in every process, spread evenly over the ranks.

    vLLM runs an engine for each rank, and each has a scheduler and so a memory of its own.
    """
    name = json.dumps([stream.tenant, stream.stream]).encode()
    return int.from_bytes(hashlib.sha256(name).digest()[:8]) % num_ranks


def data_parallel_rank(stream: StreamKey | None, parallel_config: Any) -> int | None:
    """What vLLM's ``generate`` is told; none leaves the choice to vLLM."""
    local = parallel_config.local_engines_only
    size = parallel_config.data_parallel_size_local if local else parallel_config.data_parallel_size
    return rank_of(stream, size) if stream is not None and size > 1 else None


class EngineClient:
    """Everything but `generate` is vLLM's own. Used from one event loop."""

    def __init__(self, engine: Any) -> None:
        self._engine = engine
        self._records: dict[str, RequestRecord] = {}
        self._vision = VisionTimes()
        self._vocabulary = text_vocabulary(engine.model_config.hf_config)

    def __getattr__(self, name: str) -> Any:
        engine = self.__dict__.get("_engine")
        if engine is None:
            raise AttributeError(f"the engine is closed and has no {name} any more: start another")
        return getattr(engine, name)

    @contextlib.contextmanager
    def recording(self, record: RequestRecord) -> Iterator[None]:
        """Fill in the record with what is generated for its request until the block is left."""
        self._records[record.request_id] = record
        try:
            yield
        finally:
            del self._records[record.request_id]

    async def generate(
        self, prompt: Any, sampling_params: Any, request_id: str, **kwargs: Any
    ) -> AsyncGenerator[Any]:
        """As vLLM's; ``request_id`` is KIND-ID or KIND-ID-0, where ID is the record's.

        The requests of a stream go to the same data-parallel rank, which has its memory.
        """
        record = self._records.get(request_id.partition("-")[2].partition("-")[0])
        if record is not None:
            record.generate_s = time.monotonic()
            record.num_prompt_tokens = len(prompt.get("prompt_token_ids") or ())
            record.num_tokens += record.num_prompt_tokens
            parallel_config = self._engine.vllm_config.parallel_config
            kwargs["data_parallel_rank"] = data_parallel_rank(record.stream, parallel_config)
        outputs = self._engine.generate(prompt, sampling_params, request_id, **kwargs)
        try:
            async for output in outputs:
                report = Report.parse(output.kv_transfer_params)
                if report is not None:
                    output.kv_transfer_params = None  # it is for us alone
                if record is not None:
                    _record(record, output, report)
                yield output
        finally:
            # If the caller leaves early, the engine must drop the request now.
            await outputs.aclose()

    def text(self, token_ids: Sequence[int]) -> str:
        """An answer as it reads, special tokens left out, up to the first that is not text."""
        known = self._vocabulary.text_prefix(token_ids)
        decode = partial(self._engine.renderer.tokenizer.decode, skip_special_tokens=True)
        # Alone, Llama's tokenizers drop the space that an answer begins with after its prompt.
        first = known[:1]
        return str(decode([*first, *known]))[len(decode(first)) :]

    def shutdown(self) -> None:
        self._engine.shutdown()
        # vLLM shuts down once more when its client is collected, which must not be at exit.
        del self._engine

    async def beat(self) -> None:
        """Return when the engine's loop and its workers have answered."""
        await self._engine.collective_rpc("check_health")

    async def time_vision(self, record: RequestRecord) -> None:
        """Note how long the vision tower took for a request, where vLLM measures it.

        vLLM answers between two steps, so this waits for the running one.
        """
        await self.gather_times()
        record.vision_s += self._vision.take(f"-{record.request_id}-")

    async def gather_times(self) -> None:
        """Fetch all times measured since the last call; vLLM keeps them until then."""
        if self._engine.vllm_config.observability_config.enable_mm_processor_stats:
            workers = await self._engine.collective_rpc(TAKE_VISION_TIMES)
            self._vision.note(workers, self._engine.renderer)


def _record(record: RequestRecord, output: Any, report: Report | None) -> None:
    if num_said := sum(len(answer.token_ids) for answer in output.outputs):
        record.num_tokens += num_said
        record.on_word()
    record.end_s = time.monotonic()
    record.stats = output.metrics
    record.report = report or record.report
    record.num_cached_tokens = output.num_cached_tokens or 0
    if output.outputs and output.outputs[0].index == 0:
        record.token_ids += output.outputs[0].token_ids
        record.finish_reason = output.outputs[0].finish_reason


_PLACES = {
    "model_runner_v2": "use_v2_model_runner",
    "async_scheduling": "scheduler_config.async_scheduling",
    "scheduler": "scheduler_config.scheduler_cls",
    "speculative_method": "speculative_config.method",
    "num_speculative_tokens": "num_speculative_tokens",
    "compilation": "compilation_config.mode",
    "graphs": "compilation_config.cudagraph_mode",
    "largest_graph": "compilation_config.max_cudagraph_capture_size",
    "attention": "attention_config.backend",
    "device": "device_config.device_type",
    "dtype": "model_config.dtype",
    "quantization": "model_config.quantization",
    "enforce_eager": "model_config.enforce_eager",
    "max_model_len": "model_config.max_model_len",
    "kv_cache_dtype": "cache_config.cache_dtype",
    "block_size": "cache_config.block_size",
    "num_blocks": "cache_config.num_gpu_blocks",
    "prefix_caching": "cache_config.enable_prefix_caching",
    "gpu_memory_utilization": "cache_config.gpu_memory_utilization",
    "max_num_seqs": "scheduler_config.max_num_seqs",
    "max_num_batched_tokens": "scheduler_config.max_num_batched_tokens",
    "tensor_parallel_size": "parallel_config.tensor_parallel_size",
}


def chosen_settings(vllm_config: Any) -> dict[str, Any]:
    """The settings of an engine that is up, ready for JSON.

    None stands for what vLLM left open, and for what a config lacks. They are those of the calling
    process: a worker that turns graphs off for its attention kernel does not say so here.
    """
    return {name: _plain(_found(vllm_config, place)) for name, place in _PLACES.items()}


def _found(vllm_config: Any, place: str) -> Any:
    try:
        return attrgetter(place)(vllm_config)
    except AttributeError:  # no speculative config, for example
        return None


def _plain(value: Any) -> str | int | float | bool | None:
    if isinstance(value, Enum):
        return value.name
    if isinstance(value, type):
        return f"{value.__module__}.{value.__qualname__}"
    return value if value is None or isinstance(value, str | int | float) else str(value)
