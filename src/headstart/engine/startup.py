"""Starting a target with drafts: what vLLM is told, and what runs beside it."""

import contextlib
import os
from collections.abc import Mapping
from typing import Any

from headstart.drafters.registry import registration
from headstart.engine.draft_model import DraftModel
from headstart.engine.drafts.channel import ChannelLease
from headstart.engine.drafts.subscriber import DraftSubscriber
from headstart.engine.engine_resources import EngineResources, check_cache_room, few_kernels
from headstart.engine.front_end import FrontEnd
from headstart.engine.model import Model
from headstart.engine.options import NO_PROPOSALS, SchedulerOptions, Sources, check_drafting
from headstart.engine.target import Target, start_engine
from headstart.errors import DraftingError
from headstart.models.view import View

_BATCH_SIZES = ("max_num_seqs", "max_num_batched_tokens")
_LORA_BATCH_TOKENS = 2048  # vLLM's smallest default of the tokens in a batch

SCHEDULER = "headstart.engine.scheduler.HeadstartScheduler"


def drafting_arguments(
    max_draft_tokens: int, options: SchedulerOptions, vllm: Mapping[str, Any]
) -> dict[str, Any]:
    """vLLM's arguments, by its names; on its command line they are flags.

    The caller's own ``additional_config`` in ``vllm`` is kept beside ours.
    """
    wanted: dict[str, Any] = {}
    for name in options.sources.drafters:
        wanted |= registration(name).vllm_arguments(vllm)
    return {
        "scheduler_cls": SCHEDULER,
        "speculative_config": {
            "method": "custom_class",
            "model": NO_PROPOSALS,
            "num_speculative_tokens": max_draft_tokens,
        },
        "additional_config": {**options.additional_config(), **vllm.get("additional_config", {})},
        **wanted,
    }


def model_arguments(view: View, max_draft_tokens: int, vllm: Mapping[str, Any]) -> dict[str, Any]:
    """What drafts need of vLLM for this model; ``vllm`` is the caller's.

    The class that cuts clips into parts, with the caller's own overrides of the config beside it,
    and with adapters a batch that has room for drafts.
    """
    found = dict(view.engine_arguments)
    given = vllm.get("hf_overrides") or {}
    if not isinstance(given, Mapping):
        raise DraftingError(
            "hf_overrides is a function, and headstart adds to it: give a mapping, or leave vLLM"
            " as it is with max_draft_tokens=0"
        )
    if "hf_overrides" in found:
        found["hf_overrides"] = {**found["hf_overrides"], **given}
    if max_draft_tokens and vllm.get("enable_lora") and not set(_BATCH_SIZES) & set(vllm):
        # vLLM wants room for a whole draft of every request in a batch.
        found["max_num_seqs"] = _LORA_BATCH_TOKENS // (max_draft_tokens + 1)
    return found


class Engines:
    """A target's engine, and a draft model where one is wanted. Owns both until `close`.

    Without drafts vLLM is left as it is: it is what drafting is compared with.
    """

    def __init__(
        self,
        model: Model,
        draft_model: DraftModel | None,
        sources: Sources,
        max_draft_tokens: int,
        vllm: Mapping[str, Any],
    ) -> None:
        """Start both; return when both are up. Where one cannot start, neither is left running."""
        with contextlib.ExitStack() as undo, contextlib.ExitStack() as environment:
            check_cache_room(vllm, os.environ)
            arguments, drafts, beside = dict(vllm), None, None
            view = model.view if max_draft_tokens else model.view.whole
            if max_draft_tokens:
                arguments |= model_arguments(view, max_draft_tokens, vllm)
                _check(max_draft_tokens, draft_model, vllm)
                sources.check_files()
                if draft_model is not None:
                    draft_model.check(model, sources)
                lease = ChannelLease.take()
                undo.callback(lease.close)
                drafts = DraftSubscriber(lease.channel)
                undo.callback(drafts.close)
                resources = EngineResources()
                if draft_model is not None:
                    placed, resources = draft_model.placed(vllm)
                    beside = placed.start(drafts, abstain=sources.abstain)
                    undo.callback(beside.close)
                channel = None if _num_ranks(vllm) > 1 else lease.channel.directory
                options = SchedulerOptions(sources, channel)
                arguments |= drafting_arguments(max_draft_tokens, options, vllm)
                arguments |= resources.arguments
                environment.enter_context(few_kernels(os.environ).taken())
                environment.enter_context(resources.taken())
            engine = start_engine(model, arguments)
            undo.callback(engine.shutdown)
            if beside is not None:
                beside.wait_ready()
            self.target = Target(view, FrontEnd(engine, drafts, beside))
            self._ending = undo.pop_all()

    def close(self) -> None:
        self._ending.close()


def _check(max_draft_tokens: int, draft_model: DraftModel | None, vllm: Mapping[str, Any]) -> None:
    for taken in ("scheduler_cls", "speculative_config"):
        if taken in vllm:
            raise DraftingError(
                f"{taken} is where headstart puts its drafts: leave it out, or leave drafting"
                " to vLLM with max_draft_tokens=0"
            )
    check_drafting(max_draft_tokens, int(vllm.get("pipeline_parallel_size", 1)))
    if draft_model is not None and _num_ranks(vllm) > 1:
        raise DraftingError(
            "A draft model drafts for one engine, not for data_parallel_size of them: start one"
            " Headstart for each, or leave the draft model out"
        )


def _num_ranks(vllm: Mapping[str, Any]) -> int:
    return int(vllm.get("data_parallel_size", 1))
