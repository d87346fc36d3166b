"""LLaVA-OneVision's view of a clip: a chat whose video is cut into frames."""

from dataclasses import dataclass

from headstart.models.chat.view import PartsView


@dataclass(frozen=True)
class LlavaOnevisionView(PartsView):
    """As any chat. The model looks at each frame alone."""

    frames_per_item: int | None = 1
