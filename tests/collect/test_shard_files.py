"""Which clips a shard has, whatever ended the process before."""

import signal
import subprocess
import sys

import pytest

pytest.importorskip("pyarrow", reason="needs headstart[train]")

from headstart_research.collect import shard_files
from headstart_research.collect.shard import Shard
from headstart_research.collect.shard_files import ShardFiles, collected
from tests.collect.records import FEATURES, by_place, clip_records, content

WHOLE = Shard()


def opened(folder, shard=WHOLE, clips_a_file=2):
    return ShardFiles(folder, shard, FEATURES, clips_a_file)


def test_a_second_run_knows_what_the_first_has_finished(tmp_path):
    with opened(tmp_path) as files:
        for clip in range(3):
            files.add(clip_records("front", clip))
        assert files.done["front"] == {0, 1}  # the third waits for its file
    with opened(tmp_path) as files:
        assert files.done["front"] == {0, 1, 2}
        assert files.num_records == 6
        files.add(clip_records("front", 3))
    expected = [record for clip in range(4) for record in clip_records("front", clip)]
    assert by_place(collected(tmp_path)) == by_place(expected)


def test_large_features_fill_a_file_sooner(tmp_path, monkeypatch):
    monkeypatch.setattr(shard_files, "BYTES_A_FILE", 2 * 9 * 1000 * 2)  # of two clips
    with opened(tmp_path, clips_a_file=100) as files:
        for clip in range(5):
            files.add(clip_records("front", clip, size=1000))
        assert files.done["front"] == {0, 1, 2, 3}
    assert len(list(tmp_path.glob("*/*.parquet"))) == 3


KILLED = """
import os, signal, sys
from pathlib import Path
from tests.collect.records import FEATURES, clip_records
from headstart_research.collect import record_table
from headstart_research.collect.shard import Shard
from headstart_research.collect.shard_files import ShardFiles

files = ShardFiles(Path(sys.argv[1]), Shard(), FEATURES, 2)
for clip in range(2):
    files.add(clip_records("front", clip))
# In the middle of the second file: its bytes are there, and its name is not.
record_table.os.fsync = lambda handle: os.kill(os.getpid(), signal.SIGKILL)
for clip in range(2, 4):
    files.add(clip_records("front", clip))
"""


def test_a_kill_in_the_middle_of_a_file_leaves_the_files_before_it(tmp_path):
    done = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)], check=False)
    assert done.returncode == -signal.SIGKILL
    assert list(tmp_path.glob("*/*.partial"))
    with opened(tmp_path) as files:
        assert not list(tmp_path.glob("*/*.partial"))
        assert files.done["front"] == {0, 1}
        files.add(clip_records("front", 2))
    expected = [record for clip in range(3) for record in clip_records("front", clip)]
    assert by_place(collected(tmp_path)) == by_place(expected)


OPENED = """
import sys
from pathlib import Path
from headstart_research.collect.shard import Shard
from headstart_research.collect.shard_files import ShardFiles
from headstart.errors import CollectError

try:
    ShardFiles(Path(sys.argv[1]), Shard.parse(sys.argv[2]), (), 2).close()
except CollectError as error:
    print(error)
"""


def test_two_processes_do_not_collect_the_same_shard(tmp_path):
    def said(shard):
        words = [sys.executable, "-c", OPENED, str(tmp_path), shard]
        return subprocess.run(words, capture_output=True, text=True, check=True).stdout

    with opened(tmp_path, Shard(1, 2)):
        assert "another process collects shard 1/2" in said("1/2")
        assert not said("2/2")
    assert not said("1/2")


def test_records_can_be_read_without_their_features(tmp_path):
    with opened(tmp_path) as files:
        files.add(clip_records("a", 0))
    whole, bare = list(collected(tmp_path)), list(collected(tmp_path, features=False))
    assert [record.features for record in bare] == [{}] * len(whole)
    assert [{**content(record), "features": {}} for record in whole] == list(map(content, bare))
