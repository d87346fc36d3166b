"""EventGPT's view of a clip: its slices of events, its prompt, its weights."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headstart.errors import MediaError
from headstart.media.clip import Clip, ClipFiles
from headstart.models.checkpoint import check_checkpoint
from headstart_events.eventgpt.geometry import event_geometry
from headstart_events.eventgpt.prompt import event_prompt
from headstart_events.eventgpt.weights import canonical_name, expected_shapes
from headstart_events.rendering import render
from headstart_events.slicing import latest, slice_by_count


@dataclass(frozen=True)
class EventGptView:
    """How a window of events and a question become this model's prompt."""

    config: Any
    num_slices: int
    max_window_us: int
    num_text_ids: int
    num_frames: None = None  # the model is shown no frames
    frames_per_item: None = None  # each slice holds a share of all events
    chat_template: None = None  # a server's chats bring no events to a target

    @classmethod
    def from_config(cls, config: Any) -> "EventGptView":
        """The view of one checkpoint."""
        num_slices = event_geometry(config).num_pictures
        return cls(config, num_slices, config.max_window_us, config.num_text_tokens)

    def files(self, path: Path) -> ClipFiles:
        """The clip of a single file, which is a recording of events."""
        return ClipFiles(events=path)

    @property
    def engine_arguments(self) -> dict[str, Any]:
        """None: the model is ours."""
        return {}

    @property
    def whole(self) -> "EventGptView":
        """The same, likewise."""
        return self

    def media(self, clip: Clip) -> dict[str, Any]:
        """What it is shown, as a video."""
        if clip.pictures:
            raise MediaError("EventGPT looks at events and at no still pictures; leave them out")
        return {"video": self.pictures(clip)}

    def pictures(self, clip: Clip) -> NDArray[np.uint8]:
        """Slices of equally many events, each rendered on the whole sensor.

        A window longer than those of the model's training is refused and not cut, since the caller
        has to choose the part.
        """
        if clip.events is None:
            raise MediaError("EventGPT looks at events and the clip has none; give a recording")
        if clip.events.duration_us >= self.max_window_us:
            raise MediaError(
                f"the events last {clip.events.duration_us / 1e3:.1f} ms and EventGPT reads windows"
                f" under {self.max_window_us / 1e3:.0f} ms; choose a part with --clip START:STOP,"
                " or in Python with events.between or headstart_events.slicing.latest"
            )
        if len(clip.events) < self.num_slices:
            raise MediaError(
                f"{len(clip.events)} events cannot be cut into {self.num_slices} slices;"
                " choose a longer window"
            )
        return np.stack([render(part) for part in slice_by_count(clip.events, self.num_slices)])

    def glance(self, clip: Clip) -> Clip:
        """The last events, as many as fit the model's longest window."""
        if clip.events is None:
            return clip
        return Clip(clip.video, latest(clip.events, self.max_window_us))

    def prompt(self, question: str, clip: Clip | None = None, system: str = "") -> str:
        """The text around the events."""
        return event_prompt(question, system)

    def check_checkpoint(self, directory: Path) -> None:
        """Raise if a local checkpoint is not a complete EventGPT."""
        check_checkpoint(directory, expected_shapes(self.config), canonical_name)
