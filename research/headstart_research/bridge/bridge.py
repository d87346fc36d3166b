"""A bridge on the disk: its sizes, its words and its network."""

from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np

from headstart.errors import TrainingError
from headstart_research.bridge.config import BridgeConfig, Verifier, read_config
from headstart_research.bridge.hub import WEIGHTS, bridge_directory
from headstart_research.bridge.network import BridgeNetwork
from headstart_research.bridge.vocabulary import DraftVocabulary

TO_TARGET, OF_DRAFT = "d2t", "t2d"
"""The published names of the two maps of a draft vocabulary: what is added to an own id, and which
of the target's ids can be said."""


@dataclass(frozen=True, eq=False)
class Bridge:
    """What `headstart train bridge` wrote."""

    config: BridgeConfig
    verifier: Verifier
    vocabulary: DraftVocabulary
    network: BridgeNetwork

    @classmethod
    def from_pretrained(cls, name: str | Path, revision: str | None = None) -> Self:
        """Read a directory, or a bridge of the hub, such as ``owner/model``."""
        return cls.load(bridge_directory(name, revision))

    @classmethod
    def load(cls, directory: Path) -> Self:
        """Read a directory, or raise with what is wrong with it."""
        from safetensors import SafetensorError
        from safetensors.numpy import load_file

        config, verifier = read_config(directory)
        path = directory / WEIGHTS
        try:
            weights = load_file(path)
        except (OSError, SafetensorError) as error:
            raise TrainingError(
                f"{path} cannot be read ({error}): name a directory that"
                " `headstart train bridge` wrote"
            ) from error
        offsets = weights.pop(TO_TARGET, np.empty(0, np.int64))
        vocabulary = DraftVocabulary.of(offsets + np.arange(len(offsets)), verifier.vocabulary_size)
        if len(vocabulary) != config.vocabulary_size:
            raise TrainingError(f"{path} has other words than {directory / 'config.json'} says")
        return cls(config, verifier, vocabulary, BridgeNetwork(config, weights))
