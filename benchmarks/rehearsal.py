"""Rehearsed live answers by the wall clock, beside bare vLLM, memory and the oracle. JSON last.

    python -m benchmarks.rehearsal --rate 2 --questions 1 --drives 9
    python -m benchmarks.rehearsal --rate 2 --questions 4 --drives 9

A window is as many frames as the target is shown. Each frame lands when a camera would bring it,
whatever the engine is doing, and a wait counts from the landing of the last. The ways take turns
with each window of held-out drives that go on and never repeat:

bare       vLLM alone, the whole window at its last frame (an engine of its own)
fed        the same engine, frames computed as they land, no drafts
memory     fed, drafted by the camera's own earlier answers
rehearsal  the same, and the question is answered before the last frame has landed
oracle     fed, the true answer as its draft: the floor of exact answers

Every way is a tenant of its own, so that none finds another's blocks in the prefix cache, and
quotes its own stream only. The table says how many tokens of the last prompt were cached, by way: a
way that shared a cache would have more of them than `fed`. A drive is a part of a run: parts that
are in --parts are not measured again, so a run goes on where it was ended.
"""

import argparse
import json
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headstart import Headstart, Sources
from headstart.engine.question import Question
from headstart.engine.request_record import RehearsalCounts
from headstart.engine.session import Session
from headstart.live.session import LiveSession
from headstart.live.standing import StandingQuestion
from headstart.live.window_question import WindowAnswer, WindowQuestion
from headstart.live.windows import Window, Windows
from headstart.speculation.draft import by_source
from headstart_lab.pair import find_pair
from headstart_lab.split import Split
from headstart_lab.workloads import ROTATING
from headstart_lab.world.drive import Drive
from headstart_lab.world.painter import render
from rig.measurement import RESULTS, Measurement

WAYS = ("bare", "fed", "memory", "rehearsal", "oracle")
WITHOUT_DRAFTS = ("bare", "fed")
MAX_TOKENS = 128
VLLM = {"enforce_eager": True, "dtype": "float32", "block_size": 32}


@dataclass(frozen=True)
class InTurn(WindowQuestion):
    """Asks one question after the other, window by window."""

    questions: tuple[str, ...] = ()

    def about(self, session: Session, window: Window) -> Question:
        words = self.questions[window.number % len(self.questions)]
        return replace(super().about(session, window), words=words)


@dataclass(frozen=True)
class Foretold(InTurn):
    """The same, drafted by the true answer, which another way has given."""

    answers: dict[int, tuple[int, ...]] = field(default_factory=dict)

    def about(self, session: Session, window: Window) -> Question:
        asked = super().about(session, window)
        return replace(asked, prediction=self.answers[window.number])


class Way:
    """One way to answer about a drive: a session with its question, and what came of it."""

    def __init__(self, name: str, session: Session, asked: InTurn, seconds: float) -> None:
        self.name, self.asked = name, asked
        self._counts = session.target.front_end.rehearsals
        self._live = LiveSession(
            session, Windows(seconds), prefill=name != "bare", rehearse=name == "rehearsal"
        )
        self._answers: StandingQuestion = self._live.ask_every(asked)

    def answer(
        self, number: int, frames: Sequence[NDArray[np.uint8]], times_us: Sequence[int]
    ) -> dict[str, Any]:
        """Feed a window by the clock; return what is kept of its answer."""
        before = replace(self._counts)
        begun_s = time.monotonic() + 0.01
        for frame, time_us in zip(frames, times_us, strict=True):
            due_s = begun_s + (time_us - times_us[0]) / 1e6
            if self.name != "bare":  # nothing of it is computed before its last frame
                time.sleep(max(0.0, due_s - time.monotonic()))
            self._live.feed(frame, time_us)
        return told(number, next(self._answers), before, self._counts)

    def close(self) -> None:
        self._live.close()


