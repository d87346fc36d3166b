"""headstart: the words a video language model would have said, sooner.

Names are imported on first use, so that reading a recording needs no engine installed.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headstart.drafting.preview import Confirmed, Preview, Retracted
    from headstart.engine.answer import Answer
    from headstart.engine.headstart import Headstart
    from headstart.engine.options import EventDrafter, Sources
    from headstart.errors import HeadstartError
    from headstart.media.clip import Clip, ClipFiles
    from headstart.media.events import Events
    from headstart.media.video import Video

_HOMES = {
    "Answer": "headstart.engine.answer",
    "Clip": "headstart.media.clip",
    "ClipFiles": "headstart.media.clip",
    "Confirmed": "headstart.drafting.preview",
    "EventDrafter": "headstart.engine.options",
    "Events": "headstart.media.events",
    "Headstart": "headstart.engine.headstart",
    "HeadstartError": "headstart.errors",
    "Preview": "headstart.drafting.preview",
    "Retracted": "headstart.drafting.preview",
    "Sources": "headstart.engine.options",
    "Video": "headstart.media.video",
}

__all__ = [
    "Answer",
    "Clip",
    "ClipFiles",
    "Confirmed",
    "EventDrafter",
    "Events",
    "Headstart",
    "HeadstartError",
    "Preview",
    "Retracted",
    "Sources",
    "Video",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'headstart' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
