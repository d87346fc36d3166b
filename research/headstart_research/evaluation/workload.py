"""Workloads: which question is asked about which clip of the held-out streams.

All questions were asked about all clips, so a workload is a selection.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from headstart.speculation.drafter import DraftRequest, Features, StreamKey
from headstart_research.bench.log import LoggedAnswer
from headstart_research.evaluation.asked_clips import AskedClip, AskedStreams

ONE_QUESTION, IN_TURN = "one-question", "in-turn"
FIRST_CLIPS = 3
"""Of a stream: there its own answers say least."""
NEW_SCENE = 1 / 3
"""The share of new tokens in what is said about a clip, above which it shows a new scene. Answers
share much of their wording: with a half, where the lab's drives turn into another street three of
four clips would not count."""
TENANT = ""


@dataclass(frozen=True, eq=False, slots=True)
class HeldOutAnswer:
    """One question about one clip, and what is known of the clip."""

    logged: LoggedAnswer
    features: Mapping[str, Features]
    is_first: bool
    """Whether the clip is among the first ones of its stream."""
    is_new_scene: bool
    """Whether much is said that was not said about the clip before; see `share_of_new`."""


Stream = tuple[HeldOutAnswer, ...]
"""In the order in which it was asked."""


@dataclass(frozen=True, eq=False)
class Workload:
    """The answers of each stream."""

    name: str
    words: str
    streams: tuple[Stream, ...]

    @property
    def answers(self) -> list[HeldOutAnswer]:
        """Of all streams, one stream after another."""
        return [answer for stream in self.streams for answer in stream]

    def about(self) -> dict[str, str | int]:
        answers = self.answers
        return {
            "words": self.words,
            "streams": len(self.streams),
            "answers": len(answers),
            "tokens": sum(len(answer.logged.tokens) for answer in answers),
            "new_scenes": sum(answer.is_new_scene for answer in answers),
            "first_clips": sum(answer.is_first for answer in answers),
        }


def workloads(held_out: AskedStreams) -> list[Workload]:
    """One question about every clip; and, where there are several questions, each in its turn."""
    questions = held_out.manifest.questions
    one = _cut(ONE_QUESTION, "one question about every clip", held_out, lambda place: questions[0])
    if len(questions) == 1:
        return [one]
    words = f"{len(questions)} questions in turn, one about each clip"
    turns = _cut(IN_TURN, words, held_out, lambda place: questions[place % len(questions)])
    return [one, turns]


def share_of_new(clip: AskedClip, before: AskedClip) -> float:
    """The share of the tokens said about a clip that were not said, or not as often, before.

    All questions count, each against the same question about the clip before: so a scene is new
    whichever of them a workload asks.
    """
    num_new = num_tokens = 0
    for question, record in clip.asked.items():
        said = Counter(record.answer_ids)
        num_new += (said - Counter(before.asked[question].answer_ids)).total()
        num_tokens += said.total()
    return num_new / num_tokens


def _cut(
    name: str, words: str, held_out: AskedStreams, question_at: Callable[[int], str]
) -> Workload:
    streams = (
        tuple(
            _asked(StreamKey(TENANT, stream), clips, place, question_at(place))
            for place in range(len(clips))
        )
        for stream, clips in held_out.streams.items()
    )
    return Workload(name, words, tuple(streams))


def _asked(
    stream: StreamKey, clips: Sequence[AskedClip], place: int, question: str
) -> HeldOutAnswer:
    asked = clips[place].asked[question]
    name = f"{stream.stream}/{place}"
    request = DraftRequest(name, stream, question, asked.prompt_end)
    return HeldOutAnswer(
        LoggedAnswer(request, asked.answer_ids),
        asked.features,
        is_first=place < FIRST_CLIPS,
        is_new_scene=place > 0 and share_of_new(clips[place], clips[place - 1]) > NEW_SCENE,
    )
