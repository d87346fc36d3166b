"""A collection that is broken off anywhere and run again is one that was never broken off."""

import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("pyarrow", reason="needs headstart[train]")

from headstart.errors import CollectError, MediaError
from headstart.media.clip import Clip
from headstart.media.events import Events, SensorSize
from headstart.media.video import Video
from headstart_research.bridge.pooling import DRAFTER, EARLIER, LAST
from headstart_research.collect.clip_source import ClipSource
from headstart_research.collect.collection import Collection
from headstart_research.collect.models import CollectedModels
from headstart_research.collect.shard import Shard
from headstart_research.collect.shard_files import collected
from tests.collect.records import by_place
from tests.collect.silent import Silent
from tests.collect.test_manifest import write_model

QUESTIONS = ("What?", "Who?", "Where?")
NUM_CLIPS = 5


NO_EVENTS = Events.empty(SensorSize(4, 4))


@dataclass(frozen=True)
class Numbered:
    """A stream whose clips show their number."""

    name: str
    read: list = field(default_factory=list)
    events: Events | None = NO_EVENTS

    def count(self):
        return 100

    def clips(self, num_frames, leave_out=frozenset()):
        for number in range(self.count()):
            if number not in leave_out:
                self.read.append(number)
                frames = np.full((num_frames, 4, 4, 3), number, np.uint8)
                yield number, Clip(Video.from_frames(frames, 8.0), self.events)


class Seer:
    """Stands for a model: what it sees and says depends on the clip and the question alone."""

    view = SimpleNamespace(num_frames=3)

    def __init__(self, fail_after=None):
        self.asked, self.fail_after = [], fail_after
        self.lock = threading.Lock()

    def observe(self, clip, questions, max_tokens):
        shown = int(clip.video.frames[0, 0, 0, 0])
        with self.lock:
            if len(self.asked) == self.fail_after:
                raise MediaError("the machine went down: start again")
            self.asked.append(shown)
        said = [
            SimpleNamespace(
                question=question,
                prompt_ids=(1, len(question)),
                token_ids=(shown, place),
                finish_reason="stop",
            )
            for place, question in enumerate(questions)
        ]
        return SimpleNamespace(said=said, items=self.look(clip))

    def look(self, clip):
        return [np.full((4, 2), frame.mean(), np.float16) for frame in clip.video.frames]


@pytest.fixture
def models(tmp_path):
    target = write_model(tmp_path / "target").name
    return CollectedModels(target, write_model(tmp_path / "drafter").name)


def source(*names, num_clips=NUM_CLIPS):
    return ClipSource("test", [Numbered(name) for name in names], QUESTIONS, num_clips)


def run(collection, models, streams, seer, at_once=1):
    progress = Silent()

    @contextmanager
    def start(given):
        assert given is models
        yield seer, seer

    counts = collection.collect_clips(models, streams, progress, start=start, at_once=at_once)
    assert progress.done == progress.expected == counts.new
    return counts


def test_every_question_about_every_clip_is_a_record(tmp_path, models):
    counts = run(Collection(tmp_path / "out"), models, source("a", "b"), Seer())
    records = by_place(collected(tmp_path / "out"))
    assert counts.in_all == len(records) == 2 * NUM_CLIPS * len(QUESTIONS)
    for (stream, index), record in records.items():
        clip, place = divmod(index, len(QUESTIONS))
        assert record["clip"] == clip
        assert record["question"] == QUESTIONS[place]
        assert record["answer_ids"] == (clip, place), stream
        assert {name: shape for name, (shape, _) in record["features"].items()} == {
            LAST: (4, 2),
            EARLIER: (4, 2),
            DRAFTER: (12, 2),
        }


def test_no_clip_beyond_those_wanted_is_read(tmp_path, models):
    streams = source("a", "b")
    run(Collection(tmp_path / "out"), models, streams, Seer())
    assert [stream.read for stream in streams.streams] == [list(range(NUM_CLIPS))] * 2


@pytest.mark.parametrize("at_once", [1, 3])
@pytest.mark.parametrize("fail_after", [0, 1, 4, 9])
def test_a_broken_run_that_goes_on_equals_an_unbroken_one(tmp_path, models, fail_after, at_once):
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    run(Collection(whole), models, source("a", "b"), Seer())
    collection = Collection(broken, clips_a_file=2)
    with pytest.raises(MediaError):
        run(collection, models, source("a", "b"), Seer(fail_after), at_once)
    kept = len(list(collected(broken))) // len(QUESTIONS)
    seer = Seer()
    counts = run(collection, models, source("a", "b"), seer, at_once)
    assert len(seer.asked) == 2 * NUM_CLIPS - kept
    assert counts.new == len(seer.asked) * len(QUESTIONS)
    assert by_place(collected(broken)) == by_place(collected(whole))


def test_shards_together_are_the_whole(tmp_path, models):
    names = [f"drive-{number}" for number in range(8)]
    run(Collection(tmp_path / "whole"), models, source(*names), Seer())
    counts = [
        run(Collection(tmp_path / "parts", Shard(n, 2)), models, source(*names), Seer()).new
        for n in (1, 2)
    ]
    assert all(counts)
    assert by_place(collected(tmp_path / "parts")) == by_place(collected(tmp_path / "whole"))


def test_a_collection_may_grow_by_streams_and_by_clips(tmp_path, models):
    run(Collection(tmp_path / "whole"), models, source("a", "b"), Seer())
    run(Collection(tmp_path / "grown"), models, source("a", num_clips=2), Seer())
    run(Collection(tmp_path / "grown"), models, source("a", "b"), Seer())
    assert by_place(collected(tmp_path / "grown")) == by_place(collected(tmp_path / "whole"))


def test_a_finished_collection_starts_no_model(tmp_path, models):
    run(Collection(tmp_path / "out"), models, source("a"), Seer())

    def refuse(given):
        raise AssertionError("nothing is left to ask")

    collection = Collection(tmp_path / "out")
    counts = collection.collect_clips(models, source("a"), Silent(), start=refuse)
    assert counts.new == 0
    assert counts.in_all == NUM_CLIPS * len(QUESTIONS)


def test_other_weights_do_not_go_on_in_the_same_folder(tmp_path, models):
    run(Collection(tmp_path / "out"), models, source("a"), Seer())
    write_model(tmp_path / "target", weights=b"trained further")
    with pytest.raises(CollectError, match="other target"):
        run(Collection(tmp_path / "out"), models, source("a"), Seer())


def test_a_recording_without_events_is_refused_where_a_drafter_looks(tmp_path, models):
    blind = ClipSource("test", [Numbered("front", events=None)], QUESTIONS, NUM_CLIPS)
    with pytest.raises(CollectError, match="front has no events"):
        run(Collection(tmp_path / "out"), models, blind, Seer())


def test_a_clip_in_which_nothing_moved_has_no_rows_of_the_drafter(tmp_path, models):
    class Still(Seer):
        def look(self, clip):
            raise MediaError("0 events cannot be cut into 5 slices")

        def observe(self, clip, questions, max_tokens):
            return Seer().observe(clip, questions, max_tokens)

    run(Collection(tmp_path / "out"), models, source("a"), Still())
    for record in collected(tmp_path / "out"):
        assert record.features[DRAFTER].shape == (0, 0)
        assert record.features[LAST].shape == (4, 2)


@pytest.mark.parametrize("questions", [(), ("What?", "What?")])
def test_questions_that_give_no_record_each_are_refused(questions):
    with pytest.raises(CollectError, match="--question"):
        ClipSource("test", [], questions)
