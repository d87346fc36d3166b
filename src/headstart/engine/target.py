"""The target: one vLLM engine, asked about one clip at a time or many at once.

All contact with vLLM's engine interface is in this file. It owns the engine's processes;
`shutdown` ends them.
"""

import itertools
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from headstart.drafting.timeline import Span, Stage, Timeline
from headstart.engine import vision_times
from headstart.engine.affinity import data_parallel_rank
from headstart.engine.answer import Answer
from headstart.engine.asking import AskDetails
from headstart.engine.model import Model, engine_defaults
from headstart.engine.options import SchedulerOptions
from headstart.engine.report import Report
from headstart.engine.vision_times import VisionTimes
from headstart.errors import EngineStartError, SchemaError
from headstart.media.clip import Clip


def drafting_arguments(max_draft_tokens: int, options: SchedulerOptions) -> dict[str, Any]:
    """The flags that anybody who runs vLLM could set, to the same effect."""
    return {
        "scheduler_cls": "headstart.engine.hooks.HeadstartScheduler",
        "speculative_config": {
            "method": "custom_class",
            "model": "headstart.engine.hooks.NoProposals",
            "num_speculative_tokens": max_draft_tokens,
        },
        "additional_config": options.additional_config(),
    }


@dataclass(frozen=True)
class Piece:
    """What the target has said since the last one."""

    text: str
    token_ids: tuple[int, ...]


