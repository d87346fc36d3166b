"""The target: one vLLM engine, asked about one clip at a time or many at once.

All contact with vLLM's engine interface is in this file. It owns the engine's processes;
`shutdown` ends them.
"""

import itertools
import time
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

from headstart.drafting.timeline import Span, Stage, Timeline
from headstart.engine.answer import Answer
from headstart.engine.asking import AskDetails
from headstart.engine.installation import require_engine
from headstart.errors import EngineStartError
from headstart.media.clip import Clip
from headstart.models.registration import register_configs
from headstart.models.view import View, view_of

# vLLM's own default on a CPU is nearly all of the machine's memory.
_CPU_KV_CACHE_BYTES = 4 * 2**30


def _drafting_arguments(max_draft_tokens: int) -> dict[str, Any]:
    """The flags that anybody who runs vLLM could set, to the same effect."""
    return {
        "scheduler_cls": "headstart.engine.hooks.HeadstartScheduler",
        "speculative_config": {
            "method": "custom_class",
            "model": "headstart.engine.hooks.NoProposals",
            "num_speculative_tokens": max_draft_tokens,
        },
        "per_request_spec_decode_metrics": "summary",
    }


class Target:
    """A running target. Safe to ask concurrently from one event loop."""

    def __init__(self, model: str, vllm: Mapping[str, Any], max_draft_tokens: int) -> None:
        require_engine()
        from transformers import AutoConfig
        from vllm import AsyncEngineArgs
        from vllm.platforms import current_platform
        from vllm.v1.engine.async_llm import AsyncLLM

        register_configs()
        try:
            config = AutoConfig.from_pretrained(model)
        except (OSError, ValueError) as error:
            raise EngineStartError(
                f"{model} is neither a directory with a config.json nor a model the hub knows"
                f" ({str(error).splitlines()[0]}). Check the path."
            ) from error
        self.view: View = view_of(config)
        if Path(model).is_dir() and getattr(config, "quantization_config", None) is None:
            self.view.check_checkpoint(Path(model))

        arguments: dict[str, Any] = {"enable_mm_processor_stats": True, **vllm}
        if max_draft_tokens:
            arguments |= _drafting_arguments(max_draft_tokens)
        if current_platform.is_cpu():
            arguments.setdefault("kv_cache_memory_bytes", _CPU_KV_CACHE_BYTES)
        try:
            self._engine = AsyncLLM.from_engine_args(AsyncEngineArgs(model=model, **arguments))
        except (RuntimeError, ValueError, TypeError) as error:
            raise EngineStartError(
                f"vLLM did not start {model}: {error} The cause is in vLLM's messages above;"
                " `headstart doctor` checks the installation."
            ) from error
        self._counter = itertools.count()
        self._vision_s: dict[str, float] = {}

    async def ask(
        self,
        clip: Clip,
        question: str,
        *,
        max_tokens: int,
        streaming: bool,
        loading: Span | None = None,
        details: AskDetails | None = None,
    ) -> AsyncIterator[str | Answer]:
        """The answer's text, piece by piece or whole, then the `Answer`.

        Leaving the iterator cancels the work.
        """
        from vllm import SamplingParams
        from vllm.renderers.inputs.preprocess import parse_model_prompt
        from vllm.sampling_params import RequestOutputKind

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

        # Waking up for every token costs a busy machine more than it tells a silent caller.
        kind = RequestOutputKind.DELTA if streaming else RequestOutputKind.FINAL_ONLY
        params = SamplingParams(
            temperature=0.0,
            max_tokens=max_tokens,
            output_kind=kind,
            extra_args=None if details is None else details.extra_args(),
        )
        text: list[str] = []
        token_ids: list[int] = []
        request_id = f"headstart-{next(self._counter)}"
        output: Any = None
        async for output in self._engine.generate(engine_input, params, request_id):
            (completion,) = output.outputs
            token_ids += completion.token_ids
            if completion.text:
                text.append(completion.text)
                yield completion.text
        end_s = time.monotonic()

        drafting = output.outputs[0].spec_decode_metrics
        spans = [span for span in (loading, preprocessing) if span]
        spans += self._engine_spans(output.metrics, await self._vision_seconds(request_id))
        yield Answer(
            text="".join(text),
            token_ids=tuple(token_ids),
            finish_reason=str(output.outputs[0].finish_reason),
            num_prompt_tokens=len(output.prompt_token_ids),
            num_cached_tokens=output.num_cached_tokens or 0,
            num_drafted_tokens=drafting.num_draft_tokens if drafting else 0,
            num_accepted_tokens=(
                sum(count * times for count, times in enumerate(drafting.histogram))
                if drafting
                else 0
            ),
            timeline=Timeline.of(spans[0].start_s, end_s, spans),
        )

    async def _vision_seconds(self, request_id: str) -> float:
        """Time in the vision tower, as vLLM's workers measured it.

        The workers hand over all requests' figures at once and forget them, so those of
        other running requests are kept until they are asked for.
        """
        for worker in await self._engine.collective_rpc("get_encoder_timing_stats"):
            for name, stats in worker.items():
                # Several workers encode the same frames together: the slowest counts.
                self._vision_s[name] = max(
                    self._vision_s.get(name, 0.0), stats["encoder_forward_secs"]
                )
        ours = [name for name in self._vision_s if name.startswith(f"{request_id}-")]
        return sum(self._vision_s.pop(name) for name in ours)

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
