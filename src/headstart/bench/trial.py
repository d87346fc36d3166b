"""Asks engines the same questions in turn, so that other load of the machine falls on all alike."""

import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

from headstart.bench.asker import Asker, FrameByFrame, WholeClip
from headstart.bench.result import Block
from headstart.bench.sample import Sample
from headstart.bench.workloads import Item, Workload
from headstart.engine.headstart import Headstart

ANSWERS_PER_TURN = 3


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

    def play(self, work: Workload, order: Sequence[str]) -> None:
        """Ask every engine all of a workload; the engines' order is reversed at every turn.

        After an interruption, the turns that were complete are still kept.
        """
        streams = work.streams(self.round)
        taken: dict[str, list[Sample]] = {name: [] for name in order}
        seconds = dict.fromkeys(order, 0.0)

        if work.site is not None and self.method in self.engines:
            self._warm(work, work.site(self.round))
        askers = {
            (name, stream): self._asker(name, work, stream)
            for name in order
            for stream in range(len(streams))
        }

        def answers(name: str, turn: range, stream: int) -> list[Sample]:
            items, asker = streams[stream], askers[name, stream]
            return [self._ask(name, work, stream, index, asker, items[index]) for index in turn]

        try:
            with ThreadPoolExecutor(len(streams)) as pool:
                for number, turn in enumerate(self._turns(streams)):
                    for name in order if number % 2 else reversed(order):
                        begun_s = time.monotonic()
                        played = list(pool.map(partial(answers, name, turn), range(len(streams))))
                        if turn.start >= self.warmup:
                            seconds[name] += time.monotonic() - begun_s
                        taken[name] += [sample for samples in played for sample in samples]
        finally:
            for name, samples in taken.items():
                self.samples.extend(samples)
                tokens = sum(sample.num_tokens for sample in samples if sample.settled)
                if tokens:
                    self.blocks.append(
                        Block(work.name, name, self.method, self.round, seconds[name], tokens)
                    )

    def _turns(self, streams: Sequence[Sequence[Item]]) -> list[range]:
        """The answers that an engine gives before the other is asked.

        That is one answer of a single stream, and of several streams at once a few each. The
        warm-up is a turn of its own there, so that its time can be left out.
        """
        num_answers = min(len(items) for items in streams)
        if len(streams) == 1:
            starts = list(range(num_answers))
        else:
            first = self.warmup or ANSWERS_PER_TURN
            starts = [0, *range(first, num_answers, ANSWERS_PER_TURN)]
        return [range(start, stop) for start, stop in pairwise([*starts, num_answers])]

    def _warm(self, work: Workload, items: Sequence[Item]) -> None:
        """Let the method's engine answer for another camera of the site."""
        for stream in range(work.num_streams):
            other = self.engines[self.method].session("another camera", self._tenant(work, stream))
            asker = WholeClip(other, work)
            for item in items:
                asker.ask(item)

    def _tenant(self, work: Workload, stream: int) -> str:
        # A new tenant each time: nothing an engine remembers of an earlier trial is used.
        return f"{work.name}/{self.method}/{self.round}/{stream}"

    def _asker(self, name: str, work: Workload, stream: int) -> Asker:
        session = self.engines[name].session(f"stream-{stream}", self._tenant(work, stream))
        if work.is_live and self.is_fed and name == self.method:
            return FrameByFrame(session, work)
        return WholeClip(session, work)

    def _ask(
        self, name: str, work: Workload, stream: int, index: int, asker: Asker, item: Item
    ) -> Sample:
        asked = asker.ask(item)
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
