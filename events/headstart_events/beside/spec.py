"""What both ends of an event model's process know: what it is told, and the pictures it is sent."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from headstart.engine.drafts.channel import DraftChannel
from headstart.engine.model import Model
from headstart.errors import DraftingError
from headstart.media.clip import Clip


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
        told = json.loads(argument)
        channel, cores = DraftChannel(told.pop("channel")), tuple(told.pop("cores"))
        return cls(channel=channel, cores=cores, **told)


@runtime_checkable
class PicturesView(Protocol):
    """The view of a model whose clips reach its process as pictures. Pure."""

    @property
    def num_text_ids(self) -> int:
        """As `View.num_text_ids`."""

    def pictures(self, clip: Clip) -> NDArray[np.uint8]:
        """The pictures of a clip that the model is shown, uint8 [n, height, width, 3].

        Raises `MediaError` where the clip has no frames or no events for them.
        """

    def glance(self, clip: Clip) -> Clip:
        """As `View.glance`."""

    def prompt(self, question: str) -> str:
        """The prompt of one question about one clip, including the placeholder."""


def pictures_view(model: Model) -> PicturesView:
    """The view of a model that runs beside a target."""
    if not isinstance(model.view, PicturesView):
        raise DraftingError(
            f"{model.name} cannot draft beside a target: choose an EventGPT, or a Video-LLaVA"
        )
    return model.view
