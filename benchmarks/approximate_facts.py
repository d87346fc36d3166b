"""What approximate answers are worth: facts right, and agreement with the answer to the whole clip.

    python -m benchmarks.approximate_facts

The lab's target and its 500 questions on held-out drives, each way to show it less on the same
engine, several questions at once. Prints a table, then one line of JSON, which is also kept in
benchmarks/results. ``--renumbered`` gives kept patches the positions in which they come, and not
those of the whole clip, for comparison. ``--kv-bridge`` adds the answers by what a KV bridge
guesses, on an engine of their own, and keeps a result of its own.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")
os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")

import numpy as np
from benchmarks.approximate_ways import WHOLE, Way, all_ways, kv_way
from benchmarks.lab_questions import QUESTIONS_A_CLIP, held_out_questions
from benchmarks.measurement import Measurement, StderrProgress
from headstart_lab.answering import MAX_TOKENS, Asked
from headstart_lab.language.facts import score
from headstart_lab.language.styles import TARGET_STYLE
from headstart_lab.pair import Pair, find_pair
from rich.console import Console
from rich.table import Table

from headstart.answers.answer import Answer
from headstart.bridges.kv_bridge import ApproximateKv
from headstart.bridges.kv_config import KvConfig
from headstart.engine.headstart import Headstart
from headstart.engine.manner import Manner
from headstart.engine.options import EventTower
from headstart.media.approximate import Approximate

RESULTS = Path(__file__).parent / "results"
NUM_RESAMPLES = 2000
SETTINGS = {
    "enforce_eager": True,
    "dtype": "float32",
    "kv_cache_memory_bytes": 2**30,
    "use_tqdm_on_load": False,
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pair", type=Path, help="another pair than the installed one")
    parser.add_argument("--num", type=int, default=500, help="questions")
    parser.add_argument("--ways", nargs="*", help="only those whose names begin so")
    parser.add_argument("--renumbered", action="store_true")
    parser.add_argument("--kv-bridge", type=Path, help="what `headstart train kv` wrote")
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args(arguments)
    pair = find_pair() if options.pair is None else Pair.at(options.pair)
    progress = StderrProgress()
    wanted = tuple(options.ways or ("",))
    ways = [way for way in all_ways() if way.name == WHOLE or way.name.startswith(wanted)]

    asked = held_out_questions(options.num, report=progress)
    figures: dict[str, dict[str, Any]] = {}
    answers: dict[str, list[Answer]] = {}

    name = "eval_approximate_facts"
    if options.kv_bridge is not None:
        name = "eval_approximate_kv"
    elif options.renumbered:
        name = "eval_approximate_renumbered"

    def measure(headstart: Headstart, way: Way) -> None:
        answers[way.name] = answer_all(headstart, way, asked, progress)
        figures[way.name] = judged(answers[way.name], answers[WHOLE], asked)
        # Each time: what is finished is kept.
        measurement().write(options.output)

    def measurement() -> Measurement:
        return Measurement(
            name,
            ["python", "-m", "benchmarks.approximate_facts", *(arguments or sys.argv[1:])],
            {
                "pair": "lab pair" if options.pair is None else options.pair.name,
                "num_questions": len(asked),
                "ways": figures,
            },
        )

    with started(pair.target, options.renumbered) as headstart:
        for way in ways:
            measure(headstart, way)
    if options.kv_bridge is not None:
        with started_guessing(pair, options.kv_bridge) as headstart:
            measure(headstart, kv_way(options.kv_bridge))

    show(figures)
    print(measurement().line())


def started(
    target: Path, renumbered: bool = False, max_draft_tokens: int = 0, **vllm: Any
) -> Headstart:
    """An engine that may leave out patches; ``vllm`` adds to its settings."""
    # Without the sections vLLM counts positions itself.
    overrides = {"hf_overrides": {"rope_parameters": {}}} if renumbered else {}
    return Headstart(
        target,
        max_draft_tokens=max_draft_tokens,
        manner=Manner(approximate=Approximate()),
        vllm={**SETTINGS, **overrides, **vllm},
    )


def started_guessing(pair: Pair, kv_bridge: Path) -> Headstart:
    """An engine with a KV bridge, and the event model's tower beside it."""
    return Headstart(
        pair.target,
        drafter=EventTower(pair.drafter, SETTINGS),
        manner=Manner(approximate=ApproximateKv(kv_bridge)),
        vllm=SETTINGS,
    )


