"""A record: one question about one clip of a stream, and the target's answer."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from headstart.speculation.drafter import Features


@dataclass(frozen=True, eq=False, slots=True)
class Record:
    """What one example of a drafter's training is made from."""

    stream: str
    index: int
    """Its place among the questions of the stream: smaller ones were answered before it."""
    clip: int
    """The number of the clip in the stream. All questions about a clip have the same features."""
    clip_digest: str
    """Of the frames and events; empty where only the answer is known."""
    question: str
    prompt_ids: tuple[int, ...]
    """As the target read it, placeholders of the clip included."""
    answer_ids: tuple[int, ...]
    finish_reason: str
    features: Mapping[str, Features] = field(default_factory=dict)
    """``[tokens, size]`` by name; see `headstart_research.bridge.pooling`."""

    @property
    def prompt_end(self) -> tuple[int, ...]:
        """The text after the clip: after the last of its placeholders, the id seen most often."""
        if not self.prompt_ids:
            return ()
        ((placeholder, count),) = Counter(self.prompt_ids).most_common(1)
        if 2 * count < len(self.prompt_ids):
            return self.prompt_ids  # no clip
        return self.prompt_ids[len(self.prompt_ids) - self.prompt_ids[::-1].index(placeholder) :]
