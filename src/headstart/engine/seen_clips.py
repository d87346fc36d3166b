"""Shows a bridge the clips of requests, as soon as the target's tower has computed all of one."""

from typing import Any

from headstart.bridges.pooling import target_features
from headstart.engine.feature_feed import FeatureFeed
from headstart.speculation.cascade import Cascade


class SeenClips:
    """The requests whose clips are still to be seen. Not thread-safe."""

    def __init__(self, connector: Any, cascade: Cascade) -> None:
        """``connector`` is vLLM's; without a `FeatureFeed` there is nothing to show."""
        self._feed = connector if isinstance(connector, FeatureFeed) else None
        self._cascade = cascade
        self._unseen: dict[str, list[str]] = {}
        """The names of a request's items, in their order in the prompt."""

    def begin(self, request: Any) -> None:
        """A request that is drafted for; frames that were fed before are known at once."""
        if self._feed is not None and request.mm_features:
            placed = sorted(request.mm_features, key=lambda item: item.mm_position.offset)
            self._unseen[request.request_id] = [item.identifier for item in placed]
            self.step_ended()

    def step_ended(self) -> None:
        """Show what is complete now."""
        for request_id, names in list(self._unseen.items()):
            if self._feed is not None and (items := self._feed.known(names)):
                del self._unseen[request_id]
                self._cascade.see(request_id, target_features(items))

    def forget(self, request_id: str) -> None:
        """The request has ended, or begins anew."""
        self._unseen.pop(request_id, None)
