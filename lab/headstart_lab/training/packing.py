"""Packing: several questions about one clip in one sequence, none of which attends to another.

The clip takes far more tokens than a question, and everything up to its last token is the same for
every question, so it is computed once. The questions follow one after the other. Each has the
positions it would have alone, and attends to the clip and to itself only. The loss counts the
answers with their end of sequence. So the loss of a packed sequence is exactly the sum of the
losses of its questions alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from headstart.errors import HeadstartError
from headstart_lab.training.template import Prompt


@dataclass(frozen=True)
class Turn:
    """A question's prompt as ids, and the answer's ids with the end of sequence."""

    prompt: Prompt
    answer: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Packed:
    """One packed sequence.

    The ids ``before`` come first, then ``num_pictures`` tokens of the clip, which have no ids here,
    then the ids of the questions, whose numbers of tokens are ``lengths``. ``scored`` are the
    places in the whole sequence that predict ``targets``.
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
        """The number of tokens that all questions share."""
        return len(self.before) + self.num_pictures


def pack(turns: Sequence[Turn]) -> Packed:
    """Turns about one clip as one sequence."""
    if not turns:
        raise HeadstartError("a clip without a question trains nothing; give at least one")
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
        # The end of sequence is predicted, never an input.
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
