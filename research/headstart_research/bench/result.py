"""The result of a bench: its samples, its environment, and the summary of both."""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import fmean, median
from typing import Any, Self

from headstart.errors import BenchError
from headstart_research.bench.intervals import Ratio, ratio_of_medians
from headstart_research.bench.percentiles import percentile
from headstart_research.bench.sample import Sample

FORMAT = 1
BARE = "bare vLLM"
LIMIT_FACTOR = 2.0


@dataclass(frozen=True, slots=True)
class Block:
    """The counted time and tokens of one workload on one engine, for throughput.

    Of a closed loop the time while all streams wait for an answer; of an open loop from the first
    counted question's arrival to the last answer.
    """

    workload: str
    method: str
    beside: str
    round: int
    seconds: float
    num_tokens: float
    """Answers that were incomplete when the time ended count in part."""


@dataclass(frozen=True, slots=True)
class PlayedLoad:
    """A load of an open workload, which is a workload of its own in the result."""

    name: str
    """Of its samples."""
    workload: str
    """The open workload."""
    capacity: float
    """Bare vLLM's answers a second while all cameras of the workload ask again at once."""
    rate: float
    """Questions that arrive a second."""
    burst: int
    """How many arrive at the same moment."""


@dataclass(frozen=True)
class BenchResult:
    """What a bench measured, and on what."""

    environment: dict[str, Any]
    samples: tuple[Sample, ...]
    blocks: tuple[Block, ...]
    notes: tuple[str, ...] = ()
    """What was not measured, and why."""
    workloads: dict[str, str] = field(default_factory=dict)
    """Each workload's name and description."""
    methods: dict[str, str] = field(default_factory=dict)
    live: tuple[str, ...] = ()
    """Workloads whose times count from a window's last frame."""
    cameras: dict[str, dict[str, Any]] = field(default_factory=dict)
    """By method, how many cameras its engine held; see `CamerasHeld`."""
    loads: tuple[PlayedLoad, ...] = ()

    @property
    def rates(self) -> dict[str, float]:
        """Questions that arrived a second, by the names of the open loads."""
        return {load.name: load.rate for load in self.loads}

    def random_loads(self, workload: str, method: str) -> list[PlayedLoad]:
        """The loads of an open workload with single arrivals that a method played, by rate."""
        return sorted(
            (
                load
                for load in self.loads
                if (load.workload, load.burst) == (workload, 1) and self.settled(load.name, method)
            ),
            key=lambda load: load.rate,
        )

    def settled(self, workload: str, method: str, beside: str | None = None) -> list[Sample]:
        """The samples after the warm-up; with ``beside`` only those taken in turn with it."""
        return [
            sample
            for sample in self.samples
            if sample.settled
            and (sample.workload, sample.method) == (workload, method)
            and beside in (None, sample.beside)
        ]

    def percentile_s(
        self, workload: str, method: str, percent: int, beside: str | None = None
    ) -> float:
        """A percentile of the settled samples' end-to-end times."""
        samples = self.settled(workload, method, beside)
        return percentile([sample.end_to_end_s for sample in samples], percent)

    def limit_s(self, workload: str) -> float:
        """Of a wait: twice the 95th percentile of bare vLLM at the lowest rate that was played."""
        lowest = self.random_loads(workload, BARE)[0]
        return LIMIT_FACTOR * self.percentile_s(lowest.name, BARE, 95)

    def goodput(self, workload: str, method: str, within_s: float) -> float | None:
        """The highest rate at which questions arrived, and 95% of the answers came within a limit.

        Questions a second. Only rates that were played count, and only questions that arrived
        singly; None if the limit was exceeded at every rate.
        """
        held = [
            load.rate
            for load in self.random_loads(workload, method)
            if self.percentile_s(load.name, method, 95) <= within_s
        ]
        return max(held, default=None)

    def pairs(self, workload: str, method: str) -> list[tuple[Sample, Sample]]:
        """The samples of bare vLLM and of a method that answer the same question, in pairs."""
        bare = {sample.pair: sample for sample in self.settled(workload, BARE, method)}
        ours = self.settled(workload, method)
        return [(bare[sample.pair], sample) for sample in ours if sample.pair in bare]

    def measured(self) -> Iterator[tuple[str, str]]:
        """Yield every workload and method, bare vLLM excepted, that have pairs of samples."""
        seen = dict.fromkeys((s.workload, s.method) for s in self.samples if s.settled)
        yield from (key for key in seen if key[1] != BARE and self.pairs(*key))

    def ratio(self, workload: str, method: str, measure: str) -> Ratio:
        """The speed-up over bare vLLM, by medians of ``end_to_end_s`` or ``first_token_s``."""
        pairs = self.pairs(workload, method)
        return ratio_of_medians(
            [getattr(bare, measure) for bare, _ in pairs],
            [getattr(ours, measure) for _, ours in pairs],
        )

    def _ratio_p95(self, workload: str, method: str) -> float:
        """The speed-up over bare vLLM of the 95th percentile of end-to-end times."""
        bare, ours = zip(*self.pairs(workload, method), strict=True)
        return percentile([one.end_to_end_s for one in bare], 95) / percentile(
            [one.end_to_end_s for one in ours], 95
        )

    def throughput(self, workload: str, method: str) -> float:
        """Tokens a second as a multiple of bare vLLM's; the median of the rounds."""
        rates = {
            (block.round, block.method): block.num_tokens / block.seconds
            for block in self.blocks
            if block.workload == workload and block.beside == method
        }
        ratios = [
            rate / rates[(number, BARE)]
            for (number, name), rate in rates.items()
            if name == method and (number, BARE) in rates
        ]
        if not ratios:
            raise BenchError(f"{workload} was not played by {method} and bare vLLM in one round")
        return median(ratios)

    def same_as_before(self, workload: str, method: str) -> float:
        """The share of answers equal to the answer before them on the same stream."""
        said = {
            sample.pair: sample.words
            for sample in self.samples
            if (sample.workload, sample.method) == (workload, method)
        }
        repeats = [
            sample.words == said[before]
            for sample in self.settled(workload, method)
            if (before := (sample.round, sample.stream, sample.index - 1)) in said
        ]
        return fmean(repeats) if repeats else 0.0

    def summary(self) -> dict[str, dict[str, dict[str, float]]]:
        """The figures of each method of each workload; ratios above one are speed-ups."""
        table: dict[str, dict[str, dict[str, float]]] = {}
        for workload, method in self.measured():
            samples = self.settled(workload, method)
            whole = self.ratio(workload, method, "end_to_end_s")
            first = self.ratio(workload, method, "first_token_s")
            table.setdefault(workload, {})[method] = {
                "end_to_end": round(whole.value, 4),
                "end_to_end_low": round(whole.low, 4),
                "end_to_end_high": round(whole.high, 4),
                "end_to_end_p95": round(self._ratio_p95(workload, method), 4),
                "first_token": round(first.value, 4),
                "tokens_per_pass": round(tokens_per_pass(samples), 4),
                "passes_per_answer": round(fmean(s.num_passes for s in samples), 4),
                "accepted_with_prompt": round(fmean(s.accepted_with_prompt for s in samples), 4),
                "drafted_with_prompt": round(fmean(s.first_drafted for s in samples), 4),
                "throughput": round(self.throughput(workload, method), 4),
                "end_to_end_ms": round(median(s.end_to_end_s for s in samples) * 1e3, 2),
                "tokens_per_answer": round(fmean(s.num_tokens for s in samples), 4),
                "same_as_before": round(self.same_as_before(workload, method), 4),
                "distinct_answers": len({s.words for s in samples}),
                "answers": len(samples),
                "other_words": sum(b.words != o.words for b, o in self.pairs(workload, method)),
            }
            if workload in self.live:
                table[workload][method] |= self._live_row(workload, method)
        return table

    def _live_row(self, workload: str, method: str) -> dict[str, float]:
        """What is asked of live methods: from the last frame to the first token and last word."""
        pairs = self.pairs(workload, method)
        last = self.ratio(workload, method, "end_to_end_s")
        row = {
            "last_word": round(last.value, 4),
            "last_word_p95": round(self._ratio_p95(workload, method), 4),
            "first_token_p95": round(
                percentile([bare.first_token_s for bare, _ in pairs], 95)
                / percentile([ours.first_token_s for _, ours in pairs], 95),
                4,
            ),
            "first_token_ms": round(median(ours.first_token_s for _, ours in pairs) * 1e3, 2),
            "cached_share": round(
                fmean(ours.num_cached_tokens / ours.num_prompt_tokens for _, ours in pairs), 4
            ),
        }
        if BARE in self.cameras and method in self.cameras:
            row["cameras_held"] = self.cameras[method]["held"]
            row["cameras_held_bare"] = self.cameras[BARE]["held"]
        return row

    def as_json(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "summary": self.summary(),
            "environment": self.environment,
            "notes": self.notes,
            "workloads": self.workloads,
            "methods": self.methods,
            "live": self.live,
            "cameras": self.cameras,
            "loads": [asdict(load) for load in self.loads],
            "blocks": [
                {name: getattr(block, name) for name in Block.__slots__} for block in self.blocks
            ],
            "samples": [sample.as_json() for sample in self.samples],
        }

    def write(self, path: Path) -> None:
        path.write_text(json.dumps(self.as_json(), separators=(",", ":")) + "\n")

    @classmethod
    def read(cls, path: Path) -> Self:
        try:
            return cls.parse(json.loads(path.read_text()))
        except (json.JSONDecodeError, KeyError, TypeError) as error:
            raise BenchError(
                f"{path} is no result of `headstart bench` ({error!r}); give a bench.json"
            ) from error

    @classmethod
    def parse(cls, given: Any) -> Self:
        if given["format"] != FORMAT:
            raise BenchError(f"the result is of format {given['format']}: measure again")
        return cls(
            environment=given["environment"],
            samples=tuple(Sample.parse(sample) for sample in given["samples"]),
            blocks=tuple(Block(**block) for block in given["blocks"]),
            notes=tuple(given["notes"]),
            workloads=given["workloads"],
            methods=given["methods"],
            live=tuple(given.get("live", ())),
            cameras=given.get("cameras", {}),
            loads=tuple(PlayedLoad(**load) for load in given.get("loads", ())),
        )


def tokens_per_pass(samples: list[Sample]) -> float:
    return sum(sample.num_tokens for sample in samples) / sum(s.num_passes for s in samples)
