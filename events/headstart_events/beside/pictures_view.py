"""How a model beside a target sees a clip: as pictures of one size, and no more."""

from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from headstart.engine.model import Model
from headstart.errors import DraftingError
from headstart.media.clip import Clip


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