def told(
    number: int, answer: WindowAnswer, before: RehearsalCounts, after: RehearsalCounts
) -> dict[str, Any]:
    """What is kept of one answer, and of the engine's time since the one before."""
    inner = answer.answer
    return {
        "window": number,
        "last_word_s": answer.wait_s,
        "first_word_s": answer.first_token_s,
        "stages": {
            str(span.stage): round(span.end_s - answer.landed_s, 5) for span in inner.timeline.spans
        },
        "passes": inner.num_passes,
        "prompt_tokens": inner.num_prompt_tokens,
        "cached_tokens": inner.num_cached_tokens,
        "rehearsed_s": round(after.seconds - before.seconds, 4),
        "other_s": round(after.other_seconds - before.other_seconds, 4),
        "rehearsed_tokens": after.tokens - before.tokens,
        "endings": dict(after.endings - before.endings),
        "by_source": by_source(inner.verdicts),
        "token_ids": list(inner.token_ids),
    }


def measured(
    engines: Mapping[str, Headstart], given: argparse.Namespace, seed: int
) -> dict[str, list[dict[str, Any]]]:
    """The windows of one drive, each answered in every way."""
    drive, questions = Drive(seed), tuple(one.usual for one in ROTATING)[: given.questions]
    num_frames = engines["bare"].target.view.num_frames or 1
    step_us, truth = round(1e6 / given.rate), dict[int, tuple[int, ...]]()
    ways = {}
    for name in given.ways:
        session = engines[name].session(f"drive {seed}", tenant=f"{name} {seed}")
        kind = Foretold("", MAX_TOKENS, questions=questions, answers=truth)
        plain = InTurn("", MAX_TOKENS, questions=questions)
        asked = kind if name == "oracle" else plain
        ways[name] = Way(name, session, asked, num_frames / given.rate)
    rows: dict[str, list[dict[str, Any]]] = {name: [] for name in ways}
    try:
        for number in range(given.windows):
            start_us = number * num_frames * step_us
            times_us = [start_us + place * step_us for place in range(num_frames)]
            frames = [render(drive.scene(time_us)) for time_us in times_us]
            turn = number % (len(ways) - 1)
            others = [name for name in ways if name != "oracle"]
            for name in [*others[turn:], *others[:turn], *(["oracle"] if "oracle" in ways else [])]:
                if name == "oracle":
                    truth[number] = tuple(rows["bare"][-1]["token_ids"])
                rows[name].append(ways[name].answer(number, frames, times_us))
                time.sleep(0.05)
            print(summary(number, rows), flush=True)
    finally:
        for way in ways.values():
            way.close()
    return rows


def summary(number: int, rows: Mapping[str, Sequence[Mapping[str, Any]]]) -> str:
    waits = (f"{name} {row[-1]['last_word_s'] * 1e3:.0f}" for name, row in rows.items())
    return f"window {number}: " + ", ".join(waits) + " ms"


def kept(rows: Sequence[Mapping[str, Any]], warm_up: int) -> list[Mapping[str, Any]]:
    return [row for row in rows if row["window"] >= warm_up]


def table(parts: Sequence[Mapping[str, Any]], warm_up: int) -> dict[str, Any]:
    """Of all drives: each way's waits, over bare vLLM's and as a share of the oracle's."""
    ways = {
        name: [row for part in parts for row in kept(part["rows"][name], warm_up)]
        for name in parts[0]["rows"]
    }
    waits = {name: np.array([row["last_word_s"] for row in rows]) for name, rows in ways.items()}
    firsts = {name: np.array([row["first_word_s"] for row in rows]) for name, rows in ways.items()}
    found: dict[str, Any] = {}
    for name, rows in ways.items():
        found[name] = {
            "windows": len(rows),
            "equal": sum(
                row["token_ids"] == true["token_ids"]
                for row, true in zip(rows, ways["bare"], strict=True)
            ),
            "last_word_ms": [round(1e3 * float(np.quantile(waits[name], q))) for q in (0.5, 0.95)],
            "last_word": over(waits["bare"], waits[name], 0.5),
            "last_word_p95": over(waits["bare"], waits[name], 0.95),
            "first_word": over(firsts["bare"], firsts[name], 0.5),
            "over_memory": over(waits["memory"], waits[name], 0.5),
            "over_memory_p95": over(waits["memory"], waits[name], 0.95),
            "share_of_oracle": over(waits["oracle"], waits[name], 0.5),
            "share_of_oracle_p95": over(waits["oracle"], waits[name], 0.95),
            "tokens_a_pass": round(
                sum(len(row["token_ids"]) for row in rows) / sum(row["passes"] for row in rows), 2
            ),
            "engine_s": round(fmean(row["rehearsed_s"] + row["other_s"] for row in rows), 3),
            "rehearsed_s": round(fmean(row["rehearsed_s"] for row in rows), 3),
            "computed_tokens": float(
                np.median([row["prompt_tokens"] - row["cached_tokens"] for row in rows])
            ),
        }
    return found


