"""Examples packed into batches, and the loss on them: what the training loop trains."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from headstart_research.bridge.config import BridgeConfig
from headstart_research.bridge.context import NO_TOKEN, fitted, match_kind, read_context
from headstart_research.bridge.vocabulary import ANSWER, UNKNOWN, DraftVocabulary
from headstart_research.training.bridge_data import BridgeData, Example
from headstart_research.training.bridge_model import Batch, BridgeModel, Seen
from headstart_research.training.schedule import TrainSchedule

NUM_EXAMINED = 64


@dataclass(frozen=True)
class BridgeTask:
    """A `Task` of the loop: the model, and the examples of each step."""

    model: BridgeModel
    data: BridgeData
    schedule: TrainSchedule

    def training_step(self, step: int) -> float:
        """Add the gradient of one step; return the mean loss of a token."""
        examples = self.data.batch(step, self.schedule.seed, self.schedule.batch_size)
        loss = self.model.losses(packed(self.model.config, self.data.vocabulary, examples)).mean()
        loss.backward()
        return loss.item()

    @torch.no_grad()
    def held_out_loss(self) -> float:
        """Of a token of streams that are not learnt from, all features shown."""
        names = [feature.name for feature in self.model.config.features]
        examples = self.data.examined(NUM_EXAMINED, names)
        batch = packed(self.model.config, self.data.vocabulary, examples)
        return float(self.model.losses(batch).mean())


def packed(config: BridgeConfig, vocabulary: DraftVocabulary, examples: Sequence[Example]) -> Batch:
    """One row an example."""
    rows = [_row(config, vocabulary, example) for example in examples]
    num_tokens = max(len(row.own_ids) for row in rows)
    num_said = max(len(row.targets) for row in rows)
    nothing = len(vocabulary)

    def filled(arrays: Sequence[NDArray[np.int64]], length: int, value: int) -> torch.Tensor:
        table = np.full((len(arrays), length), value, np.int64)
        for place, array in enumerate(arrays):
            table[place, : len(array)] = array
        return torch.from_numpy(table)

    places = [len(row.own_ids) - len(row.targets) + np.arange(len(row.targets)) for row in rows]
    features = {
        feature.name: seen
        for feature in config.features
        if (seen := _seen([row.features.get(feature.name) for row in rows], feature.size))
    }
    return Batch(
        own_ids=filled([row.own_ids for row in rows], num_tokens, vocabulary.mark(UNKNOWN)),
        followed_by=filled([row.followed_by for row in rows], num_tokens, nothing),
        features=features,
        places=filled(places, num_said, num_tokens - 1),
        suggested=filled([row.suggested for row in rows], num_said, nothing),
        matches=filled([row.matches for row in rows], num_said, 0),
        targets=filled([row.targets for row in rows], num_said, nothing + 1),
    )


@dataclass(frozen=True, eq=False)
class _Row:
    own_ids: NDArray[np.int64]
    followed_by: NDArray[np.int64]
    suggested: NDArray[np.int64]
    matches: NDArray[np.int64]
    targets: NDArray[np.int64]
    features: dict[str, NDArray[np.float32]]


def _row(config: BridgeConfig, vocabulary: DraftVocabulary, example: Example) -> _Row:
    told, most = example.told, config.max_answer_tokens
    context = read_context(config, vocabulary, example.history, told.question, told.prompt)
    features = {
        feature.name: fitted(feature, told.features[feature.name])
        for feature in config.features
        if feature.name in example.features
    }
    targets = told.own_ids[:most]
    begin = [vocabulary.mark(ANSWER)]
    own_ids = np.concatenate([context.own_ids, begin, targets[:-1]]).astype(np.int64)
    followed_by = np.full(len(own_ids), len(vocabulary), np.int64)
    followed_by[: len(context.followed_by)] = np.where(
        context.followed_by == NO_TOKEN, len(vocabulary), context.followed_by
    )
    return _Row(
        own_ids,
        followed_by,
        example.suggested[:most].astype(np.int64),
        np.array([match_kind(int(match)) for match in example.matches[:most]], np.int64),
        targets.astype(np.int64),
        features,
    )


def _seen(found: Sequence[NDArray[np.float32] | None], size: int) -> Seen | None:
    """A feature of all rows, with nothing where a row does not have it."""
    num_tokens = max((len(tokens) for tokens in found if tokens is not None), default=0)
    if not num_tokens:
        return None
    vectors = np.zeros((len(found), num_tokens, size), np.float32)
    shown = np.zeros((len(found), num_tokens), np.bool_)
    for row, tokens in enumerate(found):
        if tokens is not None:
            vectors[row, : len(tokens)] = tokens
            shown[row, : len(tokens)] = True
    return Seen(torch.from_numpy(vectors), torch.from_numpy(shown))
