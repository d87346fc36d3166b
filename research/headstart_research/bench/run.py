"""Runs a bench: every method in turn with bare vLLM, round by round.

Two engines are up at a time, bare vLLM's and a method's. Where only one fits in memory
(``one_engine``), bare vLLM is started again after every method instead.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from headstart.engine.headstart import Headstart
from headstart.errors import BenchError, HeadstartError
from headstart_research.bench.cameras import CameraLoad
from headstart_research.bench.methods import Method
from headstart_research.bench.open_loop import arrivals
from headstart_research.bench.result import BenchResult, Block, PlayedLoad
from headstart_research.bench.sample import Sample
from headstart_research.bench.throughput import capacity
from headstart_research.bench.trial import Trial
from headstart_research.bench.workloads import Workload

Start = Callable[[Method], Headstart]
MAX_REASON_CHARACTERS = 400
_CAPACITY_ROUNDS = 3
REST_S = 1.1
"""A process of vLLM looks for more work without rest for a second after it has worked. Another
engine that is asked meanwhile on the same cores would be measured with a part of them."""


@dataclass(frozen=True)
class BenchPlan:
    """How often everything is measured, and on how many engines at a time."""

    rounds: int = 2
    warmup: int = 3
    """The first answers of each stream, which are measured and do not count."""
    one_engine: bool = False
    camera_step_s: float | None = None
    """Of live workloads: also how many cameras are held that ask once in so many seconds."""
    camera_windows: int = 10
    """Windows of each camera that count."""
    rest_s: float = 0.0
    """Before one engine is asked after another one; `REST_S` is enough for vLLM's processes."""


