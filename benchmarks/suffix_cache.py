"""arctic-inference's suffix cache (vLLM's ``method: suffix``) under the rules of the replay.

python -m benchmarks.suffix_cache answers.jsonl

Needs arctic-inference in an environment of its own: it patches a vLLM that stands beside it.
headstart itself need only be on PYTHONPATH. A line of JSON last.
"""

import argparse
import json
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from arctic_inference.suffix_decoding import SuffixDecodingCache

from headstart.bench.log import read_log
from headstart.bench.replay import DraftLimits, replay
from headstart.speculation.drafter import Drafter, DraftRequest
from headstart.speculation.memory import Memory

MAX_DEPTH = 64
NO_WORD = 31_999  # stands for a prompt


class SuffixCache:
    """A `Drafter` over arctic's cache. Keeps the seconds spent in its calls."""

    def __init__(self, name: str, factor: float, min_probability: float, marked: bool) -> None:
        self.name = name
        self._cache = SuffixDecodingCache(max_tree_depth=MAX_DEPTH)
        self._factor, self._min_probability = factor, min_probability
        self._marked = marked
        self._fed: dict[str, int] = {}
        self._before: dict[str, list[int]] = {}
        self.seconds: list[float] = []

    def begin(self, request: DraftRequest) -> None:
        # The cache learns answers only. A stand-in for the question, said as the answer's first
        # word, lets it know how answers begin, which as vLLM runs it it cannot.
        mark = 31_000 + hash(request.question) % 900
        self._before[request.id] = [mark] if self._marked else []
        self._cache.start_request(request.id, np.array([NO_WORD], dtype=np.int32))
        if self._marked:
            self._cache.add_active_response(request.id, np.array([mark], dtype=np.int32))
        self._fed[request.id] = 0

    def propose(self, request_id: str, confirmed: Sequence[int], max_tokens: int) -> Sequence[int]:
        self._feed(request_id, confirmed)
        # It matches at most one token fewer than it is given: the prompt's last must be there.
        context = [NO_WORD, *self._before[request_id], *confirmed][-MAX_DEPTH:]
        started = time.perf_counter()
        draft = self._cache.speculate(
            request_id,
            np.array(context, dtype=np.int32),
            max_spec_tokens=max_tokens,
            max_spec_factor=self._factor,
            min_token_prob=self._min_probability,
        )
        self.seconds.append(time.perf_counter() - started)
        return [int(token) for token in draft.token_ids]

    def finish(self, request_id: str, answer: Sequence[int]) -> None:
        self._feed(request_id, answer)
        self._cache.stop_request(request_id)

    def _feed(self, request_id: str, confirmed: Sequence[int]) -> None:
        new = list(confirmed[self._fed[request_id] :])
        if new:
            self._cache.add_active_response(request_id, np.array(new, dtype=np.int32))
            self._fed[request_id] = len(confirmed)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--max-draft", type=int, default=32)
    parser.add_argument("--max-first-draft", type=int, default=64)
    options = parser.parse_args()
    log = read_log(options.file)
    limits = DraftLimits(options.max_first_draft, options.max_draft)
    drafters: list[Drafter] = [
        SuffixCache("suffix, as vLLM sets it", 1.0, 0.1, marked=False),
        SuffixCache("suffix, bold", 100.0, 0.0, marked=False),
        SuffixCache("suffix, as vLLM sets it, question marked", 1.0, 0.1, marked=True),
        SuffixCache("suffix, bold, question marked", 100.0, 0.0, marked=True),
        Memory(),
    ]
    figures: dict[str, dict[str, float | int]] = {}
    for drafter in drafters:
        result = replay(log, drafter, limits)
        figures[drafter.name] = result.summary()
        if isinstance(drafter, SuffixCache):
            micros = sorted(second * 1e6 for second in drafter.seconds)
            figures[drafter.name]["speculate_us_p50"] = round(micros[len(micros) // 2], 1)
        print(f"{drafter.name:45} {figures[drafter.name]}")
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
