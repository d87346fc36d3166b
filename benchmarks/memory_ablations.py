"""What else a memory could do, one change at a time, under the rules of the replay.

python -m benchmarks.memory_ablations answers.jsonl

Prints tokens per pass of the whole log and of its halves, and the seconds a variant took in all;
then what the log itself says about the bound. A line of JSON last.
"""

import argparse
import json
import math
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import fmean

from headstart.bench.log import LoggedAnswer, read_log
from headstart.bench.replay import DraftLimits, replay
from headstart.speculation import stream_memory as memory_module
from headstart.speculation.drafter import Drafter, DraftRequest, StreamKey
from headstart.speculation.memory import Memory
from headstart.speculation.question_mark import question_mark
from headstart.speculation.verdict import num_agreeing

NUM_ANSWERS = 512  # as many as `Memory` remembers
Place = tuple[int, int]
"""The number of an answer, and how many of its tokens (its question's mark first) come before."""


class PlacesMemory:
    """A `Drafter` by the same rule as `Memory`, with places of occurrence in plain dictionaries.

    Larger and easier to change.
    """

    name = "memory"
    max_pieces = memory_module.MAX_PIECES

    def __init__(self) -> None:
        self._requests: dict[str, DraftRequest] = {}
        self._answers: list[tuple[int, ...]] = []
        self._places: dict[tuple[StreamKey, tuple[int, ...]], list[Place]] = defaultdict(list)

    def begin(self, request: DraftRequest) -> None:
        self._requests[request.id] = request

    def finish(self, request_id: str, answer: Sequence[int]) -> None:
        request = self._requests.pop(request_id)
        said = (question_mark(request.question), *answer)
        self._answers.append(said)
        for stop in range(1, len(said)):
            for length in memory_module.CONTEXT_LENGTHS:
                if length <= stop:
                    places = self._places[request.stream, said[stop - length : stop]]
                    places.append((len(self._answers) - 1, stop))
                    del places[: -memory_module.MAX_PLACES]

    def propose(self, request_id: str, confirmed: Sequence[int], max_tokens: int) -> Sequence[int]:
        request = self._requests[request_id]
        said = [question_mark(request.question), *confirmed]
        known = len(said)
        for _ in range(self.max_pieces):
            missing = max_tokens - (len(said) - known)
            place = self._best_place(request.stream, said) if missing > 0 else None
            if place is None:
                break
            said += self._answers[place[0]][place[1] : place[1] + missing]
        return said[known:]

    def _best_place(self, stream: StreamKey, said: list[int]) -> Place | None:
        for length in memory_module.CONTEXT_LENGTHS:
            oldest = len(self._answers) - NUM_ANSWERS
            places = [
                place
                for place in self._places.get((stream, tuple(said[-length:])), ())
                if place[0] >= oldest
            ]
            if length <= len(said) and places:
                return self._chosen(places, said)
        return None

    def _chosen(self, places: list[Place], said: list[int]) -> Place:
        return max(reversed(places), key=lambda place: self._match(place, said))

    def _match(self, place: Place, said: list[int]) -> int:
        answer, stop = self._answers[place[0]], place[1]
        most = min(stop, len(said), memory_module.MAX_MATCH)
        return num_agreeing(answer[stop - most : stop][::-1], said[-most:][::-1])


class OnePiece(PlacesMemory):
    """Copies once; where the copy ends, the draft ends."""

    max_pieces = 1


class RecencyVote(PlacesMemory):
    """At a fork the places vote for the next token, each older one with 0.7 of the weight."""

    def _chosen(self, places: list[Place], said: list[int]) -> Place:
        votes: dict[int, float] = defaultdict(float)
        for age, (number, start) in enumerate(reversed(places)):
            votes[self._answers[number][start]] += 0.7**age
        token = max(votes, key=votes.__getitem__)
        voted = [place for place in places if self._answers[place[0]][place[1]] == token]
        return super()._chosen(voted, said)


