"""A drafter sees what it is shown, and nothing else."""

import numpy as np
import pytest

pytest.importorskip("pyarrow", reason="needs headstart[train]")

from headstart_research.bench.replay import DraftLimits, replay
from headstart_research.bridge.pooling import DRAFTER, EARLIER, LAST
from headstart_research.evaluation.asked_clips import AskedStreams
from headstart_research.evaluation.shown import SELECTIONS, Shown
from headstart_research.evaluation.workload import workloads
from tests.evaluation.made_up import Seer, write_records


@pytest.fixture
def stream(tmp_path):
    write_records(tmp_path, {"a": [{"What?": (1, 2)}, {"What?": (3,)}]})
    (work,) = workloads(AskedStreams.read(tmp_path))
    return work.streams[0]


@pytest.mark.parametrize(
    ("selection", "names"),
    [
        ("none", ()),
        ("events", (DRAFTER,)),
        ("target", (LAST, EARLIER)),
        ("both", (LAST, EARLIER, DRAFTER)),
    ],
)
def test_the_selected_features_of_its_own_clip_are_shown(stream, selection, names):
    seer = Seer(wants=())
    shown = Shown(seer, SELECTIONS[selection], stream)
    replay([answer.logged for answer in stream], shown, DraftLimits())
    expected = [(f"a/{clip}", dict.fromkeys(names, clip)) for clip in (0, 1)]
    assert seer.seen == (expected if names else [])


def test_a_drafter_is_prepared_before_its_first_draft_as_in_an_engine(stream):
    class Prepared(Seer):
        prepared = ()

        def prepare(self, request_id):
            self.prepared = (*self.prepared, request_id)

    seer = Prepared(wants=())
    Shown(seer, (), stream).begin(stream[0].logged.request)
    assert seer.prepared == ("a/0",)


def test_features_without_rows_are_not_shown(stream):
    stream[0].features[DRAFTER] = np.empty((0, 0), np.float16)
    seer = Seer(wants=())
    shown = Shown(seer, SELECTIONS["both"], stream)
    shown.begin(stream[0].logged.request)
    assert seer.seen == [("a/0", {LAST: 0, EARLIER: 0})]
