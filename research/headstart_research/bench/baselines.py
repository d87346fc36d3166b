"""Drafters to be measured against: blind ones, a drafter's own words, and one that cheats.

Each is a `Drafter`. They are kept as plain as they are described; none is meant for an engine.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence

from headstart.speculation.drafter import DraftRequest, StreamKey
from headstart_research.bench.automaton import SubstringIndex

_Context = tuple[StreamKey, tuple[int | str, ...]]


class _Asked:
    """Keeps what was asked, for drafters that need nothing else of a request."""

    def __init__(self) -> None:
        self._requests: dict[str, DraftRequest] = {}

    def begin(self, request: DraftRequest) -> None:
        self._requests[request.id] = request


class RawWords(_Asked):
    """What another model said to the same question, token by token in its place."""

    name = "drafter raw"

    def __init__(self, words: Mapping[str, Sequence[int]]) -> None:
        super().__init__()
        self._words = words

    def propose(self, request_id: str, confirmed: Sequence[int], max_tokens: int) -> Sequence[int]:
        return self._words.get(request_id, ())[len(confirmed) :][:max_tokens]

    def finish(self, request_id: str, answer: Sequence[int]) -> None:
        pass


class PreviousAnswer(_Asked):
    """The last answer to the same question, token by token in its place. Blind."""

    name = "previous answer"

    def __init__(self) -> None:
        super().__init__()
        self._last: dict[tuple[StreamKey, str], tuple[int, ...]] = {}

    def propose(self, request_id: str, confirmed: Sequence[int], max_tokens: int) -> Sequence[int]:
        request = self._requests[request_id]
        return self._last.get((request.stream, request.question), ())[len(confirmed) :][:max_tokens]

    def finish(self, request_id: str, answer: Sequence[int]) -> None:
        request = self._requests.pop(request_id)
        self._last[request.stream, request.question] = tuple(answer)


class FiveGram(_Asked):
    """The most frequent word after the last four, or after fewer where four are new. Blind."""

    name = "5-gram back-off"

    def __init__(self) -> None:
        super().__init__()
        self._counts: dict[_Context, dict[int, int]] = defaultdict(lambda: defaultdict(int))
        self._best: dict[_Context, int] = {}

    def propose(self, request_id: str, confirmed: Sequence[int], max_tokens: int) -> Sequence[int]:
        request = self._requests[request_id]
        said: list[int | str] = [request.question, *confirmed]
        draft: list[int] = []
        while len(draft) < max_tokens:
            for length in (4, 3, 2, 1):
                token = self._best.get((request.stream, tuple(said[-length:])))
                if token is not None:
                    break
            if token is None:
                break
            draft.append(token)
            said.append(token)
        return draft

    def finish(self, request_id: str, answer: Sequence[int]) -> None:
        request = self._requests.pop(request_id)
        said: list[int | str] = [request.question, *answer]
        for stop, token in enumerate(answer, start=1):
            for length in range(1, min(4, stop) + 1):
                context = (request.stream, tuple(said[stop - length : stop]))
                counts = self._counts[context]
                counts[token] += 1
                best = self._best.setdefault(context, token)
                if counts[token] > counts[best]:
                    self._best[context] = token


class RecentSuffix(_Asked):
    """What followed the most recent, longest match of up to 16 words; copied to its end. Blind."""

    name = "recent suffix"

    def __init__(self) -> None:
        super().__init__()
        self._after: dict[_Context, tuple[tuple[int, ...], int]] = {}

    def propose(self, request_id: str, confirmed: Sequence[int], max_tokens: int) -> Sequence[int]:
        request = self._requests[request_id]
        said: list[int | str] = [request.question, *confirmed]
        for length in range(min(16, len(said)), 0, -1):
            found = self._after.get((request.stream, tuple(said[-length:])))
            if found is not None:
                answer, start = found
                return answer[start : start + max_tokens]
        return ()

    def finish(self, request_id: str, answer: Sequence[int]) -> None:
        request = self._requests.pop(request_id)
        said: list[int | str] = [request.question, *answer]
        for stop in range(1, len(said)):
            for length in range(1, min(16, stop) + 1):
                self._after[request.stream, tuple(said[stop - length : stop])] = (
                    tuple(answer),
                    stop - 1,
                )


class PastOracle(_Asked):
    """Knows the answer, but may only quote: the best single quotation of the tenant's past.

    Before the first token any earlier answer may be quoted from its start, later any place where
    the last confirmed token occurs. No drafter that copies one place a pass can do better.
    """

    name = "oracle over the past"

    def __init__(self, answers: Mapping[str, Sequence[int]]) -> None:
        super().__init__()
        self._answers = answers
        self._past: dict[str, SubstringIndex] = defaultdict(SubstringIndex)

    def propose(self, request_id: str, confirmed: Sequence[int], max_tokens: int) -> Sequence[int]:
        said = [-1, *self._answers[request_id]]
        quoted = said[len(confirmed) : len(confirmed) + 1 + max_tokens]
        known = self._past[self._requests[request_id].stream.tenant].num_known(quoted)
        return quoted[1:known]

    def finish(self, request_id: str, answer: Sequence[int]) -> None:
        self._past[self._requests.pop(request_id).stream.tenant].add([-1, *answer])
