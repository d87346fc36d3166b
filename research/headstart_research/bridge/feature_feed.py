"""Brings what the target's vision tower saw to the scheduler, where a bridge drafts.

The worker pools each output of the tower as a bridge wants it. vLLM carries it to the scheduler
with the tokens of the same step, so it is there for the draft after an answer's first pass. Frames
that are fed before the question are there for the first one too.
"""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import torch
from vllm.distributed.ec_transfer.ec_connector.base import (
    ECConnectorRole,
    ECConnectorWorkerMetadata,
)
from vllm.v1.outputs import ECConnectorOutput

from headstart.errors import DraftingError
from headstart.speculation.drafter import Features
from headstart_research.bridge.encoder_connector import ListeningConnector
from headstart_research.bridge.pooling import MAX_TOKENS

MAX_BYTES = 2**28
"""Of items that the scheduler keeps, for questions about frames that it knows."""


def feed_arguments(vllm: Mapping[str, Any]) -> dict[str, Any]:
    """vLLM's arguments, by its names, for an engine with a bridge that sees."""
    if "ec_transfer_config" in vllm:
        raise DraftingError(
            "ec_transfer_config is where a bridge hears of the target's features: leave it out, or"
            " leave out the bridge"
        )
    return {
        "ec_transfer_config": {
            "ec_connector": FeatureFeed.__name__,
            "ec_connector_module_path": __name__,
            "ec_role": "ec_both",
        }
    }


@dataclass(eq=False)
class SeenItems(ECConnectorWorkerMetadata):
    """What the tower computed in one step, by the item's name."""

    items: dict[str, Features]

    def aggregate(self, other: ECConnectorWorkerMetadata) -> Self:
        """All workers of a step see the same; what one of them lacks is taken from another."""
        assert isinstance(other, SeenItems)
        self.items = {**other.items, **self.items}
        return self


class FeatureFeed(ListeningConnector):
    """One object in each worker, which hears of items, and one in the scheduler, which keeps them.

    The scheduler's keeps the newest `MAX_BYTES`.
    """

    def __init__(self, vllm_config: Any, role: ECConnectorRole) -> None:
        super().__init__(vllm_config, role)
        self._heard: dict[str, Features] = {}
        self._kept: OrderedDict[str, Features] = OrderedDict()
        self._num_bytes = 0
        self._new: list[str] = []

    def save_caches(
        self, encoder_cache: dict[str, torch.Tensor], mm_hash: str, **kwargs: Any
    ) -> None:
        """In the worker: one item was computed."""
        self._heard[mm_hash] = pooled(encoder_cache[mm_hash])

    def build_connector_worker_meta(self) -> SeenItems | None:
        """In the worker, at the end of a step."""
        if not self._heard:
            return None
        seen, self._heard = SeenItems(self._heard), {}
        return seen

    def update_connector_output(self, connector_output: ECConnectorOutput) -> None:
        """In the scheduler: keep what a step brought."""
        seen = connector_output.ec_connector_worker_meta
        if not isinstance(seen, SeenItems):
            return
        for name, tokens in seen.items.items():
            self._drop(name)
            self._kept[name] = tokens
            self._new.append(name)
            self._num_bytes += tokens.nbytes
        while self._num_bytes > MAX_BYTES and len(self._kept) > 1:
            self._drop(next(iter(self._kept)))

    def known(self, names: Sequence[str]) -> list[Features] | None:
        """In the scheduler: the items of these names, if all of them were seen."""
        found = [self._kept.get(name) for name in names]
        for name in names:
            if name in self._kept:
                self._kept.move_to_end(name)
        seen = [tokens for tokens in found if tokens is not None]
        return seen if seen and len(seen) == len(found) else None

    def take_new(self) -> list[str]:
        """In the scheduler: the names of what came since this was asked last."""
        new, self._new = self._new, []
        return new

    def _drop(self, name: str) -> None:
        if (dropped := self._kept.pop(name, None)) is not None:
            self._num_bytes -= dropped.nbytes


def pooled(item: torch.Tensor) -> Features:
    """No more than `MAX_TOKENS` of an item, each a mean of neighbours; float16 on the CPU."""
    tokens = item.detach()
    if len(tokens) > MAX_TOKENS:
        parts = torch.tensor_split(tokens.float(), MAX_TOKENS)
        tokens = torch.stack([part.mean(dim=0) for part in parts])
    kept: Features = tokens.to("cpu", torch.float16, copy=True).numpy()
    return np.ascontiguousarray(kept)
