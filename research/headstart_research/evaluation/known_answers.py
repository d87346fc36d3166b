"""Answers that drafters may know before the held-out ones: those of other clips."""

from copy import deepcopy
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Self

from headstart.drafters.memory import Memory
from headstart.errors import EvaluationError
from headstart_research.collect.learnable import learnable_answers, learnable_manifest
from headstart_research.collect.record import Record
from headstart_research.evaluation.asked_clips import AskedStreams
from headstart_research.evaluation.workload import TENANT


@dataclass(frozen=True, eq=False)
class KnownAnswers:
    """Records without features, one stream after another; none where nothing is known."""

    records: tuple[Record, ...] = ()

    @classmethod
    def read(cls, folder: Path, held_out: AskedStreams) -> Self:
        """Read a folder of `headstart collect`.

        Refused where drafters would know what they are measured on, or another model's words.
        """
        if learnable_manifest(folder).target.digest != held_out.manifest.target.digest:
            raise EvaluationError(
                f"{folder} holds answers of another target, as its manifest says: collect both"
                " folders from the same model"
            )
        records = learnable_answers(folder)
        if held_out.digests & {record.clip_digest for record in records}:
            raise EvaluationError(
                f"{folder} holds clips that are measured on as well: learn from other recordings"
            )
        return cls(tuple(records))

    def memory(self) -> Memory:
        """A new one that knows them, as in an engine with a memory log; else one that is cold."""
        if not self.records:
            return Memory(warm=False)
        return deepcopy(self._seeded)  # to seed each anew would take longer than all else

    @cached_property
    def _seeded(self) -> Memory:
        seeded = Memory()
        for record in self.records:
            seeded.seed(TENANT, record.question, record.answer_ids)
        return seeded
