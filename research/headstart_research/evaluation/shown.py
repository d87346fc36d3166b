"""Shows a drafter the features of clips, or some of them, while answers are replayed."""

from collections.abc import Mapping, Sequence

from headstart.speculation.drafter import DraftRequest, Features, PreparingDrafter, SeeingDrafter
from headstart_research.bridge.pooling import DRAFTER, TARGET_FEATURES
from headstart_research.evaluation.workload import Stream

SELECTIONS: Mapping[str, tuple[str, ...]] = {
    "none": (),
    "events": (DRAFTER,),
    "target": TARGET_FEATURES,
    "both": (*TARGET_FEATURES, DRAFTER),
}
"""Which features a drafter is shown, by a short name."""


class Shown:
    """A `Drafter` that sees these features of each request's clip, and no others.

    Features without rows are left out: the event model saw nothing move, or the target takes a
    clip as a whole.
    """

    def __init__(self, drafter: SeeingDrafter, names: Sequence[str], stream: Stream) -> None:
        self._drafter = drafter
        self._features: dict[str, dict[str, Features]] = {
            answer.logged.request.id: {
                name: answer.features[name] for name in names if len(answer.features[name])
            }
            for answer in stream
        }

    @property
    def name(self) -> str:
        return self._drafter.name

    def begin(self, request: DraftRequest) -> None:
        self._drafter.begin(request)
        if isinstance(self._drafter, PreparingDrafter):
            self._drafter.prepare(request.id)
        if features := self._features[request.id]:
            self._drafter.see(request.id, features)

    def propose(self, request_id: str, confirmed: Sequence[int], max_tokens: int) -> Sequence[int]:
        return self._drafter.propose(request_id, confirmed, max_tokens)

    def finish(self, request_id: str, answer: Sequence[int]) -> None:
        self._drafter.finish(request_id, answer)
