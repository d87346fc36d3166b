"""An event model's engine: it hears what it is asked, and runs vLLM a step at a time.

vLLM runs in this very process, without its front end and without an event loop: what a step
brings is on its way to the target before the next step begins.
"""

import logging
import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np

from headstart.engine.drafts import messages
from headstart.engine.drafts.channel import receive, send
from headstart.engine.model import Model, engine_defaults
from headstart_events.beside.spec import EventModelSpec, pictures_view

_log = logging.getLogger(__name__)

MAX_ASKS = 64  # alive at a time; beyond this the oldest was never left
_IDLE_POLL_S = 0.5


class EventEngine(ABC):
    """One model and its ends of the channel. Used by one thread."""

    def __init__(self, spec: EventModelSpec, usual: Mapping[str, Any]) -> None:
        """``usual`` are vLLM's arguments where ``spec`` does not say otherwise."""
        from vllm import EngineArgs
        from vllm.v1.engine.llm_engine import LLMEngine

        self.model = Model.checked(spec.model)
        self._view = pictures_view(self.model)
        # Every clip is new.
        usual = {**engine_defaults(), "mm_processor_cache_gb": 0, **usual}
        given = EngineArgs(model=self.model.name, **{**usual, **spec.vllm})
        self.engine: Any = LLMEngine.from_engine_args(given)
        self._asks = spec.channel.asks_in()
        self.to_scheduler = spec.channel.drafts_out()
        self.to_front_end = spec.channel.previews_out()

    def run(self) -> None:
        """Do what is asked until the process is ended."""
        ready_told = False
        while True:
            # The front end may not listen yet when the engine is up.
            ready_told = ready_told or send(self.to_front_end, messages.Ready(os.getpid()))
            busy = self.engine.has_unfinished_requests()
            data = receive(self._asks, 0.0 if busy else _IDLE_POLL_S if ready_told else 0.02)
            while data is not None:
                message = messages.read_by_draft_model(data)
                try:
                    if message is not None:
                        self.hear(message)
                except Exception:  # a prompt too long, pictures of no shape: one request, not all
                    _log.exception("a request is not drafted")
                    self.leave(message.request if message is not None else "")
                data = receive(self._asks)
            if self.engine.has_unfinished_requests():
                for output in self.engine.step():
                    self.take(output)

    @abstractmethod
    def hear(self, message: messages.ToDraftModel) -> None:
        """A message came. What this raises ends the request that the message names."""

    @abstractmethod
    def take(self, output: Any) -> None:
        """A step of vLLM brought something for one of its requests."""

    @abstractmethod
    def leave(self, request: str) -> None:
        """Do nothing more for a request, known or not."""

    def rendered(self, ask: messages.Ask) -> Any:
        """The prompt as vLLM computes it: tokens, pictures, and the pictures' names."""
        from vllm.renderers.inputs.preprocess import parse_model_prompt

        pictures = np.frombuffer(ask.pictures, np.uint8).reshape(ask.shape)
        prompt = {
            "prompt": self._view.prompt(ask.question),
            "multi_modal_data": {"video": pictures},
        }
        parsed = parse_model_prompt(self.engine.model_config, prompt)
        (found,) = self.engine.renderer.render_cmpl([parsed])
        return found