class DraftNeighbour(Memory):
    """The first draft is the answer to the clip on which the drafter spoke most alike."""

    def __init__(self, words: dict[str, frozenset[int]], look_back: int) -> None:
        super().__init__()
        self._words, self._look_back = words, look_back
        self._past: list[tuple[frozenset[int], Sequence[int]]] = []

    def propose(self, request_id: str, confirmed: Sequence[int], max_tokens: int) -> Sequence[int]:
        if confirmed or not self._past:
            return super().propose(request_id, confirmed, max_tokens)
        words = self._words[request_id]
        alike = [len(words & past) / len(words | past) for past, _ in self._past]
        best = max(range(len(alike)), key=lambda place: (alike[place], place))
        return self._past[best][1][:max_tokens]

    def finish(self, request_id: str, answer: Sequence[int]) -> None:
        super().finish(request_id, answer)
        self._past = [*self._past, (self._words[request_id], answer)][-self._look_back :]


class _Followers:
    """What followed one context: counts that fade fast, slowly and never, and the last one."""

    __slots__ = ("counts", "last", "when")

    def __init__(self) -> None:
        self.counts: dict[int, list[float]] = {}
        self.last, self.when = -1, 0

    def fade(self, now: int) -> None:
        if now > self.when:
            fast, slow = 0.5 ** ((now - self.when) / 1.5), 0.5 ** ((now - self.when) / 30)
            for count in self.counts.values():
                count[0] *= fast
                count[1] *= slow
            self.when = now

    def add(self, token: int, now: int) -> None:
        self.fade(now)
        count = self.counts.setdefault(token, [0.0, 0.0, 0.0])
        for kind in range(3):
            count[kind] += 1.0
        self.last = token


class LearnedMixture:
    """Contexts of fourteen lengths vote for each token, with weights learnt online.

    The last answer comes first; after that each token is the one with the highest score. Weights
    (a set for each depth of the deepest known context) follow the gradient of the log-likelihood,
    one step a token of each finished answer. One stream only.
    """

    name = "learned mixture"
    LENGTHS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 50)
    FLOOR, RATE = 0.05, 0.02

    def __init__(self) -> None:
        self._followers: dict[tuple[int, ...], _Followers] = {}
        num = 4 * len(self.LENGTHS) + 10
        self._weights = [[0.0] * num for _ in range(6)]
        for weights in self._weights:
            for place in range(len(self.LENGTHS)):
                weights[4 * place], weights[4 * place + 3] = 0.3, 0.2
        self._recent: list[frozenset[int]] = []
        self._last: list[int] = []
        self._now = 0

    def begin(self, request: DraftRequest) -> None:
        pass

    def propose(self, request_id: str, confirmed: Sequence[int], max_tokens: int) -> Sequence[int]:
        if not confirmed:
            return self._last[:max_tokens]
        said = [-1, *confirmed]
        for _ in range(max_tokens):
            depth, candidates = self._candidates(said)
            if not candidates:
                break
            said.append(max(candidates, key=lambda t: self._score(depth, candidates[t])))
        return said[1 + len(confirmed) :]

    def finish(self, request_id: str, answer: Sequence[int]) -> None:
        said = [-1, *answer]
        for stop in range(1, len(said)):
            self._step(said[:stop], said[stop])
        for stop in range(1, len(said)):
            for length in self.LENGTHS:
                context = tuple(said[max(0, stop - length) : stop])
                if len(context) == length or length == 50:
                    self._followers.setdefault(context, _Followers()).add(said[stop], self._now)
        self._recent = [*self._recent, frozenset(answer)][-8:]
        self._last = list(answer)
        self._now += 1

    def _candidates(self, said: list[int]) -> tuple[int, dict[int, dict[int, float]]]:
        """The depth of the deepest known context, and each candidate's features."""
        found: dict[int, dict[int, float]] = defaultdict(dict)
        depth = 0
        for place, length in enumerate(self.LENGTHS):
            if length > len(said) and length != 50:
                continue
            followers = self._followers.get(tuple(said[-length:]))
            if followers is None:
                continue
            depth = length
            followers.fade(self._now)
            totals = [sum(c[kind] for c in followers.counts.values()) + 1e-3 for kind in range(3)]
            for token, count in followers.counts.items():
                features = found[token]
                for kind in range(3):
                    share = count[kind] / totals[kind]
                    features[4 * place + kind] = math.log1p(share / self.FLOOR) / 3
                if token == followers.last:
                    features[4 * place + 3] = 1.0
        base = 4 * len(self.LENGTHS)
        already = set(said)
        for token, features in found.items():
            before = bool(self._recent) and token in self._recent[-1]
            features[base + 2 * (token in already) + before] = 1.0
            features[base + 4] = sum(token in words for words in self._recent) / 8
        aligned = self._last[len(said) - 1] if len(said) <= len(self._last) else None
        if aligned in found:
            found[aligned][base + 5] = 1.0
        for stop in range(1, len(said)):
            if said[stop - 1] == said[-1]:
                deeper = stop > 1 and said[stop - 2] == said[-2]
                found[said[stop]][base + 6 + deeper] = 1.0
        return sum(depth > edge for edge in (2, 4, 8, 12, 24)), found

    def _score(self, depth: int, features: dict[int, float]) -> float:
        weights = self._weights[depth]
        return sum(weights[place] * value for place, value in features.items())

    def _step(self, said: list[int], truth: int) -> None:
        depth, candidates = self._candidates(said)
        if truth not in candidates or len(candidates) < 2:
            return
        scores = {t: self._score(depth, features) for t, features in candidates.items()}
        top = max(scores.values())
        odds = {token: math.exp(score - top) for token, score in scores.items()}
        total = sum(odds.values())
        weights = self._weights[depth]
        for token, features in candidates.items():
            error = (token == truth) - odds[token] / total
            for place, value in features.items():
                weights[place] += self.RATE * error * value


