"""Muon for the matrices between layers, AdamW for all else, as one optimizer.

Muon makes the step of a matrix orthogonal, so that rare directions of the gradient move as far as
frequent ones. Embeddings and the head, whose rows are tokens, stay with AdamW. torch has a Muon
too, but it computes in bf16 on every processor, which takes longer than the rest of the step where
AMX is missing, and it takes one matrix after the other.
"""

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import torch
from torch import nn

from headstart_research.training.precision import compute_dtype

MUON_FACTOR = 20.0
"""How much larger Muon's learning rate is than AdamW's.

A Muon step has unit norm; an AdamW step has unit size in each weight.
"""
SLOW_SHARE = 0.1
"""The share of the learning rate for modules that are trained already.

Muon takes steps of the same size also where the gradient is noise.
"""
_MOMENTUM = 0.95
_NUM_ITERATIONS = 5
# The quintic of Keller Jordan's Muon: singular values end near one, not at it.
_QUINTIC = (3.4445, -4.7750, 2.0315)


class Muon(torch.optim.Optimizer):
    """SGD with momentum whose steps are made orthogonal, for matrices only."""

    def __init__(self, parameters: list[dict[str, Any]], weight_decay: float) -> None:
        super().__init__(parameters, {"lr": 0.0, "weight_decay": weight_decay, "share": 1.0})

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:
        """Update all matrices; matrices of one shape are made orthogonal in one batch."""
        for group in self.param_groups:
            shapes: dict[torch.Size, list[nn.Parameter]] = defaultdict(list)
            for parameter in group["params"]:
                if parameter.grad is not None:
                    shapes[parameter.shape].append(parameter)
            for (rows, columns), parameters in shapes.items():
                steps = orthogonal(torch.stack([self._momentum(each) for each in parameters]))
                rate = group["lr"] * max(1.0, rows / columns) ** 0.5
                for parameter, step in zip(parameters, steps, strict=True):
                    parameter.mul_(1 - group["lr"] * group["weight_decay"])
                    parameter.add_(step, alpha=-rate)

    def _momentum(self, parameter: nn.Parameter) -> torch.Tensor:
        state = self.state[parameter]
        if "momentum" not in state:
            state["momentum"] = torch.zeros_like(parameter)
        momentum: torch.Tensor = state["momentum"].lerp_(parameter.grad, 1 - _MOMENTUM)
        assert parameter.grad is not None
        return parameter.grad.lerp(momentum, _MOMENTUM)


def orthogonal(matrices: torch.Tensor) -> torch.Tensor:
    """``[matrices, rows, columns]`` with every singular value moved near one."""
    tall = matrices.shape[1] > matrices.shape[2]
    x = (matrices.mT if tall else matrices).to(compute_dtype())
    x = x / (x.norm(dim=(1, 2), keepdim=True) + 1e-7)
    a, b, c = _QUINTIC
    for _ in range(_NUM_ITERATIONS):
        square = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(square, square, square, beta=b, alpha=c), x, beta=a)
    return (x.mT if tall else x).to(matrices.dtype)


class MuonAdamW:
    """Muon and AdamW as one optimizer: they step together and share a learning rate."""

    def __init__(self, muon: Muon, adam: torch.optim.AdamW) -> None:
        self._muon, self._adam = muon, adam

    def step(self, rate: float) -> None:
        """Update every parameter with learning rate ``rate``, and clear the gradients."""
        both: tuple[tuple[torch.optim.Optimizer, float], ...]
        both = ((self._muon, MUON_FACTOR), (self._adam, 1.0))
        for optimizer, factor in both:
            for group in optimizer.param_groups:
                group["lr"] = factor * rate * group["share"]
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)

    def state_dict(self) -> dict[str, Any]:
        return {"muon": self._muon.state_dict(), "adam": self._adam.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._muon.load_state_dict(state["muon"])
        self._adam.load_state_dict(state["adam"])


def optimizer_of(module: nn.Module, decay: float, slow: Iterable[nn.Module] = ()) -> MuonAdamW:
    """The optimizer of a module's trainable parameters; those of ``slow`` get a smaller rate."""
    words = {
        id(part.weight)
        for name, part in module.named_modules()
        if isinstance(part, nn.Embedding) or name.endswith("lm_head")
    }
    before = {id(parameter) for part in slow for parameter in part.parameters()}
    matrices: list[dict[str, Any]] = []
    rest: list[dict[str, Any]] = []
    for parameter in module.parameters():
        if parameter.requires_grad:
            is_matrix = parameter.dim() == 2 and id(parameter) not in words
            share = SLOW_SHARE if id(parameter) in before else 1.0
            _group(matrices if is_matrix else rest, share).append(parameter)
    adam = torch.optim.AdamW(rest, lr=0.0, betas=(0.9, 0.95), weight_decay=0.0, fused=True)
    return MuonAdamW(Muon(matrices, decay), adam)


def _group(groups: list[dict[str, Any]], share: float) -> list[nn.Parameter]:
    """The parameters of the group with this share; the group is added if there is none."""
    for group in groups:
        if group["share"] == share:
            parameters: list[nn.Parameter] = group["params"]
            return parameters
    groups.append({"params": [], "share": share})
    return _group(groups, share)
