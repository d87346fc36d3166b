"""One simulated engine: what waits on it, what is under way, and how long its next work takes.

It has no clock: whoever drives it says what time it is. In a step the engine takes one prompt that
waits, the oldest first, and one pass of every answer under way, with as long a draft as pays in
that batch. Frames are fed only while no question is under way. A camera has one question under way
at a time; of the windows that end meanwhile the newest is asked next, and the others are dropped.
"""

from bisect import bisect_right
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice, takewhile
from operator import neg
from random import Random

from headstart_research.planning.costs import Costs
from headstart_research.planning.live import LiveWindow
from headstart_research.planning.survival import Survival

KNOWN_ANSWERS = 1000
"""Answers of a stream after which its drafts are all that they come to be."""


@dataclass(frozen=True, slots=True)
class Questions:
    """What every camera asks, and what that costs the engine."""

    costs: Costs
    window: LiveWindow
    num_tokens: int
    survival: Survival = field(default_factory=Survival)
    """Of the drafts after the prompt; empty for an engine without drafts."""
    is_fed: bool = False
    first: Survival | None = None
    """Of the draft that is verified with the prompt; None if it is that of the others."""
    max_windows: int | None = None
    """How many windows the KV cache holds at once, of answers and of frames fed ahead."""
    half_warm_answers: float = 0.0
    """After so many answers of a stream on an engine its drafts are worth half of what they come
    to be worth; 0 where every stream is known from its first answer on."""
    measured_passes: tuple[int, ...] = ()
    """Where given, an answer has as many passes as one of these, drawn at random; what its drafts
    cost is then part of the step."""

    def with_prompt(self) -> Survival:
        """The survival of the draft that is verified with the prompt."""
        return self.survival if self.first is None else self.first


@dataclass(slots=True, eq=False)
class Asked:
    """A window of a camera, and the question about it. Times are those of the clock outside."""

    camera: int
    number: int
    start_s: float
    landed_s: float
    num_fed: int = 0
    missing: int = 0
    first_token_s: float = 0.0
    warmth: float = 1.0
    """The chance that memory has a draft, as far as the age of the stream is concerned."""
    is_retried: bool = False
    """Whether an engine died over it."""


@dataclass(frozen=True, slots=True)
class Work:
    """A piece of work that the engine has decided on."""

    seconds: float
    ended: tuple[Asked, ...] = ()
    """Answered when it is over."""
    prompted: Asked | None = None
    """Its first token is there when it is over."""
    is_feed: bool = False


