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
        self._waiting_for: dict[str, dict[str, None]] = {}
        """The requests whose clips an item is part of, the oldest first."""

    def begin(self, request: Any) -> None:
        """A request that is drafted for; frames that were fed before are known at once."""
        if self._feed is not None and request.mm_features:
            placed = sorted(request.mm_features, key=lambda item: item.mm_position.offset)
            names = self._unseen[request.request_id] = [item.identifier for item in placed]
            for name in names:
                self._waiting_for.setdefault(name, {})[request.request_id] = None
            self._show(request.request_id)

    def step_ended(self) -> None:
        """Show what is complete now. Asks only about clips of which the step brought a part."""
        if self._feed is not None:
            new = self._feed.take_new()
            waiting = {one: None for name in new for one in self._waiting_for.get(name, ())}
            for request_id in waiting:
                self._show(request_id)

    def _show(self, request_id: str) -> None:
        if self._feed is not None and (items := self._feed.known(self._unseen[request_id])):
            self.forget(request_id)
            self._cascade.see(request_id, target_features(items))

    def forget(self, request_id: str) -> None:
        """The request has ended, or begins anew."""
        for name in self._unseen.pop(request_id, ()):
            waiting = self._waiting_for.get(name, {})
            waiting.pop(request_id, None)
            if not waiting:
                self._waiting_for.pop(name, None)
