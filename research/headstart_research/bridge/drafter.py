"""A bridge as a drafter: a small network that reads the stream's answers and looks at the clip.

It keeps the answers of streams and what was read for requests. How one answer is drafted is the
rule of `BridgedAnswer`.
"""

import time
from collections import OrderedDict, deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from headstart.drafters.memory import Memory
from headstart.drafters.registry import Ingredients, Registration
from headstart.errors import DraftingError
from headstart.speculation.drafter import DraftRequest, Features, StreamKey
from headstart_research.bridge.bridged_answer import BridgedAnswer
from headstart_research.bridge.context import EarlierAnswer

if TYPE_CHECKING:
    from headstart_research.bridge.bridge import Bridge

SCHEDULER = "headstart_research.bridge.scheduler.SeeingScheduler"
MAX_STREAMS = 4096
MAX_READINGS = 64
"""Requests of which what was read is kept, about 1 MB each; beyond, it is read again."""
KEPT_ANSWERS = 16
"""Of a stream: more than a bridge reads, so that the last ones to each question are among them."""


class BridgeDrafter:
    """A `Drafter` that sees. Not thread-safe.

    It copies from a memory, which may be a drafter of the same cascade: whoever is told of a
    request twice learns once.
    """

    name = "bridge"

    def __init__(self, bridge: "Bridge", memory: Memory) -> None:
        self.bridge = bridge
        self.memory = memory
        self._streams: OrderedDict[StreamKey, deque[tuple[float, EarlierAnswer]]] = OrderedDict()
        self._requests: dict[str, BridgedAnswer] = {}
        self._reading: OrderedDict[str, BridgedAnswer] = OrderedDict()

    @classmethod
    def load(cls, directory: Path, memory: Memory) -> Self:
        """The bridge of a directory. The first one of a machine is compiled, for some seconds."""
        try:
            from headstart_research.bridge.bridge import Bridge

            return cls(Bridge.load(directory), memory)
        except ImportError as error:
            raise DraftingError(
                "a bridge needs numba and safetensors, which come with vLLM: pip install numba"
                " safetensors, or leave the bridge out"
            ) from error

    def begin(self, request: DraftRequest) -> None:
        self.memory.begin(request)
        kept = self._streams.get(request.stream, ()) if request.remembered else ()
        history = tuple(answer for _, answer in kept)
        self._requests[request.id] = BridgedAnswer(self.bridge, request, history)

    def see(self, request_id: str, features: Mapping[str, Features]) -> None:
        """Features of the clip, which may come one by one, in any order; none twice.

        They are looked at when it gets ready or drafts: the words of a pass wait for this call.
        """
        drafting = self._requests.get(request_id)
        if drafting is not None:
            drafting.see(features)

    def prepare(self, request_id: str) -> None:
        """Read the earlier answers and the question, and look at the features seen since.

        The first takes as long as a draft.
        """
        drafting = self._requests.get(request_id)
        if drafting is None:
            return
        self._reading[request_id] = drafting
        self._reading.move_to_end(request_id)
        if len(self._reading) > MAX_READINGS:
            _, oldest = self._reading.popitem(last=False)
            oldest.close()
        drafting.open()

    def propose(self, request_id: str, confirmed: Sequence[int], max_tokens: int) -> Sequence[int]:
        self.prepare(request_id)
        drafting = self._requests.get(request_id)
        return () if drafting is None else drafting.draft(self.memory, confirmed, max_tokens)

    def finish(self, request_id: str, answer: Sequence[int]) -> None:
        self.memory.finish(request_id, answer)
        drafting = self._requests.pop(request_id, None)
        self._reading.pop(request_id, None)
        if drafting is None or not answer or not drafting.request.remembered:
            return
        request = drafting.request
        answers = self._streams.setdefault(request.stream, deque(maxlen=KEPT_ANSWERS))
        self._streams.move_to_end(request.stream)
        said = self.bridge.vocabulary.own(answer[: self.bridge.config.max_answer_tokens])
        answers.append((time.time(), EarlierAnswer(request.question, said)))
        if len(self._streams) > MAX_STREAMS:
            self._streams.popitem(last=False)

    def forget(self, stream: StreamKey) -> None:
        self.memory.forget(stream)
        self._streams.pop(stream, None)

    def forget_tenant(self, tenant: str) -> None:
        self.memory.forget_tenant(tenant)
        for stream in [stream for stream in self._streams if stream.tenant == tenant]:
            del self._streams[stream]

    def forget_before(self, time_s: float) -> None:
        self.memory.forget_before(time_s)
        for stream, answers in list(self._streams.items()):
            while answers and answers[0][0] < time_s:
                answers.popleft()
            if not answers:
                del self._streams[stream]


def _built(ingredients: Ingredients, directory: str) -> BridgeDrafter:
    return BridgeDrafter.load(Path(directory), ingredients.memory)


def _check(directory: str) -> None:
    BridgeDrafter.load(Path(directory), Memory())


def _vllm_arguments(vllm: Mapping[str, Any]) -> dict[str, Any]:
    from headstart_research.bridge.feature_feed import feed_arguments  # needs vLLM

    return {"scheduler_cls": SCHEDULER, **feed_arguments(vllm)}


REGISTRATION = Registration(
    BridgeDrafter.name,
    "the stream's answers and what vision towers saw, by a trained network",
    _built,
    takes="DIRECTORY",
    check=_check,
    vllm_arguments=_vllm_arguments,
    beside="tower",
)
