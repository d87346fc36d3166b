"""How many of the target's tokens simple guesses get right on the lab's drives.

    python -m headstart_lab.measures.difficulty

The reference answers stand for the target's output: greedy acceptance of a draft is the length of
the prefix it shares with them. The last column holds the figures of a real pair, EventGPT 7B and
Video-LLaVA 7B, on 1,100 one-second clips of DSEC with a fixed question. The lab should be no
easier.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from headstart_lab.language.questions import Question
from headstart_lab.language.styles import DRAFTER_STYLE, TARGET_STYLE, Style
from headstart_lab.split import Split
from headstart_lab.vocabulary import train_lab_tokenizer
from headstart_lab.world.drive import Drive, last_frame_us

MAX_TOKENS = 50
MAX_BLOCK = 16
MAX_SUFFIX = 8
ORDER = 5

Tokens = Sequence[int]


@dataclass(frozen=True)
class Difficulty:
    """Mean accepted tokens of the first block, tokens a pass, and the accuracy of a 5-gram."""

    drafter_raw: float
    previous_answer: float
    best_earlier: float
    suffix_tokens_per_pass: float
    blind_top1: float

    def rows(self) -> list[tuple[str, float, str]]:
        """Of each figure its name, the lab's value, and the real pair's."""
        return [
            ("drafter's tokens as they are, first block", self.drafter_raw, "0.007"),
            ("previous clip's answer, first block of 50", self.previous_answer, "19.8"),
            ("best of all earlier answers, first block", self.best_earlier, "28.8"),
            ("recent-suffix memory, tokens a pass", self.suffix_tokens_per_pass, "5.9"),
            ("blind 5-gram, top-1 on unseen answers", self.blind_top1, "0.73"),
        ]

    def table(self) -> str:
        """The figures beside the real pair's, as text."""
        lines = [f"{'':42}{'lab':>8}{'real':>8}"]
        lines += [f"{name:42}{value:8.3f}{real:>8}" for name, value, real in self.rows()]
        return "\n".join(lines)


def measure_difficulty(
    tokenizer: Any,
    seeds: Sequence[int] = Split.HELD_OUT.seeds(3),
    num_clips: int = 300,
    num_other_drives: int = 100,
    question: Question = Question.KEY_ELEMENTS,
) -> Difficulty:
    """The mean figures over held-out drives with one fixed question, from reference answers."""
    others = reference_answers(tokenizer, num_other_drives, question)
    drives = [_answers(tokenizer, seed, num_clips, question, TARGET_STYLE) for seed in seeds]
    drafts = [_answers(tokenizer, seed, num_clips, question, DRAFTER_STYLE) for seed in seeds]
    return difficulty_of(drives, drafts, others)


def difficulty_of(
    drives: Sequence[Sequence[Tokens]],
    drafts: Sequence[Sequence[Tokens]],
    others: Sequence[Tokens],
) -> Difficulty:
    """The mean figures of given answers: the target's and the drafter's on each drive.

    The 5-gram is trained on ``others``, answers on other drives.
    """
    drives = [[answer[:MAX_TOKENS] for answer in answers] for answers in drives]
    raw = [
        shared_prefix(answer, draft)
        for answers, guesses in zip(drives, drafts, strict=True)
        for answer, draft in zip(answers, guesses, strict=True)
    ]
    previous = [shared_prefix(b, a) for answers in drives for a, b in pairwise(answers)]
    best = [
        max(shared_prefix(answer, earlier) for earlier in answers[:number])
        for answers in drives
        for number, answer in enumerate(answers)
        if number
    ]
    return Difficulty(
        drafter_raw=_mean(raw),
        previous_answer=_mean(previous),
        best_earlier=_mean(best),
        suffix_tokens_per_pass=_mean([suffix_tokens_per_pass(answers) for answers in drives]),
        blind_top1=blind_top1(others, [answer for answers in drives for answer in answers]),
    )


def reference_answers(tokenizer: Any, num_drives: int, question: Question) -> list[Tokens]:
    """The target's reference answers on training drives, 40 clips each."""
    return [
        answer
        for seed in Split.TRAIN.seeds(num_drives)
        for answer in _answers(tokenizer, seed, 40, question, TARGET_STYLE)
    ]


def shared_prefix(answer: Tokens, draft: Tokens) -> int:
    """How many tokens of ``draft`` a greedy target would accept."""
    num = 0
    for said, guessed in zip(answer, draft, strict=False):
        if said != guessed:
            break
        num += 1
    return num


def suffix_tokens_per_pass(answers: Sequence[Tokens]) -> float:
    """Tokens a target pass, with drafts of what last followed the longest known suffix."""
    latest: dict[tuple[int, ...], tuple[int, int]] = {}
    num_tokens = num_passes = 0
    for number, answer in enumerate(answers):
        place = 0
        while place < len(answer):
            draft = _continuation(answers, latest, answer[:place])
            accepted = shared_prefix(answer[place:], draft)
            # Each pass yields what it accepted and one token of its own.
            place += min(accepted + 1, len(answer) - place)
            num_passes += 1
        num_tokens += len(answer)
        for stop in range(len(answer)):
            for length in range(min(stop, MAX_SUFFIX) + 1):
                latest[(length == stop, *answer[stop - length : stop])] = (number, stop)
    return num_tokens / max(1, num_passes)


def _continuation(
    answers: Sequence[Tokens], latest: dict[tuple[int, ...], tuple[int, int]], said: Tokens
) -> Tokens:
    for length in range(min(len(said), MAX_SUFFIX), -1, -1):
        key = tuple(said[len(said) - length :])
        # At the start of an answer the empty suffix matches the start of an earlier answer.
        for marked in ((length == len(said), *key), (False, *key)):
            if (length or not said) and marked in latest:
                number, stop = latest[marked]
                return answers[number][stop : stop + MAX_BLOCK]
    return ()


def blind_top1(known: Sequence[Tokens], unseen: Sequence[Tokens]) -> float:
    """The accuracy of a 5-gram with back-off, trained on ``known``, on the tokens of ``unseen``."""
    counts: dict[tuple[int, ...], Counter[int]] = defaultdict(Counter)
    for answer in known:
        padded = (*[-1] * (ORDER - 1), *answer)
        for place in range(ORDER - 1, len(padded)):
            for length in range(ORDER):
                counts[padded[place - length : place]][padded[place]] += 1
    likeliest = {context: following.most_common(1)[0][0] for context, following in counts.items()}
    hits = total = 0
    for answer in unseen:
        padded = (*[-1] * (ORDER - 1), *answer)
        for place in range(ORDER - 1, len(padded)):
            guesses = (
                likeliest.get(padded[place - length : place]) for length in range(ORDER - 1, -1, -1)
            )
            hits += next(guess for guess in guesses if guess is not None) == padded[place]
            total += 1
    return hits / max(1, total)


def _answers(
    tokenizer: Any, seed: int, num_clips: int, question: Question, style: Style
) -> list[Tokens]:
    drive = Drive(seed)
    texts = [
        style.answer(drive.scene(last_frame_us(index)), question).text for index in range(num_clips)
    ]
    encoded = tokenizer(texts, add_special_tokens=False)["input_ids"]
    return [tuple(ids[:MAX_TOKENS]) for ids in encoded]


def _mean(values: Sequence[float]) -> float:
    return sum(values) / max(1, len(values))


if __name__ == "__main__":
    print(measure_difficulty(train_lab_tokenizer()).table())
