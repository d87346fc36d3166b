"""The charts of a result's page, each of one workload."""

from collections.abc import Mapping
from statistics import median

from headstart.answers.timeline import Stage
from headstart_research.bench.calibration import survival_of
from headstart_research.bench.chart import lines, spans, strips
from headstart_research.bench.result import BARE, BenchResult
from headstart_research.bench.sample import Sample
from headstart_research.bench.svg import PALETTE

MAX_POSITIONS = 32
LENGTH_BINS = 6

Curves = dict[str, list[tuple[float, float]]]


def colours_of(result: BenchResult) -> dict[str, str]:
    """Each method's colour, which is the same in every chart."""
    names = [BARE, *(name for name in result.methods if name != BARE)]
    return {name: PALETTE[number % len(PALETTE)] for number, name in enumerate(names)}


def methods_of(result: BenchResult, workload: str) -> list[str]:
    """The methods measured in a workload, bare vLLM first."""
    return [BARE, *(method for name, method in result.measured() if name == workload)]


def distribution(result: BenchResult, workload: str, measure: str, label: str) -> str:
    """Draw every sample of every method, in milliseconds."""
    groups = {
        method: [getattr(s, measure) * 1e3 for s in result.settled(workload, method)]
        for method in methods_of(result, workload)
    }
    return strips(groups, label, colours_of(result))


def waits_by_rate(result: BenchResult, workload: str, percent: int) -> str:
    """Draw a percentile of the waits against the rate at which questions arrive singly."""
    curves = {
        method: [(load.rate, result.percentile_s(load.name, method, percent)) for load in loads]
        for method in colours_of(result)
        if (loads := result.random_loads(workload, method))
    }
    return lines(curves, "questions a second", f"s, {percent}% within", colours=colours_of(result))


def acceptance(result: BenchResult, workload: str) -> tuple[str, str]:
    """Draw how much of the drafts was accepted: of those with the prompt, and of later ones."""
    curves: tuple[Curves, Curves] = ({}, {})
    for method in methods_of(result, workload)[1:]:
        survivals = survival_of(result.settled(workload, method))
        for drawn, survival in zip(curves, survivals, strict=True):
            if survival.shares:
                shares = enumerate(survival.shares[:MAX_POSITIONS], start=1)
                drawn[method] = [(0.0, 100.0), *((float(i), 100 * s) for i, s in shares)]
    first, later = (
        lines(
            drawn,
            "position in the draft",
            "% of passes that accept at least this far",
            colours=colours_of(result),
            nothing="no drafted token was accepted",
        )
        for drawn in curves
    )
    return first, later


def stages(result: BenchResult, workload: str) -> str:
    """Draw the median time of each stage, one after another."""
    rows = {}
    for method in methods_of(result, workload):
        samples, start, row = result.settled(workload, method), 0.0, []
        for stage in Stage:
            length = median(sample.stage_s(stage) for sample in samples) * 1e3
            row.append((str(stage), start, start + length))
            start += length
        rows[method] = row
    return spans(rows, "ms, median of each stage", [str(stage) for stage in Stage])


def gantt(result: BenchResult, workload: str) -> tuple[str, str]:
    """Draw one answer of bare vLLM and of the fastest method; the second text says which."""
    best = max(
        methods_of(result, workload)[1:],
        key=lambda method: result.ratio(workload, method, "end_to_end_s").value,
    )
    pairs = sorted(result.pairs(workload, best), key=lambda pair: pair[1].end_to_end_s)
    bare, ours = pairs[len(pairs) // 2]
    rows: dict[str, list[tuple[str, float, float]]] = {BARE: _row(bare, "target")}
    rows[best] = _row(ours, "target")
    if beside := _row(ours, "drafter"):
        rows["its drafter"] = beside
    words = f"The median answer of {best}: {ours.num_tokens} tokens in {ours.num_passes} passes."
    return spans(rows, "ms since the question", [str(stage) for stage in Stage]), words


def speedup_by_length(result: BenchResult, workload: str) -> str:
    """Draw the end-to-end speed-up against the length of the answer."""
    curves: Mapping[str, list[tuple[float, float]]] = {
        method: _binned(
            [
                (float(ours.num_tokens), bare.end_to_end_s / ours.end_to_end_s)
                for bare, ours in result.pairs(workload, method)
            ]
        )
        for method in methods_of(result, workload)[1:]
    }
    return lines(
        curves,
        "tokens of the answer",
        "times faster than bare vLLM",
        even=1.0,
        colours=colours_of(result),
    )


def _row(sample: Sample, who: str) -> list[tuple[str, float, float]]:
    return [
        (stage, start * 1e3, stop * 1e3)
        for name, stage, start, stop in sample.spans
        if name == who and stop > start
    ]


def _binned(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    by_length: dict[float, list[float]] = {}
    for length, ratio in points:
        by_length.setdefault(length, []).append(ratio)
    groups = sorted(by_length.items())
    size = max(1, -(-len(groups) // LENGTH_BINS))
    binned = []
    for start in range(0, len(groups), size):
        part = groups[start : start + size]
        ratios = [ratio for _, values in part for ratio in values]
        lengths = [length for length, values in part for _ in values]
        binned.append((sum(lengths) / len(lengths), median(ratios)))
    return binned
