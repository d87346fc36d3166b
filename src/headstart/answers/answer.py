"""What came back: the target's words, its tokens, and where the time went."""

from dataclasses import dataclass

from headstart.answers.timeline import Timeline
from headstart.speculation.draft import Verdict


@dataclass(frozen=True)
class Answer:
    """One finished answer."""

    text: str
    token_ids: tuple[int, ...]
    finish_reason: str
    num_prompt_tokens: int
    num_cached_tokens: int
    timeline: Timeline
    accepted_histogram: tuple[int, ...]
    """For each pass of the target, how many drafted tokens it accepted.

    The first pass is the one that ended the prompt. One without a draft accepted none.
    """
    verdicts: tuple[Verdict, ...] = ()
    """What became of every draft that the target verified, in order."""
    drafter_timeline: Timeline | None = None
    """Of the drafter's engine, on the same clock, up to its last draft that arrived in time."""
    margins: tuple[float, ...] = ()
    """By how many nats each token was likelier than the next likely one, where the options'
    sampling asks for two ``logprobs`` or more and the answer was not streamed."""

    @property
    def num_passes(self) -> int:
        return len(self.accepted_histogram)

    @property
    def num_drafted_tokens(self) -> int:
        return sum(len(verdict.draft.tokens) for verdict in self.verdicts)

    @property
    def num_accepted_tokens(self) -> int:
        """How many of the answer's tokens were drafted before the target said them."""
        return sum(self.accepted_histogram)
