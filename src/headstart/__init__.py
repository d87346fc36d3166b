"""headstart: the words a video language model would have said, sooner.

Names are imported on first use, so that reading a recording needs no engine installed.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headstart.drafting.timeline import Span, Stage, Timeline
    from headstart.engine.answer import Answer
    from headstart.engine.headstart import Headstart
    from headstart.errors import HeadstartError
    from headstart.media.video import Video

_HOMES = {
    "Answer": "headstart.engine.answer",
    "Headstart": "headstart.engine.headstart",
    "HeadstartError": "headstart.errors",
    "Span": "headstart.drafting.timeline",
    "Stage": "headstart.drafting.timeline",
    "Timeline": "headstart.drafting.timeline",
    "Video": "headstart.media.video",
}

__all__ = ["Answer", "Headstart", "HeadstartError", "Span", "Stage", "Timeline", "Video"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'headstart' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
