"""What a drafter with another tokenizer costs: microseconds a draft, and tokens a pass.

    python -m benchmarks.retokenising
    python -m benchmarks.retokenising --log dsec-1s-50tok.jsonl --target path/to/target

Answers of the target are replayed: the lab's reference answers, or a log of token ids with the
model that said them. The drafter's tokenizer works on bytes and is trained on the same answers. Two
drafters are replayed in the target's own tokens, and in the drafter's tokens that are translated: a
memory of the earlier answers, and one that is always right but only a few tokens ahead. A line of
JSON last.
"""

import argparse
import json
import os
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")

from benchmarks.drafting import measured
from headstart_lab.language.questions import Question
from headstart_lab.language.styles import TARGET_STYLE
from headstart_lab.pair import find_pair
from headstart_lab.split import Split
from headstart_lab.world.drive import Drive, last_frame_us
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import AutoTokenizer, PreTrainedTokenizerFast

from headstart.bench.log import LoggedAnswer, read_log
from headstart.bench.replay import DraftLimits, replay
from headstart.engine.model import text_tokenizer
from headstart.speculation.drafter import Drafter, DraftRequest, StreamKey
from headstart.speculation.memory import Memory
from headstart.speculation.text_tokenizer import TextTokenizer, words_of
from headstart.speculation.translation import Translation

NUM_AHEAD = (2, 4, 8, 16, 32)
TIMED_TOKENS = 64
SPECIAL = ["<unk>", "<s>", "</s>"]


def reference_log(tokenizer: Any, num_answers: int) -> list[LoggedAnswer]:
    """The lab's answers to one question on a held-out drive."""
    (seed,) = Split.HELD_OUT.seeds(1)
    drive, question = Drive(seed), Question.KEY_ELEMENTS
    log = []
    for number in range(num_answers):
        text = TARGET_STYLE.answer(drive.scene(last_frame_us(number)), question).text
        request = DraftRequest(str(number), StreamKey("", ""), question.usual)
        log.append(LoggedAnswer(request, tuple(tokenizer.encode(text, add_special_tokens=False))))
    return log


def byte_tokenizer(texts: Sequence[str], num_pieces: int) -> Any:
    """Another kind of tokenizer than Llama's, fitted to the same answers."""
    trained = Tokenizer(models.BPE())
    trained.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trained.decoder = decoders.ByteLevel()
    trained.train_from_iterator(
        texts,
        trainers.BpeTrainer(
            vocab_size=num_pieces,
            special_tokens=SPECIAL,
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        ),
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=trained, unk_token="<unk>", bos_token="<s>", eos_token="</s>"
    )


class Right:
    """A `Drafter` that knows the answers, and is only so many tokens ahead of the target."""

    name = "right"

    def __init__(self, texts: dict[str, str], tokenizer: TextTokenizer, num_ahead: int) -> None:
        self._texts, self._tokenizer, self._num_ahead = texts, tokenizer, num_ahead

    def begin(self, request: DraftRequest) -> None:
        pass

    def propose(self, request_id: str, confirmed: Sequence[int], max_tokens: int) -> Sequence[int]:
        rest = self._texts[request_id][len(self._tokenizer.text(confirmed)) :]
        ids = (*self._tokenizer.ids(words_of(rest)), self._tokenizer.end_id or 0)
        return ids[: min(self._num_ahead, max_tokens)]

    def finish(self, request_id: str, answer: Sequence[int]) -> None:
        pass


class Translated:
    """A `Drafter` in the target's tokens around one in other tokens."""

    def __init__(self, drafter: Drafter, translation: Translation) -> None:
        self.name = f"{drafter.name}, translated"
        self._drafter, self._translation = drafter, translation

    def begin(self, request: DraftRequest) -> None:
        self._drafter.begin(request)

    def propose(self, request_id: str, confirmed: Sequence[int], max_tokens: int) -> Sequence[int]:
        said = tuple(confirmed)
        heard = self._translation.heard(said)
        if heard is None:
            return ()
        spoken = (*heard, *self._drafter.propose(request_id, heard, max_tokens))
        return self._translation.draft(said, spoken) or ()

    def finish(self, request_id: str, answer: Sequence[int]) -> None:
        self._drafter.finish(request_id, self._translation.heard(tuple(answer)) or ())


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--log", type=Path, help="answers with token ids, one a line")
    parser.add_argument("--target", type=Path, help="the model, or its tokenizer, of the log")
    parser.add_argument("--num-answers", type=int, default=1_000)
    parser.add_argument("--num-pieces", type=int, default=600, help="of the drafter's tokenizer")
    parser.add_argument("--repeats", type=int, default=2_000)
    options = parser.parse_args()
    raw = AutoTokenizer.from_pretrained(options.target or find_pair().target)
    log = (
        reference_log(raw, options.num_answers)
        if options.log is None
        else read_log(options.log)[: options.num_answers]
    )
    target = text_tokenizer(raw, len(raw), " ")
    texts = {row.request.id: target.text(row.tokens) for row in log}
    other = byte_tokenizer(list(texts.values()), options.num_pieces)
    drafter = text_tokenizer(other, len(other), " ")
    translation = Translation(target, drafter)
    spoken = [translation.heard(row.tokens) or () for row in log]
    num_tokens, num_spoken = sum(len(row.tokens) for row in log), sum(map(len, spoken))
    figures: dict[str, Any] = {
        "num_answers": len(log),
        "num_tokens": num_tokens,
        "drafter_tokens": num_spoken,
        "spelt_as_usual": sum(target.ids(words_of(texts[a.request.id])) == a.tokens for a in log),
    }
    figures |= timings(translation, target, drafter, " ".join(texts.values()), options.repeats)
    limits = DraftLimits()
    pairs: dict[str, tuple[Drafter, Drafter]] = {
        f"right, {ahead} ahead": (Right(texts, target, ahead), Right(texts, drafter, ahead))
        for ahead in NUM_AHEAD
    }
    figures["tokens_per_pass"] = {}
    for name, (same, inner) in {"memory": (Memory(), Memory()), **pairs}.items():
        results = (replay(log, each, limits) for each in (same, Translated(inner, translation)))
        per_pass = [round(result.tokens_per_pass, 3) for result in results]
        figures["tokens_per_pass"][name] = dict(zip(("same", "translated"), per_pass, strict=True))
        print(f"{name:18} same tokenizer {per_pass[0]:7.3f}  translated {per_pass[1]:7.3f}")
    print(json.dumps(figures))


def timings(
    translation: Translation,
    target: TextTokenizer,
    drafter: TextTokenizer,
    text: str,
    repeats: int,
) -> dict[str, float]:
    """Of a draft told when `TIMED_TOKENS` are spoken, as the answer grows, and of words heard."""
    dice, words = Random(0), words_of(f" {text.strip()}")

    def grown() -> tuple[int, ...]:
        start = dice.randrange(max(1, len(words) - TIMED_TOKENS))
        spoken = drafter.ids(words[start : start + TIMED_TOKENS])[:TIMED_TOKENS]
        translation.draft((), spoken[:-1])  # as it was told one token before
        return spoken

    def said() -> tuple[int, ...]:
        start = dice.randrange(max(1, len(words) - TIMED_TOKENS))
        return target.ids(words[start : start + TIMED_TOKENS])[:TIMED_TOKENS]

    figures = measured("draft_us", repeats, grown, lambda spoken: translation.draft((), spoken))
    figures |= measured("heard_us", repeats, said, translation.heard)
    return {name: round(value, 1) for name, value in figures.items()}


if __name__ == "__main__":
    main()
