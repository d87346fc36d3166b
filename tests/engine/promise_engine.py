"""One vLLM in this very process, with our flags or without, and what it says when asked."""

import copy
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, Self

from headstart.engine.options import SchedulerOptions, Sources
from headstart.engine.startup import drafting_arguments

BLOCK_SIZE = 32
MAX_DRAFT_TOKENS = 16
MAX_MODEL_LEN = 256
MAX_NUM_SEQS = 8
MAX_LOGPROB_ERROR = 1e-3
_COUNTERS = {
    "drafted": "vllm:spec_decode_num_draft_tokens",
    "accepted": "vllm:spec_decode_num_accepted_tokens",
    "preemptions": "vllm:num_preemptions",
}


@dataclass(frozen=True)
class Ask:
    """One request: a prompt and the settings of `SamplingParams`."""

    prompt: tuple[int, ...]
    settings: Mapping[str, Any]
    adapter: bool = False
    priority: int = 0

    def params(self, hint: Mapping[str, Any] | None) -> Any:
        """As vLLM takes them; ``hint`` is what headstart is told."""
        from vllm import SamplingParams

        settings = copy.deepcopy(dict(self.settings))  # vLLM writes into a grammar it was given
        extra_args = None if hint is None else {"headstart": dict(hint)}
        return SamplingParams(**{"temperature": 0.0, **settings}, extra_args=extra_args)


@dataclass(frozen=True)
class Said:
    """All that a caller gets of one request; several answers where ``n`` asks for them."""

    token_ids: tuple[tuple[int, ...], ...]
    texts: tuple[str, ...]
    ends: tuple[tuple[str | None, int | str | None], ...]
    logprobs: tuple[Mapping[int, float], ...]
    """Of every place asked about, in the prompt and in the answers."""

    @classmethod
    def of(cls, output: Any) -> Self:
        """From vLLM's own output."""
        answers = output.outputs
        places = [place for place in output.prompt_logprobs or () if place]
        places += [place for answer in answers for place in answer.logprobs or ()]
        return cls(
            tuple(tuple(answer.token_ids) for answer in answers),
            tuple(answer.text for answer in answers),
            tuple((answer.finish_reason, answer.stop_reason) for answer in answers),
            tuple({token: entry.logprob for token, entry in place.items()} for place in places),
        )

    def says(self, other: "Said") -> bool:
        """The same tokens, text and end."""
        words = (self.token_ids, self.texts, self.ends)
        return words == (other.token_ids, other.texts, other.ends)

    def equals(self, other: "Said") -> bool:
        """The same words and logprobs, which may differ by rounding."""
        return (
            self.says(other)
            and len(self.logprobs) == len(other.logprobs)
            and all(map(_close, self.logprobs, other.logprobs))
        )


def _close(ours: Mapping[int, float], theirs: Mapping[int, float]) -> bool:
    return ours.keys() == theirs.keys() and all(
        math.isclose(value, theirs[token], rel_tol=0.0, abs_tol=MAX_LOGPROB_ERROR)
        for token, value in ours.items()
    )


@dataclass(frozen=True)
class Counts:
    """vLLM's own counters."""

    drafted: int = 0
    accepted: int = 0
    preemptions: int = 0

    @classmethod
    def read(cls) -> Self:
        """Of the engines of this process's front end, since they started."""
        from vllm.v1.metrics.reader import Counter, get_metrics_snapshot

        counters = [metric for metric in get_metrics_snapshot() if isinstance(metric, Counter)]
        return cls(
            **{
                field: sum(counter.value for counter in counters if counter.name == name)
                for field, name in _COUNTERS.items()
            }
        )

    def since(self, earlier: "Counts") -> "Counts":
        """What was counted after ``earlier``."""
        return Counts(*(getattr(self, name) - getattr(earlier, name) for name in _COUNTERS))


def engine_arguments(settings: Mapping[str, Any], *, drafting: bool) -> dict[str, Any]:
    """The same for both engines that are compared, but for our flags.

    Drafts are verified whether they pay or not. They are the caller's or memory's: n-grams would
    hide that one of these is missing.
    """
    options = SchedulerOptions(Sources(("memory",), abstain=False))
    flags = drafting_arguments(MAX_DRAFT_TOKENS, options, {}) if drafting else {}
    return {
        "dtype": "float32",
        "enforce_eager": True,
        "block_size": BLOCK_SIZE,
        "max_num_seqs": MAX_NUM_SEQS,
        "max_model_len": MAX_MODEL_LEN,
        "kv_cache_memory_bytes": 2**26,
        "disable_log_stats": False,
        **settings,
        **flags,
    }


class Speaker(Protocol):
    """Something that answers, until it is closed."""

    def say(self, asks: Sequence[Ask], hints: Sequence[Mapping[str, Any] | None]) -> list[Said]:
        """Ask all of it at once; ``hints`` are what headstart is told."""

    def close(self) -> None:
        """End it, so that the next one can start."""


class Engine:
    """A running engine. Needs VLLM_ENABLE_V1_MULTIPROCESSING=0 to be in this process."""

    def __init__(self, model: Path, adapter: Path, arguments: Mapping[str, Any]) -> None:
        from vllm import LLM
        from vllm.lora.request import LoRARequest

        self._llm = LLM(str(model), **arguments)
        self._adapter = LoRARequest("adapter", 1, str(adapter))

    def say(self, asks: Sequence[Ask], hints: Sequence[Mapping[str, Any] | None]) -> list[Said]:
        """Ask all of it at once."""
        adapters = [self._adapter if ask.adapter else None for ask in asks]
        outputs = self._llm.generate(
            [{"prompt_token_ids": list(ask.prompt)} for ask in asks],
            [ask.params(hint) for ask, hint in zip(asks, hints, strict=True)],
            use_tqdm=False,
            lora_request=adapters if any(adapters) else None,
            priority=[ask.priority for ask in asks],
        )
        return [Said.of(output) for output in outputs]

    def close(self) -> None:
        """End it, so that the next one can start in the same process."""
        from vllm.envs import disable_envs_cache

        self._llm.llm_engine.engine_core.shutdown()
        del self._llm
        disable_envs_cache()  # an engine in one's own process freezes vLLM's environment there
