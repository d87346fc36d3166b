"""What the ranker is worth on logged answers, and what it costs. A line of JSON last.

python -m headstart_research.ranker.benchmark answers.jsonl --learn-from 0.6

The first share of the log is there to learn from; the rest counts, for memory and for both rankers.
The frozen one stops learning where counting begins (it goes on quoting), the other one never does.
Times are of the processor: of drafts of 32 tokens within an answer, of 64 before the first token,
and of what is learnt from one answer in the ranker's own thread.
"""

import argparse
import json
import time
from collections.abc import Sequence
from pathlib import Path
from random import Random

from headstart.drafters.memory import Memory
from headstart.speculation.drafter import Drafter, DraftRequest
from headstart_research.bench.log import LoggedAnswer, read_log
from headstart_research.bench.percentiles import percentile
from headstart_research.bench.replay import DraftLimits, Replay, replay
from headstart_research.ranker.ranker import Ranker

NUM_RESAMPLES = 2000


class Timed:
    """A `Drafter` that times another one, and stops its learning after so many answers."""

    def __init__(self, drafter: Drafter, num_learnt: int, num_lessons: int) -> None:
        self.name = drafter.name
        self.draft_s: list[float] = []
        self.first_draft_s: list[float] = []
        self.lesson_s: list[float] = []
        self._drafter, self._num_learnt, self._num_lessons = drafter, num_learnt, num_lessons
        self._num_answers = 0

    def begin(self, request: DraftRequest) -> None:
        self._drafter.begin(request)

    def propose(self, request_id: str, confirmed: Sequence[int], max_tokens: int) -> Sequence[int]:
        begun_s = time.thread_time()
        draft = self._drafter.propose(request_id, confirmed, max_tokens)
        took_s = time.thread_time() - begun_s
        if self._num_answers >= self._num_learnt and len(draft) == max_tokens:
            (self.draft_s if confirmed else self.first_draft_s).append(took_s)
        return draft

    def finish(self, request_id: str, answer: Sequence[int]) -> None:
        self._drafter.finish(request_id, answer)
        self._num_answers += 1
        if isinstance(self._drafter, Ranker):
            begun_s = time.process_time()
            self._drafter.settle()
            self.lesson_s.append(time.process_time() - begun_s)
            if self._num_answers == self._num_lessons:
                self._drafter.close()


def interval(run: Replay, baseline: Replay) -> tuple[list[float], list[float]]:
    """Between which tokens per pass lie in 95 of 100 resamples; the same of the gain over another.

    Neighbouring answers are alike, so stretches of 20 are drawn.
    """
    rng, stretches = Random(0), [slice(at, at + 20) for at in range(0, len(run.answers), 20)]
    figures, gains = [], []
    for _ in range(NUM_RESAMPLES):
        drawn = rng.choices(stretches, k=len(stretches))
        both = []
        for counted in (run, baseline):
            answers = [answer for part in drawn for answer in counted.answers[part]]
            both.append(Replay("", tuple(answers)).tokens_per_pass)
        figures.append(both[0])
        gains.append(both[0] - both[1])
    ends = NUM_RESAMPLES // 40, -NUM_RESAMPLES // 40
    return (
        [round(sorted(figures)[end], 2) for end in ends],
        [round(sorted(gains)[end], 2) for end in ends],
    )


def measured(log: Sequence[LoggedAnswer], num_learnt: int) -> dict[str, dict[str, object]]:
    """The figures of each drafter, printed as they come."""
    drafters: list[tuple[str, Drafter, int]] = [
        ("memory", Memory(), len(log)),
        ("ranker, frozen", Ranker(), num_learnt),
        ("ranker, online", Ranker(), len(log) + 1),
    ]
    figures: dict[str, dict[str, object]] = {}
    baseline: Replay | None = None
    for name, drafter, num_lessons in drafters:
        timed = Timed(drafter, num_learnt, num_lessons)
        run = replay(log, timed, DraftLimits()).after(num_learnt)
        baseline = baseline or run
        between, gain = interval(run, baseline)
        figures[name] = {
            "tokens_per_pass": round(run.tokens_per_pass, 3),
            "between": between,
            "gain_between": gain,
            "first_block": round(run.first_block, 2),
            "passes_p50": run.passes(0.5),
            "passes_p95": run.passes(0.95),
        }
        for kind, seconds in (
            ("draft_ms", timed.draft_s),
            ("first_draft_ms", timed.first_draft_s),
            ("lesson_ms", timed.lesson_s),
        ):
            if seconds:
                figures[name][f"{kind}_p50"] = round(1e3 * percentile(seconds, 50), 3)
                figures[name][f"{kind}_p99"] = round(1e3 * percentile(seconds, 99), 3)
        print(f"{name:16} {figures[name]}", flush=True)
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--learn-from", type=float, default=0.6, help="share of the log")
    parser.add_argument("--answers", type=int, help="of the log, only the first so many")
    options = parser.parse_args()
    begun_s = time.perf_counter()
    Ranker()
    compile_s = time.perf_counter() - begun_s
    log = read_log(options.file)[: options.answers]
    figures = measured(log, int(options.learn_from * len(log)))
    print(json.dumps({"compile_or_load_s": round(compile_s, 2), **figures}))


if __name__ == "__main__":
    main()