def num_new_pairs(log: Sequence[LoggedAnswer]) -> float:
    """Mean number of places in an answer where a token follows another for the first time."""
    seen: set[tuple[int, int]] = set()
    new = []
    for row in log:
        pairs = list(zip((-1, *row.tokens), row.tokens, strict=False))
        new.append(sum(pair not in seen for pair in pairs))
        seen.update(pairs)
    return fmean(new)


def what_the_drafter_tells(log: Sequence[LoggedAnswer]) -> dict[str, float]:
    """Tokens agreed with the latest earlier answer of the same draft, and with its neighbours.

    The neighbours (two clips to either side, another draft) are as old: what is left of the
    difference is what the drafter's words know of the answer.
    """
    same, others = [], []
    for now in range(len(log)):
        alike = [then for then in range(now - 3) if log[then].drafted == log[now].drafted]
        near = [alike[-1] + step for step in (-2, -1, 1, 2)] if alike else []
        near = [t for t in near if 0 <= t < now - 1 and log[t].drafted != log[now].drafted]
        if near:
            said = log[now].tokens
            same.append(num_agreeing(said, log[alike[-1]].tokens))
            others.append(fmean(num_agreeing(said, log[then].tokens) for then in near))
    if not same:
        return {}
    return {"cases": len(same), "same_draft": fmean(same), "other_draft": fmean(others)}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    log = read_log(parser.parse_args().file)
    words = {row.request.id: frozenset(row.drafted) for row in log}
    variants: list[tuple[str, Callable[[], Drafter], DraftLimits]] = [
        ("memory", Memory, DraftLimits()),
        ("first draft of 32", Memory, DraftLimits(32, 32)),
        ("drafts of 16", Memory, DraftLimits(64, 16)),
        ("drafts of 64", Memory, DraftLimits(64, 64)),
        ("one piece a draft", OnePiece, DraftLimits()),
        ("recency vote at forks", RecencyVote, DraftLimits()),
    ]
    variants += [
        (f"at most {size} answers", lambda size=size: Memory(max_answers=size), DraftLimits())
        for size in (32, 128, 2048)
    ]
    if any(words.values()):
        variants += [
            (
                f"first by draft, of last {size}",
                lambda size=size: DraftNeighbour(words, size),
                DraftLimits(),
            )
            for size in (4, 16, 400)
        ]
    if len({row.request.question for row in log}) == 1:
        variants.append(("learned mixture", LearnedMixture, DraftLimits()))
    figures: dict[str, dict[str, float]] = {}
    for name, make, limits in variants:
        started = time.perf_counter()
        result = replay(log, make(), limits)
        seconds = time.perf_counter() - started
        first, second = result.by_time(2)
        figures[name] = {
            "tokens_per_pass": round(result.tokens_per_pass, 3),
            "first_half": round(first, 3),
            "second_half": round(second, 3),
            "first_block": round(result.first_block, 2),
            "seconds": round(seconds, 2),
        }
        print(f"{name:28} {figures[name]}", flush=True)
    figures["log"] = {"new_pairs": num_new_pairs(log), **what_the_drafter_tells(log)}
    print(f"{'log':28} {figures['log']}")
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
