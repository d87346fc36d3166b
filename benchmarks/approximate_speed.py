"""How much sooner approximate answers come: wall time beside the exact ones and bare vLLM.

    python -m benchmarks.approximate_speed

One question about each second of a held-out drive. Each way has a session and a memory of its own,
on the same engine; bare vLLM is a second engine, without headstart. Every clip is asked in all ways
before the next one, in an order that rotates. All answers are streamed, and a time is when the
caller has the word. Ways that are "previewed" give the exact answer, after the preview of an
approximate one. An engine rests before another one is asked. ``--kv-bridge`` adds a third engine,
with a KV bridge. Prints a table, then one line of JSON, which is also kept in benchmarks/results.
"""

import argparse
import asyncio
import os
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")
os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")

from benchmarks.approximate_facts import started, started_guessing
from benchmarks.approximate_ways import WHOLE, Way, all_ways, kv_way, preview_ways
from benchmarks.measurement import Measurement, StderrProgress
from headstart_lab.answering import MAX_TOKENS, held_out_drive, open_engine
from headstart_lab.language.questions import Question
from headstart_lab.pair import Pair, find_pair
from rich.console import Console
from rich.table import Table

from headstart.answers.answer import Answer
from headstart.answers.preview import Confirmed, Preview
from headstart.bench.intervals import ratio_of_medians
from headstart.bench.run import REST_S
from headstart.engine.headstart import Headstart
from headstart.media.clip import Clip

RESULTS = Path(__file__).parent / "results"
BARE = "bare vLLM, whole clip"
WAYS = ("events", "even", "frames", "short clip")
MAX_DRAFT_TOKENS = 32


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pair", type=Path, help="another pair than the installed one")
    parser.add_argument("--clips", type=int, default=24, help="timed, after two that are not")
    parser.add_argument("--kv-bridge", type=Path, help="what `headstart train kv` wrote")
    parser.add_argument("--ways", nargs="*", default=WAYS, help="only those whose names begin so")
    parser.add_argument(
        "--prompt-step",
        type=int,
        default=0,
        help="cut prompts into steps of so many tokens, so that previews go on meanwhile",
    )
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args(arguments)
    pair = find_pair() if options.pair is None else Pair.at(options.pair)
    progress, question = StderrProgress(), Question.DESCRIBE.value[0]
    clips = held_out_drive(options.clips + 2, skip=3, report=progress)
    wanted = (WHOLE, *options.ways)
    ways = [way for way in (*all_ways(), *preview_ways()) if way.name.startswith(wanted)]

    answers: dict[str, list[Heard]] = defaultdict(list)
    with ExitStack() as engines:
        bare = engines.enter_context(open_engine(pair.target))
        steps = {"long_prefill_token_threshold": options.prompt_step} if options.prompt_step else {}
        usual = started(pair.target, max_draft_tokens=MAX_DRAFT_TOKENS, **steps)
        headstart = engines.enter_context(usual)
        askers = {BARE: Asker(bare, Way(BARE))}
        askers |= {way.name: Asker(headstart, way) for way in ways}
        if options.kv_bridge is not None:
            guessing = engines.enter_context(started_guessing(pair, options.kv_bridge))
            for is_preview in (False, True):
                way = kv_way(options.kv_bridge, is_preview=is_preview)
                askers[way.name] = Asker(guessing, way)
        names, last = list(askers), bare
        for number, clip in enumerate(clips):
            turn = number % len(names)
            for name in [*names[turn:], *names[:turn]]:
                asker = askers[name]
                if asker.engine is not last:
                    time.sleep(REST_S)
                last = asker.engine
                heard = asyncio.run(asker.listen(clip.clip, question))
                if number >= 2:
                    answers[name].append(heard)
            progress("asking", number + 1, len(clips))

    figures = {name: timed(answers[name], answers[BARE], answers[WHOLE]) for name in names}
    show(figures)
    measurement = Measurement(
        "eval_approximate_speed",
        ["python", "-m", "benchmarks.approximate_speed", *(arguments or sys.argv[1:])],
        {
            "pair": "lab pair" if options.pair is None else options.pair.name,
            "num_clips": options.clips,
            "ways": figures,
        },
    )
    measurement.write(options.output)
    print(measurement.line())


