"""How long a bridge's drafts take, and what a draft consists of. A line of JSON last.

headstart lab texts texts.jsonl --set drives=150 --set clips=9
python -m headstart_research.bridge.benchmark texts.jsonl --bridge lab/headstart_lab/pair/bridge

The last answers of the log are drafted for, the others are in memory from the start. A log has no
clips, so the target's features are noise of the right shape: they cost what real ones cost.
Times are wall time and, with ``cpu`` in their names, time of the thread on its core.
"""

import argparse
import json
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from headstart.drafters.memory import Memory
from headstart.speculation.drafter import DraftRequest
from headstart_research.bench.log import read_log
from headstart_research.bench.percentiles import percentile
from headstart_research.bench.replay import DraftLimits, replay
from headstart_research.bridge.bridge import Bridge
from headstart_research.bridge.drafter import BridgeDrafter
from headstart_research.bridge.network import BridgeNetwork, Guesses, Reading
from headstart_research.bridge.pooling import TARGET_FEATURES

LIMITS = DraftLimits(first=64, later=32)
Done = TypeVar("Done")


class Times:
    """Milliseconds by what they were spent on."""

    def __init__(self) -> None:
        self.wall: dict[str, list[float]] = defaultdict(list)
        self.cpu: dict[str, list[float]] = defaultdict(list)

    def of(self, name: str, work: Callable[[], Done]) -> Done:
        """Do it, and note how long it took."""
        begun, begun_cpu = time.perf_counter(), time.thread_time()
        done = work()
        self.cpu[name].append(1e3 * (time.thread_time() - begun_cpu))
        self.wall[name].append(1e3 * (time.perf_counter() - begun))
        return done

    def figures(self) -> dict[str, float]:
        return {
            f"{name}_{clock}_p{share}": round(percentile(spent, share), 3)
            for clock, times in (("ms", self.wall), ("cpu_ms", self.cpu))
            for name, spent in times.items()
            if spent
            for share in (50, 95)
        }


class TimedNetwork(BridgeNetwork):
    """A network that notes what it reads."""

    def __init__(self, network: BridgeNetwork, times: Times) -> None:
        vars(self).update(vars(network))
        self._times = times
        self.num_tokens: list[int] = []

    def read_context(self, *sequence: Any) -> Reading:
        read = super().read_context
        return self._times.of("context", lambda: read(*sequence))

    def read_answer(self, reading: Reading, own_ids: Sequence[int], *more: Any) -> Guesses:
        self.num_tokens.append(len(own_ids))
        read = super().read_answer
        return self._times.of("reading", lambda: read(reading, own_ids, *more))


class TimedBridge(BridgeDrafter):
    """A bridge that is shown noise, and notes how long its drafts take."""

    def __init__(self, bridge: Bridge, memory: Memory) -> None:
        self.times = Times()
        self.network = TimedNetwork(bridge.network, self.times)
        super().__init__(replace(bridge, network=self.network), memory)
        noise = np.random.default_rng(0)
        self._noise = {
            feature.name: noise.normal(size=(feature.max_tokens, feature.size)).astype(np.float16)
            for feature in bridge.config.features
            if feature.name in TARGET_FEATURES
        }

    def begin(self, request: DraftRequest) -> None:
        super().begin(request)
        self.prepare(request.id)
        self.see(request.id, self._noise)

    def propose(self, request_id: str, confirmed: Sequence[int], max_tokens: int) -> Sequence[int]:
        propose = super().propose
        draft = self.times.of("draft", lambda: propose(request_id, confirmed, max_tokens))
        if len(draft) == LIMITS.later:
            self.times.wall["draft_of_32"].append(self.times.wall["draft"][-1])
            self.times.cpu["draft_of_32"].append(self.times.cpu["draft"][-1])
        return draft


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--bridge", type=Path, required=True)
    parser.add_argument("--answers", type=int, default=200, help="to draft for")
    options = parser.parse_args()
    log, times = read_log(options.file), Times()
    memory = Memory()
    for row in log[: -options.answers]:
        memory.seed(row.request.stream.tenant, row.request.question, row.tokens)
    bridge = TimedBridge(times.of("load", lambda: Bridge.load(options.bridge)), memory)
    run = replay(log[-options.answers :], bridge, LIMITS)
    num_drafts, num_tokens = len(bridge.times.wall["draft"]), bridge.network.num_tokens
    figures = {
        "load_or_compile_s": round(times.wall["load"][0] / 1e3, 2),
        "tokens_per_pass": round(run.tokens_per_pass, 3),
        "drafts": num_drafts,
        "drafts_of_32": len(bridge.times.wall["draft_of_32"]),
        "readings_per_draft": round(len(num_tokens) / num_drafts, 2),
        "tokens_per_reading": round(sum(num_tokens) / len(num_tokens), 2),
        **bridge.times.figures(),
    }
    for name, value in figures.items():
        print(f"{name:28} {value}")
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
