"""What the process of an event model is told when it is started, as one argument."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from headstart.engine.drafts.channel import DraftChannel
from headstart.errors import DraftingError


@dataclass(frozen=True)
class EventModelSpec:
    """Which model to run, how, in which engine, and the channel it drafts on."""

    model: str
    vllm: Mapping[str, Any]
    engine: str
    """The `EventEngine` that runs it, as ``package.module:Class``."""
    channel: DraftChannel
    cores: tuple[int, ...] = ()
    """The only ones it may use; none where it may use them all."""
    max_tokens: int = 0
    """Of one answer, this many are drafted at most."""

    def argument(self) -> str:
        """The form `parse` reads."""
        told = {**vars(self), "vllm": dict(self.vllm), "channel": self.channel.directory}
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
        channel, cores = DraftChannel(told.pop("channel")), tuple(told.pop("cores"))
        return cls(channel=channel, cores=cores, **told)
