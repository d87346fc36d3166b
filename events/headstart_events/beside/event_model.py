"""An event model beside a target, as it is described before it runs."""

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

from headstart.engine.engine_resources import EngineResources
from headstart.engine.model import Model
from headstart.engine.options import Sources
from headstart_events.beside.placement import Machine, place

if TYPE_CHECKING:  # they need what the engine brings
    from headstart.engine.drafts.channel import DraftChannel
    from headstart.engine.drafts.subscriber import DraftSubscriber
    from headstart_events.beside.client import EventModelClient
    from headstart_events.beside.spec import EventModelSpec


@dataclass(frozen=True)
class EventModel(ABC):
    """A `DraftModel` that sees the same clip its own way, in an engine and a process of its own."""

    engine: ClassVar[str]
    """The `EventEngine` that runs it, as ``package.module:Class``."""

    model: str | Path
    vllm: Mapping[str, Any] = field(default_factory=dict)
    """Any of vLLM's own engine arguments, by its names."""
    resources: EngineResources = field(default=EngineResources(), kw_only=True)
    """Its part of the machine, which `placed` finds."""

    @abstractmethod
    def check(self, target: Model, sources: Sources) -> None:
        """Raise where it cannot draft for this target."""

    def placed(self, target: Mapping[str, Any]) -> tuple[Self, EngineResources]:
        """Itself with its part of this machine, and the part that it leaves a target."""
        placement = place(Machine.here(), target, self.vllm, os.environ)
        return replace(self, resources=placement.beside), placement.target

    def start(self, drafts: "DraftSubscriber", *, abstain: bool) -> "EventModelClient":
        from headstart_events.beside.client import EventModelClient

        return EventModelClient(self.spec(drafts.channel), drafts, self.resources.environment)

    def spec(self, channel: "DraftChannel") -> "EventModelSpec":
        from headstart_events.beside.spec import EventModelSpec

        arguments = {**self.vllm, **self.resources.arguments}
        cores = self.resources.cores
        return EventModelSpec(str(self.model), arguments, self.engine, channel, cores)
