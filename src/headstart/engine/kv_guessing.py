"""Hands a KV bridge's keys and values to vLLM, for requests that ask for guessed ones.

All contact with vLLM's KV connector is in this file. vLLM takes what a connector gives for
computed: the tokens of the clip are not prefilled and the vision tower does not run. Such a request
has a cache salt of its own, so that no request without that salt finds its blocks; a request
without it is given nothing.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from vllm.config import set_current_vllm_config
from vllm.distributed.kv_transfer.kv_connector.v1.base import (
    KVConnectorBase_V1,
    KVConnectorMetadata,
    KVConnectorRole,
)
from vllm.model_executor.layers.rotary_embedding import get_rope
from vllm.model_executor.models.utils import extract_layer_index

from headstart.bridges.kv_bridge import KvBridge
from headstart.bridges.kv_config import KvConfig
from headstart.bridges.pooling import Features
from headstart.engine.request_tags import RequestTags, is_guessed_salt
from headstart.errors import ApproximateError

MAX_WAIT_S = 2.0
"""For the event model. A request that has waited so long is computed as any other."""
_DIRECTORY = "directory"


def guessing_arguments(directory: Path, vllm: Mapping[str, Any]) -> dict[str, Any]:
    """vLLM's arguments, by its names, for an engine with a KV bridge."""
    if "kv_transfer_config" in vllm:
        raise ApproximateError(
            "kv_transfer_config is where a KV bridge hands in what it guesses: leave it out, or"
            " leave out ApproximateKv"
        )
    if int(vllm.get("tensor_parallel_size", 1)) > 1:
        raise ApproximateError(
            "a KV bridge gives the keys of all heads, and tensor_parallel_size splits them: leave"
            " it out, or leave out ApproximateKv"
        )
    KvBridge.load(directory)  # raises sooner than the engine would
    return {
        "kv_transfer_config": {
            "kv_connector": KvGuessing.__name__,
            "kv_connector_module_path": __name__,
            "kv_role": "kv_consumer",
            "kv_connector_extra_config": {_DIRECTORY: str(directory)},
        }
    }


@dataclass(frozen=True, eq=False)
class Guess:
    """The tokens of one request that a step gets from the bridge."""

    features: Features
    start: int
    stop: int
    block_ids: list[int]
    """Of the request, from its first token on."""


@dataclass
class Guesses(KVConnectorMetadata):
    """What the scheduler's object tells the worker's in each step."""

    guesses: list[Guess] = field(default_factory=list)