@dataclass
class Run:
    """A bench in progress. ``samples`` and ``blocks`` only grow."""

    start: Start
    methods: Sequence[Method]
    """Bare vLLM first."""
    workloads: Sequence[Workload]
    plan: BenchPlan
    on_progress: Callable[[str], None] = lambda _: None
    samples: list[Sample] = field(default_factory=list)
    blocks: list[Block] = field(default_factory=list)
    cameras: dict[str, dict[str, Any]] = field(default_factory=dict)
    unmeasured: dict[str, str] = field(default_factory=dict)
    """Methods whose engine did not start, and why; the others are measured all the same."""
    capacities: dict[str, float] = field(default_factory=dict)
    """By open workload, bare vLLM's capacity. It is measured once, so that all methods and rounds
    get their questions at the same times."""

    @property
    def loads(self) -> tuple[PlayedLoad, ...]:
        return tuple(
            PlayedLoad(work.under(load).name, work.name, found, load.share * found, load.burst)
            for work in self.workloads
            if (found := self.capacities.get(work.name)) is not None
            for load in work.loads
        )

    def result(self, environment: Mapping[str, Any], notes: Sequence[str]) -> BenchResult:
        """What was measured so far, and after the ``notes`` what was not, and why."""
        return BenchResult(
            environment={
                **environment,
                "rounds": self.plan.rounds,
                "engines": "one at a time"
                if self.plan.one_engine
                else "two at a time, asked in turn",
            },
            samples=tuple(self.samples),
            blocks=tuple(self.blocks),
            notes=(
                *notes,
                *(f"{name} was not measured: {why}" for name, why in self.unmeasured.items()),
                *(
                    f"{name}: bare vLLM gives {found:.2f} answers a second while all cameras ask"
                    " again at once; the loads are shares of that"
                    for name, found in self.capacities.items()
                ),
            ),
            workloads={one.name: one.words for work in self.workloads for one in work.played()},
            methods={method.name: method.words for method in self.methods},
            live=tuple(work.name for work in self.workloads if work.is_live),
            cameras=self.cameras,
            loads=self.loads,
        )

    def run(self) -> None:
        bare, *others = self.methods
        if not others:
            raise BenchError("nothing to compare with bare vLLM: choose at least one method")
        if self.plan.one_engine and any(work.loads for work in self.workloads):
            # A method is played before bare vLLM is up beside it, and needs its arrivals by then.
            with self._started(bare, 0) as plain:
                for work in self.workloads:
                    self._find_capacity(work, plain)
        for number in range(self.plan.rounds):
            self._check_lengths(number)
            first = number % len(others)
            ordered = [*others[first:], *others[:first]]
            if self.plan.one_engine:
                for method in ordered:
                    self._measure(method, number, {})
                    if method.name not in self.unmeasured:
                        with self._started(bare, number) as plain:
                            self._play(method, number, {bare.name: plain})
            else:
                with self._started(bare, number) as plain:
                    for method in ordered:
                        self._measure(method, number, {bare.name: plain})
        if not self.samples:
            reasons = "; ".join(f"{name}: {why}" for name, why in self.unmeasured.items())
            raise BenchError(f"no method could be started. {reasons}")

    def _check_lengths(self, number: int) -> None:
        for work in self.workloads:
            shortest = min(len(items) for items in work.streams(number))
            if shortest <= self.plan.warmup:
                raise BenchError(
                    f"{work.name} has {shortest} clips, and {self.plan.warmup} only warm up:"
                    " raise --answers, or lower warmup with --set"
                )

    def _started(self, method: Method, number: int) -> Headstart:
        self.on_progress(f"round {number + 1} of {self.plan.rounds}: starting {method.name}")
        return self.start(method)

    def _measure(self, method: Method, number: int, beside: Mapping[str, Headstart]) -> None:
        """Start a method's engine and ask it, in turn with the engines beside it."""
        if method.name in self.unmeasured:
            return
        try:
            engine = self._started(method, number)
        except HeadstartError as error:
            self.unmeasured[method.name] = " ".join(str(error).split())[:MAX_REASON_CHARACTERS]
            return
        with engine:
            self._play(method, number, {**beside, method.name: engine})

    def _play(self, method: Method, number: int, engines: Mapping[str, Headstart]) -> None:
        trial = Trial(
            method.name,
            number,
            self.plan.warmup,
            engines,
            self.samples,
            self.blocks,
            method.is_fed,
            self.plan.rest_s,
        )
        for place, work in enumerate(self.workloads):
            if method.is_fed and not work.is_live:
                continue  # it would be another method's measurement once more
            names = " and ".join(engines)
            self.on_progress(f"round {number + 1} of {self.plan.rounds}: {names}, {work.name}")
            # Another engine is asked first in every workload and every round.
            order = sorted(engines, reverse=bool((number + place) % 2))
            if work.loads:
                self._play_open(trial, work, order)
            else:
                trial.play(work, order)
            if work.is_live and self.plan.camera_step_s is not None:
                self._count_cameras(work, method, engines, self.plan.camera_step_s)

    def _play_open(self, trial: Trial, work: Workload, order: Sequence[str]) -> None:
        """Play one load after the other; another engine is first in each."""
        bare = self.methods[0].name
        if bare in trial.engines:
            self._find_capacity(work, trial.engines[bare])
        for place, load in enumerate(work.loads):
            under, rate = work.under(load), load.share * self.capacities[work.name]
            num_each = min(len(items) for items in under.streams(trial.round))
            arriving = arrivals(
                work.num_streams, num_each, rate=rate, burst=load.burst, seed=trial.round
            )
            self.on_progress(f"{' and '.join(order)}, {under.name}: {rate:.2f} questions a second")
            trial.play_open(under, arriving, order if place % 2 else order[::-1])

    def _find_capacity(self, work: Workload, plain: Headstart) -> None:
        if work.loads and work.name not in self.capacities:
            self.on_progress(f"{self.methods[0].name}, {work.name}: capacity")
            # One round's answers are few for a figure on which all loads rest.
            first = work.unplayed(self.plan.rounds)
            self.capacities[work.name] = capacity(
                plain, work, rounds=range(first, first + _CAPACITY_ROUNDS), warmup=self.plan.warmup
            )

    def _count_cameras(
        self, work: Workload, method: Method, engines: Mapping[str, Headstart], step_s: float
    ) -> None:
        for name in [name for name in engines if name not in self.cameras]:
            load = CameraLoad(
                engines[name],
                work,
                step_s=step_s,
                windows=self.plan.camera_windows,
                prefill=method.is_fed and name == method.name,
            )
            self.on_progress(f"{name}, {work.name}: more and more cameras")
            self.cameras[name] = load.measure(self.on_progress).as_json()
