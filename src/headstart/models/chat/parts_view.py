"""The view of a chat model whose videos a class of ours cuts into parts."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

from headstart.models.chat.view import ChatView


def in_parts(architecture: str) -> str:
    """The name of our class in vLLM, next to its own."""
    return f"Headstart{architecture}"


@dataclass(frozen=True)
class PartsView(ChatView):
    """As any chat; vLLM runs its own model, with our processor in front of it."""

    @property
    def engine_arguments(self) -> Mapping[str, Any]:
        """Our class, unless clips stay whole."""
        if self.frames_per_item is None:
            return {}
        ours = [in_parts(architecture) for architecture in self.config.architectures]
        return {"hf_overrides": {"architectures": ours}}

    @property
    def whole(self) -> Self:
        """Without parts, and without our class."""
        return replace(self, frames_per_item=None)