class KvGuessing(KVConnectorBase_V1):
    """One object in the scheduler, which decides what is guessed, and one in the worker."""

    def __init__(self, vllm_config: Any, role: KVConnectorRole, kv_cache_config: Any) -> None:
        super().__init__(vllm_config, role, kv_cache_config)
        (group,) = kv_cache_config.kv_cache_groups
        self._block_size: int = group.kv_cache_spec.block_size
        directory = Path(self._kv_transfer_config.get_from_extra_config(_DIRECTORY, ""))
        self._bridge: KvBridge | None = None
        if role is KVConnectorRole.WORKER:
            self._bridge = KvBridge.load(directory)
        self._config = KvConfig.read(directory)
        self._check_sizes()
        self._seen: dict[str, Features] = {}
        self._waiting_since_s: dict[str, float] = {}
        self._next = Guesses()
        self._layers: list[str] = []
        self._rotary: Any = None

    def _check_sizes(self) -> None:
        config, model = self._config, self._vllm_config.model_config
        parallel = self._vllm_config.parallel_config
        found = (
            model.get_num_layers(parallel),
            model.get_num_kv_heads(parallel),
            model.get_head_size(),
        )
        if found != (config.num_layers, config.num_kv_heads, config.head_size):
            raise ApproximateError(
                f"the KV bridge was trained for {config.target}, and this target has other layers"
                f" or heads ({found}): train one for it with `headstart train kv`"
            )

    # In the scheduler.

    def see(self, request_id: str, features: Features) -> None:
        """The event model has looked at a request's clip."""
        if request_id in self._waiting_since_s:
            self._seen[request_id] = features

    def on_new_request(self, request: Any) -> None:
        """A request exists; one that asks for it waits for the event model."""
        params = request.sampling_params
        tags = None if params is None else RequestTags.parse(params.extra_args)
        if tags is not None and tags.guesses_kv and is_guessed_salt(request.cache_salt):
            self._waiting_since_s[request.request_id] = time.monotonic()

    def get_num_new_matched_tokens(
        self, request: Any, num_computed_tokens: int
    ) -> tuple[int | None, bool]:
        """How many tokens after those computed are guessed; None while that is not known yet."""
        since_s = self._waiting_since_s.get(request.request_id)
        if since_s is None:
            return 0, False
        num_known = self._config.num_known(request.prompt_token_ids or ())
        if num_known <= num_computed_tokens:
            return 0, False
        if request.request_id not in self._seen:
            is_late = time.monotonic() - since_s > MAX_WAIT_S
            return (0 if is_late else None), False
        return num_known - num_computed_tokens, False

    def update_state_after_alloc(self, request: Any, blocks: Any, num_external_tokens: int) -> None:
        """A request is scheduled, with so many guessed tokens."""
        if not num_external_tokens:
            return
        stop = self._config.num_tokens
        (block_ids,) = blocks.get_block_ids()
        features = self._seen[request.request_id]
        guess = Guess(features, stop - num_external_tokens, stop, block_ids)
        self._next.guesses.append(guess)

    def build_connector_meta(self, scheduler_output: Any) -> Guesses:
        """The step is laid out."""
        now, self._next = self._next, Guesses()
        return now

    def request_finished(self, request: Any, block_ids: Any) -> tuple[bool, dict[str, Any] | None]:
        """Nothing of it is kept."""
        self._seen.pop(request.request_id, None)
        self._waiting_since_s.pop(request.request_id, None)
        return False, None

    # In the worker.

    def register_kv_caches(self, kv_caches: dict[str, torch.Tensor]) -> None:
        """The layers that have a cache, in order."""
        self._layers = sorted(kv_caches, key=extract_layer_index)
        config = self._vllm_config.model_config
        text = config.hf_text_config
        with set_current_vllm_config(self._vllm_config):
            # vLLM gives the same object that the model has.
            self._rotary = get_rope(
                self._config.head_size,
                max_position=text.max_position_embeddings,
                rope_parameters=text.rope_parameters,
                dtype=config.dtype,
            )

    def start_load_kv(self, forward_context: Any, **kwargs: Any) -> None:
        """Before a step is computed: write what is guessed into its blocks."""
        metadata, bridge = self._get_connector_metadata(), self._bridge
        assert isinstance(metadata, Guesses)
        assert bridge is not None
        for guess in metadata.guesses:
            states = torch.from_numpy(bridge.states(guess.features)[guess.start : guess.stop])
            positions = torch.arange(guess.start, guess.stop)
            blocks = torch.tensor(guess.block_ids)[positions // self._block_size]
            slots = blocks * self._block_size + positions % self._block_size
            for number, name in enumerate(self._layers):
                layer = forward_context.no_compile_layers[name]
                self._write(layer, states[:, number], positions, slots)

    def _write(
        self, layer: Any, states: torch.Tensor, positions: torch.Tensor, slots: torch.Tensor
    ) -> None:
        cache, dtype = layer.kv_cache, self._vllm_config.model_config.dtype
        keys, values = states.to(cache.device, dtype).unbind(1)
        turned, _ = self._rotary.forward_native(positions.to(cache.device), keys.flatten(1))
        # The backend's own way into its cache, whatever the layout there is.
        layer.impl.do_kv_cache_update(
            layer, turned.view(keys.shape), values.contiguous(), cache, slots.to(cache.device)
        )

    def wait_for_layer_load(self, layer_name: str) -> None:
        """All is written before the step."""

    def save_kv_layer(self, *args: Any, **kwargs: Any) -> None:
        """Nothing is kept elsewhere."""

    def wait_for_save(self) -> None:
        """Likewise."""
