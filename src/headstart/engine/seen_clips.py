"""Shows a bridge the clips of requests, as soon as the target's tower has computed all of one."""

from collections.abc import Iterable
from typing import Any

from headstart.bridges.pooling import target_features
from headstart.engine.feature_feed import FeatureFeed
from headstart.engine.request_state import RequestState
from headstart.speculation.cascade import Cascade


class SeenClips:
    """Notes in a request's state what is still to be seen of its clip. Not thread-safe."""

    def __init__(self, connector: Any, cascade: Cascade) -> None:
        """``connector`` is vLLM's; without a `FeatureFeed` there is nothing to show."""
        self._feed = connector if isinstance(connector, FeatureFeed) else None
        self._cascade = cascade

    def begin(self, state: RequestState) -> None:
        """A request that is drafted for; frames that were fed before are known at once."""
        if self._feed is not None and state.request.mm_features:
            items = sorted(state.request.mm_features, key=lambda item: item.mm_position.offset)
            state.unseen = tuple(item.identifier for item in items)
            self._show(self._feed, state)

    def step_ended(self, states: Iterable[RequestState]) -> None:
        """Show what is complete now. Asks only about clips of which the step brought a part."""
        if self._feed is not None and (new := set(self._feed.take_new())):
            for state in states:
                if not new.isdisjoint(state.unseen):
                    self._show(self._feed, state)

    def _show(self, feed: FeatureFeed, state: RequestState) -> None:
        items = feed.known(state.unseen)
        if items is not None and state.drafted is not None:
            state.unseen = ()
            self._cascade.see(state.drafted, target_features(items))
