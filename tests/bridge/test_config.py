"""A bridge's config, written and read again, as tools for published drafters expect it."""

import json

import pytest

from headstart.errors import TrainingError
from headstart_research.bridge.config import (
    BridgeConfig,
    FeatureSize,
    Verifier,
    read_config,
    write_config,
)

CONFIG = BridgeConfig(50, (FeatureSize("target_last", 8, 5),), end_ids=(3,))
VERIFIER = Verifier("org/Target", ("TargetForConditionalGeneration",), "abc", "def", 1000)


def test_what_is_written_is_read_again(tmp_path):
    write_config(tmp_path, CONFIG, VERIFIER)
    assert read_config(tmp_path) == (CONFIG, VERIFIER)


def test_tools_for_drafters_find_the_verifier_and_the_layers(tmp_path):
    write_config(tmp_path, CONFIG, VERIFIER)
    stated = json.loads((tmp_path / "config.json").read_text())
    speculators = stated["speculators_config"]
    assert speculators["verifier"] == {
        "name_or_path": "org/Target",
        "architectures": ["TargetForConditionalGeneration"],
    }
    methods = [method["proposal_type"] for method in speculators["proposal_methods"]]
    assert speculators["default_proposal_method"] in methods
    assert stated["transformer_layer_config"]["num_hidden_layers"] == CONFIG.num_layers
    assert stated["draft_vocab_size"] == 50


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"headstart": {"format": 1}}', '{"headstart": {"format": 99}}']
)
def test_another_file_is_refused_with_what_to_do(tmp_path, text):
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(TrainingError, match="train"):
        read_config(tmp_path)


def test_sizes_that_do_not_fit_are_refused():
    with pytest.raises(TrainingError, match="other sizes"):
        BridgeConfig(50, width=100, num_heads=3)
