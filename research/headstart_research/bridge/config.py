"""The sizes of a bridge, as they are written into its ``config.json``.

The file follows the convention of published drafters (the fields of the `speculators` library):
tools for drafters find the verifier, the layers and the draft vocabulary where they look for them.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from headstart.errors import TrainingError

FILE = "config.json"
KIND = "headstart_bridge"
FORMAT = 1
_SPECULATORS_VERSION = "0.9.0"


@dataclass(frozen=True)
class FeatureSize:
    """One of the vision features that a bridge can look at."""

    name: str
    """As in the records of `headstart collect`."""
    size: int
    """Numbers in each of its tokens."""
    max_tokens: int
    """A picture of more is pooled to so many."""


@dataclass(frozen=True)
class BridgeConfig:
    """What a bridge reads, and how large it is."""

    vocabulary_size: int
    """Words it can say; it reads a few marks beside them."""
    features: tuple[FeatureSize, ...] = ()
    width: int = 128
    num_layers: int = 4
    num_heads: int = 4
    hidden: int = 512
    """Width between the two matrices that follow each attention."""
    pointer_width: int = 64
    max_answers: int = 4
    """Earlier answers of the stream that it may quote."""
    max_answer_tokens: int = 128
    """Of each of them, and the longest answer that it drafts."""
    max_question_tokens: int = 32
    end_ids: tuple[int, ...] = ()
    """Own ids of words that end an answer."""

    def __post_init__(self) -> None:
        if self.width % self.num_heads or (self.width // self.num_heads) % 2:
            raise TrainingError(
                f"a width of {self.width} cannot be shared among {self.num_heads} heads in even"
                " parts: give other sizes"
            )

    @property
    def max_positions(self) -> int:
        """The longest sequence: context and answer."""
        context = self.max_answers * (1 + self.max_answer_tokens) + 1 + self.max_question_tokens
        return context + 1 + self.max_answer_tokens


@dataclass(frozen=True)
class Verifier:
    """The target whose words a bridge speaks."""

    name: str
    architectures: tuple[str, ...]
    digest: str
    """Of its config and weights: words of another model are worth little as drafts."""
    tokenizer: str
    """A digest likewise: token ids of another tokenizer are worth nothing."""
    vocabulary_size: int


def write_config(directory: Path, config: BridgeConfig, verifier: Verifier) -> None:
    stated = {
        "architectures": ["HeadstartBridge"],
        "speculators_model_type": KIND,
        "speculators_version": _SPECULATORS_VERSION,
        "speculators_config": {
            "algorithm": KIND,
            "proposal_methods": [{"proposal_type": "greedy", "speculative_tokens": 32}],
            "default_proposal_method": "greedy",
            "verifier": {
                "name_or_path": verifier.name,
                "architectures": list(verifier.architectures),
            },
        },
        "transformer_layer_config": {
            "hidden_size": config.width,
            "num_hidden_layers": config.num_layers,
            "num_attention_heads": config.num_heads,
            "intermediate_size": config.hidden,
            "max_position_embeddings": config.max_positions,
            "vocab_size": verifier.vocabulary_size,
        },
        "draft_vocab_size": config.vocabulary_size,
        "headstart": {
            "format": FORMAT,
            "bridge": asdict(config),
            "verifier": asdict(verifier),
        },
    }
    (directory / FILE).write_text(json.dumps(stated, indent=1) + "\n", encoding="utf-8")


def read_config(directory: Path) -> tuple[BridgeConfig, Verifier]:
    path = directory / FILE
    try:
        stated = json.loads(path.read_text(encoding="utf-8"))["headstart"]
        if stated["format"] != FORMAT:
            raise TrainingError(
                f"{path} has format {stated['format']}, and this version reads format {FORMAT}:"
                " train the bridge again"
            )
        return _config(stated["bridge"]), _verifier(stated["verifier"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise TrainingError(
            f"{path} is no config of a bridge ({error!r}): name a directory that"
            " `headstart train bridge` wrote"
        ) from error


def _config(stated: Mapping[str, Any]) -> BridgeConfig:
    given = dict(stated)
    features = tuple(FeatureSize(**feature) for feature in given.pop("features"))
    end_ids = tuple(given.pop("end_ids"))
    return BridgeConfig(features=features, end_ids=end_ids, **given)


def _verifier(stated: Mapping[str, Any]) -> Verifier:
    given = dict(stated)
    return Verifier(architectures=tuple(given.pop("architectures")), **given)
