"""Keeps copies of what a vision tower computed, in vLLM's worker, until they are fetched.

Both who collects and an event model's tower beside a target fetch them so. An engine that is not
started with `tap_arguments` has no connector, and pays nothing.
"""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from vllm.distributed.ec_transfer import get_ec_transfer
from vllm.distributed.ec_transfer.ec_connector.base import ECConnectorRole

from headstart.errors import CollectError
from headstart.speculation.drafter import Features
from headstart_research.bridge.encoder_connector import ListeningConnector

RPC = "take_features"
"""What the workers are asked."""
MAX_BYTES = 2**30
Feature = tuple[list[int], bytes]
"""Shape, and the values as float16 in little-endian order: msgpack carries no arrays."""


def tap_arguments(vllm: Mapping[str, Any], *, tower_only: bool) -> dict[str, Any]:
    """vLLM's arguments, by its names; with ``tower_only`` it does not load the language model."""
    found: dict[str, Any] = {
        "ec_transfer_config": {
            "ec_connector": FeatureTap.__name__,
            "ec_connector_module_path": __name__,
            "ec_role": "ec_producer" if tower_only else "ec_both",
        },
        "worker_extension_cls": f"{__name__}.{TapWorker.__name__}",
    }
    if taken := sorted(found.keys() & vllm.keys()):
        raise CollectError(
            f"{', '.join(taken)}: the tower's features are fetched there; leave it out"
        )
    return found


class FeatureTap(ListeningConnector):
    """Copies every output of the tower, the newest `MAX_BYTES` of them."""

    def __init__(self, vllm_config: Any, role: ECConnectorRole) -> None:
        super().__init__(vllm_config, role)
        self._kept: OrderedDict[str, torch.Tensor] = OrderedDict()
        self._num_bytes = 0

    def save_caches(
        self, encoder_cache: dict[str, torch.Tensor], mm_hash: str, **kwargs: Any
    ) -> None:
        """Copy one item's output; an item that is encoded once more replaces its copy."""
        self._drop(mm_hash)
        copied = encoder_cache[mm_hash].detach().to("cpu", torch.float16, copy=True)
        self._kept[mm_hash] = copied
        self._num_bytes += copied.nbytes
        while self._num_bytes > MAX_BYTES and len(self._kept) > 1:
            self._drop(next(iter(self._kept)))

    def take(self, names: Sequence[str]) -> list[Feature | None]:
        """The copies under these names, which are then dropped; None where there is none."""
        found = [
            None if (copy := self._kept.get(name)) is None else _as_feature(copy) for name in names
        ]
        for name in names:
            self._drop(name)
        return found

    def _drop(self, name: str) -> None:
        if (dropped := self._kept.pop(name, None)) is not None:
            self._num_bytes -= dropped.nbytes


class TapWorker:
    """What vLLM's worker can be asked besides its own methods."""

    def take_features(self, names: list[str]) -> list[Feature | None]:
        tap = get_ec_transfer()
        assert isinstance(tap, FeatureTap)
        return tap.take(names)


def item_names(engine_input: Any) -> list[str]:
    """The names under which vLLM caches a prompt's items, in their order in the prompt."""
    placed = [
        (place.offset, name)
        for kind, names in engine_input["mm_hashes"].items()
        for name, place in zip(names, engine_input["mm_placeholders"][kind], strict=True)
    ]
    return [name for _, name in sorted(placed)]


def fetched(workers: Sequence[Sequence[Feature | None]]) -> list[Features | None]:
    """The items that workers were asked for by `RPC`; None where nobody has a copy.

    Every tensor-parallel worker has the same; of pipeline stages only the first has any.
    """
    items: list[Features | None] = []
    for copies in zip(*workers, strict=True):
        item = next((copy for copy in copies if copy is not None), None)
        items.append(None if item is None else np.frombuffer(item[1], "<f2").reshape(item[0]))
    return items


def _as_feature(copied: torch.Tensor) -> Feature:
    return list(copied.shape), copied.contiguous().numpy().astype("<f2", copy=False).tobytes()
