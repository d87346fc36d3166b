"""The drafter's engine: it hears what to draft, runs vLLM a step at a time, and sends its drafts.

vLLM runs in this very process, without its front end and without an event loop: the tokens of a
step are on their way to the target before the next step begins.
"""

import itertools
import logging
import os
import time
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

import numpy as np

from headstart.engine import vision_times
from headstart.engine.drafter import messages
from headstart.engine.drafter.channel import receive, send
from headstart.engine.drafter.spec import DrafterSpec
from headstart.engine.model import Model, engine_defaults
from headstart.engine.vision_times import VisionTimes
from headstart.speculation.draft import Draft
from headstart.speculation.same_tokenizer import SameTokens
from headstart.speculation.translation import Translation

_log = logging.getLogger(__name__)

MAX_ASKS = 64  # alive at a time; beyond this the oldest was never left
_IDLE_POLL_S = 0.5


@dataclass
class _Drafting:
    """One answer being drafted."""

    ask: messages.Ask
    prompt: Any
    preprocessed_s: float
    max_tokens: int
    said: tuple[int, ...] = ()
    """What the target has said, as far as the scheduler told it, in the target's tokens: the draft
    goes on from there."""
    spoken: tuple[int, ...] = ()
    """The whole answer so far in the drafter's tokens: what it heard of the target, and its own."""
    running: str | None = None
    """vLLM's request that computes it now."""
    stamps: messages.Stamps | None = None