class Target:
    """A running target. Safe to ask concurrently from one event loop."""

    def __init__(self, model: Model, arguments: Mapping[str, Any]) -> None:
        from vllm import AsyncEngineArgs
        from vllm.v1.engine.async_llm import AsyncLLM

        self.view = model.view
        try:
            arguments = {**engine_defaults(), **arguments}
            self._times_vision = bool(arguments["enable_mm_processor_stats"])
            self._engine = AsyncLLM.from_engine_args(AsyncEngineArgs(model=model.name, **arguments))
        except (RuntimeError, ValueError, TypeError) as error:
            raise EngineStartError(
                f"vLLM did not start {model.name}: {error} The cause is in vLLM's messages above;"
                " `headstart doctor` checks the installation."
            ) from error
        self._counter = itertools.count()
        self._vision = VisionTimes()

    def text(self, token_ids: Sequence[int]) -> str:
        """Tokens as they read, marks left out."""
        return str(self._engine.renderer.tokenizer.decode(token_ids, skip_special_tokens=True))

    async def ask(
        self,
        clip: Clip,
        question: str,
        *,
        max_tokens: int,
        streaming: bool,
        loading: Span | None = None,
        schema: str | None = None,
        details: AskDetails | None = None,
    ) -> AsyncGenerator[Piece | Answer]:
        """What is said, piece by piece or at once, then the `Answer`.

        Leaving the iterator cancels the work.
        """
        from vllm import SamplingParams
        from vllm.renderers.inputs.preprocess import parse_model_prompt
        from vllm.sampling_params import RequestOutputKind, StructuredOutputsParams

        # Waking up for every token costs a busy machine more than it tells a silent caller.
        kind = RequestOutputKind.DELTA if streaming else RequestOutputKind.FINAL_ONLY
        params = SamplingParams(
            temperature=0.0,
            max_tokens=max_tokens,
            output_kind=kind,
            structured_outputs=None if schema is None else StructuredOutputsParams(json=schema),
            extra_args=None if details is None else details.extra_args(),
        )
        if schema is not None:
            self._check_schema(params)
        preprocess_start_s = time.monotonic()
        prompt: dict[str, Any] = {
            "prompt": self.view.prompt(question),
            "multi_modal_data": {"video": self.view.pictures(clip)},
        }
        if details is not None and details.tenant:
            # Nobody's blocks are another tenant's prefix.
            prompt["cache_salt"] = details.tenant
        (engine_input,) = await self._engine.renderer.render_cmpl_async(
            [parse_model_prompt(self._engine.model_config, prompt)]
        )
        preprocessing = Span(Stage.PREPROCESS, preprocess_start_s, time.monotonic())

        text: list[str] = []
        token_ids: list[int] = []
        request_id = f"headstart-{next(self._counter)}"
        output: Any = None
        rank = data_parallel_rank(
            None if details is None else details.stream_key,
            self._engine.vllm_config.parallel_config,
        )
        async for output in self._engine.generate(
            engine_input, params, request_id, data_parallel_rank=rank
        ):
            (completion,) = output.outputs
            piece = Piece(completion.text, tuple(completion.token_ids))
            text.append(piece.text)
            token_ids += piece.token_ids
            yield piece
        end_s = time.monotonic()
        if schema is not None and output.outputs[0].finish_reason == "error":
            # vLLM keeps to the first backend that it needed, whatever it promised since.
            raise SchemaError(
                "vLLM could not compile the schema, and its log says why. An engine keeps the"
                " backend of its first schema: name another one when you start it, e.g."
                ' --vllm \'structured_outputs_config={"backend": "guidance"}\', or simplify the'
                " schema"
            )

        report = Report.parse(output.kv_transfer_params)
        spans = [span for span in (loading, preprocessing) if span]
        spans += self._engine_spans(output.metrics, await self._vision_seconds(request_id))
        yield Answer(
            text="".join(text),
            token_ids=tuple(token_ids),
            finish_reason=str(output.outputs[0].finish_reason),
            num_prompt_tokens=len(output.prompt_token_ids),
            num_cached_tokens=output.num_cached_tokens or 0,
            timeline=Timeline.of(spans[0].start_s, end_s, spans),
            accepted_histogram=(
                report.accepted if report else _accepted(output.outputs[0], len(token_ids))
            ),
            fates=report.fates if report else (),
        )

    def _check_schema(self, params: Any) -> None:
        """Raise where vLLM finds at once that it cannot follow the schema."""
        from vllm.exceptions import VLLMValidationError

        config = self._engine.vllm_config
        try:
            params.verify(
                config.model_config,
                config.speculative_config,
                config.structured_outputs_config,
                self._engine.renderer.tokenizer,
            )
        except VLLMValidationError as error:
            raise SchemaError(
                f"vLLM cannot follow the schema: {' '.join(str(error).split())} Mend the schema,"
                " or leave out the keyword that is named"
            ) from error

    async def _vision_seconds(self, request_id: str) -> float:
        """Time in the vision tower.

        The question waits for the engine's step to end, so it is not asked where nothing was
        measured.
        """
        if not self._times_vision:
            return 0.0
        workers = await self._engine.collective_rpc(vision_times.RPC)
        self._vision.note(workers, self._engine.renderer)
        return self._vision.take(f"{request_id}-")

    @staticmethod
    def _engine_spans(metrics: Any, vision_s: float) -> list[Span]:
        """vLLM's stamps are of the same monotonic clock.

        The tower runs inside the prefill, a chunk at a time; it is drawn before it.
        """
        vision_end_s = min(metrics.scheduled_ts + vision_s, metrics.first_token_ts)
        return [
            Span(Stage.VISION, metrics.scheduled_ts, vision_end_s),
            Span(Stage.PREFILL, vision_end_s, metrics.first_token_ts),
            Span(Stage.DECODE, metrics.first_token_ts, metrics.last_token_ts),
        ]

    def shutdown(self) -> None:
        """End the engine's processes."""
        self._engine.shutdown()
        # vLLM shuts down once more when this is collected, which must not be at exit.
        del self._engine


def _accepted(completion: Any, num_tokens: int) -> tuple[int, ...]:
    """Of passes that our scheduler did not see: as vLLM's own drafters report them, if any do.

    A pass without a draft says one token. Which of the passes those were is not reported.
    """
    counted = completion.spec_decode_metrics
    histogram = counted.histogram if counted is not None else []
    drafted = [accepted for accepted, times in enumerate(histogram) for _ in range(times)]
    undrafted = max(0, num_tokens - sum(drafted) - len(drafted))
    return (0,) * undrafted + tuple(drafted)
