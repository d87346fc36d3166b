"""The manner in which the target is asked: what stands before a question, and how it answers."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from headstart.errors import MannerError

_TAKEN = ("max_tokens", "structured_outputs", "output_kind", "extra_args", "n", "detokenize")


@dataclass(frozen=True)
class Manner:
    """Of all questions of a session. What is computed of a clip in one manner serves no other."""

    system: str = ""
    """A system prompt."""
    sampling: Mapping[str, Any] = field(default_factory=dict)
    """Any of vLLM's ``SamplingParams``, by its names; without ``temperature``, answers are greedy.
    """
    lora: str | Path | None = None
    """The directory of an adapter; the engine needs vLLM's ``enable_lora``."""

    def __post_init__(self) -> None:
        taken = [name for name in _TAKEN if name in self.sampling]
        if taken:
            raise MannerError(
                f"sampling cannot set {', '.join(taken)}: headstart does. The length and the"
                " schema of an answer are given with its question"
            )
        if self.lora is not None and not Path(self.lora).is_dir():
            raise MannerError(f"{self.lora} is no directory: give that of a LoRA adapter")

    def params(self, **more: Any) -> Any:
        """vLLM's sampling parameters: these, and what each request adds."""
        from vllm import SamplingParams

        try:
            return SamplingParams(**{"temperature": 0.0, **self.sampling, **more})
        except (TypeError, ValueError) as error:
            raise MannerError(
                f"vLLM does not take the sampling parameters: {error}. They are those of its"
                " SamplingParams, e.g. temperature=0.7"
            ) from error
