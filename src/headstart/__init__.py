"""headstart: the words a video language model would have said, sooner.

Names are imported on first use, so that reading a recording needs no engine installed.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headstart.answers.answer import Answer
    from headstart.answers.preview import Confirmed, Preview, Retracted
    from headstart.engine.headstart import Headstart
    from headstart.engine.options import Sources
    from headstart.engine.question import RequestOptions
    from headstart.engine.session import Session
    from headstart.errors import HeadstartError
    from headstart.live.session import LiveSession
    from headstart.live.watching import watch
    from headstart.live.when import WhenChanged
    from headstart.live.window_question import WindowAnswer
    from headstart.live.windows import Windows
    from headstart.media.clip import Clip, ClipFiles
    from headstart.media.events import Events
    from headstart.media.video import Video

_HOMES = {
    "Answer": "headstart.answers.answer",
    "Clip": "headstart.media.clip",
    "ClipFiles": "headstart.media.clip",
    "Confirmed": "headstart.answers.preview",
    "Events": "headstart.media.events",
    "Headstart": "headstart.engine.headstart",
    "HeadstartError": "headstart.errors",
    "LiveSession": "headstart.live.session",
    "Preview": "headstart.answers.preview",
    "RequestOptions": "headstart.engine.question",
    "Retracted": "headstart.answers.preview",
    "Session": "headstart.engine.session",
    "Sources": "headstart.engine.options",
    "Video": "headstart.media.video",
    "WhenChanged": "headstart.live.when",
    "WindowAnswer": "headstart.live.window_question",
    "Windows": "headstart.live.windows",
    "watch": "headstart.live.watching",
}

_ELSEWHERE = {"LiveClient": "headstart_client"}
"""Where names live that other packages hold."""

__all__ = [
    "Answer",
    "Clip",
    "ClipFiles",
    "Confirmed",
    "Events",
    "Headstart",
    "HeadstartError",
    "LiveSession",
    "Preview",
    "RequestOptions",
    "Retracted",
    "Session",
    "Sources",
    "Video",
    "WhenChanged",
    "WindowAnswer",
    "Windows",
    "watch",
]


def __getattr__(name: str) -> Any:
    if name in _ELSEWHERE:
        home = _ELSEWHERE[name]
        extra = home.removeprefix("headstart_")
        # Python drops the words of an AttributeError where a name is imported.
        raise ImportError(
            f"{name} is in {home}: from {home} import {name}; pip install 'headstart[{extra}]'"
        )
    if name not in _HOMES:
        raise AttributeError(f"module 'headstart' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
