"""A KV bridge trained by its command, from the lab's drives on two tiny models."""

import pytest

pytest.importorskip("vllm", reason="needs the engine")

from typer.testing import CliRunner

from headstart.cli import app
from headstart.errors import TrainingError
from headstart_research.collect.clip_source import lab_source
from headstart_research.kv_bridge.bridge import KvBridge
from headstart_research.kv_bridge.run import KvRun

pytestmark = pytest.mark.engine


def test_the_command_writes_a_bridge_for_this_target(tiny_target, tiny_drafter, tmp_path):
    output = tmp_path / "kv-bridge"
    command = ["train", "kv", str(output), "--target", str(tiny_target), "--draft-model"]
    command += [str(tiny_drafter), "--set=drives=2", "--set=clips=2"]
    for setting in ("dtype=float32", "enforce_eager=true", "block_size=32"):
        command += ["--vllm", setting]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.output
    bridge = KvBridge.load(output)
    config = bridge.config
    assert (config.num_layers, config.num_kv_heads, config.head_size) == (2, 2, 32)
    assert (config.num_frames, config.tokens_per_frame, config.feature_size) == (8, 17, 128)
    assert config.head_ids
    card = (output / "README.md").read_text()
    assert "on 2 clips" in card


def test_held_out_drives_are_refused(tmp_path):
    source = lab_source(2, 1, held_out=True)
    with pytest.raises(TrainingError, match="held-out"):
        KvRun("target", "drafter", source, tmp_path).train(print)
