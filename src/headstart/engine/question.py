"""One question about one clip, as target and drafter are asked it."""

from dataclasses import dataclass

from headstart.drafters.port import StreamKey
from headstart.drafting.timeline import Span
from headstart.media.clip import Clip


@dataclass(frozen=True)
class Question:
    """The clip is read, and compared with the stream's last one."""

    clip: Clip
    words: str
    max_tokens: int
    stream: StreamKey | None = None
    change: float = 0.0
    loading: Span | None = None
