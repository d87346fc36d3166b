"""The network of a bridge in torch, for training. `bridge.network` computes the same."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from headstart_research.bridge.arithmetic import NORM_EPSILON
from headstart_research.bridge.config import BridgeConfig
from headstart_research.bridge.context import NUM_MATCHES
from headstart_research.bridge.mixture import MEMORY, OWN, POINTER
from headstart_research.bridge.network import rope_table
from headstart_research.bridge.vocabulary import NUM_MARKS

_EMBEDDED, _SMALL = 0.05, 0.02


@dataclass(frozen=True, eq=False)
class Seen:
    """A feature's tokens in a batch."""

    vectors: Tensor
    """``[rows, tokens, size]``."""
    shown: Tensor
    """``[rows, tokens]``: whether the row has such a token."""


@dataclass(frozen=True, eq=False)
class Batch:
    """Sequences ``[rows, tokens]`` of context and answer, filled up at their ends.

    Where nothing is known there is the size of the vocabulary in place of a word.
    """

    own_ids: Tensor
    followed_by: Tensor
    """Of a token in an earlier answer the next one."""
    features: dict[str, Seen]
    places: Tensor
    """``[rows, answer]``: where the tokens of the answer stand in their row."""
    suggested: Tensor
    """``[rows, answer]``: what memory would say after each."""
    matches: Tensor
    """The same for the length of memory's match, as `match_kind` tells them apart."""
    targets: Tensor
    """What the target said after each. No word, and nothing learnt, where the bridge cannot say it;
    one more than that where the answer is shorter than the longest of the batch."""


