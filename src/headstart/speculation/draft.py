"""A draft: tokens that a source expects the target to say. The target decides."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Draft:
    """What ``source`` expects the answer to be from its token ``start`` on.

    A draft may be late, wrong or hostile; it is checked on the `DraftBoard`, not here.
    """

    tokens: tuple[int, ...]
    source: str
    made_at_s: float
    """On the monotonic clock that all processes of the machine share."""
    start: int = 0
    """How many tokens of the answer come before the draft's first one."""
    match: int = 0
    """By how many of these, the last ones, it was found; 0 where nothing was looked up."""

    @property
    def stop(self) -> int:
        """How many tokens of the answer come before the draft's end."""
        return self.start + len(self.tokens)


NOTHING = Draft((), "", 0.0)
"""The draft where no source has one."""


class Match(list[int]):
    """Tokens that were looked up, and by how many of the last confirmed ones.

    A drafter may return it in place of other sequences. Then drafts after long matches and after
    short ones are judged apart, and each is as long as its kind is worth. Drafters that follow the
    same match are compared with each other by it.
    """

    def __init__(self, tokens: Iterable[int], match: int) -> None:
        super().__init__(tokens)
        self.match = match


def num_agreeing(drafted: Sequence[int], said: Sequence[int]) -> int:
    count = 0
    for ours, theirs in zip(drafted, said, strict=False):
        if ours != theirs:
            break
        count += 1
    return count


@dataclass(frozen=True, slots=True)
class Verdict:
    """One draft, verified in one pass of the target.

    A pass adds the accepted tokens to the answer, and one token of the target's own: the
    *recovered* token in place of the first rejected one, or a *bonus* token after a draft that
    was accepted whole. It adds no own token where the answer ended inside the accepted ones.
    """

    draft: Draft
    num_accepted: int
    """The answer goes on with this many of the draft's first tokens."""

    @classmethod
    def greedy(cls, draft: Draft, said: Sequence[int]) -> "Verdict":
        """The verdict of a target whose answer goes on with ``said``."""
        return cls(draft, num_agreeing(draft.tokens, said))


def by_source(verdicts: Iterable[Verdict]) -> dict[str, tuple[int, int]]:
    """For each source, how many tokens it drafted and how many of them were accepted."""
    found: dict[str, tuple[int, int]] = {}
    for verdict in verdicts:
        drafted, accepted = found.get(verdict.draft.source, (0, 0))
        drafted += len(verdict.draft.tokens)
        found[verdict.draft.source] = (drafted, accepted + verdict.num_accepted)
    return found


def is_fused(verdicts: Sequence[Verdict]) -> bool:
    """Whether the pass that ended the prompt verified a draft too."""
    return bool(verdicts) and verdicts[0].draft.start == 0
