"""Does drafting change a token? A grid of settings against bare vLLM, on held-out lab drives.

    python -m tests.soak.lossless --questions 2000 [--dtype bfloat16] [--bridge DIRECTORY]

Every answer with drafts is compared with the one bare vLLM gives to the same question. The grid:
each source of drafts and all of them, verified whether they pay or not; 1, 4 and 16 streams at a
time; prefix caching on and off; prompts in chunks of several sizes. With ``--bridge`` the sources
are a bridge by itself, and a bridge beside the others that is also shown what the event model's
tower sees. In bfloat16 sums depend on the
shape of a batch, so words can differ without any draft: each first difference is kept with the
margin between the two most likely tokens there, beside those of bare vLLM at another batch size;
bare vLLM is then asked one question at a time, and in float32 sixteen.

Prints a row a setting, and a JSON line last, which is also kept in benchmarks/results: as far as
it has come, after every setting.
"""

import argparse
import asyncio
import itertools
import os
import random
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")  # before anything imports vLLM

from headstart import Answer, Clip, Headstart, Sources
from headstart.drafters.registry import DEFAULT_DRAFTERS
from headstart.engine.draft_model import draft_model
from headstart.engine.model import Model
from headstart.speculation.draft import by_source
from headstart_lab.language.questions import Question
from headstart_lab.pair import Pair, find_pair
from headstart_lab.split import Split
from headstart_lab.world.drive import Drive
from rig.measurement import RESULTS, Measurement

BATCHES = (1, 4, 16)
CHUNKS = (256, 700, 8192)
DRAFTERS = {
    "memory": (Sources(("memory",), abstain=False), False),
    "ngram": (Sources(("ngram",), abstain=False), False),
    "eventgpt": (Sources((), abstain=False), True),
    "cascade": (Sources(abstain=False), True),
}


@dataclass(frozen=True)
class Setting:
    """One engine of the grid."""

    drafts: str
    prefix_caching: bool
    chunk: int


@dataclass(frozen=True)
class Asked:
    """One question about one clip of one stream."""

    seed: int
    index: int
    words: str


@dataclass(frozen=True)
class Difference:
    """Where two answers part, and how nearly the target said the other word."""

    asked: Asked
    place: int
    margin: float


def main() -> None:
    """Compare and print."""
    options = _options()
    cells = itertools.product(_drafters(options.bridge), (True, False), CHUNKS)
    settings = [Setting(*cell) for cell in cells]
    if options.settings:
        settings = random.Random(options.seed).sample(settings, options.settings)
    wordings = [words for question in Question for words in question.value]
    random.Random(options.seed).shuffle(wordings)
    per_cell = max(1, round(options.questions / len(settings) / len(BATCHES)))
    grid = {
        setting: {batch: _rounds(batch, per_cell, words) for batch in BATCHES}
        for setting, words in zip(settings, itertools.cycle(wordings), strict=False)
    }
    clips = Clips()
    bare = Bare(options, clips)
    summary: dict[str, Any] = {
        "pair": "lab pair" if options.installed else options.pair.target.parent.name,
        "dtype": options.dtype,
        "settings": 0,
        "questions": 0,
        "drafted_tokens": 0,
        "accepted_tokens": 0,
        "sources": {},
        "num_differences": 0,
        "differences": [],
    }
    measurement = Measurement(
        f"lossless_{'' if options.bridge is None else 'bridge_'}{options.dtype}",
        ["python", "-m", "tests.soak.lossless", *sys.argv[1:]],
        summary,
    )
    for setting, batches in grid.items():
        if options.dtype == "float32":
            at_a_time = itertools.chain(*batches.values())
            bare.prepare(list(dict.fromkeys(itertools.chain(*at_a_time))))
        answers, found = _compare(setting, batches, options, clips, bare)
        num_asked = sum(len(asked) for rounds in batches.values() for asked in rounds)
        summary["settings"] += 1
        summary["questions"] += num_asked
        summary["drafted_tokens"] += sum(answer.num_drafted_tokens for answer in answers)
        summary["accepted_tokens"] += sum(answer.num_accepted_tokens for answer in answers)
        _count_by_source(summary["sources"], answers)
        summary["num_differences"] += len(found)
        summary["differences"] += [
            {**asdict(setting), "batch": batch, **asdict(difference)} for batch, difference in found
        ]
        measurement.write(options.output)
        print(f"{setting}: {num_asked} asked, {len(found)} differ", flush=True)
    if options.dtype != "float32":
        everything = [
            asked
            for batches in grid.values()
            for rounds in batches.values()
            for asked in itertools.chain(*rounds)
        ]
        together = bare.differences_of_batches(everything)
        summary["bare_differences"] = [asdict(difference) for difference in together]
        print(f"bare vLLM, 16 at a time against 1: {len(together)} differ")
    bare.close()
    measurement.write(options.output)
    print(measurement.line())


class Clips:
    """Held-out clips, each drawn once."""

    def __init__(self) -> None:
        self._drives: dict[int, Drive] = {}
        self._clips: dict[tuple[int, int], Clip] = {}

    def of(self, asked: Asked) -> Clip:
        """The clip a question is about."""
        key = (asked.seed, asked.index)
        if key not in self._clips:
            drive = self._drives.setdefault(asked.seed, Drive(asked.seed))
            self._clips[key] = drive.clip(asked.index).clip
        return self._clips[key]


