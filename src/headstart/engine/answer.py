"""What came back: the target's words, its tokens, and where the time went."""

from dataclasses import dataclass

from headstart.drafting.timeline import Timeline


@dataclass(frozen=True)
class Answer:
    """One finished answer.

    Of its tokens, ``num_accepted_tokens`` were drafted before the target said them; each of
    the others took a pass of the target.
    """

    text: str
    token_ids: tuple[int, ...]
    finish_reason: str
    num_prompt_tokens: int
    num_cached_tokens: int
    num_drafted_tokens: int
    num_accepted_tokens: int
    timeline: Timeline
