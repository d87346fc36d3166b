"""What the drafter's process is told when it is started, as one argument."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from headstart.engine.drafter.channel import DraftChannel
from headstart.errors import DraftingError


@dataclass(frozen=True)
class DrafterSpec:
    """Which model to run, how, and the channel it drafts on."""

    model: str
    vllm: Mapping[str, Any]
    max_tokens: int
    channel: DraftChannel
    cores: tuple[int, ...] = ()
    """The only ones it may use; none where it may use them all."""
    tower_only: bool = False
    """Whether it drafts nothing, and sends what its tower saw."""

    def argument(self) -> str:
        """The form `parse` reads."""
        told = {
            "model": self.model,
            "vllm": dict(self.vllm),
            "max_tokens": self.max_tokens,
            "channel": self.channel.directory,
            "cores": self.cores,
            "tower_only": self.tower_only,
        }
        try:
            return json.dumps(told)
        except TypeError as error:
            raise DraftingError(
                f"The drafter's vLLM arguments do not all go to another process ({error}). Give"
                " them as on vLLM's command line: text, numbers, true, false, and objects of them."
            ) from error

    @classmethod
    def parse(cls, argument: str) -> Self:
        """From the command line of the process."""
        told = json.loads(argument)
        channel, cores = DraftChannel(told["channel"]), tuple(told["cores"])
        model, vllm, most = told["model"], told["vllm"], told["max_tokens"]
        return cls(model, vllm, most, channel, cores, told["tower_only"])
