"""InternVL3's view of a clip: a chat whose video is cut into frames."""

from dataclasses import dataclass

from headstart.models.chat.view import PartsView


@dataclass(frozen=True)
class InternVlView(PartsView):
    """As any chat. Each frame is one tile, and the model looks at each alone."""

    frames_per_item: int | None = 1
