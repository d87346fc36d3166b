"""A bridge as a drafter: a small network that reads the stream's answers and looks at the clip.

Memory drafts for the bridge. A copy from memory is read in one go, and followed as far as the
bridge agrees, or disagrees without conviction; where it is sure of another word it says that word,
and memory looks again from there. So a draft takes a few readings, not one for each token.
"""

import time
from collections import OrderedDict, deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import NDArray

from headstart.bridges.context import (
    NO_TOKEN,
    EarlierAnswer,
    fitted,
    match_kind,
    read_context,
)
from headstart.bridges.vocabulary import ANSWER
from headstart.errors import DraftingError
from headstart.speculation.drafter import DraftRequest, Found, StreamKey
from headstart.speculation.memory import Memory

if TYPE_CHECKING:
    from headstart.bridges.bridge import Bridge
    from headstart.bridges.network import Reading

SURE = 0.6
"""A chance of being right from which on a bridge's word goes before memory's."""
MIN_CHANCE = 0.02
"""Of all words of a draft being right: a draft that is less likely to be goes no further."""
COPY_TOKENS = 7
"""Of memory's copy, read at a time: what is read beyond a disagreement is read in vain."""
MAX_STREAMS = 4096
MAX_READINGS = 64
"""Requests of which what was read is kept, about 1 MB each; beyond, it is read again."""
KEPT_ANSWERS = 16
"""Of a stream: more than a bridge reads, so that the last ones to each question are among them."""


class BridgeDrafter:
    """A `Drafter` that sees. Not thread-safe.

    It copies from a memory that is told of the same requests by others; see `RememberingBridge`.
    """

    name = "bridge"

    def __init__(self, bridge: "Bridge", memory: Memory) -> None:
        self.bridge = bridge
        self.memory = memory
        self._streams: OrderedDict[StreamKey, deque[tuple[float, EarlierAnswer]]] = OrderedDict()
        self._requests: dict[str, _Drafting] = {}
        self._reading: OrderedDict[str, _Drafting] = OrderedDict()

    @classmethod
    def load(cls, directory: Path, memory: Memory) -> Self:
        """The bridge of a directory. The first one of a machine is compiled, for some seconds."""
        try:
            from headstart.bridges.bridge import Bridge

            return cls(Bridge.load(directory), memory)
        except ImportError as error:
            raise DraftingError(
                "a bridge needs numba and safetensors, which come with vLLM: pip install numba"
                " safetensors, or leave the bridge out"
            ) from error

    def begin(self, request: DraftRequest) -> None:
        kept = self._streams.get(request.stream, ()) if request.remembered else ()
        history = tuple(answer for _, answer in kept)
        self._requests[request.id] = _Drafting(self.bridge, request, history)

    def see(self, request_id: str, features: Mapping[str, NDArray[np.float16]]) -> None:
        """Look at a clip. Features may come one by one, in any order; none twice."""
        drafting = self._requests.get(request_id)
        if drafting is not None:
            drafting.see(features)

    def prepare(self, request_id: str) -> None:
        """Read the earlier answers and the question, which takes as long as a draft."""
        drafting = self._requests.get(request_id)
        if drafting is None:
            return
        self._reading[request_id] = drafting
        self._reading.move_to_end(request_id)
        if len(self._reading) > MAX_READINGS:
            _, oldest = self._reading.popitem(last=False)
            oldest.close()
        drafting.open()

    def propose(self, request_id: str, confirmed: Sequence[int], max_tokens: int) -> Sequence[int]:
        self.prepare(request_id)
        drafting = self._requests.get(request_id)
        return () if drafting is None else drafting.draft(self.memory, confirmed, max_tokens)

    def finish(self, request_id: str, answer: Sequence[int]) -> None:
        drafting = self._requests.pop(request_id, None)
        self._reading.pop(request_id, None)
        if drafting is None or not answer or not drafting.request.remembered:
            return
        request = drafting.request
        answers = self._streams.setdefault(request.stream, deque(maxlen=KEPT_ANSWERS))
        self._streams.move_to_end(request.stream)
        said = self.bridge.vocabulary.own(answer[: self.bridge.config.max_answer_tokens])
        answers.append((time.time(), EarlierAnswer(request.question, said)))
        if len(self._streams) > MAX_STREAMS:
            self._streams.popitem(last=False)

    def forget(self, stream: StreamKey) -> None:
        """Drop a stream's answers here; those in its memory are forgotten there."""
        self._streams.pop(stream, None)

    def forget_tenant(self, tenant: str) -> None:
        for stream in [stream for stream in self._streams if stream.tenant == tenant]:
            self.forget(stream)

    def forget_before(self, time_s: float) -> None:
        for stream, answers in list(self._streams.items()):
            while answers and answers[0][0] < time_s:
                answers.popleft()
            if not answers:
                self.forget(stream)


class RememberingBridge(BridgeDrafter):
    """A bridge whose memory is its own: for where no other drafter has one."""

    def begin(self, request: DraftRequest) -> None:
        self.memory.begin(request)
        super().begin(request)

    def finish(self, request_id: str, answer: Sequence[int]) -> None:
        self.memory.finish(request_id, answer)
        super().finish(request_id, answer)

    def forget(self, stream: StreamKey) -> None:
        self.memory.forget(stream)
        super().forget(stream)

    def forget_tenant(self, tenant: str) -> None:
        self.memory.forget_tenant(tenant)
        super().forget_tenant(tenant)

    def forget_before(self, time_s: float) -> None:
        self.memory.forget_before(time_s)
        super().forget_before(time_s)