class EngineModel:
    """The waiting prompts, the answers under way and the growing windows of one engine."""

    def __init__(self, questions: Questions, random: Random) -> None:
        self.growing: deque[Asked] = deque()
        """Windows whose last frame has not landed, in the order in which it will."""
        self._questions, self._random = questions, random
        self._costs, self._window = questions.costs, questions.window
        self._first, self._later = questions.with_prompt().shares, questions.survival.shares
        self._frame_every_s = self._window.window_s / self._window.num_frames
        self._prompts: deque[Asked] = deque()
        self._running: list[Asked] = []
        self._asking: dict[int, Asked] = {}
        self._next: dict[int, Asked] = {}
        self._num_answered: dict[int, int] = {}

    def land(self, asked: Asked) -> Asked | None:
        """A window's last frame is there: its question is asked, or waits for the one before.

        Returns an older window of the camera that is dropped for this one.
        """
        if asked.camera not in self._asking:
            self._ask(asked)
            return None
        dropped = self._next.get(asked.camera)
        self._next[asked.camera] = asked
        return dropped

    def forget(self, asked: Asked) -> bool:
        """A window grows here no longer; False if it did not."""
        if asked not in self.growing:
            return False
        self.growing.remove(asked)
        return True

    def remember(self, camera: int) -> None:
        """The answers of a camera are known from before."""
        self._num_answered[camera] = KNOWN_ANSWERS

    def unanswered(self) -> list[Asked]:
        """What was landed and is not answered; of an engine that has died, what was lost."""
        return [*self._asking.values(), *self._next.values()]

    @property
    def num_under_way(self) -> int:
        """Questions that wait or are being answered."""
        return len(self._asking)

    def _ask(self, asked: Asked) -> None:
        half = self._questions.half_warm_answers
        if half:
            before = self._num_answered.get(asked.camera, 0)
            asked.warmth = before / (before + half)
        self._asking[asked.camera] = asked
        self._prompts.append(asked)

    def work(self, now_s: float) -> Work | None:
        """Decide what to do now; None if there is nothing to do."""
        if self._prompts or self._running:
            return self._step()
        return self._feed(now_s)

    def _step(self) -> Work:
        """One prompt and one pass of the others, together."""
        prompted = self._prompts.popleft() if self._prompts and self._has_room() else None
        batch = len(self._running)
        with_prompt = batch + (prompted is not None)
        drafted = self._draft_tokens(self._later, with_prompt)
        seconds = self._costs.pass_s(drafted, batch) if batch else 0.0
        for asked in self._running:
            asked.missing -= 1 + self._accepted(self._later, drafted, asked.warmth)
        if prompted is not None:
            opening = self._draft_tokens(self._first, with_prompt)
            num_unfed = self._window.num_frames - prompted.num_fed
            seconds += self._window.prompt_s(self._costs, num_unfed)
            seconds += self._costs.pass_s(opening) - self._costs.step_s
            prompted.missing = self._missing(opening, prompted.warmth)
            self._running.append(prompted)
        ended = tuple(asked for asked in self._running if asked.missing <= 0)
        return Work(seconds, ended, prompted)

    def _missing(self, opening: int, warmth: float) -> int:
        """Tokens after the first pass; where passes were measured, each of them is one token."""
        if self._questions.measured_passes:
            return self._random.choice(self._questions.measured_passes) - 1
        accepted = self._accepted(self._first, opening, warmth)
        return self._questions.num_tokens - 1 - accepted

    def _has_room(self) -> bool:
        most = self._questions.max_windows
        return most is None or len(self._running) < max(1, most)

    def end(self, asked: Asked) -> None:
        """An answer is complete: the camera's next question may begin."""
        self._running.remove(asked)
        del self._asking[asked.camera]
        if self._questions.half_warm_answers:
            self._num_answered[asked.camera] = self._num_answered.get(asked.camera, 0) + 1
        if asked.camera in self._next:
            self._ask(self._next.pop(asked.camera))

    def _draft_tokens(self, shares: tuple[float, ...], batch: int) -> int:
        """As many tokens as earn their price in a batch of this size: the budget's rule."""
        saved_s = self._costs.step_s / batch
        worth_s = [share * saved_s - self._costs.verify_token_s for share in shares]
        length = sum(1 for _ in takewhile(lambda each_s: each_s > 0, worth_s))
        return length if sum(worth_s[:length]) * batch > self._costs.verify_pass_s else 0

    def _accepted(self, shares: tuple[float, ...], drafted: int, warmth: float) -> int:
        """How many tokens of a draft are accepted: as many as have shares above a drawn one."""
        if not drafted or (warmth < 1.0 and self._random.random() >= warmth):
            return 0
        return bisect_right(shares, -self._random.random(), 0, drafted, key=neg)

    def _feed(self, now_s: float) -> Work | None:
        """Feed the frames that have come of the window that ends first."""
        if not self._questions.is_fed:
            return None
        for asked in self._feedable(now_s):
            num_new = self._num_arrived(asked, now_s) - asked.num_fed
            if num_new > 0:
                asked.num_fed += num_new
                return Work(self._window.feeding_s(self._costs, num_new), is_feed=True)
        return None

    def _feedable(self, now_s: float) -> Iterator[Asked]:
        """Growing windows, as far as the KV cache has room for them."""
        begun = takewhile(lambda asked: asked.start_s <= now_s, self.growing)
        return islice(begun, self._questions.max_windows)

    def _num_arrived(self, asked: Asked, now_s: float) -> int:
        """Without the last frame, which comes with the question."""
        num = int((now_s - asked.start_s) / self._frame_every_s + 1e-9)
        return min(num, self._window.num_frames - 1)

    def next_frame_s(self, now_s: float) -> float:
        """When a frame arrives that an idle engine would feed; infinite if none will."""
        if not self._questions.is_fed:
            return float("inf")
        soon = islice(self.growing, 1 + sum(1 for _ in self._feedable(now_s)))
        return min(
            (
                asked.start_s + (max(0, self._num_arrived(asked, now_s)) + 1) * self._frame_every_s
                for asked in soon
            ),
            default=float("inf"),
        )