@dataclass(frozen=True)
class Heard:
    """One answer, and when its words came: seconds from the question."""

    answer: Answer
    first_word_s: float
    """Confirmed."""
    last_word_s: float
    preview_s: float | None
    """The first previewed word, where one came before the first confirmed one."""
    preview: Preview | None
    """What was previewed first."""

    @property
    def is_preview_right(self) -> bool:
        """Whether the answer begins with what was previewed first."""
        return self.preview is not None and self.answer.text.startswith(self.preview.text)


class Asker:
    """A camera of an engine that is asked in one way."""

    def __init__(self, engine: Headstart, way: Way) -> None:
        self.engine, self._way, self._session = engine, way, way.session(engine)

    async def listen(self, clip: Clip, question: str) -> Heard:
        """Ask, and note when each word comes."""
        clip = self._way.clip(clip)
        begun_s, first_s = time.monotonic(), 0.0
        preview_s: float | None = None
        preview: Preview | None = None
        async for event in self._session.stream(clip, question, max_tokens=MAX_TOKENS):
            now_s = time.monotonic() - begun_s
            if isinstance(event, Answer):
                return Heard(event, first_s, now_s, preview_s, preview)
            if isinstance(event, Confirmed):
                first_s = first_s or now_s
            elif isinstance(event, Preview) and preview_s is None and not first_s:
                preview_s, preview = now_s, event
        raise AssertionError("a stream ends with its answer")


def timed(heard: Sequence[Heard], bare: Sequence[Heard], whole: Sequence[Heard]) -> dict[str, Any]:
    """The figures of one way: medians, and how many times sooner than the others."""
    last, first = [one.last_word_s for one in heard], [one.first_word_s for one in heard]
    answers = [one.answer for one in heard]
    previewed = [one for one in heard if one.preview_s is not None]
    figures = {
        "last_word_ms": 1e3 * median(last),
        "first_word_ms": 1e3 * median(first),
        "over_bare": asdict(ratio_of_medians([one.last_word_s for one in bare], last)),
        "over_whole": asdict(ratio_of_medians([one.last_word_s for one in whole], last)),
        "first_over_whole": asdict(ratio_of_medians([one.first_word_s for one in whole], first)),
        "same_answer": same_answers(heard, whole),
        "prompt_tokens": sum(a.num_prompt_tokens for a in answers) / len(answers),
        "cached_tokens": sum(a.num_cached_tokens for a in answers) / len(answers),
        "passes": sum(a.num_passes for a in answers) / len(answers),
        "previewed": len(previewed) / len(heard),
    }
    if previewed:
        # Of the same answers: how much of the wait for the first certain word a preview takes.
        shares = [(one.preview_s or 0.0) / one.first_word_s for one in previewed]
        figures |= {
            "preview_ms": 1e3 * median(one.preview_s or 0.0 for one in previewed),
            "preview_share": median(shares),
            "previewed_by": Counter(one.preview.source for one in previewed if one.preview),
            "previews_right": sum(one.is_preview_right for one in previewed) / len(previewed),
        }
    return figures


def same_answers(heard: Sequence[Heard], whole: Sequence[Heard]) -> float:
    """The share that is the exact answer, token for token."""
    pairs = zip(heard, whole, strict=True)
    return sum(one.answer.token_ids == other.answer.token_ids for one, other in pairs) / len(heard)


def show(figures: dict[str, dict[str, Any]]) -> None:
    """Print a table."""
    table = Table(
        "shown",
        "first preview",
        "of the first word",
        "first word",
        "last word",
        "x bare",
        "x whole clip",
        "passes",
        "same answer",
    )
    for name, each in figures.items():
        is_shown = "preview_ms" in each
        table.add_row(
            name,
            f"{each['preview_ms']:.0f} ms" if is_shown else "",
            f"{each['preview_share']:.2f}" if is_shown else "",
            f"{each['first_word_ms']:.0f} ms",
            f"{each['last_word_ms']:.0f} ms",
            f"{each['over_bare']['value']:.2f}",
            f"{each['over_whole']['value']:.2f}",
            f"{each['passes']:.1f}",
            f"{each['same_answer']:.0%}",
        )
    Console().print(table)


if __name__ == "__main__":
    main()
