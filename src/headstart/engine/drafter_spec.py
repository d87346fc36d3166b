"""What the drafter's process is told when it is started, as one argument."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from headstart.engine.line import Line


@dataclass(frozen=True)
class DrafterSpec:
    """Which model, how, and where it is heard."""

    model: str
    vllm: Mapping[str, Any]
    max_tokens: int
    line: Line
    cores: tuple[int, ...] = ()
    """The only ones it may use; none where it may use them all."""

    def argument(self) -> str:
        """The form `parse` reads."""
        return json.dumps(
            {
                "model": self.model,
                "vllm": dict(self.vllm),
                "max_tokens": self.max_tokens,
                "line": self.line.directory,
                "cores": self.cores,
            }
        )

    @classmethod
    def parse(cls, argument: str) -> Self:
        """From the command line of the process."""
        told = json.loads(argument)
        line, cores = Line(told["line"]), tuple(told["cores"])
        return cls(told["model"], told["vllm"], told["max_tokens"], line, cores)