def answer_all(
    headstart: Headstart, way: Way, asked: Sequence[Asked], progress: StderrProgress
) -> list[Answer]:
    """The answers in the order of the questions; vLLM batches eight of them.

    The event model's tower looks at one clip at a time, and those that wait too long for it would
    be computed: a KV bridge gets one question at a time.
    """
    session = way.session(headstart)

    def ask(one: Asked) -> Answer:
        return session.ask(way.clip(one.clip.clip), one.wording, max_tokens=MAX_TOKENS)

    answers = []
    with ThreadPoolExecutor(1 if way.guesses_kv else 8) as threads:
        for answer in threads.map(ask, asked):
            answers.append(answer)
            progress(way.name, len(answers), len(asked))
    return answers


def judged(
    answers: Sequence[Answer], whole: Sequence[Answer], asked: Sequence[Asked]
) -> dict[str, Any]:
    """The figures of one way; differences are to the whole clip, on the same questions."""
    right = facts_right(answers, asked)
    low, high = interval(right - facts_right(whole, asked))
    dropped = [dropped_share(answer) for answer in answers]
    same = [a.token_ids == b.token_ids for a, b in zip(answers, whole, strict=True)]
    return {
        "facts": float(right.mean()),
        "less_than_whole_low": -high,
        "less_than_whole_high": -low,
        "same_answer": float(np.mean(same)),
        "dropped_share": float(np.mean(dropped)),
        "prompt_tokens": float(np.mean([num_shown(answer) for answer in answers])),
    }


def dropped_share(answer: Answer) -> float:
    """Of the clip's patches; a target that was given guesses saw none of them."""
    if isinstance(answer.approximate, ApproximateKv):
        return 1.0 if is_guessed(answer) else 0.0
    return 0.0 if answer.approximate is None else answer.approximate.dropped_share


def num_shown(answer: Answer) -> int:
    """Tokens of the prompt that were computed from what the target was shown."""
    return answer.num_prompt_tokens - (guessed_tokens(answer) if is_guessed(answer) else 0)


def is_guessed(answer: Answer) -> bool:
    """Whether the tower was in time; else vLLM has computed the prompt."""
    return 0 < guessed_tokens(answer) <= answer.num_cached_tokens


def guessed_tokens(answer: Answer) -> int:
    """How many a KV bridge gives, if one was wanted."""
    wanted = answer.approximate
    if not isinstance(wanted, ApproximateKv):
        return 0
    return KvConfig.read(Path(wanted.directory)).num_tokens


def facts_right(answers: Sequence[Answer], asked: Sequence[Asked]) -> Any:
    """The share of its facts that each answer states right."""
    return np.array(
        [
            score(answer.text, TARGET_STYLE.answer(one.clip.scene, one.question).facts)
            for answer, one in zip(answers, asked, strict=True)
        ]
    )


def interval(differences: Any) -> tuple[float, float]:
    """95%, by bootstrap over clips: questions about the same clip are not independent."""
    clips = [
        differences[start : start + QUESTIONS_A_CLIP]
        for start in range(0, len(differences), QUESTIONS_A_CLIP)
    ]
    sums, counts = np.array([c.sum() for c in clips]), np.array([len(c) for c in clips])
    drawn = np.random.default_rng(0).integers(0, len(clips), (NUM_RESAMPLES, len(clips)))
    low, high = np.quantile(sums[drawn].sum(axis=1) / counts[drawn].sum(axis=1), [0.025, 0.975])
    return float(low), float(high)


def show(figures: dict[str, dict[str, Any]]) -> None:
    """Print a table."""
    table = Table("shown", "facts right", "points lost (95%)", "same answer", "prompt tokens")
    for name, each in figures.items():
        lost = figures[WHOLE]["facts"] - each["facts"]
        low, high = each["less_than_whole_low"], each["less_than_whole_high"]
        table.add_row(
            name,
            f"{each['facts']:.1%}",
            f"{100 * lost:.1f} ({100 * low:.1f} to {100 * high:.1f})",
            f"{each['same_answer']:.0%}",
            f"{each['prompt_tokens']:.0f}",
        )
    Console().print(table)


if __name__ == "__main__":
    main()
