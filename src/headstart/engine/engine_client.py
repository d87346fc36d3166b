"""vLLM's engine client, which also keeps a `RequestRecord` of each request.

Python callers and vLLM's HTTP routes both generate through it. It changes nothing that passes.
"""

import contextlib
import time
from collections.abc import AsyncGenerator, Iterator, Sequence
from functools import partial
from typing import Any

from headstart.engine import vision_times
from headstart.engine.affinity import data_parallel_rank
from headstart.engine.report import Report
from headstart.engine.request_record import RequestRecord
from headstart.engine.text_ids import text_vocabulary
from headstart.engine.vision_times import VisionTimes


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
        """End the engine's processes."""
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
            workers = await self._engine.collective_rpc(vision_times.RPC)
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
