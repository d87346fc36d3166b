"""Tables of `headstart bench`: a row is a method in a workload of a run, on the lab pair.

Ratios are to bare vLLM in the same run; above 1 is faster.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from benchmarks.figures.results import markdown, path_of, result


@dataclass(frozen=True, slots=True)
class Measured:
    """What a row is called, and where its summary lies."""

    label: str
    run: str
    workload: str
    method: str

    @property
    def summary(self) -> dict[str, Any]:
        """Of one method in one workload."""
        return dict(result(file_of(self.run))["summary"][self.workload][self.method])


def file_of(run: str) -> str:
    """The name of a run's file; the first run has none of its own."""
    return f"bench_lab-pair_{run}" if run else "bench_lab-pair"


def ratio(summary: dict[str, Any]) -> str:
    """The speed-up from end to end, with its 95% interval."""
    return "{end_to_end:.2f} ({end_to_end_low:.2f} to {end_to_end_high:.2f})".format(**summary)


def with_prompt(summary: dict[str, Any]) -> str:
    """How much was accepted of the draft that was verified with the prompt."""
    return "{accepted_with_prompt:.1f} of {drafted_with_prompt:.1f}".format(**summary)


Column = tuple[str, Callable[[dict[str, Any]], str]]
END_TO_END: Column = ("end to end (95%)", ratio)
P95: Column = ("p95", lambda s: f"{s['end_to_end_p95']:.2f}")
FIRST_TOKEN: Column = ("first token", lambda s: f"{s['first_token']:.2f}")
PER_PASS: Column = ("tokens a pass", lambda s: f"{s['tokens_per_pass']:.2f}")
PASSES: Column = ("passes an answer", lambda s: f"{s['passes_per_answer']:.1f}")
WITH_PROMPT: Column = ("accepted with the prompt", with_prompt)
THROUGHPUT: Column = ("throughput", lambda s: f"{s['throughput']:.2f}")
ANSWERS: Column = ("answers", lambda s: f"{s['answers']}")

ONE_CAMERA = (END_TO_END, P95, FIRST_TOKEN, PER_PASS, PASSES, WITH_PROMPT, ANSWERS)
MANY_CAMERAS = (END_TO_END, P95, FIRST_TOKEN, THROUGHPUT, PER_PASS, ANSWERS)
WITHOUT_DRAFTS = (END_TO_END, P95, FIRST_TOKEN, ANSWERS)


def table(first: str, rows: Iterable[Measured], columns: Sequence[Column] = ONE_CAMERA) -> str:
    """Rows under the columns that fit what was measured."""
    return markdown(
        (first, *(heading for heading, _ in columns)),
        ((row.label, *(shown(row.summary) for _, shown in columns)) for row in rows),
    )


def speed() -> str:
    """README's table: each method on three kinds of questions."""
    # No drafter took part in the JSON run, so its cascade is not "everything".
    runs = {
        "everything: memory, ngram and the drafter": ("cascade", "suffix", "suffix", None),
        "memory of the stream's earlier answers": ("memory", "suffix", "suffix", "json"),
        "vLLM's own suffix decoding": ("suffix (vLLM)", "suffix", "suffix", "json"),
        "the drafter alone": ("eventgpt", "eventgpt", "eventgpt", None),
        "vLLM's own ngram": ("ngram (vLLM)", "", "", "json"),
        "headstart with nothing to draft": ("none", "idle", None, "json"),
    }
    workloads = ("fixed", "rotating", "json")
    rows = [
        (
            label,
            *(
                "" if run is None else ratio(Measured(label, run, workload, method).summary)
                for run, workload in zip(of_workloads, workloads, strict=True)
            ),
        )
        for label, (method, *of_workloads) in runs.items()
    ]
    return markdown(("", "one question", "four questions in turn", "a JSON report"), rows)


def every_method(workload: str) -> str:
    """The first run's methods. EventGPT is of a later run, in which it stops where it is wrong."""
    runs = {"memory": "", "cascade": "", "eventgpt": "eventgpt", "ngram (vLLM)": ""}
    return table("method", [Measured(m, run, workload, m) for m, run in runs.items()])


