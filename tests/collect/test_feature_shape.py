"""The shapes of features: of all shards, and of one model."""

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("pyarrow", reason="needs headstart[train]")

from headstart.errors import CollectError
from headstart_research.bridge.pooling import EARLIER, LAST
from headstart_research.collect.feature_shape import FeatureShape, feature_shapes
from headstart_research.collect.record import Record
from headstart_research.collect.shard import Shard
from headstart_research.collect.shard_files import ShardFiles
from tests.collect.records import FEATURES, clip_records


def with_last(records, *shape):
    """The same records, with another feature of the last frame."""
    last = np.zeros(shape, np.float16)
    return [replace(each, features={**each.features, LAST: last}) for each in records]


def write(folder, *clips, shard=Shard(), features=FEATURES):  # noqa: B008 - frozen
    with ShardFiles(folder, shard, features, clips_a_file=1) as files:
        for records in clips:
            files.add(records)


def test_shapes_are_those_of_all_files_of_all_shards(tmp_path):
    write(tmp_path, clip_records("a", 0), clip_records("a", 1), shard=Shard(1, 2))
    write(tmp_path, with_last(clip_records("b", 0), 9, 3), shard=Shard(2, 2))
    assert feature_shapes(tmp_path) == {LAST: FeatureShape(5, 9, 3), EARLIER: FeatureShape(4, 4, 3)}
    assert list(map(str, feature_shapes(tmp_path).values())) == ["[5 to 9, 3]", "[4, 3]"]


def test_a_clip_without_tokens_leaves_the_size_to_the_others(tmp_path):
    write(tmp_path, with_last(clip_records("a", 0), 0, 0))
    assert feature_shapes(tmp_path)[LAST] == FeatureShape(0, 0, 0)
    write(tmp_path, clip_records("a", 1))
    assert feature_shapes(tmp_path)[LAST] == FeatureShape(0, 5, 3)


def test_vectors_of_several_sizes_are_of_several_models(tmp_path):
    write(tmp_path, clip_records("a", 0), with_last(clip_records("a", 1), 5, 4))
    with pytest.raises(CollectError, match="target_last has vectors of 3, 4 numbers"):
        feature_shapes(tmp_path)


def test_records_of_a_log_and_an_empty_folder_have_none(tmp_path):
    assert feature_shapes(tmp_path) == {}
    write(tmp_path, [Record("", 0, 0, "", "What?", (), (5, 6), "stop")], features=())
    assert feature_shapes(tmp_path) == {}


def test_a_damaged_file_is_named(tmp_path):
    write(tmp_path, clip_records("a", 0))
    (file,) = tmp_path.glob("*/*.parquet")
    file.write_bytes(file.read_bytes()[:100])
    with pytest.raises(CollectError, match="delete it"):
        feature_shapes(tmp_path)
