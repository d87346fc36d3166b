"""Runs a bench: every method in turn with bare vLLM, question by question, round by round.

Two engines are up at a time and are asked the same things alternately, one question each or a few
of every stream, so that whatever else the machine does falls on both. Where only one fits
(``apart``), bare vLLM is started again before every method instead.
"""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import pairwise

from headstart.bench.methods import Method
from headstart.bench.result import Block
from headstart.bench.sample import Sample
from headstart.bench.workloads import Item, Workload
from headstart.engine.headstart import Headstart
from headstart.errors import BenchError, HeadstartError

Start = Callable[[Method], Headstart]
Played = list[Sample]
MAX_WHY = 400  # characters of an engine's complaint
TURN = 3  # answers of each stream before the other engine is asked


@dataclass(frozen=True)
class Course:
    """How often, and from when on answers count."""

    rounds: int = 2
    settle: int = 3
    """The first answers of each stream are asked, kept and not counted."""
    apart: bool = False
    """One engine at a time, where two do not fit."""


@dataclass
class Run:
    """A bench as it goes. `samples` and `blocks` grow; nothing is ever taken out of them."""

    start: Start
    methods: Sequence[Method]
    """Bare vLLM first."""
    workloads: Sequence[Workload]
    course: Course
    on_progress: Callable[[str], None] = lambda _: None
    samples: list[Sample] = field(default_factory=list)
    blocks: list[Block] = field(default_factory=list)
    unmeasured: dict[str, str] = field(default_factory=dict)
    """Methods whose engine did not start, and why; the others are measured all the same."""

    def run(self) -> None:
        """All rounds; the methods take turns in being first."""
        bare, *others = self.methods
        if not others:
            raise BenchError("nothing to compare with bare vLLM: choose at least one method")
        for number in range(self.course.rounds):
            turn = number % len(others)
            streams = {work.name: _streams(work, number) for work in self.workloads}
            for work in self.workloads:
                short = min(len(items) for items in streams[work.name])
                if short <= self.course.settle:
                    raise BenchError(
                        f"{work.name} has {short} clips, and {self.course.settle} only warm up:"
                        " ask for more answers, or settle after fewer"
                    )
            ordered = [*others[turn:], *others[:turn]]
            if self.course.apart:
                for method in ordered:
                    for single in (method, bare):
                        self._round(single, method, number, streams, {})
            else:
                with self._up(bare, number) as plain:
                    for method in ordered:
                        self._round(method, method, number, streams, {bare.name: plain})
        if not self.samples:
            reasons = "; ".join(f"{name}: {why}" for name, why in self.unmeasured.items())
            raise BenchError(f"no method could be started. {reasons}")

    def _round(
        self,
        method: Method,
        beside: Method,
        number: int,
        streams: dict[str, list[Sequence[Item]]],
        running: dict[str, Headstart],
    ) -> None:
        """One method, or bare vLLM for it, from its start to its end."""
        if beside.name in self.unmeasured:
            return
        try:
            engine = self._up(method, number)
        except HeadstartError as error:
            if method is not beside:
                raise
            self.unmeasured[method.name] = " ".join(str(error).split())[:MAX_WHY]
            return
        with engine:
            self._play({**running, method.name: engine}, beside.name, number, streams)

    def _up(self, method: Method, number: int) -> Headstart:
        self.on_progress(f"round {number + 1} of {self.course.rounds}: starting {method.name}")
        return self.start(method)

    def _play(
        self,
        engines: dict[str, Headstart],
        beside: str,
        number: int,
        streams: dict[str, list[Sequence[Item]]],
    ) -> None:
        for place, work in enumerate(self.workloads):
            names = " and ".join(engines)
            progress = f"round {number + 1} of {self.course.rounds}: {names}, {work.name}"
            self.on_progress(progress)
            # Whoever goes first changes every time.
            order = sorted(engines, reverse=bool((number + place) % 2))
            if work.num_streams == 1:
                self._alternate(engines, order, work, beside, number, streams[work.name][0])
            else:
                self._crowd(engines, order, work, beside, number, streams[work.name])

    def _alternate(
        self,
        engines: dict[str, Headstart],
        order: list[str],
        work: Workload,
        beside: str,
        number: int,
        items: Sequence[Item],
    ) -> None:
        taken: dict[str, list[Sample]] = {name: [] for name in order}
        try:
            for index, item in enumerate(items):
                for name in order if index % 2 else reversed(order):
                    sample = self._ask(engines[name], name, work, beside, (number, 0, index), item)
                    taken[name].append(sample)
        finally:  # what was measured before an interruption is measured
            for name, samples in taken.items():
                self.samples += samples
                counted = [sample for sample in samples if sample.settled]
                if counted:
                    seconds = sum(sample.end_to_end_s for sample in counted)
                    tokens = sum(sample.num_tokens for sample in counted)
                    self.blocks.append(Block(work.name, name, beside, number, seconds, tokens))

    def _crowd(
        self,
        engines: dict[str, Headstart],
        order: list[str],
        work: Workload,
        beside: str,
        number: int,
        streams: list[Sequence[Item]],
    ) -> None:
        """All streams at once on one engine, then on the other, a few answers at a time."""
        taken: dict[str, list[Sample]] = {name: [] for name in order}
        seconds = dict.fromkeys(order, 0.0)
        settle, num_answers = self.course.settle, min(len(items) for items in streams)
        starts = [0, *range(settle or TURN, num_answers, TURN)]
        for turn, (start, stop) in enumerate(pairwise([*starts, num_answers])):
            for name in order if turn % 2 else reversed(order):

                def play(stream: int, name: str = name, part: range = range(start, stop)) -> Played:
                    return [
                        self._ask(
                            engines[name],
                            name,
                            work,
                            beside,
                            (number, stream, index),
                            streams[stream][index],
                        )
                        for index in part
                    ]

                begun_s = time.monotonic()
                with ThreadPoolExecutor(len(streams)) as pool:
                    for samples in pool.map(play, range(len(streams))):
                        taken[name] += samples
                if start >= settle:
                    seconds[name] += time.monotonic() - begun_s
        for name, samples in taken.items():
            tokens = sum(sample.num_tokens for sample in samples if sample.settled)
            self.samples += samples
            self.blocks.append(Block(work.name, name, beside, number, seconds[name], tokens))

    def _ask(
        self,
        engine: Headstart,
        name: str,
        work: Workload,
        beside: str,
        place: tuple[int, int, int],
        item: Item,
    ) -> Sample:
        number, stream, index = place
        # A tenant of its own each time: an engine that is asked the same again knows nothing of it.
        tenant = f"{work.name}/{beside}/{number}/{stream}"
        session = engine.session(f"stream-{stream}", tenant)
        asked_s = time.monotonic()
        answer = session.ask(
            item.clip, item.question, max_tokens=work.max_tokens, schema=work.schema
        )
        return Sample.of(
            answer,
            asked_s,
            time.monotonic(),
            workload=work.name,
            method=name,
            beside=beside,
            round=number,
            stream=stream,
            index=index,
            settled=index >= self.course.settle,
        )


def _streams(work: Workload, number: int) -> list[Sequence[Item]]:
    return [work.camera(number, stream) for stream in range(work.num_streams)]
