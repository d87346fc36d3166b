"""Show a model a clip in a way of your own: here, only the last second of a video.

    pip install ./examples
    python examples/own_model.py path/to/a/Qwen2.5-VL street.mp4

A view says what a model is shown of a clip, and with which prompt (`headstart.models.view.View`). A
package registers it for an architecture, as `examples/pyproject.toml` does, and from then on every
command shows that model clips so. This prints the frames it would be shown, without an engine.
"""

import argparse
from dataclasses import dataclass, replace
from typing import Any

from headstart import Clip, Video
from headstart.engine.model import Model
from headstart.models.chat import ChatView

SHOWN_US = 1_000_000


@dataclass(frozen=True)
class LastSecond(ChatView):
    """As any model of vLLM's is asked, about the newest part of a video."""

    num_frames: int = 4

    def media(self, clip: Clip) -> dict[str, Any]:
        """Four frames, spread over the last second."""
        if (video := clip.video) is not None:
            newest = video.times_us > video.times_us[-1] - SHOWN_US
            clip = replace(clip, video=Video(video.frames[newest], video.times_us[newest]))
        return super().media(clip)


def main() -> None:
    """Print which view the model has, and how many frames it is shown."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("target", help="a model: a directory, or a name on the hub")
    parser.add_argument("clip", help="a video file")
    arguments = parser.parse_args()

    view = Model.checked(arguments.target).view
    video = Video.read(arguments.clip)
    frames, _ = view.media(Clip(video=video))["video"]
    print(f"{type(view).__name__} shows {len(frames)} of {len(video)} frames")


if __name__ == "__main__":
    main()
