"""An event model that drafts: it says answers token by token, and goes on from the target's."""

import itertools
import time
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

from headstart.engine.drafts import messages
from headstart.engine.drafts.channel import send
from headstart.engine.engine_client import TAKE_VISION_TIMES, VisionTimes
from headstart.speculation.draft import Draft
from headstart_events.beside.event_engine import MAX_ASKS, EventEngine
from headstart_events.beside.spec import EventModelSpec
from headstart_events.beside.worth import SOURCE


@dataclass
class _Drafting:
    ask: messages.Ask
    prompt: Any
    preprocessed_s: float
    max_tokens: int
    said: tuple[int, ...] = ()
    """What the target has said, as far as the scheduler told it: the draft goes on from there."""
    spoken: tuple[int, ...] = ()
    """The whole answer so far: what it heard of the target, and its own."""
    running: str | None = None
    """vLLM's request that computes it now."""
    stamps: messages.Stamps | None = None


class DraftEngine(EventEngine):
    """One model that drafts, in the target's own tokens. Used by one thread."""

    def __init__(self, spec: EventModelSpec) -> None:
        super().__init__(spec, {})
        self._num_text_ids = self.model.view.num_text_ids
        self._max_tokens = spec.max_tokens
        self._drafting: OrderedDict[str, _Drafting] = OrderedDict()
        self._requests: dict[str, str] = {}  # our name of a request by vLLM's
        self._counter = itertools.count()
        self._vision = VisionTimes()

    def hear(self, message: messages.ToDraftModel) -> None:
        match message:
            case messages.Ask(request=request) if request not in self._drafting:
                self._begin(message)
            case messages.Said(request=request, tokens=tokens) if request in self._drafting:
                self._follow(self._drafting[request], tokens)
            case messages.Leave(request=request):
                self.leave(request)

    def _begin(self, ask: messages.Ask) -> None:
        most = min(ask.max_tokens, self._max_tokens)
        # The prompt is kept: it is used again when the target says other words.
        drafting = _Drafting(ask, self.rendered(ask), time.monotonic(), most)
        self._drafting[ask.request] = drafting
        while len(self._drafting) > MAX_ASKS:
            self.leave(next(iter(self._drafting)))
        self._start(drafting)

    def _start(self, drafting: _Drafting) -> None:
        from vllm import SamplingParams
        from vllm.sampling_params import RequestOutputKind

        prompt_ids = [*drafting.prompt["prompt_token_ids"], *drafting.spoken]
        room = self.engine.model_config.max_model_len - len(prompt_ids)
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
        self.engine.add_request(drafting.running, prompt, params)

    def _stop(self, drafting: _Drafting) -> None:
        if drafting.running is not None:
            self.engine.abort_request([drafting.running])
            del self._requests[drafting.running]
            drafting.running = None

    def _follow(self, drafting: _Drafting, said: tuple[int, ...]) -> None:
        if len(said) <= len(drafting.said):
            return
        if not all(0 <= token < self._num_text_ids for token in said):
            return  # the target knows words that this model has no ids of
        drafting.said = said
        if drafting.spoken[: len(said)] == said:  # it has foreseen them: tell it from there
            self._tell(drafting)
            return
        self._stop(drafting)
        drafting.spoken = said
        self._start(drafting)

    def leave(self, request: str) -> None:
        drafting = self._drafting.pop(request, None)
        if drafting is not None:
            self._stop(drafting)

    def take(self, output: Any) -> None:
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
        tokens = drafting.spoken[len(drafting.said) :]
        draft = Draft(tokens, SOURCE, time.monotonic(), len(drafting.said))
        message = messages.Drafted(drafting.ask.request, draft, drafting.stamps)
        for outlet in (self.to_scheduler, self.to_front_end):
            send(outlet, message)

    def _stamps(self, drafting: _Drafting, output: Any) -> messages.Stamps:
        now_s = time.monotonic()
        first_token_s = output.metrics.first_token_ts if output.metrics else now_s
        scheduled_s = output.metrics.scheduled_ts if output.metrics else drafting.preprocessed_s
        self._vision.note(self.engine.collective_rpc(TAKE_VISION_TIMES), self.engine.renderer)
        vision_s = self._vision.take(f"{output.request_id}-")
        return messages.Stamps(
            drafting.ask.asked_s,
            drafting.preprocessed_s,
            scheduled_s,
            min(scheduled_s + vision_s, first_token_s),
            first_token_s,
        )
