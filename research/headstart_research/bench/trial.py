"""Asks engines the same questions in turn, so that other load of the machine falls on all alike."""

import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial

from headstart.engine.headstart import Headstart
from headstart_research.bench.asker import Asked, Asker, FrameByFrame, WholeClip
from headstart_research.bench.open_loop import Arrival, ask_on_arrival
from headstart_research.bench.result import Block
from headstart_research.bench.sample import Sample
from headstart_research.bench.throughput import Throughput
from headstart_research.bench.workloads import Item, Workload

COUNTED_TURNS = 2
"""Of each engine in a closed loop of several streams, after the warm-up. Within a turn no stream
waits for another one."""


@dataclass(frozen=True)
class Trial:
    """One method in one round, and the engines that are asked for it: its own, bare vLLM, or both.

    What is measured is appended to ``samples`` and ``blocks``.
    """

    method: str
    round: int
    warmup: int
    """The first answers of each stream, which are measured and do not count."""
    engines: Mapping[str, Headstart]
    samples: list[Sample]
    blocks: list[Block]
    is_fed: bool = False
    """Whether the method prefills the frames of a live workload as they arrive."""
    rest_s: float = 0.0
    """Before one engine is asked after another one."""

    def play(self, work: Workload, order: Sequence[str]) -> None:
        """Ask every engine all of a closed loop; the engines' order is reversed at every turn.

        After an interruption, the turns that were complete are still kept.
        """
        streams = work.streams(self.round)
        taken: dict[str, list[Sample]] = {name: [] for name in order}
        counted: dict[str, list[Throughput]] = {name: [] for name in order}

        if work.site is not None and self.method in self.engines:
            self._warm(work, work.site(self.round))
        askers = {name: self._askers(name, work) for name in order}

        def answers(name: str, turn: range, stream: int) -> list[Asked]:
            return [askers[name][stream].ask(streams[stream][index]) for index in turn]

        try:
            with ThreadPoolExecutor(len(streams)) as pool:
                for number, turn in enumerate(self._turns(streams)):
                    for name in order if number % 2 else reversed(order):
                        self._rest()
                        begun_s = time.monotonic()
                        played = list(pool.map(partial(answers, name, turn), range(len(streams))))
                        if turn.start >= self.warmup:
                            counted[name].append(Throughput.of(played, begun_s))
                        taken[name] += [
                            self._sample(name, work, stream, index, asked)
                            for stream, of_stream in enumerate(played)
                            for index, asked in zip(turn, of_stream, strict=True)
                        ]
        finally:
            for name, samples in taken.items():
                seconds = sum(part.seconds for part in counted[name])
                self._keep(name, work, samples, seconds, sum(p.tokens for p in counted[name]))

    def play_open(self, work: Workload, arriving: Sequence[Arrival], order: Sequence[str]) -> None:
        """Ask every engine the questions of one load at their times, one engine after the other.

        After an interruption, the engines that were done are still kept.
        """
        for name in order:
            self._rest()
            self._keep(name, work, *self._arrived(name, work, arriving))

    def _rest(self) -> None:
        if len(self.engines) > 1:
            time.sleep(self.rest_s)

    def _arrived(
        self, name: str, work: Workload, arriving: Sequence[Arrival]
    ) -> tuple[list[Sample], float, int]:
        """The samples of one engine, the seconds of those that count, and their tokens."""
        streams, askers = work.streams(self.round), self._askers(name, work)

        def answer(arrival: Arrival, arrived_s: float) -> Asked:
            asked = askers[arrival.stream].ask(streams[arrival.stream][arrival.index])
            return replace(asked, asked_s=arrived_s)

        answered = ask_on_arrival(arriving, answer)
        samples = [
            self._sample(name, work, arrival.stream, arrival.index, asked)
            for arrival, asked in zip(arriving, answered, strict=True)
        ]
        counted = [a for a, s in zip(answered, samples, strict=True) if s.settled]
        seconds = max(a.answered_s for a in counted) - min(a.asked_s for a in counted)
        return samples, seconds, sum(len(a.answer.token_ids) for a in counted)

    def _keep(
        self, name: str, work: Workload, samples: Sequence[Sample], seconds: float, tokens: float
    ) -> None:
        self.samples.extend(samples)
        if tokens:
            self.blocks.append(Block(work.name, name, self.method, self.round, seconds, tokens))

    def _turns(self, streams: Sequence[Sequence[Item]]) -> list[range]:
        """The answers of each stream that an engine gives before the other is asked.

        That is one answer of a single stream. Of several streams the warm-up is a turn of its own,
        so that its time can be left out, and the other answers are a few long turns.
        """
        num_answers = min(len(items) for items in streams)
        if len(streams) == 1:
            return [range(index, index + 1) for index in range(num_answers)]
        turns = [range(self.warmup)] if self.warmup else []
        length = -(-(num_answers - self.warmup) // COUNTED_TURNS)
        starts = range(self.warmup, num_answers, length)
        return [*turns, *(range(start, min(start + length, num_answers)) for start in starts)]

    def _warm(self, work: Workload, items: Sequence[Item]) -> None:
        """Let the method's engine answer for another camera of the site."""
        other = self.engines[self.method].session("another camera", self._tenant(work))
        asker = WholeClip(other, work)
        for item in items:
            asker.ask(item)

    def _tenant(self, work: Workload) -> str:
        return tenant_of(work.name, self.method, self.round)

    def _askers(self, name: str, work: Workload) -> list[Asker]:
        return [self._asker(name, work, stream) for stream in range(work.num_streams)]

    def _asker(self, name: str, work: Workload, stream: int) -> Asker:
        session = self.engines[name].session(f"stream-{stream}", self._tenant(work))
        if work.is_live and self.is_fed and name == self.method:
            return FrameByFrame(session, work)
        return WholeClip(session, work)

    def _sample(self, name: str, work: Workload, stream: int, index: int, asked: Asked) -> Sample:
        return Sample.of(
            asked.answer,
            asked.asked_s,
            asked.answered_s,
            workload=work.name,
            method=name,
            beside=self.method,
            round=self.round,
            stream=stream,
            index=index,
            settled=index >= self.warmup,
        )


def tenant_of(workload: str, method: str, number: int) -> str:
    """Whose the cameras of a trial are: all one owner's.

    A new one each time: nothing an engine remembers of an earlier trial is used.
    """
    return f"{workload}/{method}/{number}"
