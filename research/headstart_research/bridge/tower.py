"""`EventTower`: an event model without its language model, which shows a bridge what it sees."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from headstart.drafters.memory import Memory
from headstart.drafters.registry import registration
from headstart.engine.model import Model
from headstart.engine.options import Sources
from headstart.errors import DraftingError
from headstart_events.beside.event_model import EventModel
from headstart_research.bridge.drafter import BridgeDrafter
from headstart_research.bridge.pooling import DRAFTER

if TYPE_CHECKING:  # they need what the engine brings
    from headstart.engine.drafts.channel import DraftChannel
    from headstart_events.beside.spec import EventModelSpec


@dataclass(frozen=True)
class EventTower(EventModel):
    """An event model that says nothing: a bridge drafts from what its tower sees in a clip."""

    engine = "headstart_research.bridge.tower_engine:TowerEngine"

    def check(self, target: Model, sources: Sources) -> None:
        """Raise where there is no bridge that it could show things to.

        It says no words, so it may have any tokenizer.
        """
        rows = [registration(name) for name in sources.drafters]
        directory = next((row.value for row in rows if row.name == BridgeDrafter.name), None)
        if directory is None:
            raise DraftingError(
                f"the tower of {self.model} shows a bridge what it sees, and there is none: name"
                " one among the drafters, as bridge=DIRECTORY, or let the whole model draft:"
                " EventDraftModel"
            )
        bridge = BridgeDrafter.load(Path(directory), Memory()).bridge
        if all(feature.name != DRAFTER for feature in bridge.config.features):
            raise DraftingError(
                f"the bridge {directory} was trained without an event model and cannot look"
                f" at what {self.model} sees: leave the drafter out, or train with records that"
                " `headstart collect --draft-model` wrote"
            )

    def spec(self, channel: "DraftChannel") -> "EventModelSpec":
        from headstart_research.bridge.feature_tap import tap_arguments

        spec = super().spec(channel)
        return replace(spec, vllm={**spec.vllm, **tap_arguments(self.vllm, tower_only=True)})
