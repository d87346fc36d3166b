"""A training run of a KV bridge: from recordings to a directory that `KvBridge.load` reads.

Each clip is looked at once, by the event model's tower in vLLM and by the target in transformers.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from headstart.errors import MediaError, TrainingError
from headstart.media.clip import Clip
from headstart_research.bridge.pooling import DRAFTER, drafter_features
from headstart_research.collect.clip_source import HELD_OUT, ClipSource
from headstart_research.collect.shard import Shard
from headstart_research.kv_bridge.bridge import KvBridge, Rows
from headstart_research.kv_bridge.fit import KvSums, SeenClip, best_fit, unexplained
from headstart_research.kv_bridge.states import TargetStates
from headstart_research.training.place import check_place

KEPT_BACK = 8
"""One stream of so many is not learnt, and decides how strong the penalty is."""

Say = Callable[[str], None]


@dataclass(frozen=True)
class KvRun:
    """What to train on what."""

    target: str
    drafter: str
    source: ClipSource
    output: Path
    drafter_vllm: Mapping[str, Any] = field(default_factory=dict)
    """Any of vLLM's engine arguments for the event model, by its names."""
    num_threads: int = 1

    def train(self, say: Say) -> Path:
        import torch

        from headstart_research.collect.observer import Observer  # needs what the engine brings

        if self.source.name == HELD_OUT:
            raise TrainingError("held-out drives are for measuring: train on others")
        check_place(self.output)
        torch.set_num_threads(self.num_threads)
        states = TargetStates(self.target)
        sums: KvSums | None = None
        kept_back: list[SeenClip] = []
        num_clips, begun_s = 0, time.monotonic()
        with Observer(self.drafter, tower_only=True, vllm=self.drafter_vllm) as tower:
            for is_kept_back, clip in self._clips(states.view.num_frames):
                try:
                    features = drafter_features(tower.look(clip))[DRAFTER]
                except MediaError:
                    continue  # too little moved to be drawn
                seen = SeenClip(features, states.rows(clip))
                if sums is None:
                    sums = KvSums(states.kv_config(features.shape[1]))
                if is_kept_back:
                    kept_back.append(seen)
                else:
                    sums.add(seen)
                num_clips += 1
                if num_clips % 20 == 0:
                    say(f"{num_clips} clips in {time.monotonic() - begun_s:.0f} s")
        if sums is None or not kept_back:
            raise TrainingError(
                "no stream is left to measure the bridge on: give recordings of two streams at"
                " least, with events"
            )
        bridge, strength = best_fit(sums, kept_back)
        left = unexplained(bridge, kept_back)
        say(f"{left[:, 0].mean():.1%} of the keys' variance is left, {left[:, 1].mean():.1%} of")
        say(f"the values', on {len(kept_back)} clips kept back; penalty {strength}")
        self.output.mkdir(parents=True, exist_ok=True)
        bridge.save(self.output)
        card = kv_card(bridge, self.drafter, num_clips - len(kept_back), left, len(kept_back))
        (self.output / "README.md").write_text(card, encoding="utf-8")
        return self.output

    def _clips(self, num_frames: int) -> Iterator[tuple[bool, Clip]]:
        """All clips, and whether each is kept back. Whole streams are."""
        streams = self.source.mine(Shard())
        for place, (stream, count) in enumerate(streams):
            is_kept_back = place % KEPT_BACK == min(KEPT_BACK, len(streams)) - 1
            for number, clip in stream.clips(num_frames):
                if number < count and clip.events is not None:
                    yield is_kept_back, clip
                if number + 1 >= count:
                    break


def kv_card(bridge: KvBridge, drafter: str, num_learnt: int, left: Rows, num_kept_back: int) -> str:
    """The card of a KV bridge: a README.md as model hubs show it."""
    config = bridge.config
    layers = "\n".join(
        f"| {number} | {keys:.0%} | {values:.0%} |" for number, (keys, values) in enumerate(left)
    )
    return f"""---
library_name: headstart
base_model: {config.target}
tags:
- headstart
---

# A KV bridge for {config.target}

It guesses the target's keys and values of a clip from what {drafter} sees in the clip's events.
It is for study: no engine reads it.

| | |
|---|---|
| gives | {config.num_tokens} tokens, {config.num_layers} layers, {config.num_kv_heads} heads of \
{config.head_size} |
| reads | tokens of {config.feature_size} numbers |
| trained | on {num_learnt} clips, in closed form |

The share of the variance that is left on {num_kept_back} clips of other streams; 100% is as good as
the mean over all clips:

| layer | keys | values |
|---|---|---|
{layers}
"""
