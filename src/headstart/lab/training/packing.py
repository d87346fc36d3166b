"""Several questions about one clip in one sequence, each blind to the others.

The clip costs far more tokens than a question, and everything up to its last token is the same
for every question: it is computed once. Then come the questions, one behind the other, each at
the positions it would have alone, each seeing the clip and itself only. The loss counts answers
and their end. So a packed sequence gives exactly the sum of what its questions would give alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from headstart.errors import HeadstartError
from headstart.lab.training.template import Prompt


@dataclass(frozen=True)
class Turn:
    """A question's prompt as ids, and the answer's ids with the end of sequence."""

    prompt: Prompt
    answer: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Packed:
    """One sequence: ids ``[tokens]``, positions, and which token follows at each scored place.

    ``before`` ids come first, then ``num_pictures`` tokens of the clip, which have no id here,
    then the questions' ids; ``lengths`` are those of the questions. ``scored`` are places in the
    whole sequence whose next token is ``targets``.
    """

    before: torch.Tensor
    num_pictures: int
    questions: torch.Tensor
    lengths: tuple[int, ...]
    positions: torch.Tensor
    scored: torch.Tensor
    targets: torch.Tensor

    @property
    def prefix_length(self) -> int:
        """Tokens that all questions share."""
        return len(self.before) + self.num_pictures

    @property
    def num_tokens(self) -> int:
        """Tokens in all."""
        return self.prefix_length + len(self.questions)

    def mask(self) -> torch.Tensor:
        """Bool ``[tokens, tokens]``: who sees whom. For reading; the models never build it."""
        shared = self.prefix_length
        own = torch.block_diag(*[torch.ones(length, length) for length in self.lengths]).bool()
        mask = torch.ones(self.num_tokens, self.num_tokens, dtype=torch.bool)
        mask[shared:, shared:] = own
        return mask.tril()


def pack(turns: Sequence[Turn]) -> Packed:
    """Turns about one clip as one sequence."""
    if not turns:
        raise HeadstartError("a clip without a question teaches nothing; give at least one")
    first = turns[0].prompt
    if any(turn.prompt.before != first.before for turn in turns):
        raise HeadstartError("the questions' prompts differ before the clip; pack them apart")
    prefix_length = len(first.before) + first.num_pictures
    questions: list[int] = []
    positions = list(range(prefix_length))
    lengths: list[int] = []
    scored: list[int] = []
    targets: list[int] = []
    for turn in turns:
        start = prefix_length + len(questions)
        # The end of sequence is said, never read.
        read = [*turn.prompt.after, *turn.answer[:-1]]
        questions += read
        lengths.append(len(read))
        positions += range(prefix_length, prefix_length + len(read))
        scored += range(start + len(turn.prompt.after) - 1, start + len(read))
        targets += turn.answer
    return Packed(
        before=torch.tensor(first.before),
        num_pictures=first.num_pictures,
        questions=torch.tensor(questions),
        lengths=tuple(lengths),
        positions=torch.tensor(positions),
        scored=torch.tensor(scored),
        targets=torch.tensor(targets),
    )
