"""headstart: the words a video language model would have said, sooner.

Names are imported on first use, so that reading a recording needs no engine installed.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headstart.drafting.timeline import Span, Stage, Timeline
    from headstart.engine.answer import Answer
    from headstart.engine.headstart import Headstart, Session
    from headstart.errors import HeadstartError
    from headstart.media.clip import Clip, ClipFiles
    from headstart.media.events import Events, SensorSize
    from headstart.media.video import Video

_HOMES = {
    "Answer": "headstart.engine.answer",
    "Clip": "headstart.media.clip",
    "ClipFiles": "headstart.media.clip",
    "Events": "headstart.media.events",
    "Headstart": "headstart.engine.headstart",
    "HeadstartError": "headstart.errors",
    "SensorSize": "headstart.media.events",
    "Session": "headstart.engine.headstart",
    "Span": "headstart.drafting.timeline",
    "Stage": "headstart.drafting.timeline",
    "Timeline": "headstart.drafting.timeline",
    "Video": "headstart.media.video",
}

__all__ = [
    "Answer",
    "Clip",
    "ClipFiles",
    "Events",
    "Headstart",
    "HeadstartError",
    "SensorSize",
    "Session",
    "Span",
    "Stage",
    "Timeline",
    "Video",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'headstart' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
