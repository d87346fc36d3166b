"""The models that are collected from, and how they are started and asked."""

import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from headstart.engine.engine_resources import EngineResources
from headstart_events.beside.placement import Machine, place
from headstart_research.bridge.pooling import DRAFTER, TARGET_FEATURES

if TYPE_CHECKING:
    from headstart_research.collect.observer import Observer

_THREADS = "VLLM_CPU_OMP_THREADS_BIND"


@dataclass(frozen=True)
class CollectedModels:
    """A target, and an event model whose tower looks at the same clips."""

    target: str
    drafter: str | None = None
    max_tokens: int = 256
    num_frames: int | None = None
    """Of a clip, where the target leaves it to the caller how many."""
    vllm: Mapping[str, Any] = field(default_factory=dict)
    """Any of vLLM's engine arguments for the target, by its names."""
    drafter_vllm: Mapping[str, Any] = field(default_factory=dict)

    @property
    def features(self) -> tuple[str, ...]:
        """The names of the features that each record has."""
        return TARGET_FEATURES if self.drafter is None else (*TARGET_FEATURES, DRAFTER)

    def settings(self) -> dict[str, Any]:
        return {
            "max_tokens": self.max_tokens,
            "frames": self.num_frames,
            "vllm": dict(self.vllm),
            "drafter_vllm": dict(self.drafter_vllm),
        }

    @contextmanager
    def started(self) -> "Iterator[tuple[Observer, Observer | None]]":
        """Both, until the block is left. Of the event model only the tower is loaded."""
        from headstart_research.collect.observer import Observer  # needs what the engine brings

        with ExitStack() as running:
            if self.drafter is None:
                alone = Observer(self.target, num_frames=self.num_frames, vllm=self.vllm)
                yield running.enter_context(alone), None
                return
            placement = place(Machine.here(), self.vllm, self.drafter_vllm, os.environ)
            with placement.target.taken():
                arguments = {**placement.target.arguments, **self.vllm}
                target = Observer(self.target, num_frames=self.num_frames, vllm=arguments)
                running.enter_context(target)
            with _tower_resources(placement.beside).taken():
                arguments = {**placement.beside.arguments, **self.drafter_vllm}
                drafter = Observer(self.drafter, tower_only=True, vllm=arguments)
                running.enter_context(drafter)
            yield target, drafter


def _tower_resources(drafter: EngineResources) -> EngineResources:
    """As a drafter's; its engine has a process of its own here, which vLLM binds to cores."""
    if not drafter.cores:
        return drafter
    return EngineResources({_THREADS: ",".join(map(str, drafter.cores))})