def over(base: NDArray[np.float64], waits: NDArray[np.float64], quantile: float) -> list[float]:
    """How many times sooner, and the 95% interval by bootstrap over windows."""
    dice = np.random.default_rng(1)
    places = dice.integers(0, len(base), (1000, len(base)))
    ratios = np.quantile(base[places], quantile, 1) / np.quantile(waits[places], quantile, 1)
    middle = np.quantile(base, quantile) / np.quantile(waits, quantile)
    return [round(float(one), 2) for one in (middle, *np.quantile(ratios, (0.025, 0.975)))]


def parts_of(given: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Those that are kept, and the others as they are measured."""
    seeds = Split.HELD_OUT.seeds(given.drives)
    names = {seed: f"{given.name}_drive-{seed}.json" for seed in seeds}
    missing = [seed for seed in seeds if not (given.parts / names[seed]).exists()]
    if missing:
        given.parts.mkdir(parents=True, exist_ok=True)
        target = given.target or find_pair().target
        sources = Sources(warm=False, rehearsals=given.budget)
        with (
            Headstart(target, max_draft_tokens=0, vllm=VLLM) as bare,
            Headstart(
                target, sources=sources, max_draft_tokens=given.draft_tokens, vllm=VLLM
            ) as ours,
        ):
            engines = {name: bare if name in WITHOUT_DRAFTS else ours for name in WAYS}
            for seed in missing:
                rows = measured(engines, given, seed)
                (given.parts / names[seed]).write_text(json.dumps({"seed": seed, "rows": rows}))
    for seed in seeds:
        yield json.loads((given.parts / names[seed]).read_text())


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rate", type=float, default=2, help="frames a second")
    parser.add_argument("--questions", type=int, default=1, help="one, or so many in turn")
    parser.add_argument("--drives", type=int, default=9)
    parser.add_argument("--windows", type=int, default=28, help="of each drive")
    parser.add_argument("--warm-up", type=int, default=4, help="of them left out of the table")
    parser.add_argument(
        "--budget",
        type=lambda text: None if text == "any" else float(text),
        default=Sources.rehearsals,
        help="of the engine's time, or any",
    )
    parser.add_argument("--draft-tokens", type=int, default=32)
    parser.add_argument("--ways", type=lambda text: tuple(text.split(",")), default=WAYS)
    parser.add_argument("--target", type=Path)
    parser.add_argument("--name", default="")
    parser.add_argument("--parts", type=Path, default=Path("build/rehearsal"))
    parser.add_argument("--output", type=Path, default=RESULTS)
    given = parser.parse_args()
    given.name = given.name or f"{given.questions}-questions_{given.rate:g}-frames"
    found = table(list(parts_of(given)), given.warm_up)
    for name, row in found.items():
        print(f"{name:10}", json.dumps(row))
    command = ["python", "-m", "benchmarks.rehearsal", *sys.argv[1:]]
    figures = {"ways": found, "rate": given.rate, "questions": given.questions}
    measurement = Measurement(f"rehearsal_{given.name}", command, figures)
    measurement.write(given.output)
    print(measurement.line())


if __name__ == "__main__":
    main()