class DrafterEngine:
    """One model that drafts. Used by one thread."""

    def __init__(self, spec: DrafterSpec) -> None:
        from vllm import EngineArgs
        from vllm.v1.engine.llm_engine import LLMEngine

        model = Model.checked(spec.model)
        self._view = model.drafter_view
        self._translation: SameTokens | Translation = SameTokens(model.view.num_text_ids)
        if spec.target is not None:
            target = Model.checked(spec.target).text_tokenizer()
            self._translation = Translation(target, model.text_tokenizer())
        self._max_tokens = spec.max_tokens
        # Every clip is new, and a prompt is used again when the target says other words.
        arguments = engine_defaults() | {"mm_processor_cache_gb": 0} | dict(spec.vllm)
        self._engine: Any = LLMEngine.from_engine_args(EngineArgs(model=model.name, **arguments))
        self._asks = spec.channel.asks_in()
        self._outlets = (spec.channel.drafts_out(), spec.channel.previews_out())
        self._drafting: OrderedDict[str, _Drafting] = OrderedDict()
        self._requests: dict[str, str] = {}  # our name of a request by vLLM's
        self._counter = itertools.count()
        self._vision = VisionTimes()

    def run(self) -> None:
        """Draft until the process is ended."""
        ready_told = False
        while True:
            # The front end may not listen yet when the engine is up.
            ready_told = ready_told or send(self._outlets[1], messages.Ready(os.getpid()))
            busy = self._engine.has_unfinished_requests()
            data = receive(self._asks, 0.0 if busy else _IDLE_POLL_S if ready_told else 0.02)
            while data is not None:
                message = messages.read_by_drafter(data)
                try:
                    self._hear(message)
                except Exception:  # a prompt too long, pictures of no shape: one request, not all
                    _log.exception("a request is not drafted")
                    self._leave(message.request if message is not None else "")
                data = receive(self._asks)
            if self._engine.has_unfinished_requests():
                for output in self._engine.step():
                    self._speak(output)

    def _hear(self, message: messages.ToDrafter | None) -> None:
        match message:
            case messages.Ask():
                self._begin(message)
            case messages.Said(request=request, tokens=tokens) if request in self._drafting:
                self._follow(self._drafting[request], tokens)
            case messages.Leave(request=request):
                self._leave(request)

    def _begin(self, ask: messages.Ask) -> None:
        from vllm.renderers.inputs.preprocess import parse_model_prompt

        if ask.request in self._drafting or len(ask.pictures) != int(np.prod(ask.shape)):
            return
        pictures = np.frombuffer(ask.pictures, np.uint8).reshape(ask.shape)
        prompt = {
            "prompt": self._view.prompt(ask.question),
            "multi_modal_data": {"video": pictures},
        }
        parsed = parse_model_prompt(self._engine.model_config, prompt)
        (rendered,) = self._engine.renderer.render_cmpl([parsed])
        most = min(ask.max_tokens, self._max_tokens)
        drafting = _Drafting(ask, rendered, time.monotonic(), most)
        self._drafting[ask.request] = drafting
        while len(self._drafting) > MAX_ASKS:
            self._leave(next(iter(self._drafting)))
        self._start(drafting)

    def _start(self, drafting: _Drafting) -> None:
        from vllm import SamplingParams
        from vllm.sampling_params import RequestOutputKind

        prompt_ids = [*drafting.prompt["prompt_token_ids"], *drafting.spoken]
        room = self._engine.model_config.max_model_len - len(prompt_ids)
        most = min(drafting.max_tokens - len(drafting.spoken), room)
        if most < 1:
            return
        params = SamplingParams(
            temperature=0.0,
            max_tokens=most,
            detokenize=False,
            output_kind=RequestOutputKind.DELTA,
        )
        drafting.running = f"{drafting.ask.request}.{next(self._counter)}"
        self._requests[drafting.running] = drafting.ask.request
        prompt = {**drafting.prompt, "prompt_token_ids": prompt_ids}
        self._engine.add_request(drafting.running, prompt, params)

    def _stop(self, drafting: _Drafting) -> None:
        if drafting.running is not None:
            self._engine.abort_request([drafting.running])
            del self._requests[drafting.running]
            drafting.running = None

    def _follow(self, drafting: _Drafting, said: tuple[int, ...]) -> None:
        """Go on from the target's words."""
        if len(said) <= len(drafting.said):
            return
        heard = self._translation.heard(said)
        if heard is None:
            return  # it has no such words
        drafting.said = said
        if self._translation.is_foreseen(said, drafting.spoken):  # tell it again from there
            self._tell(drafting)
            return
        self._stop(drafting)
        drafting.spoken = heard
        self._start(drafting)

    def _leave(self, request: str) -> None:
        drafting = self._drafting.pop(request, None)
        if drafting is not None:
            self._stop(drafting)

    def _speak(self, output: Any) -> None:
        drafting = self._drafting.get(self._requests.get(output.request_id, ""))
        if drafting is None or drafting.running != output.request_id:
            return  # left, or begun anew, while it was computed
        (completion,) = output.outputs
        drafting.spoken += tuple(completion.token_ids)
        if output.finished:
            del self._requests[output.request_id]
            drafting.running = None
        if drafting.stamps is None:
            drafting.stamps = self._stamps(drafting, output)
        self._tell(drafting)

    def _tell(self, drafting: _Drafting) -> None:
        tokens = self._translation.draft(drafting.said, drafting.spoken)
        if tokens is None:
            return  # no word is finished yet
        draft = Draft(tokens, messages.SOURCE, time.monotonic(), len(drafting.said))
        message = messages.Drafted(drafting.ask.request, draft, drafting.stamps)
        for outlet in self._outlets:
            send(outlet, message)

    def _stamps(self, drafting: _Drafting, output: Any) -> messages.Stamps:
        now_s = time.monotonic()
        first_token_s = output.metrics.first_token_ts if output.metrics else now_s
        scheduled_s = output.metrics.scheduled_ts if output.metrics else drafting.preprocessed_s
        self._vision.note(self._engine.collective_rpc(vision_times.RPC), self._engine.renderer)
        vision_s = self._vision.take(f"{output.request_id}-")
        return messages.Stamps(
            drafting.ask.asked_s,
            drafting.preprocessed_s,
            scheduled_s,
            min(scheduled_s + vision_s, first_token_s),
            first_token_s,
        )