class Bare:
    """vLLM alone; it stays up, to be asked about margins."""

    def __init__(self, options: argparse.Namespace, clips: Clips) -> None:
        from vllm import LLM

        self._options, self._clips = options, clips
        self._view = Model.checked(str(options.pair.target)).view
        self._llm = LLM(
            str(options.pair.target),
            **_engine(options),
            max_num_seqs=max(BATCHES),
            enable_prefix_caching=False,
        )
        self._answers: dict[Asked, list[int]] = {}

    def prepare(self, asked: Sequence[Asked]) -> None:
        """Ask all this at once, as many at a time as the grid ever does."""
        self._answers.update(self._said([one for one in asked if one not in self._answers]))

    def answer(self, asked: Asked) -> list[int]:
        """What the target says with nobody beside it; alone, where it was not prepared."""
        if asked not in self._answers:
            ((_, tokens),) = self._said([asked])
            self._answers[asked] = tokens
        return self._answers[asked]

    def differences_of_batches(self, asked: Sequence[Asked]) -> list[Difference]:
        """Bare vLLM with many at a time, against itself with one."""
        return [
            self.difference(one, tokens)
            for one, tokens in self._said(asked)
            if tokens != self.answer(one)
        ]

    def difference(self, asked: Asked, tokens: Sequence[int]) -> Difference:
        """Where ``tokens`` part from the answer; of two ends, the shorter's."""
        from vllm import SamplingParams

        own = self.answer(asked)
        pairs = itertools.zip_longest(own, tokens)
        place = next(i for i, (a, b) in enumerate(pairs) if a != b)
        replay = SamplingParams(temperature=0.0, max_tokens=place + 1, logprobs=2)
        (output,) = self._llm.generate([self._prompt(asked)], replay, use_tqdm=False)
        steps = output.outputs[0].logprobs
        best = sorted((entry.logprob for entry in steps[place].values()), reverse=True)
        return Difference(asked, place, best[0] - best[1])

    def close(self) -> None:
        """End it."""
        self._llm.llm_engine.engine_core.shutdown()

    def _said(self, asked: Sequence[Asked]) -> Iterator[tuple[Asked, list[int]]]:
        from vllm import SamplingParams

        params = SamplingParams(temperature=0.0, max_tokens=self._options.max_tokens)
        prompts = [self._prompt(one) for one in asked]
        outputs = self._llm.generate(prompts, params, use_tqdm=False)
        for one, output in zip(asked, outputs, strict=True):
            yield one, list(output.outputs[0].token_ids)

    def _prompt(self, asked: Asked) -> dict[str, Any]:
        return {
            "prompt": self._view.prompt(asked.words),
            "multi_modal_data": {"video": self._view.pictures(self._clips.of(asked))},
        }


def _compare(
    setting: Setting,
    batches: dict[int, list[list[Asked]]],
    options: argparse.Namespace,
    clips: Clips,
    bare: Bare,
) -> tuple[list[Answer], list[tuple[int, Difference]]]:
    sources, beside = _drafters(options.bridge)[setting.drafts]
    model = None
    if beside:
        model = draft_model(options.pair.drafter, _engine(options), sources)
    arguments = {
        **_engine(options),
        "max_num_seqs": max(BATCHES),
        "enable_prefix_caching": setting.prefix_caching,
        "max_num_batched_tokens": setting.chunk,
        "enable_chunked_prefill": True,
    }
    given, found = [], []
    target = str(options.pair.target)
    with Headstart(target, draft_model=model, sources=sources, vllm=arguments) as headstart:
        for batch, rounds in batches.items():
            for asked in rounds:
                answers = asyncio.run(_ask(headstart, batch, asked, options, clips))
                given += answers
                for one, answer in zip(asked, answers, strict=True):
                    tokens = list(answer.token_ids)
                    if tokens != bare.answer(one):
                        found.append((batch, bare.difference(one, tokens)))
    return given, found


async def _ask(
    headstart: Headstart,
    batch: int,
    asked: Sequence[Asked],
    options: argparse.Namespace,
    clips: Clips,
) -> list[Answer]:
    return await asyncio.gather(
        *(
            headstart.session(f"{batch}/{one.seed}").ask_async(
                clips.of(one), one.words, max_tokens=options.max_tokens
            )
            for one in asked
        )
    )


def _drafters(bridge: Path | None) -> dict[str, tuple[Sources, bool]]:
    """By name: sources, and whether there is an event model beside the target."""
    if bridge is None:
        return DRAFTERS
    named = f"bridge={bridge}"
    return {
        "bridge": (Sources((named,), abstain=False), False),
        "bridge, memory, ngram, events": (Sources((*DEFAULT_DRAFTERS, named), abstain=False), True),
    }


def _count_by_source(counts: dict[str, dict[str, int]], answers: Sequence[Answer]) -> None:
    """Add what was drafted and accepted in these answers."""
    for answer in answers:
        for source, (drafted, accepted) in by_source(answer.verdicts).items():
            count = counts.setdefault(source, {"drafted": 0, "accepted": 0})
            count["drafted"] += drafted
            count["accepted"] += accepted


def _rounds(batch: int, per_cell: int, words: str) -> list[list[Asked]]:
    """So many streams at a time, clip after clip."""
    seeds = Split.HELD_OUT.seeds(batch)
    return [
        [Asked(seed, index, words) for seed in seeds]
        for index in range(max(2, -(-per_cell // batch)))
    ]


def _engine(options: argparse.Namespace) -> dict[str, Any]:
    return {"dtype": options.dtype, "enforce_eager": True, "kv_cache_memory_bytes": 2**30}


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pair", type=Path, help="another pair than the installed one")
    parser.add_argument("--bridge", type=Path, help="a directory: the grid of this bridge")
    parser.add_argument("--questions", type=int, default=2000)
    parser.add_argument("--max-tokens", type=int, default=128)
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--settings", type=int, help="only so many engines of the grid, by --seed")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args()
    options.installed = options.pair is None
    options.pair = find_pair() if options.installed else Pair.at(options.pair)
    return options


if __name__ == "__main__":
    main()
