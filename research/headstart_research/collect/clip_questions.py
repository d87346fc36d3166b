"""Asks every question about every clip of a shard, and makes records of the answers."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from headstart.errors import CollectError, MediaError
from headstart.media.clip import Clip
from headstart.speculation.drafter import Features
from headstart_research.bench.clip_stream import ClipStream
from headstart_research.bridge.pooling import drafter_features, target_features
from headstart_research.collect.gathering import Piece
from headstart_research.collect.record import Record

if TYPE_CHECKING:
    from headstart_research.collect.observer import Observer

_NUM_FRAMES = 8  # of a target that is shown none, so that its clips are cut alike


@dataclass(frozen=True)
class ClipQuestions:
    """What is asked, and of which models. May be used from several threads at once."""

    target: "Observer"
    drafter: "Observer | None"
    questions: tuple[str, ...]
    max_tokens: int

    def pieces(
        self, streams: Iterable[tuple[ClipStream, int]], done: Mapping[str, set[int]]
    ) -> Iterator[Piece]:
        """The work on each clip that is not done yet, in order; clips are read one ahead."""
        for stream, count in streams:
            known = frozenset(done.get(stream.name, ()))
            if known.issuperset(range(count)):
                continue
            for number, clip in stream.clips(self.target.view.num_frames or _NUM_FRAMES, known):
                if number < count:
                    yield partial(self.records, stream.name, number, clip)
                if number + 1 >= count:
                    break

    def records(self, stream: str, number: int, clip: Clip) -> list[Record]:
        observed = self.target.observe(clip, self.questions, self.max_tokens)
        features = target_features(observed.items)
        if self.drafter is not None:
            features |= drafter_features(_looked(self.drafter, stream, clip))
        digest = clip.digest()
        return [
            Record(
                stream=stream,
                index=number * len(self.questions) + place,
                clip=number,
                clip_digest=digest,
                question=said.question,
                prompt_ids=said.prompt_ids,
                answer_ids=said.token_ids,
                finish_reason=said.finish_reason,
                features=features,
            )
            for place, said in enumerate(observed.said)
        ]


def _looked(drafter: "Observer", stream: str, clip: Clip) -> tuple[Features, ...]:
    """What the drafter's tower sees of a clip; nothing where too little moved to be drawn."""
    if clip.events is None:
        raise CollectError(
            f"{stream} has no events beside its frames, and the drafter looks at events: leave"
            " --draft-model out, or put the recording into another folder"
        )
    try:
        return drafter.look(clip)
    except MediaError:
        return ()
