"""What the engine says of each answer besides its text: drafts, cached tokens, times.

vLLM's routes hand out text. The engine's client, which they call, sees more; this stands between
the two and changes nothing that passes.
"""

import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any

from headstart.drafters.port import StreamKey
from headstart.drafting.timeline import Span, Stage, Timeline
from headstart.engine import vision_times
from headstart.engine.affinity import data_parallel_rank
from headstart.engine.answer import Answer
from headstart.engine.report import Report
from headstart.engine.vision_times import VisionTimes


@dataclass
class Watch:
    """One request, from its arrival on; filled in as it goes. All times are monotonic."""

    request_id: str
    received_s: float
    loaded_s: float = 0.0
    generate_s: float = 0.0
    end_s: float = 0.0
    num_cached_tokens: int = 0
    num_tokens: int = 0
    """Of the prompt and of all answers: what the request cost."""
    token_ids: list[int] = field(default_factory=list)
    """Of the first answer, where several are asked for."""
    drafter: Timeline | None = None
    """Of the drafter's engine, as far as it was heard."""
    stream: StreamKey | None = None
    stats: Any = None
    report: Report | None = None
    on_word: Callable[[], None] = lambda: None
    """Called with each output that says something."""

    @property
    def num_accepted(self) -> int:
        """Tokens of the answer that were drafted before the target said them."""
        return sum(self.report.accepted) if self.report else 0

    def by_source(self) -> dict[str, tuple[int, int]]:
        """For each source, how many tokens it drafted and how many of them were accepted."""
        found: dict[str, tuple[int, int]] = {}
        for fate in self.report.fates if self.report else ():
            drafted, accepted = found.get(fate.source, (0, 0))
            found[fate.source] = (drafted + len(fate.tokens), accepted + fate.num_accepted)
        return found

    @property
    def fused(self) -> bool:
        """Whether the pass that ended the prompt verified a draft too."""
        return bool(self.report and self.report.fates and self.report.fates[0].start == 0)

    def timeline(self, vision_s: float = 0.0) -> Timeline | None:
        """Five stages; none if the engine did not finish the answer."""
        stats = self.stats
        if stats is None or not stats.first_token_ts:
            return None
        edges = (
            (Stage.LOAD, self.received_s, self.loaded_s),
            (Stage.PREPROCESS, self.loaded_s, self.generate_s),
            (Stage.VISION, stats.scheduled_ts, stats.scheduled_ts + vision_s),
            (Stage.PREFILL, stats.scheduled_ts + vision_s, stats.first_token_ts),
            (Stage.DECODE, stats.first_token_ts, stats.last_token_ts),
        )
        # Measured here and there: an end may seem to lie before its start.
        spans = [Span(stage, start_s, max(start_s, end_s)) for stage, start_s, end_s in edges]
        return Timeline.of(self.received_s, self.end_s, spans)

    def answer(self) -> Answer | None:
        """What the engine said of it; none if it did not finish."""
        timeline = self.timeline()
        if self.report is None or timeline is None:
            return None
        return Answer(
            text="",
            token_ids=tuple(self.token_ids),
            finish_reason="",
            num_prompt_tokens=0,
            num_cached_tokens=self.num_cached_tokens,
            timeline=timeline,
            accepted_histogram=self.report.accepted,
            fates=self.report.fates,
        )


class WatchedEngine:
    """vLLM's engine client, watched. Everything but `generate` is the client's own."""

    def __init__(self, engine: Any) -> None:
        self._engine = engine
        self._watches: dict[str, Watch] = {}
        self._vision = VisionTimes()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def begin(self, watch: Watch) -> None:
        """From now on, note what is generated for this request."""
        self._watches[watch.request_id] = watch

    def end(self, watch: Watch) -> None:
        """The request is over, however it ended."""
        self._watches.pop(watch.request_id, None)

    async def generate(
        self, prompt: Any, sampling_params: Any, request_id: str, **kwargs: Any
    ) -> AsyncIterator[Any]:
        """As the engine's, but that a stream is always answered by the same rank."""
        # vLLM calls it chatcmpl-ID or cmpl-ID-0, ID being the one the door gave.
        watch = self._watches.get(request_id.partition("-")[2].partition("-")[0])
        if watch is not None:
            watch.generate_s = time.monotonic()
            watch.num_tokens += len(prompt.get("prompt_token_ids") or ())
            parallel_config = self._engine.vllm_config.parallel_config
            kwargs["data_parallel_rank"] = data_parallel_rank(watch.stream, parallel_config)
        outputs = self._engine.generate(prompt, sampling_params, request_id, **kwargs)
        try:
            async for output in outputs:
                report = Report.parse(output.kv_transfer_params)
                if report is not None:
                    output.kv_transfer_params = None  # ours alone
                if watch is not None:
                    if num_said := sum(len(answer.token_ids) for answer in output.outputs):
                        watch.num_tokens += num_said
                        watch.on_word()
                    watch.end_s = time.monotonic()
                    watch.stats = output.metrics
                    watch.report = report or watch.report
                    watch.num_cached_tokens = output.num_cached_tokens or 0
                    if output.outputs and output.outputs[0].index == 0:
                        watch.token_ids += output.outputs[0].token_ids
                yield output
        finally:
            # Left early, it must end now: then the engine drops the request too.
            await outputs.aclose()

    async def beat(self) -> None:
        """A sign of life, through the loop in which the engine computes and from its workers."""
        await self._engine.collective_rpc("check_health")

    @property
    def times_vision(self) -> bool:
        """Whether vLLM measures its vision tower."""
        return bool(self._engine.vllm_config.observability_config.enable_mm_processor_stats)

    async def vision_s(self, watch: Watch) -> float:
        """Time in the vision tower, as vLLM's workers measured it; 0 where they do not."""
        await self.gather_times()
        return self._vision.take(f"-{watch.request_id}-")

    async def gather_times(self) -> None:
        """Fetch all times measured since; vLLM keeps them until somebody does."""
        if self.times_vision:
            workers = await self._engine.collective_rpc(vision_times.RPC)
            self._vision.note(workers, self._engine.renderer)
