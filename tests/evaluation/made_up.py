"""Made-up records: folders as `headstart collect` writes them, and a drafter that sees."""

from dataclasses import dataclass, field

import numpy as np

from headstart_research.bridge.config import BridgeConfig, Verifier, write_config
from headstart_research.bridge.pooling import DRAFTER, EARLIER, LAST
from headstart_research.collect.checkpoint import Checkpoint
from headstart_research.collect.clip_source import HELD_OUT
from headstart_research.collect.manifest import Manifest
from headstart_research.collect.record import Record
from headstart_research.collect.shard import Shard
from headstart_research.collect.shard_files import ShardFiles

TARGET = Checkpoint("target", "abc", "def", None)
FEATURES = (LAST, EARLIER, DRAFTER)
VIDEO = 900


def answers_of(seed, num_tokens=12):
    """An answer like no other."""
    return tuple(np.random.default_rng(seed).integers(1000, 2**20, num_tokens).tolist())


def features_of(number, names=FEATURES):
    """That tell clips apart."""
    return {name: np.full((3, 2), number, np.float16) for name in names}


def write_records(folder, streams, source=HELD_OUT, target=TARGET, features=FEATURES, name=""):
    """``streams``: by name, for each clip the answers by question; ``name`` sets clips apart."""
    questions = tuple(next(iter(streams.values()))[0]) if streams else ("What?",)
    manifest = Manifest(target, source, 1, "none", questions=questions, features=features)
    manifest.settle(folder)
    with ShardFiles(folder, Shard(), features, clips_a_file=2) as files:
        for stream, clips in streams.items():
            for number, answers in enumerate(filter(None, clips)):
                seen = features_of(number, features)
                files.add(
                    [
                        Record(
                            stream=stream,
                            index=number * len(questions) + place,
                            clip=number,
                            clip_digest=f"{name}{stream}-{number}",
                            question=question,
                            prompt_ids=(1, 2, *[VIDEO] * 5, 50 + place, 3),
                            answer_ids=tuple(answer),
                            finish_reason="stop",
                            features=seen,
                        )
                        for place, (question, answer) in enumerate(answers.items())
                    ]
                )
    return folder


def bridge_directory(directory, target=TARGET):
    """As `headstart train bridge` leaves one for this target, without weights."""
    directory.mkdir(parents=True)
    verifier = Verifier(target.name, (), target.digest, target.tokenizer, 2**20)
    write_config(directory, BridgeConfig(100), verifier)
    return directory


@dataclass
class Seer:
    """A drafter that knows every answer, and drafts it if it was shown one of ``wants``."""

    answers: dict = field(default_factory=dict)
    """By stream and question, in order."""
    wants: tuple = (LAST,)
    seen: list = field(default_factory=list)
    name: str = "seer"

    def __post_init__(self):
        self.sees, self.requests = {}, {}

    def begin(self, request):
        self.requests[request.id] = request

    def see(self, request_id, features):
        assert request_id in self.requests
        self.sees[request_id] = features
        self.seen.append((request_id, {name: int(a[0, 0]) for name, a in features.items()}))

    def propose(self, request_id, confirmed, max_tokens):
        if not set(self.wants) & set(self.sees.get(request_id, ())):
            return ()
        stream, _, place = request_id.rpartition("/")
        answer = self.answers[stream][int(place)][self.requests[request_id].question]
        return answer[len(confirmed) :][:max_tokens]

    def finish(self, request_id, answer):
        del self.requests[request_id]
