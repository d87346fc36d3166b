"""A training run, from records on the disk to a bridge that drafts what it sees."""

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs what the engine brings")
pytest.importorskip("pyarrow", reason="needs headstart[train]")

from typer.testing import CliRunner

from headstart.cli import app
from headstart.doctor.digests import changed_files
from headstart.drafters.memory import Memory
from headstart.errors import CollectError, TrainingError
from headstart.speculation.drafter import DraftRequest, StreamKey
from headstart_research.bridge.bridge import Bridge
from headstart_research.bridge.config import BridgeConfig
from headstart_research.bridge.drafter import BridgeDrafter
from headstart_research.bridge.pooling import DRAFTER, EARLIER, LAST
from headstart_research.collect.checkpoint import Checkpoint
from headstart_research.collect.clip_source import HELD_OUT
from headstart_research.collect.manifest import Manifest
from headstart_research.collect.shard import Shard
from headstart_research.collect.shard_files import ShardFiles
from headstart_research.training.bridge_run import BridgeRun, end_tokens, feature_sizes, verifier_of
from headstart_research.training.schedule import TrainSchedule
from tests.bridge import made_up

NAMES = (DRAFTER, EARLIER, LAST)
SIZES = BridgeConfig(1, width=32, num_layers=2, num_heads=2, hidden=64, pointer_width=16)


def write(folder, rows, names=NAMES, source="a folder"):
    with ShardFiles(folder, Shard(), names, 8) as files:
        clips = {}
        for row in rows:
            clips.setdefault((row.stream, row.clip), []).append(row)
        for of_clip in clips.values():
            files.add(of_clip)
    target = folder / "target"
    target.mkdir()
    config = {"architectures": ["Tiny"], "text_config": {"vocab_size": made_up.VOCABULARY_SIZE}}
    (target / "config.json").write_text(json.dumps(config))
    checkpoint = Checkpoint(str(target), "d", "t", None)
    Manifest(checkpoint, source, num_shards=1, licence="none").settle(folder)
    return folder


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    return write(tmp_path_factory.mktemp("records"), made_up.records(num_streams=40))


def run(records, output, steps=6, rate=3e-3, **more):
    schedule = TrainSchedule(steps, 16, rate, num_examinations=2)
    return BridgeRun(records, output, SIZES, schedule, **more).train(
        lambda line: None, lambda name: lambda config, history: None
    )


def weights(directory):
    return (directory / "model.safetensors").read_bytes()


@pytest.fixture(scope="module")
def trained(records, tmp_path_factory):
    return run(records, tmp_path_factory.mktemp("bridge"), steps=300, rate=1e-2)


def test_it_learns_to_name_what_it_sees_and_nothing_else_could(trained):
    """The camera has no answer before this one, so memory knows nothing and the clip decides."""
    rows = made_up.records(num_streams=30, seed=7)
    right = {True: 0, False: 0}
    for shown in (True, False):
        drafter = BridgeDrafter.load(trained, Memory())
        for number, row in enumerate(row for row in rows if row.clip == 0):
            request = DraftRequest(
                str(number), StreamKey("", str(number)), row.question, row.prompt_ids[-2:]
            )
            drafter.begin(request)
            if shown:
                drafter.see(request.id, row.features)
            draft = drafter.propose(request.id, row.answer_ids[:5], 12)
            right[shown] += list(draft[:1]) == list(row.answer_ids[5:6])
            drafter.finish(request.id, ())
    assert right[True] >= 80  # of 90
    assert right[False] <= 50  # a fourth, by luck


def test_after_a_change_it_leaves_memorys_copy_where_the_clip_says_so(trained):
    drafter, memory = BridgeDrafter.load(trained, Memory()), Memory()
    stream = StreamKey("", "camera")
    rows = made_up.records(num_streams=1, num_clips=2, seed=3)
    seen = {0: rows[0].features}
    other = next(
        row
        for row in made_up.records(num_streams=9, seed=5)
        if row.question == rows[0].question and row.answer_ids != rows[0].answer_ids
    )
    for number, row in enumerate((rows[0], other)):
        request = DraftRequest(str(number), stream, row.question, row.prompt_ids[-2:])
        for one in (drafter, memory):
            one.begin(request)
        drafter.see(request.id, seen.get(number, other.features))
        if number:
            assert list(memory.propose(request.id, (), 12)) == list(rows[0].answer_ids)
            assert drafter.propose(request.id, (), 12) == list(other.answer_ids)
        for one in (drafter, memory):
            one.finish(request.id, row.answer_ids)