class BridgeModel(nn.Module):
    """A causal transformer, of which the answer also attends to features of the clip.

    The next word is a mixture: its own, a quoted one, memory's.
    """

    def __init__(self, config: BridgeConfig) -> None:
        super().__init__()
        self.config = config
        width = config.width
        self.embedding = _table(config.vocabulary_size + NUM_MARKS, width, _EMBEDDED)
        self.suggestion = nn.Parameter(torch.eye(width))
        self.match = _table(NUM_MATCHES, width, _SMALL)
        self.features = nn.ModuleDict(
            {eye.name: _Eye(eye.size, width, eye.max_tokens) for eye in config.features}
        )
        self.nothing_seen = _table(1, width, _EMBEDDED)
        self.norm_seen = nn.Parameter(torch.ones(width))
        self.layers = nn.ModuleList(_Layer(config) for _ in range(config.num_layers))
        self.norm = nn.Parameter(torch.ones(width))
        self.gate = nn.Linear(width, 3)
        self.pointer_query = _matrix(config.pointer_width, width)
        self.pointer_key = _matrix(config.pointer_width, width)
        # Set after training; see `headstart_research.training.calibration`.
        self.register_buffer("calibration", torch.tensor([1.0, 0.0]))
        cos, sin = rope_table(config.max_positions, width // config.num_heads)
        self.register_buffer("cos", torch.from_numpy(cos), persistent=False)
        self.register_buffer("sin", torch.from_numpy(sin), persistent=False)

    def forward(self, batch: Batch) -> Tensor:
        """``[rows, answer, words]``: the chance of each word after each token of the answer."""
        words = self.config.vocabulary_size
        states = self._states(batch)
        rows = torch.arange(len(states))[:, None]
        hidden = states[rows, batch.places]
        quotable = batch.followed_by < words
        gates = self._gates(hidden, quotable.any(dim=1), batch.suggested < words)
        own = (hidden @ self.embedding.weight[:words].T).softmax(dim=-1) * gates[..., OWN, None]
        # One more column, for what is no word.
        mixture = torch.cat([own, torch.zeros_like(own[..., :1])], dim=-1)
        scores = (hidden @ self.pointer_query.T) @ (states @ self.pointer_key.T).mT
        scores = scores / self.config.pointer_width**0.5
        scores = scores.masked_fill(~quotable[:, None], -1e9)
        quoted = scores.softmax(dim=-1) * gates[..., POINTER, None]
        following = batch.followed_by[:, None].expand_as(quoted)
        mixture = mixture.scatter_add(-1, following, quoted)
        mixture = mixture.scatter_add(-1, batch.suggested[..., None], gates[..., MEMORY, None])
        return mixture[..., :words]

    def losses(self, batch: Batch) -> Tensor:
        """For each word that the target said, how surprising it was."""
        is_word = batch.targets < self.config.vocabulary_size
        chances = self(batch)[is_word].gather(1, batch.targets[is_word][:, None])
        return -chances[:, 0].clamp_min(1e-9).log()

    def saved_weights(self) -> dict[str, Tensor]:
        """By the names that `BridgeNetwork` reads."""
        return {
            name.removeprefix("features."): value.detach().float().contiguous()
            for name, value in self.state_dict().items()
        }

    def _gates(self, hidden: Tensor, can_quote: Tensor, is_suggested: Tensor) -> Tensor:
        gates = self.gate(hidden)
        open_gates = torch.ones_like(gates, dtype=torch.bool)
        open_gates[..., POINTER] = can_quote[:, None]
        open_gates[..., MEMORY] = is_suggested
        return gates.masked_fill(~open_gates, -torch.inf).softmax(dim=-1)

    def _states(self, batch: Batch) -> Tensor:
        words, width = self.config.vocabulary_size, self.config.width
        states = self.embedding(batch.own_ids)
        num_rows, num_tokens = batch.own_ids.shape
        table = torch.cat(
            [self.embedding.weight[:words] @ self.suggestion.T, states.new_zeros(1, width)]
        )
        beside = table[batch.suggested] + self.match(batch.matches)
        # Where an answer is shorter than the longest, its places are filled up with the last one.
        beside = beside * (batch.targets <= words)[..., None]
        places = batch.places + num_tokens * torch.arange(num_rows)[:, None]
        flat = states.flatten(0, 1).index_add(0, places.flatten(), beside.flatten(0, 1))
        states = flat.view(num_rows, num_tokens, width)
        in_answer = (batch.targets <= words)[..., None]
        seen, shown = self._seen(batch, num_rows)
        for layer in self.layers:
            states = layer.read(states, self.cos, self.sin)
            asking = states.flatten(0, 1)[places.flatten()].view(*places.shape, width)
            looked = layer.look(asking, seen, shown) * in_answer
            flat = states.flatten(0, 1).index_add(0, places.flatten(), looked.flatten(0, 1))
            states = layer.think(flat.view_as(states))
        return _normed(states, self.norm)

    def _seen(self, batch: Batch, num_rows: int) -> tuple[Tensor, Tensor]:
        """All features, and a token that stands for nothing and is always there."""
        width = self.config.width
        seen = [self.nothing_seen.weight.expand(num_rows, 1, width)]
        shown = [torch.ones(num_rows, 1, dtype=torch.bool)]
        for name, eye in self.features.items():
            if name in batch.features:
                feature = batch.features[name]
                seen.append(eye(feature.vectors))
                shown.append(feature.shown)
        return _normed(torch.cat(seen, dim=1), self.norm_seen), torch.cat(shown, dim=1)


class _Eye(nn.Module):
    """Brings a feature's tokens to the width of the bridge."""

    def __init__(self, size: int, width: int, max_tokens: int) -> None:
        super().__init__()
        self.weight = _matrix(width, size)
        self.places = _table(max_tokens, width, _SMALL)

    def forward(self, vectors: Tensor) -> Tensor:
        return vectors @ self.weight.T + self.places.weight[: vectors.shape[1]]


class _Layer(nn.Module):
    def __init__(self, config: BridgeConfig) -> None:
        super().__init__()
        width = config.width
        self.num_heads = config.num_heads
        self.norm_attention = nn.Parameter(torch.ones(width))
        self.qkv = _matrix(3 * width, width)
        self.out = nn.Parameter(torch.zeros(width, width))
        self.norm_looking = nn.Parameter(torch.ones(width))
        self.look_query = _matrix(width, width)
        self.look_key_value = _matrix(2 * width, width)
        self.look_out = nn.Parameter(torch.zeros(width, width))
        self.norm_hidden = nn.Parameter(torch.ones(width))
        self.up = _matrix(config.hidden, width)
        self.down = nn.Parameter(torch.zeros(width, config.hidden))

    def read(self, states: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        """Attend to what stands before."""
        num_rows, num_tokens, width = states.shape
        qkv = _normed(states, self.norm_attention) @ self.qkv.T
        heads = qkv.view(num_rows, num_tokens, 3, self.num_heads, -1)
        query, key, value = heads.permute(2, 0, 3, 1, 4)
        cos, sin = cos[:num_tokens], sin[:num_tokens]
        mixed = scaled_dot_product_attention(
            _turned(query, cos, sin), _turned(key, cos, sin), value, is_causal=True
        )
        return states + mixed.transpose(1, 2).reshape(num_rows, num_tokens, width) @ self.out.T

    def look(self, states: Tensor, seen: Tensor, shown: Tensor) -> Tensor:
        """What the answer's tokens take from the features."""
        num_rows, num_tokens, width = states.shape
        query = _normed(states, self.norm_looking) @ self.look_query.T
        query = query.view(num_rows, num_tokens, self.num_heads, -1).transpose(1, 2)
        pairs = (seen @ self.look_key_value.T).view(num_rows, seen.shape[1], 2, self.num_heads, -1)
        key, value = pairs.permute(2, 0, 3, 1, 4)
        mixed = scaled_dot_product_attention(query, key, value, attn_mask=shown[:, None, None])
        return mixed.transpose(1, 2).reshape(num_rows, num_tokens, width) @ self.look_out.T

    def think(self, states: Tensor) -> Tensor:
        """Each token by itself."""
        inner = (_normed(states, self.norm_hidden) @ self.up.T).relu()
        return states + inner.square() @ self.down.T


def _matrix(rows: int, columns: int) -> nn.Parameter:
    return nn.Parameter(torch.randn(rows, columns) * columns**-0.5)


def _table(rows: int, width: int, scale: float) -> nn.Embedding:
    return nn.Embedding(rows, width, _weight=torch.randn(rows, width) * scale)


def _normed(states: Tensor, weight: Tensor) -> Tensor:
    mean = states.square().mean(dim=-1, keepdim=True)
    return states * torch.rsqrt(mean + NORM_EPSILON) * weight


def _turned(vectors: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    first, second = vectors.chunk(2, dim=-1)
    return torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1)
