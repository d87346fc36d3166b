"""A collection: a folder that fills with records, run after run, shard beside shard."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from headstart.errors import CollectError
from headstart_research.collect.answer_rows import logged_pieces, logged_records
from headstart_research.collect.checkpoint import Checkpoint
from headstart_research.collect.clip_questions import ClipQuestions
from headstart_research.collect.clip_source import ClipSource
from headstart_research.collect.gathering import gather
from headstart_research.collect.manifest import Manifest, licence_of
from headstart_research.collect.models import CollectedModels
from headstart_research.collect.shard import Shard
from headstart_research.collect.shard_files import CLIPS_A_FILE, ShardFiles

Start = Callable[[CollectedModels], AbstractContextManager[tuple[Any, Any]]]
"""Starts the models; `CollectedModels.started` does."""


class Progress(Protocol):
    """Who is told how far it is."""

    def expect(self, num_records: int) -> None:
        """So many are left to collect."""

    def advance(self, num_records: int) -> None:
        """So many more were collected."""


@dataclass(frozen=True)
class Counts:
    """Records of a shard."""

    in_all: int
    new: int
    """In this run."""


@dataclass(frozen=True)
class Collection:
    """Where records go, and which part of them is collected here."""

    folder: Path
    shard: Shard = Shard()  # noqa: RUF009 - frozen
    licence: str | None = None
    """Of the records; None takes what the models' cards say."""
    clips_a_file: int = CLIPS_A_FILE

    def collect_clips(
        self,
        models: CollectedModels,
        source: ClipSource,
        progress: Progress,
        *,
        start: Start = CollectedModels.started,
        at_once: int = 4,
    ) -> Counts:
        """Ask about every clip that is not there yet. The models start only if there is one."""
        target = Checkpoint.of(models.target)
        drafter = None if models.drafter is None else Checkpoint.of(models.drafter)
        Manifest(
            target=target,
            drafter=drafter,
            source=source.name,
            questions=source.questions,
            features=models.features,
            num_shards=self.shard.count,
            settings=models.settings(),
            licence=licence_of(self.licence, [target, drafter]),
        ).settle(self.folder)
        with self._files(models.features) as files:
            mine, before = source.mine(self.shard), files.num_records
            left = sum(len(set(range(count)) - files.done[stream.name]) for stream, count in mine)
            progress.expect(left * len(source.questions))
            if left:
                with start(models) as (seer, tower):
                    asker = ClipQuestions(seer, tower, source.questions, models.max_tokens)
                    gather(asker.pieces(mine, files.done), files, at_once, progress.advance)
            return Counts(files.num_records, files.num_records - before)

    def collect_log(self, log: Path, tenant: str, target: str, progress: Progress) -> Counts:
        """Take one tenant's answers from a log of the target's. No model is started."""
        records = logged_records(log, tenant, self.shard)
        if not records and self.shard.count == 1:
            raise CollectError(
                f"{log} holds no answer of the tenant {tenant!r}: name one that its rows name, or"
                " '' for rows without a tenant"
            )
        model = Checkpoint.of(target)
        Manifest(
            target=model,
            source=f"log {log.name} of tenant {tenant!r}",
            num_shards=self.shard.count,
            licence=licence_of(self.licence, [model]),
        ).settle(self.folder)
        with self._files(()) as files:
            before = files.num_records
            pieces = list(logged_pieces(records, files.done))
            progress.expect(len(pieces))
            gather(pieces, files, 1, progress.advance)
            return Counts(files.num_records, files.num_records - before)

    def _files(self, features: tuple[str, ...]) -> ShardFiles:
        return ShardFiles(self.folder, self.shard, features, self.clips_a_file)
