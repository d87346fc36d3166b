"""An event model without its language model: its tower and projector look, and a bridge drafts."""

from collections import OrderedDict
from typing import Any

import numpy as np

from headstart.engine.drafts import messages
from headstart.engine.drafts.channel import send
from headstart.speculation.drafter import Features
from headstart_events.beside.event_engine import MAX_ASKS, EventEngine
from headstart_events.beside.spec import EventModelSpec
from headstart_research.bridge import feature_tap
from headstart_research.bridge.pooling import DRAFTER, MAX_TOKENS, at_most, drafter_features

MAX_BYTES = 2**28
"""Of items that are kept for further questions about a clip. vLLM keeps some too, and does not
compute those again."""


class TowerEngine(EventEngine):
    """Sends what the tower saw to the scheduler, once a request. Used by one thread."""

    def __init__(self, spec: EventModelSpec) -> None:
        super().__init__(spec, {"enable_mm_processor_stats": False})
        self._looking: OrderedDict[str, list[str]] = OrderedDict()
        """The names of a request's items."""
        self._seen: OrderedDict[str, Features] = OrderedDict()
        self._num_bytes = 0

    def hear(self, message: messages.ToDraftModel) -> None:
        """Look at a clip, unless it is known, or look no more."""
        match message:
            case messages.Ask(request=request) if request not in self._looking:
                self._look(message)
            case messages.Leave(request=request):
                self.leave(request)

    def _look(self, ask: messages.Ask) -> None:
        from vllm import SamplingParams

        prompt = self.rendered(ask)
        names = feature_tap.item_names(prompt)
        if self._show(ask.request, names):
            return
        self._looking[ask.request] = names
        while len(self._looking) > MAX_ASKS:
            self.leave(next(iter(self._looking)))
        params = SamplingParams(max_tokens=1, detokenize=False)
        self.engine.add_request(ask.request, prompt, params)

    def take(self, output: Any) -> None:
        if not output.finished or (names := self._looking.pop(output.request_id, None)) is None:
            return
        unseen = [name for name in dict.fromkeys(names) if name not in self._seen]
        copies = feature_tap.fetched(self.engine.collective_rpc(feature_tap.RPC, args=(unseen,)))
        for name, item in zip(unseen, copies, strict=True):
            if item is not None:
                self._keep(name, item)
        self._show(output.request_id, names)

    def leave(self, request: str) -> None:
        """Nobody waits for it any more."""
        if self._looking.pop(request, None) is not None:
            self.engine.abort_request([request])

    def _show(self, request: str, names: list[str]) -> bool:
        if not names or any(name not in self._seen for name in names):
            return False
        for name in names:
            self._seen.move_to_end(name)
        tokens = drafter_features([self._seen[name] for name in names])[DRAFTER]
        if len(tokens) > MAX_TOKENS:
            tokens = at_most(tokens, MAX_TOKENS).astype(np.float16)
        send(self.to_scheduler, messages.Seen.of(request, DRAFTER, tokens))
        return True

    def _keep(self, name: str, item: Features) -> None:
        self._seen[name] = item
        self._num_bytes += item.nbytes
        while self._num_bytes > MAX_BYTES and len(self._seen) > 1:
            _, dropped = self._seen.popitem(last=False)
            self._num_bytes -= dropped.nbytes