class _Drafting:
    """One answer, and how much of it the network has read."""

    def __init__(
        self, bridge: "Bridge", request: DraftRequest, history: Sequence[EarlierAnswer]
    ) -> None:
        self.request = request
        self._bridge, self._network = bridge, bridge.network
        self._history = history
        self._answer_mark = bridge.vocabulary.mark(ANSWER)
        self._end_ids = {int(bridge.vocabulary.target_ids[own]) for own in bridge.config.end_ids}
        self._seen: dict[str, NDArray[np.float32]] = {}
        self._reading: Reading | None = None
        self._start = 0
        self._said: list[int] = []  # tokens of the answer that were read after its mark
        self._words: list[int] = []  # the own ids guessed after the mark, and after each of them
        self._chances: list[float] = []

    def open(self) -> "Reading":
        """What was read, which is all before the answer at least."""
        if self._reading is None:
            request, bridge = self.request, self._bridge
            context = read_context(
                bridge.config, bridge.vocabulary, self._history, request.question, request.prompt
            )
            self._reading = self._network.read_context(context.own_ids, context.followed_by)
            self._start = self._reading.length
            self._network.look(self._reading, self._seen)
        return self._reading

    def close(self) -> None:
        """Give up the room of what was read."""
        self._reading = None
        self._said, self._words, self._chances = [], [], []

    def see(self, features: Mapping[str, NDArray[np.float16]]) -> None:
        for feature in self._bridge.config.features:
            tokens = features.get(feature.name)
            if tokens is None or feature.name in self._seen:
                continue
            if len(tokens) and tokens.shape[1] == feature.size:
                self._seen[feature.name] = fitted(feature, tokens)
        if self._reading is not None:
            self._keep(self._reading, 0, with_mark=False)
            self._network.look(self._reading, self._seen)

    def draft(self, memory: Memory, confirmed: Sequence[int], max_tokens: int) -> list[int]:
        """How the answer may go on."""
        # There is room for so many in a sequence; longer answers are left to others.
        most = self._bridge.config.max_answer_tokens - 1
        max_tokens = min(max_tokens, most - len(confirmed))
        if max_tokens < 1:
            return []
        known, reading = list(confirmed), self.open()
        target_ids = self._bridge.vocabulary.target_ids
        self._keep(reading, _num_common(self._said, known), with_mark=True)
        chance = 1.0
        copy: list[int] = []  # what memory would say next, and how many tokens it found that by
        match = 0
        while (left := len(confirmed) + max_tokens - len(known)) and chance >= MIN_CHANCE:
            if not copy:
                found = memory.propose(self.request.id, known, most - len(known) + 1)
                copy = list(found)
                match = found.match if isinstance(found, Found) else 0
            num_read = min(COPY_TOKENS, left - 1, len(copy))
            # One more than is read: it is what memory suggests after the last.
            ahead = copy[: num_read + 1]
            self._read(memory, reading, known, ahead, num_read, match)
            for token in ahead if num_read < len(ahead) else [*ahead, None]:
                place = len(known)
                word, sure = self._words[place], self._chances[place]
                guess = int(target_ids[word])
                follows = token is not None and (token == guess or sure < SURE)
                known.append(token if follows and token is not None else guess)
                chance *= sure if known[-1] == guess else max(1.0 - sure, 1e-3)
                if known[-1] in self._end_ids or len(known) - len(confirmed) >= max_tokens:
                    return known[len(confirmed) :]
                if not follows or chance < MIN_CHANCE:
                    break
            copy, match = (copy[len(ahead) :], match + len(ahead)) if follows else ([], 0)
            self._keep(reading, _num_common(self._said, known), with_mark=True)
        return known[len(confirmed) :]

    def _keep(self, reading: "Reading", num_said: int, *, with_mark: bool) -> None:
        """Forget what was read beyond so many tokens of the answer."""
        num_guesses = min(num_said + 1, len(self._words)) if with_mark else 0
        del self._said[num_said:], self._words[num_guesses:], self._chances[num_guesses:]
        reading.cut(self._start + num_guesses)

    def _read(
        self,
        memory: Memory,
        reading: "Reading",
        known: list[int],
        ahead: list[int],
        num_ahead: int,
        match: int,
    ) -> None:
        """Read what is not read of ``known``, then so many tokens of memory's copy ``ahead``."""
        read = len(self._words)  # the mark counts as one
        num_known = len(known)
        followed = [*known, *ahead]
        tokens = followed[: num_known + num_ahead]
        own = list(self._bridge.vocabulary.own(tokens[max(0, read - 1) :]))
        if not read:
            own.insert(0, self._answer_mark)
        if not own:
            return
        suggested, matches = [], []
        for place in range(read, read + len(own)):  # so many tokens of the answer are before it
            if place < num_known:
                found = memory.propose(self.request.id, tokens[:place], 1)
                token = found[0] if found else NO_TOKEN
                length = found.match if isinstance(found, Found) else 0
            else:
                token = followed[place] if place < len(followed) else NO_TOKEN
                length = match + place - num_known
            suggested.append(token)
            matches.append(match_kind(length) if token != NO_TOKEN else 0)
        words = self._bridge.vocabulary.own(suggested)
        words[words >= len(self._bridge.vocabulary)] = NO_TOKEN
        guesses = self._network.read_answer(reading, own, words, matches)
        self._said = tokens
        self._words += guesses.own_ids.tolist()
        self._chances += guesses.chances.tolist()


def _num_common(read: Sequence[int], known: Sequence[int]) -> int:
    for place, (one, other) in enumerate(zip(read, known, strict=False)):
        if one != other:
            return place
    return min(len(read), len(known))
