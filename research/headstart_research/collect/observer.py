"""Asks a model about clips and brings back, beside its answers, what its vision tower saw.

The model answers as bare vLLM does: nothing is drafted.
"""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np

from headstart.doctor.findings import require_engine
from headstart.engine.front_end import FrontEnd
from headstart.engine.loop_thread import LoopThread
from headstart.engine.model import Model
from headstart.engine.question import RequestOptions
from headstart.engine.startup import model_arguments
from headstart.engine.target import Target, start_engine
from headstart.errors import CollectError
from headstart.media.clip import Clip
from headstart.speculation.drafter import Features

# Times of the tower are not asked for, and vLLM would keep them. A second question about a clip
# finds its prefix computed, so preprocessed frames need not be kept as well.
_ARGUMENTS = {"enable_mm_processor_stats": False, "mm_processor_cache_gb": 0}


@dataclass(frozen=True)
class Said:
    """What the model said to one question."""

    question: str
    prompt_ids: tuple[int, ...]
    """Placeholders included, each as often as its picture has tokens."""
    token_ids: tuple[int, ...]
    finish_reason: str


@dataclass(frozen=True, eq=False)
class Observation:
    """A clip, as a model saw it and spoke of it."""

    said: tuple[Said, ...]
    items: tuple[Features, ...]
    """Tower and projector, ``[tokens, size]`` for each of the items that vLLM cuts the clip into:
    frames, pairs of frames, or the whole clip, as the model's view says."""


class Observer:
    """One model in vLLM's processes until `close`. May be used from several threads at once."""

    def __init__(
        self,
        name: str | Path,
        *,
        num_frames: int | None = None,
        tower_only: bool = False,
        vllm: Mapping[str, Any] | None = None,
    ) -> None:
        """Load it; with ``tower_only`` without its language model, so that it only looks."""
        require_engine()
        from headstart_research.bridge import feature_tap  # needs the engine

        given = vllm or {}
        if int(given.get("data_parallel_size", 1)) > 1:
            raise CollectError(
                "data_parallel_size is over 1, and an observer asks one engine: start a process"
                " for each with --set shard="
            )
        model = Model.checked(name, num_frames)
        self.view = model.view
        self._tap = feature_tap
        arguments = {**_ARGUMENTS, **given, **model_arguments(model.view, 0, given)}
        arguments |= feature_tap.tap_arguments(given, tower_only=tower_only)
        self._engine = start_engine(model, arguments)
        self._target = Target(model.view, FrontEnd(self._engine, None))
        self._loop = LoopThread()

    def observe(self, clip: Clip, questions: Sequence[str], max_tokens: int) -> Observation:
        """Ask all questions about a clip, one after the other."""
        return self._loop.submit(self._observe(clip, questions, max_tokens)).result()

    def look(self, clip: Clip) -> tuple[Features, ...]:
        """What the tower makes of the newest part of a clip, no longer than the model reads."""
        glanced = self.view.glance(clip)
        return self._loop.submit(self._observe(glanced, ("",), 1)).result().items

    async def _observe(self, clip: Clip, questions: Sequence[str], max_tokens: int) -> Observation:
        # An owner of its own: no block and no frame of another clip is taken for this one's, so
        # the tower computes all of them, and always in the same company.
        owner = uuid.uuid4().hex
        said: list[Said] = []
        names: list[str] = []
        for words in questions:
            engine_input = await self._target.render(words, clip, owner)
            names = names or self._tap.item_names(engine_input)
            said.append(await self._say(words, engine_input, max_tokens))
        return Observation(tuple(said), await self._take(names))

    async def _say(self, words: str, engine_input: Any, max_tokens: int) -> Said:
        from vllm.sampling_params import RequestOutputKind

        params = RequestOptions().params(
            max_tokens=max_tokens, detokenize=False, output_kind=RequestOutputKind.FINAL_ONLY
        )
        prompt_ids = tuple(engine_input["prompt_token_ids"])
        last = None
        async for output in self._engine.generate(
            engine_input, params, f"observe-{uuid.uuid4().hex}"
        ):
            last = output.outputs[0]
        if last is None:
            raise CollectError(f"vLLM gave no answer to {words!r}: its messages above say why")
        return Said(words, prompt_ids, tuple(last.token_ids), str(last.finish_reason))

    async def _take(self, names: Sequence[str]) -> tuple[Features, ...]:
        workers = await self._engine.collective_rpc(self._tap.RPC, args=(list(names),))
        items: list[Features] = []
        for item in self._tap.fetched(workers):
            if item is None:
                raise CollectError(
                    "vLLM computed the clip and the tower's features are gone: ask about fewer"
                    " clips at once"
                )
            if not np.isfinite(item).all():
                raise CollectError(
                    "the tower's features do not fit into 16 bits: this model cannot be collected"
                )
            items.append(item)
        return tuple(items)

    def close(self) -> None:
        self._loop.submit(self._end()).result()
        self._loop.close()

    async def _end(self) -> None:
        self._engine.shutdown()  # vLLM's client is closed in the loop it was used from

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()
