"""Bridges with random weights: quick to make, and wrong about everything they say by themselves."""

import json
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file

from headstart_research.bridge.bridge import OF_DRAFT, TO_TARGET, WEIGHTS, Bridge
from headstart_research.bridge.config import BridgeConfig, Verifier, write_config
from headstart_research.bridge.context import NUM_MATCHES
from headstart_research.bridge.network import BridgeNetwork
from headstart_research.bridge.vocabulary import NUM_MARKS, DraftVocabulary

NEVER_SURE = (1.0, -20.0)
"""A calibration with which memory's copy is always followed."""


def random_weights(config: BridgeConfig, seed: int = 0, calibration=(1.0, 0.0)) -> dict:
    draw = np.random.default_rng(seed)
    width, hidden = config.width, config.hidden

    def matrix(*shape):
        return draw.normal(size=shape).astype(np.float32) * 0.4

    def ones():
        return np.ones(width, np.float32)

    weights = {
        "embedding.weight": matrix(config.vocabulary_size + NUM_MARKS, width),
        "suggestion": matrix(width, width),
        "match.weight": matrix(NUM_MATCHES, width),
        "nothing_seen.weight": matrix(1, width),
        "norm_seen": ones(),
        "norm": ones(),
        "gate.weight": matrix(3, width),
        "gate.bias": matrix(3),
        "pointer_query": matrix(config.pointer_width, width),
        "pointer_key": matrix(config.pointer_width, width),
        "calibration": np.array(calibration, np.float32),
    }
    for feature in config.features:
        weights[f"{feature.name}.weight"] = matrix(width, feature.size)
        weights[f"{feature.name}.places.weight"] = matrix(feature.max_tokens, width)
    for place in range(config.num_layers):
        weights |= {
            f"layers.{place}.norm_attention": ones(),
            f"layers.{place}.qkv": matrix(3 * width, width),
            f"layers.{place}.out": matrix(width, width),
            f"layers.{place}.norm_looking": ones(),
            f"layers.{place}.look_query": matrix(width, width),
            f"layers.{place}.look_key_value": matrix(2 * width, width),
            f"layers.{place}.look_out": matrix(width, width),
            f"layers.{place}.norm_hidden": ones(),
            f"layers.{place}.up": matrix(hidden, width),
            f"layers.{place}.down": matrix(width, hidden),
        }
    return weights


def random_bridge(
    config: BridgeConfig, target_ids: range, target_size: int, seed: int = 0
) -> Bridge:
    network = BridgeNetwork(config, random_weights(config, seed))
    vocabulary = DraftVocabulary.of(target_ids, target_size)
    return Bridge(config, Verifier("target", (), "", "", target_size), vocabulary, network)


def save_random_bridge(directory: Path, target: Path, config: BridgeConfig, **more) -> Path:
    """As `headstart train bridge` writes one, for a target on the disk."""
    stated = json.loads((target / "config.json").read_text())
    size = stated["text_config"]["vocab_size"]
    directory.mkdir()
    write_config(directory, config, Verifier(str(target), (), "", "", size))
    weights = random_weights(config, **more)
    weights[TO_TARGET] = np.zeros(config.vocabulary_size, np.int64)
    weights[OF_DRAFT] = np.arange(size) < config.vocabulary_size
    save_file(weights, directory / WEIGHTS)
    return directory
