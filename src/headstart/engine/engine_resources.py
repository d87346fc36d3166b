"""What one engine gets of the machine that it starts on."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

_KERNELS = "ONEDNN_PRIMITIVE_CACHE_CAPACITY"
_MAX_KERNELS = 128


@dataclass(frozen=True)
class EngineResources:
    """One engine's part of the machine: environment variables, and vLLM arguments to add."""

    environment: Mapping[str, str] = field(default_factory=dict)
    arguments: Mapping[str, Any] = field(default_factory=dict)
    cores: tuple[int, ...] = ()
    """The only ones its process may use; none where it may use them all."""

    @contextmanager
    def taken(self) -> Iterator[None]:
        """Set the environment while the engine is started: vLLM reads it then."""
        before = {name: os.environ.get(name) for name in self.environment}
        os.environ.update(self.environment)
        try:
            yield
        finally:
            for name, value in before.items():
                if value is None:
                    del os.environ[name]
                else:
                    os.environ[name] = value


def few_kernels(environment: Mapping[str, str]) -> EngineResources:
    """Keep an engine on a CPU from growing by half a gigabyte and more as it verifies drafts.

    oneDNN compiles a kernel for each width of a batch and keeps 1,024 of them unless told
    otherwise; with drafts almost every pass has another width.
    """
    return (
        EngineResources()
        if _KERNELS in environment
        else EngineResources({_KERNELS: str(_MAX_KERNELS)})
    )
