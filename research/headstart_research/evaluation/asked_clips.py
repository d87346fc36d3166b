"""Clips of collected records, and what a target said to every question about each of them."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from headstart.errors import EvaluationError
from headstart_research.collect.clip_source import LAB
from headstart_research.collect.manifest import Manifest
from headstart_research.collect.record import Record
from headstart_research.collect.shard_files import collected


@dataclass(frozen=True, eq=False, slots=True)
class AskedClip:
    """One clip of a stream."""

    asked: Mapping[str, Record]
    """By question."""

    @property
    def digest(self) -> str:
        return next(iter(self.asked.values())).clip_digest


@dataclass(frozen=True, eq=False)
class AskedStreams:
    """All clips of a folder of records, by stream and in order."""

    manifest: Manifest
    streams: Mapping[str, tuple[AskedClip, ...]]

    @classmethod
    def read(cls, folder: Path) -> Self:
        """Read a folder of `headstart collect` that is to be measured on."""
        manifest = Manifest.read(folder)
        if not manifest.questions:
            raise EvaluationError(
                f"{folder} was collected from a log, which has no clips: give records of"
                " recordings or of the lab's held-out drives"
            )
        if manifest.source == LAB:
            raise EvaluationError(
                f"{folder} holds drives of the lab that drafters learn from: collect others to"
                " measure on with headstart collect --held-out"
            )
        by_clip: dict[str, dict[int, dict[str, Record]]] = defaultdict(lambda: defaultdict(dict))
        for record in collected(folder):
            if not record.answer_ids:
                raise EvaluationError(
                    f"{folder} holds an empty answer, of {record.stream} to {record.question!r}:"
                    " collect with a target that answers"
                )
            by_clip[record.stream][record.clip][record.question] = record
        if not by_clip:
            raise EvaluationError(f"{folder} holds no records yet: let headstart collect fill it")
        streams = {
            stream: tuple(AskedClip(asked) for _, asked in sorted(clips.items()))
            for stream, clips in sorted(by_clip.items())
        }
        return cls(manifest, streams)

    @property
    def digests(self) -> frozenset[str]:
        return frozenset(clip.digest for clips in self.streams.values() for clip in clips)