def test_the_same_seed_gives_the_same_weights_also_after_a_break(records, tmp_path):
    whole = run(records, tmp_path / "whole")
    again = run(records, tmp_path / "again")
    assert weights(whole) == weights(again)
    broken = tmp_path / "broken"
    schedule = TrainSchedule(6, 16, 3e-3, num_examinations=2)

    class BreakError(Exception):
        pass

    def stop(config, history):
        if history.num_steps == 3:
            raise BreakError

    broken_run = BridgeRun(records, broken, SIZES, schedule, save_every_s=0.0)
    with pytest.raises(BreakError):
        broken_run.train(lambda line: None, lambda name: stop)
    assert not (broken / "model.safetensors").exists()
    steps = []
    broken_run.train(
        lambda line: None, lambda name: lambda config, history: steps.append(history.num_steps)
    )
    assert steps == [4, 5, 6]
    assert weights(broken) == weights(whole)
    other = replace(schedule, seed=1)
    with pytest.raises(TrainingError, match="another seed"):
        replace(broken_run, schedule=other).train(lambda line: None, lambda name: stop)


def test_a_bridge_is_written_through_no_link_nor_over_another(trained, records, tmp_path):
    before = weights(trained)
    linked, copied = tmp_path / "linked", tmp_path / "copied"
    linked.symlink_to(trained)
    shutil.copytree(trained, copied, ignore=shutil.ignore_patterns("training"))
    for output, why in ((linked, "is a link"), (copied, "holds a trained model")):
        with pytest.raises(TrainingError, match=f"{why}.*Choose another directory"):
            run(records, output)
        assert weights(output) == before


def test_texts_are_learnt_first_and_need_no_clips(records, tmp_path):
    texts = [
        replace(row, prompt_ids=(), features={}, stream=f"text-{row.stream}")
        for row in made_up.records(num_streams=8, seed=2)
    ]
    folder = write(tmp_path / "texts", texts, ())
    schedule = TrainSchedule(4, 16, 3e-3, num_examinations=2)
    directory = run(records, tmp_path / "out", texts=folder, text_schedule=schedule)
    results = json.loads((directory / "training" / "results.json").read_text())
    assert results["texts"]["held_out"]
    for picture in ("texts.png", "answers.png"):
        assert (directory / "training" / picture).stat().st_size > 1000


def test_what_is_saved_says_what_it_is(trained):
    bridge = Bridge.load(trained)
    assert [feature.name for feature in bridge.config.features] == [DRAFTER, EARLIER, LAST]
    assert [int(bridge.vocabulary.target_ids[own]) for own in bridge.config.end_ids] == [
        made_up.END
    ]
    assert bridge.verifier.vocabulary_size == made_up.VOCABULARY_SIZE
    text = (trained / "README.md").read_text()
    assert "300 steps" in text
    assert "`target_last` (3 tokens of 6)" in text
    results = json.loads((trained / "training" / "results.json").read_text())
    assert results["calibration"]["right"] > 0.9
    assert results["calibration"]["error_after"] < 0.1
    modes = {file.stat().st_mode for file in trained.iterdir() if file.is_file()}
    assert len(modes) == 1, "whoever may read the config may read the weights"
    assert not changed_files(trained)


def test_a_broken_file_is_refused_with_what_to_do(trained, tmp_path):
    (tmp_path / "config.json").write_text((trained / "config.json").read_text())
    with pytest.raises(TrainingError, match="train bridge"):
        Bridge.load(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(weights(trained)[:1000])
    with pytest.raises(TrainingError, match="cannot be read"):
        Bridge.load(tmp_path)


def test_records_without_features_train_a_blind_bridge():
    rows = [replace(row, features={}) for row in made_up.records(num_streams=2)]
    assert feature_sizes(rows) == ()
    assert end_tokens(rows) == [made_up.END]


def test_a_folder_without_records_or_with_held_out_ones_is_refused(tmp_path):
    with pytest.raises(CollectError, match="headstart collect"):
        verifier_of(tmp_path)
    held_out = write(tmp_path / "held", made_up.records(num_streams=2), source=HELD_OUT)
    with pytest.raises(CollectError, match="for measuring"):
        verifier_of(held_out)


def test_the_command_trains_and_says_where_the_bridge_is(records, tmp_path):
    ran = CliRunner().invoke(
        app,
        ["train", "bridge", str(records), str(tmp_path / "out"), "--set", "steps=2"],
    )
    assert ran.exit_code == 0, ran.output
    assert "parameters" in ran.output
    assert np.isfinite(
        Bridge.load(tmp_path / "out")
        .network.read_context(np.array([0], np.int32), np.array([-1], np.int32))
        .cache.keys[:, :, :1]
    ).all()
