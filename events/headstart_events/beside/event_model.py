"""An event model beside a target, as it is described before it runs.

with Headstart("path/of/a/target", draft_model=EventDraftModel("path/of/an/eventgpt")) as headstart:
    print(headstart.ask(ClipFiles("street.mp4", "street.raw"), "What is happening?").text)
"""

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

from headstart.engine.engine_resources import EngineResources
from headstart.engine.model import Model
from headstart.engine.options import Sources
from headstart.errors import DraftingError
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


@dataclass(frozen=True)
class EventDraftModel(EventModel):
    """An event model that drafts answers in its own words."""

    engine = "headstart_events.beside.draft_engine:DraftEngine"

    max_tokens: int = 256
    """Of one answer, this many are drafted at most."""

    def __post_init__(self) -> None:
        if self.max_tokens < 1:
            raise DraftingError(
                f"max_tokens of the drafter is {self.max_tokens}: leave the drafter out instead"
            )

    def check(self, target: Model, sources: Sources) -> None:
        """Raise where it says words in other tokens than the target's, or cannot be asked."""
        if not is_same_tokenizer(text_pieces(target), text_pieces(Model.checked(self.model))):
            raise DraftingError(
                f"The drafter {self.model} has another tokenizer than the target {target.name}, so"
                " its words are not the target's tokens. Choose a drafter with the target's"
                " tokenizer, or leave the drafter out: memory drafts for any target"
            )

    def start(self, drafts: "DraftSubscriber", *, abstain: bool) -> "EventModelClient":
        """Start its process; with ``abstain`` it works only where its drafts have paid."""
        from headstart_events.beside.client import DraftModelClient

        spec, environment = self.spec(drafts.channel), self.resources.environment
        return DraftModelClient(spec, drafts, environment, abstain=abstain)

    def spec(self, channel: "DraftChannel") -> "EventModelSpec":
        return replace(super().spec(channel), max_tokens=self.max_tokens)


def text_pieces(model: Model) -> dict[str, int]:
    """Each piece of text a model's tokenizer knows, and its id."""
    from transformers import AutoTokenizer

    pieces = AutoTokenizer.from_pretrained(model.name).get_vocab()
    return {piece: id for piece, id in pieces.items() if id < model.view.num_text_ids}


def is_same_tokenizer(target: Mapping[str, int], drafter: Mapping[str, int]) -> bool:
    """Whether every piece of text the drafter may say has the target's id.

    The target may know more pieces; those are never drafted. Raises where a model has no pieces.
    """
    for name, pieces in (("target", target), ("drafter", drafter)):
        if not pieces:
            raise DraftingError(
                f"The {name}'s tokenizer has no pieces of text, so no word can be drafted. Check"
                " its tokenizer files, or leave the drafter out."
            )
    return all(target.get(piece) == id for piece, id in drafter.items())
