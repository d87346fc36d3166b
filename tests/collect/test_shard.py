"""Every stream is in one shard, on every machine the same one."""

import pytest

from headstart.errors import CollectError
from headstart_research.collect.shard import Shard

STREAMS = [f"drive-{number}" for number in range(1000)]


def test_every_stream_is_in_exactly_one_shard():
    shards = [Shard(number, 7) for number in range(1, 8)]
    held = [[shard.holds(stream) for shard in shards] for stream in STREAMS]
    assert all(sum(each) == 1 for each in held)
    counts = [sum(column) for column in zip(*held, strict=True)]
    assert min(counts) > 100  # of 143 on average


def test_the_shard_of_a_stream_is_the_same_in_every_version():
    # A change would ask again what other shards have already.
    held = [stream for stream in STREAMS[:12] if Shard(2, 3).holds(stream)]
    assert held == ["drive-1", "drive-2", "drive-5", "drive-6", "drive-7", "drive-11"]


@pytest.mark.parametrize("text", ["", "2", "0/2", "3/2", "1/0", "a/b", "-1/2", "1/2/3"])
def test_what_is_no_shard_is_refused(text):
    with pytest.raises(CollectError, match="2/8"):
        Shard.parse(text)


def test_a_shard_reads_as_it_is_written():
    assert str(Shard.parse("2/8")) == "2/8"
    assert Shard() == Shard(1, 1)
