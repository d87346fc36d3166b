"""The drafter at work: hears asks, runs its vLLM engine a step at a time, tells what it drafts.

The engine runs in this very process, without vLLM's front end and without an event loop: what
comes out of a step is on its way to the target before the next one begins.
"""

import itertools
import logging
import os
import time
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

import numpy as np

from headstart.engine import vision_times, wire
from headstart.engine.drafter_spec import DrafterSpec
from headstart.engine.line import receive, send
from headstart.engine.model import Model, engine_defaults
from headstart.engine.vision_times import VisionTimes

_log = logging.getLogger(__name__)

MAX_ASKS = 64  # alive at a time; beyond this the oldest was never left
_IDLE_POLL_S = 0.5
SOURCE = "eventgpt"


@dataclass
class _Speech:
    """One answer being drafted."""

    ask: wire.Ask
    prompt: Any
    preprocessed_s: float
    max_tokens: int
    said: tuple[int, ...] = ()
    """What the target has said, as far as we were told: the draft goes on from there."""
    tokens: tuple[int, ...] = ()
    request: str | None = None
    stamps: wire.Stamps | None = None


class DrafterEngine:
    """One model that drafts. Used by one thread."""

    def __init__(self, spec: DrafterSpec) -> None:
        from vllm import EngineArgs
        from vllm.v1.engine.llm_engine import LLMEngine

        model = Model.checked(spec.model)
        self._view = model.view
        self._max_tokens = spec.max_tokens
        # Every clip is new, and a prompt is used again when the target says other words.
        arguments = engine_defaults() | {"mm_processor_cache_gb": 0} | dict(spec.vllm)
        self._engine: Any = LLMEngine.from_engine_args(EngineArgs(model=model.name, **arguments))
        self._asks = spec.line.asks_in()
        self._outlets = (spec.line.drafts_out(), spec.line.previews_out())
        self._speeches: OrderedDict[str, _Speech] = OrderedDict()
        self._asks_of: dict[str, str] = {}  # by vLLM's request
        self._counter = itertools.count()
        self._vision = VisionTimes()

    def run(self) -> None:
        """Draft until the process is ended."""
        ready_told = False
        while True:
            # The front end may not listen yet when the engine is up.
            ready_told = ready_told or send(self._outlets[1], wire.Ready(os.getpid()))
            busy = self._engine.has_unfinished_requests()
            data = receive(self._asks, 0.0 if busy else _IDLE_POLL_S if ready_told else 0.02)
            while data is not None:
                message = wire.read_by_drafter(data)
                try:
                    self._hear(message)
                except Exception:  # a prompt too long, pictures of no shape: one ask, not all
                    _log.exception("an ask is not drafted")
                    self._leave(message.ask if message is not None else "")
                data = receive(self._asks)
            if self._engine.has_unfinished_requests():
                for output in self._engine.step():
                    self._speak(output)

    def _hear(self, message: wire.ToDrafter | None) -> None:
        match message:
            case wire.Ask():
                self._begin(message)
            case wire.Said(ask=ask, tokens=tokens) if ask in self._speeches:
                self._follow(self._speeches[ask], tokens)
            case wire.Leave(ask=ask):
                self._leave(ask)

    def _begin(self, ask: wire.Ask) -> None:
        from vllm.renderers.inputs.preprocess import parse_model_prompt

        if ask.ask in self._speeches or len(ask.pictures) != int(np.prod(ask.shape)):
            return
        pictures = np.frombuffer(ask.pictures, np.uint8).reshape(ask.shape)
        prompt = {
            "prompt": self._view.prompt(ask.question),
            "multi_modal_data": {"video": pictures},
        }
        parsed = parse_model_prompt(self._engine.model_config, prompt)
        (rendered,) = self._engine.renderer.render_cmpl([parsed])
        most = min(ask.max_tokens, self._max_tokens)
        speech = _Speech(ask, rendered, time.monotonic(), most)
        self._speeches[ask.ask] = speech
        while len(self._speeches) > MAX_ASKS:
            self._leave(next(iter(self._speeches)))
        self._start(speech)

    def _start(self, speech: _Speech) -> None:
        from vllm import SamplingParams
        from vllm.sampling_params import RequestOutputKind

        prompt_ids = [*speech.prompt["prompt_token_ids"], *speech.said]
        room = self._engine.model_config.max_model_len - len(prompt_ids)
        most = min(speech.max_tokens - len(speech.said), room)
        if most < 1:
            return
        params = SamplingParams(
            temperature=0.0,
            max_tokens=most,
            detokenize=False,
            output_kind=RequestOutputKind.DELTA,
        )
        speech.request = f"{speech.ask.ask}.{next(self._counter)}"
        self._asks_of[speech.request] = speech.ask.ask
        prompt = {**speech.prompt, "prompt_token_ids": prompt_ids}
        self._engine.add_request(speech.request, prompt, params)

    def _stop(self, speech: _Speech) -> None:
        if speech.request is not None:
            self._engine.abort_request([speech.request])
            del self._asks_of[speech.request]
            speech.request = None

    def _follow(self, speech: _Speech, said: tuple[int, ...]) -> None:
        """Go on from the target's words."""
        if len(said) <= len(speech.said):
            return
        if not all(0 <= token < self._view.num_text_ids for token in said):
            return  # it has no such words
        drafted = speech.said + speech.tokens
        if drafted[: len(said)] == said:  # drafted meanwhile: tell it again from there
            speech.said, speech.tokens = said, drafted[len(said) :]
            self._tell(speech)
            return
        self._stop(speech)
        speech.said, speech.tokens = said, ()
        self._start(speech)

    def _leave(self, ask: str) -> None:
        speech = self._speeches.pop(ask, None)
        if speech is not None:
            self._stop(speech)

    def _speak(self, output: Any) -> None:
        speech = self._speeches.get(self._asks_of.get(output.request_id, ""))
        if speech is None or speech.request != output.request_id:
            return  # left, or begun anew, while it was computed
        (completion,) = output.outputs
        speech.tokens += tuple(completion.token_ids)
        if output.finished:
            del self._asks_of[output.request_id]
            speech.request = None
        if speech.stamps is None:
            speech.stamps = self._stamps(speech, output)
        self._tell(speech)

    def _tell(self, speech: _Speech) -> None:
        message = wire.Drafted(
            speech.ask.ask,
            SOURCE,
            len(speech.said),
            speech.tokens,
            time.monotonic(),
            speech.stamps,
        )
        for outlet in self._outlets:
            send(outlet, message)

    def _stamps(self, speech: _Speech, output: Any) -> wire.Stamps:
        now_s = time.monotonic()
        first_token_s = output.metrics.first_token_ts if output.metrics else now_s
        scheduled_s = output.metrics.scheduled_ts if output.metrics else speech.preprocessed_s
        self._vision.note(self._engine.collective_rpc(vision_times.RPC), self._engine.renderer)
        vision_s = self._vision.take(f"{output.request_id}-")
        return wire.Stamps(
            speech.ask.asked_s,
            speech.preprocessed_s,
            scheduled_s,
            min(scheduled_s + vision_s, first_token_s),
            first_token_s,
        )