def json_answers() -> str:
    """What the answers of the JSON workload were like."""
    summary = Measured("", "json", "json", "memory").summary
    return markdown(
        ("answers", "distinct", "equal to the one before", "tokens each", "not bare vLLM's"),
        [
            (
                f"{summary['answers']}",
                f"{summary['distinct_answers']}",
                f"{summary['same_as_before']:.0%}",
                f"{summary['tokens_per_answer']:.0f}",
                f"{summary['other_words']}",
            )
        ],
    )


def forecasts() -> str:
    """How far the planner's forecasts of every method are from what was measured."""
    from headstart_research.bench.calibration import check_forecasts
    from headstart_research.bench.result import BenchResult

    runs = {
        "": "one camera",
        "lengths": "one camera, answers of few and of many words",
        "json": "one camera, JSON",
        "2-to-8-streams": "2, 4 and 8 cameras",
        "16-streams": "16 cameras",
    }
    rows = []
    for run, label in runs.items():
        checks = check_forecasts(BenchResult.read(path_of(file_of(run))))
        worst = max(checks, key=lambda check: abs(check.error))
        where = f"{worst.method}, {worst.workload}"
        rows.append((label, f"{len(checks)}", f"{worst.error:+.0%}", where))
    return markdown(("run", "forecasts", "furthest off", "which one"), rows)


KINDS_OF_QUESTIONS = (("one question", "fixed"), ("four in turn", "rotating"))
TABLES: dict[str, Callable[[], str]] = {
    "speed": speed,
    "bench-one-question": partial(every_method, "fixed"),
    "bench-four-questions": partial(every_method, "rotating"),
    "bench-300-seconds": partial(
        table, "method", [Measured(m, "300-clips", "fixed", m) for m in ("memory", "cascade")]
    ),
    "bench-lengths": partial(
        table,
        "",
        [
            Measured(f"{words} words, {method}", "lengths", workload, method)
            for words, workload in (("few", "short"), ("many", "long"))
            for method in ("memory", "cascade")
        ],
    ),
    "bench-suffix": partial(
        table,
        "",
        [
            Measured(f"{label}, {method}", "suffix", workload, method)
            for label, workload in KINDS_OF_QUESTIONS
            for method in ("suffix (vLLM)", "memory", "cascade")
        ],
    ),
    "bench-bridge": partial(
        table,
        "",
        [
            Measured(f"{label}, {words}", run, workload, method)
            for label, workload in KINDS_OF_QUESTIONS
            for words, run, method in (
                ("bridge and warm memory", "warm-bridge", "bridge"),
                ("warm memory", "warm-bridge", "warm"),
                ("bridge", "cold-bridge", "bridge"),
                ("memory", "cold-bridge", "memory"),
                ("ranker", "bridge", "ranker"),
                ("suffix (vLLM)", "bridge", "suffix (vLLM)"),
            )
        ],
    ),
    "bench-json": partial(
        table,
        "method",
        [
            Measured(method, "json", "json", method)
            for method in ("memory", "cascade", "suffix (vLLM)", "ngram (vLLM)", "none")
        ],
    ),
    "bench-json-answers": json_answers,
    "bench-two-devices": partial(
        table,
        "bare vLLM on every core",
        [
            Measured(label, "two-devices", workload, "bare vLLM x2")
            for label, workload in KINDS_OF_QUESTIONS
        ],
        WITHOUT_DRAFTS,
    ),
    "bench-cameras": partial(
        table,
        "cameras",
        [
            Measured(f"{number}, {method}", "2-to-8-streams", f"streams-{number}", method)
            for number in (2, 4, 8)
            for method in ("memory", "cascade")
        ],
        MANY_CAMERAS,
    ),
    "bench-idle": partial(
        table,
        "one camera, from the ninth answer on",
        [
            Measured("no source", "idle", "fixed", "none"),
            Measured("a source that is always wrong", "idle", "fixed", "wrong"),
        ],
        WITHOUT_DRAFTS,
    ),
    "forecasts": forecasts,
}
