"""Shows a bridge the clips of requests, as soon as the target's tower has computed all of one."""

from functools import cached_property
from typing import Any

from vllm.v1.request import Request

from headstart.engine.request_state import RequestState
from headstart.engine.scheduler import HeadstartScheduler
from headstart.speculation.cascade import Cascade
from headstart.speculation.drafted_request import DraftedRequest
from headstart_research.bridge.feature_feed import FeatureFeed
from headstart_research.bridge.pooling import target_features


class SeenClips:
    """Which requests have a clip that was not seen yet. Not thread-safe."""

    def __init__(self, connector: Any, cascade: Cascade) -> None:
        """``connector`` is vLLM's; without a `FeatureFeed` there is nothing to show."""
        self._feed = connector if isinstance(connector, FeatureFeed) else None
        self._cascade = cascade
        self._unseen: dict[DraftedRequest, tuple[str, ...]] = {}
        """The items of a request's clip, in their order."""

    def begin(self, state: RequestState) -> None:
        """A request; if it is drafted for, frames that were fed before are shown at once."""
        if self._feed is None or state.drafted is None or not state.request.mm_features:
            return
        for over in [drafted for drafted in self._unseen if drafted.is_over]:
            del self._unseen[over]
        items = sorted(state.request.mm_features, key=lambda item: item.mm_position.offset)
        self._unseen[state.drafted] = tuple(item.identifier for item in items)
        self._show(self._feed, state.drafted)

    def step_ended(self) -> None:
        """Show what is complete now. Asks only about clips of which the step brought a part."""
        if self._feed is None or not (new := set(self._feed.take_new())):
            return
        for drafted, items in list(self._unseen.items()):
            if not (drafted.is_over or new.isdisjoint(items)):
                self._show(self._feed, drafted)

    def _show(self, feed: FeatureFeed, drafted: DraftedRequest) -> None:
        items = feed.known(self._unseen[drafted])
        if items is not None:
            del self._unseen[drafted]
            self._cascade.see(drafted, target_features(items))


class SeeingScheduler(HeadstartScheduler):
    """Shows drafters that look at clips what the target's tower saw, beside all else."""

    @cached_property
    def _clips(self) -> SeenClips:
        return SeenClips(self.ec_connector, self._cascade)

    def _new_state(self, request: Request) -> RequestState:
        state = super()._new_state(request)
        self._clips.begin(state)
        return state

    def _step_ended(self) -> None:
        self._clips.step_ended()
