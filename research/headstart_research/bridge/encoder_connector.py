"""A connector to vLLM's encoder cache that only listens.

An encoder-cache connector is vLLM's seam for handing the outputs of vision towers to other engines.
One that offers vLLM nothing in return changes nothing: vLLM computes what it would without it.
"""

from typing import Any

import torch
from vllm.distributed.ec_transfer.ec_connector.base import ECConnectorBase, ECConnectorMetadata


class NothingToMove(ECConnectorMetadata):
    """What the scheduler tells the worker in each step."""


class ListeningConnector(ECConnectorBase):
    """Offers no item, loads none. What it does with the tower's outputs is its subclass's."""

    def start_load_caches(self, encoder_cache: dict[str, torch.Tensor], **kwargs: Any) -> None:
        """Load nothing."""

    def has_cache_item(self, identifier: str) -> bool:
        """Never: vLLM computes every item itself."""
        return False

    def update_state_after_alloc(self, request: Any, index: int) -> None:
        """Note nothing."""

    def build_connector_meta(self, scheduler_output: Any) -> NothingToMove:
        """vLLM wants an object in each step."""
        return NothingToMove()
