"""The projector from a vision tower to a language model."""

import torch
from torch import nn
from vllm.model_executor.layers.activation import get_act_fn
from vllm.model_executor.layers.linear import ColumnParallelLinear, RowParallelLinear
from vllm.model_executor.layers.quantization import QuantizationConfig


class Projector(nn.Module):
    """Two linear layers with an activation between them, split over tensor-parallel ranks."""

    def __init__(
        self,
        vision_size: int,
        text_size: int,
        activation: str,
        *,
        bias: bool,
        quant_config: QuantizationConfig | None,
        prefix: str,
    ) -> None:
        super().__init__()
        self.linear_1 = ColumnParallelLinear(
            vision_size,
            text_size,
            bias=bias,
            quant_config=quant_config,
            prefix=f"{prefix}.linear_1",
        )
        self.act = get_act_fn(activation)
        self.linear_2 = RowParallelLinear(
            text_size, text_size, bias=bias, quant_config=quant_config, prefix=f"{prefix}.linear_2"
        )

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        """``[..., vision_size] -> [..., text_size]``."""
        hidden, _ = self.linear_1(features)
        hidden, _ = self.linear_2(self.act(hidden))
        return hidden
